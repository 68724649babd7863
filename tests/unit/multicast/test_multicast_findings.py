"""What does not fit together in a core is found, and nothing where all does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.config.policy import LinkAggregation, Policy, Role, Rule, StaticMember, Tenant
from controller.config.settings import Limits, Multicast, RouterPorts
from controller.config.terms import Labelled, NamedSwitch, SwitchPort
from controller.config.vlans import UNTAGGED_ONLY, PortVlans, VlanEntry, Vlans
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.dpids import format_dpid

GROUP = parse_ip("239.1.2.3")
OPEN = Policy(
    default_allow=True, limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
)


def found(world):
    return [finding for finding in world.core.findings.search() if finding is not None]


def kinds(world):
    return [(finding["kind"], finding.get("dpid"), finding.get("port_no")) for finding in found(world)]


@pytest.mark.parametrize("number", range(4))
def test_nothing_is_found_whatever_happened(make_world, number):
    world, draw = make_world("fattree", OPEN, seed=number), random.Random(number)
    names = sorted(world.hosts)
    pairs = sorted(tuple(sorted(pair)) for pair in world.links)
    for _ in range(60):
        group, name = bytes((239, 1, 1, draw.randrange(4))), draw.choice(names)
        what = draw.randrange(7)
        if what < 3:
            world.join(name, group)
        elif what == 3:
            world.leave(name, group)
        elif what == 4:
            world.send(name, group)
        elif what == 5:
            pair = draw.choice(pairs)
            (world.mend if frozenset(pair) in world.down_links else world.cut)(*pair)
        else:
            world.advance(draw.random() * 3)
        for _, _step in zip(range(draw.randrange(6)), world.steps(), strict=False):
            pass
        assert found(world) == []


def test_settings_of_the_policy_for_what_is_gone_are_found(make_world):
    world = make_world("leaf-spine", OPEN)
    here, gone = world.hosts["h1"].dpid, 4711
    ports = frozenset({SwitchPort(gone, 1), SwitchPort(here, 99), SwitchPort(here, world.hosts["h1"].port_no)})
    host = (SwitchPort(gone, 2),)
    policy = replace(
        OPEN,
        switches=(NamedSwitch("here", here, ((77, "far"),)), NamedSwitch("old", gone)),
        labels=(Labelled(here, None, (("pod", "1"),)), Labelled(gone, 3, (("pod", "1"),))),
        static_members=(StaticMember(GROUP, SwitchPort(gone, 4), 12),),
        link_aggregations=(LinkAggregation("server7", "static", (SwitchPort(here, 96), SwitchPort(gone, 5))),),
        vlans=Vlans(
            entries=(
                VlanEntry(UNTAGGED_ONLY, ports=(SwitchPort(here, 97),), line=14),
                VlanEntry(UNTAGGED_ONLY, switches=(here, gone), line=15),
            )
        ),
        multicast=Multicast(router_ports=RouterPorts(static=ports)),
        tenants=(Tenant("studio", host),),
        rules=(Rule("one", (), frozenset({Role.ROUTER}), True, hosts=(SwitchPort(here, 98),)),),
    )
    world.feed(PolicyLoaded(policy))
    world.settle()
    missing, no_port = "setting-without-switch", "setting-without-port"
    assert set(kinds(world)) == {
        *((no_port, here, port_no) for port_no in (77, 96, 97, 98, 99)),
        *((missing, gone, port_no) for port_no in (None, 1, 2, 3, 4, 5)),
    }
    texts = [finding["text"] for finding in found(world)]
    assert any(text.startswith("static_members on line 12 in the policy file") for text in texts)
    assert any(text.startswith("vlans on line 14 in the policy file names port") for text in texts)
    assert any(text.startswith("vlans on line 15 in the policy file names switch") for text in texts)
    assert any("'studio'" in text for text in texts) and any("'one'" in text for text in texts)


def test_a_link_aggregation_group_with_legs_in_parts_that_no_link_joins_is_found(make_world):
    world = make_world("leaf-spine", OPEN)
    legs = tuple(SwitchPort(*world.hosts[name].place) for name in ("h1", "h3"))
    world.feed(PolicyLoaded(replace(OPEN, link_aggregations=(LinkAggregation("server7", "static", legs),))))
    assert found(world) == []
    for pair in sorted(sorted(pair) for pair in world.links if 2 in pair):
        world.cut(*pair)
    world.settle()
    (finding,) = found(world)
    assert (finding["kind"], finding["dpid"], finding["port_no"]) == ("aggregation-in-two-fabrics", *legs[0])
    assert f"{legs[0]} and {legs[1]} of the link aggregation group server7" in finding["text"]


def test_a_static_member_of_an_operator_that_waits_is_found(make_world):
    world = make_world("leaf-spine", OPEN)
    host = world.hosts["h1"]
    world.do("static-member-add", dpid=host.dpid, port_no=host.port_no, group="239.1.2.3")
    assert found(world) == []
    world.core.operator.static.served.clear()
    world.core.switches.edges.discard(host.place)
    assert ("static-member-waits", host.dpid, host.port_no) in kinds(world)


def test_members_trees_and_senders_without_a_reason_are_found(make_world):
    world = make_world("leaf-spine", OPEN)
    world.join("h3")
    world.send("h1")
    world.settle()
    core, receiver, sender = world.core, world.hosts["h3"], world.hosts["h1"]
    assert found(world) == []

    core.switches.edges -= {receiver.place, sender.place}
    assert kinds(world) == [("members-without-port", *receiver.place), ("sender-without-port", *sender.place)]
    core.switches.edges |= {receiver.place, sender.place}

    group = core.plane.groups[GROUP]
    interests = group.interests.pop(receiver.dpid)
    assert kinds(world) == [("member-without-tree", *receiver.place)]
    senders = dict(group.senders)
    group.senders.clear()
    assert {kind for kind, *_ in kinds(world)} == {"member-without-tree", "group-without-reason"}
    group.senders.update(senders)
    group.interests[receiver.dpid] = interests

    del core.plane.groups[GROUP]
    assert {kind for kind, *_ in kinds(world)} == {"tree-without-group", "member-without-tree"}
    assert all(finding["group"] == "239.1.2.3" for finding in found(world))


def log(world):
    """The last value of each key that was written."""
    return {entry.key: entry.value for entry in world.log.read()}


def unlike(world, check, values=None):
    steps = check.search(log(world) if values is None else values, world.now)
    return [(finding["group"], finding["text"].partition(": ")[2]) for finding in steps if finding is not None]


@pytest.mark.parametrize("number", range(3))
def test_the_journal_says_what_is_whatever_happens_meanwhile(make_world, number):
    world, draw = make_world("leaf-spine", OPEN, seed=number), random.Random(number)

    def happens():
        name, group = draw.choice(sorted(world.hosts)), bytes((239, 1, 1, draw.randrange(5)))
        draw.choice([world.join, world.join, world.leave, world.send])(name, group)
        if draw.random() < 0.5:
            world.advance(draw.random() * 0.3)

    for _ in range(40):
        for _ in range(3):
            happens()
        check = world.core.journal_check()
        happens()
        steps = check.search(log(world), world.now)
        for step in steps:
            assert step is None
            if draw.random() < 0.2:
                happens()
    world.advance(1.0)
    assert unlike(world, world.core.journal_check()) == []
    assert len([key for key in log(world) if key.startswith("tree/")]) == 5


def test_what_the_journal_has_not_or_has_too_much_is_found(make_world):
    world = make_world("leaf-spine", OPEN)
    for name in ("h3", "h5"):
        world.join(name)
    world.send("h1")
    world.advance(1.0)
    values = log(world)
    name = "239.1.2.3"
    heard = {key: value for key, value in values.items() if key.startswith("heard/")}
    assert unlike(world, world.core.journal_check()) == []
    assert unlike(world, world.core.journal_check(), {}) == [(name, "ports with members, senders, links.")]
    key, value = next((key, value) for key, value in heard.items() if value["members"])
    one = {**values, key: {**value, "members": []}}
    assert unlike(world, world.core.journal_check(), one) == [(name, "ports with members.")]
    key, value = next((key, value) for key, value in heard.items() if value["senders"])
    none = {**values, key: {**value, "senders": []}}
    assert unlike(world, world.core.journal_check(), none) == [(name, "senders.")]
    other = {**values, f"tree/{name}": {"group": name, "tree_version": 0, "links": []}}
    assert unlike(world, world.core.journal_check(), other) == [(name, "links.")]
    assert unlike(world, world.core.journal_check([f"tree/{name}", "drain/1"]), other) == []
    more = {**values, "heard/239.9.9.9/1": value, "heard/nonsense/1": value, "drain/1": {"dpid": 1}}
    assert [group for group, _ in unlike(world, world.core.journal_check(), more)] == ["239.9.9.9"]


def test_vlans_of_ports_that_turn_out_to_be_cabled_to_each_other_are_named(make_world):
    """Two ends of a cable that are in different VLANs by the policy are in all, and it is told."""
    world = make_world("fattree", OPEN)
    place, far = (SwitchPort(*end) for end in world.links[min(world.links, key=sorted)])
    entries = (VlanEntry(PortVlans(10, frozenset()), ports=(place,), line=7),)
    entries += (VlanEntry(PortVlans(20, frozenset()), ports=(far,), line=8),)
    world.feed(PolicyLoaded(replace(OPEN, vlans=Vlans(entries=entries))))
    world.settle()
    told = [finding for finding in found(world) if finding["kind"] == "vlan-port-between-switches"]
    assert [(finding["dpid"], finding["port_no"]) for finding in told] == [place, far]
    names = [f"port {format_dpid(end.dpid)}:{end.port_no}" for end in (place, far)]
    assert f"vlans on line 7 of the policy file names {names[0]}, which is cabled to {names[1]}" in told[0]["text"]
