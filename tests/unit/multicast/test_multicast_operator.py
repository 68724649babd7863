"""What operators do: switches drained without loss, static members, router ports, and all of it after a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.config.overcommit_settings import Overcommit
from controller.config.policy import AddressPool, Policy
from controller.config.service_class_settings import Aliases
from controller.config.settings import Limits, Multicast
from controller.config.terms import Prefix
from controller.effects import ActionRefused, ActionTaken
from controller.kernel.drains import avoided_links
from controller.multicast.actions import ACTIONS, ActionInvalid, read_action
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.events import PortRole, PortRoleChanged
from topology.generators import make
from topology.graph import Graph

from .conftest import bundles

GROUP = parse_ip("239.1.2.3")
NAME = "239.1.2.3"
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=8),
    multicast=Multicast(fast_leave=True),
)


def check(world: Any, members: list[str], senders: list[str]) -> None:
    for sender in senders:
        assert world.send(sender) == {name: 1 for name in members if name != sender}


def started(world: Any, members: list[str], senders: list[str]) -> None:
    for name in members:
        world.join(name)
    for name in senders:
        world.send(name)
    world.settle()
    check(world, members, senders)


def on_the_way(world: Any) -> set[int]:
    """Return the switches that packets of the group pass from one switch to another."""
    tree = world.core.forest.tree(GROUP)
    return {dpid for dpid, near in tree.adjacent.items() if len(near) > 1}


def done(outcome: Any) -> dict[str, Any]:
    assert isinstance(outcome, ActionTaken), outcome
    return outcome.document


def refused(outcome: Any) -> str:
    assert isinstance(outcome, ActionRefused), outcome
    assert outcome.text.startswith(f"{outcome.field}: ")
    return outcome.field


# Drained switches


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "leaf-spine", "ring"])
def test_a_drained_switch_is_left_and_taken_up_again_without_loss(make_world, graph, version):
    """Packets are sent between every single edit, while edits reach switches in any order."""
    left = 0
    for seed in range(3):
        world = make_world(graph, POLICY, version, seed=seed)
        names = list(world.hosts)
        count = min(5, len(names) - 2)
        members, senders = world.random.sample(names, count), world.random.sample(names, 2)
        started(world, members, senders)
        for dpid in sorted(on_the_way(world)):
            answer = done(world.do("switch-drain", dpid=dpid))
            for _ in world.steps():
                check(world, members, senders)
            assert (dpid in on_the_way(world)) == (answer["transit"] == [NAME])
            left += dpid not in on_the_way(world)
            done(world.do("switch-undrain", dpid=dpid))
            for _ in world.steps():
                check(world, members, senders)
        assert not world.refused_edits()
        assert world.core.installer.plan_count == 0
    assert left


def test_hosts_of_a_drained_switch_stay_served_and_others_come_and_go(make_world):
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    dpid = world.hosts["h9"].dpid
    answer = done(world.do("switch-drain", dpid=dpid))
    assert (answer["transit"], answer["local_count"]) == ([], 1)
    for _ in world.steps():
        check(world, ["h2", "h9"], ["h1"])
    world.join("h10")
    world.send("h10")
    world.settle()
    check(world, ["h2", "h9", "h10"], ["h1", "h10"])
    assert dpid not in on_the_way(world)
    world.leave("h9")
    world.settle()
    check(world, ["h2", "h10"], ["h1", "h10"])


def test_new_trees_avoid_a_drained_switch(make_world):
    world = make_world("leaf-spine", POLICY)
    spine = max(world.switches)
    world.do("switch-drain", dpid=spine)
    for number in range(8):
        group = bytes((239, 3, 0, number))
        world.join("h1", group)
        world.join("h3", group)
        tree = world.core.forest.tree(group)
        assert spine not in tree.adjacent


def test_a_switch_that_joins_the_fabric_keeps_its_trees_and_says_which(make_world):
    world = make_world("tree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    (root,) = [dpid for dpid in on_the_way(world) if len(world.core.forest.tree(GROUP).adjacent[dpid]) > 1][:1]
    answer = done(world.do("switch-drain", dpid=root))
    assert answer["transit"] == [NAME]
    assert answer["transit_count"] == 1
    for _ in world.steps():
        check(world, ["h2", "h9"], ["h1"])


def test_a_link_that_fails_while_a_switch_is_drained_is_made_up_for(make_world):
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    dpid = world.hosts["h9"].dpid
    done(world.do("switch-drain", dpid=dpid))
    world.settle()
    (above,) = world.core.forest.graph.neighbours(dpid)
    world.cut(dpid, above)
    world.settle()
    check(world, ["h2", "h9"], ["h1"])
    world.mend(dpid, above)
    world.settle()
    check(world, ["h2", "h9"], ["h1"])
    assert len(world.core.forest.graph.neighbours(dpid)) == 1


def test_a_drained_switch_that_fails_and_comes_back_is_still_drained(make_world):
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    (first, *_) = sorted(on_the_way(world) - {host.dpid for host in world.hosts.values()})
    done(world.do("switch-drain", dpid=first))
    world.settle()
    world.disconnect(first)
    world.settle()
    check(world, ["h2", "h9"], ["h1"])
    world.reconnect(first)
    world.settle()
    check(world, ["h2", "h9"], ["h1"])
    assert first not in on_the_way(world)


def test_which_links_are_avoided_depends_on_the_fabric_and_on_what_is_drained_alone(make_world):
    """In whatever order switches are drained and links fail, trees end with the same links to use."""
    worlds = [make_world("fattree", POLICY, seed=seed) for seed in range(4)]
    drained = sorted(worlds[0].switches)[::3]
    pairs = sorted(sorted(pair) for pair in worlds[0].links)[::7]
    for world in worlds:
        todo = [("drain", dpid) for dpid in drained] + [("cut", pair) for pair in pairs]
        world.random.shuffle(todo)
        for what, which in todo:
            if what == "drain":
                world.do("switch-drain", dpid=which)
            else:
                world.cut(*which)
        world.settle()
    found = [set(map(frozenset, ((u, v) for u, v, *_ in world.core.forest.graph.links()))) for world in worlds]
    assert found[1:] == found[:-1]
    assert all(world.core.forest.graph.neighbours(dpid) for world in worlds for dpid in drained)


def test_on_one_path_alone_drains_change_nothing(make_world):
    one, other = make_world("tree", POLICY), make_world("tree", POLICY, seed=3)
    for world in (one, other):
        started(world, ["h2", "h9"], ["h1"])
    for dpid in (1, 3, 2):
        other.do("switch-drain", dpid=dpid)
    other.do("switch-undrain", dpid=3)
    other.settle()
    assert one.rules() == other.rules()


def components(graph: Graph, without: set[frozenset[Any]]) -> set[frozenset[Any]]:
    near: dict[Any, set[Any]] = {node: set() for node in graph.switches()}
    for link in graph.links():
        if link.ends not in without and link.u in near and link.v in near:
            near[link.u].add(link.v)
            near[link.v].add(link.u)
    parts = set()
    left = set(near)
    while left:
        part, queue = set(), [left.pop()]
        while queue:
            node = queue.pop()
            if node not in part:
                part.add(node)
                queue += near[node]
        left -= part
        parts.add(frozenset(part))
    return parts


@pytest.mark.parametrize("name", ["fattree", "jellyfish", "tree", "bundles"])
def test_avoided_links_disconnect_nothing_and_leave_no_way_through_that_is_not_needed(name):
    graph = bundles() if name == "bundles" else make(name)
    graph = graph.subgraph(graph.switches())
    switches = graph.switches()
    whole = components(graph, set())
    for count in (1, 3, len(switches) // 2, len(switches)):
        drained = set(switches[::-1][:count])
        avoided = avoided_links(graph, drained)
        assert components(graph, avoided) == whole
        for link in graph.links():
            if {link.u, link.v} & drained and link.ends not in avoided:
                assert components(graph, {*avoided, link.ends}) != whole


@pytest.mark.parametrize("action", ["switch-drain", "switch-undrain"])
def test_drains_of_no_switch_are_refused(make_world, action):
    assert refused(make_world("tree", POLICY).do(action, dpid=99)) == "dpid"


# Static members


def test_a_static_member_is_given_its_group_whatever_hosts_and_policy_say(make_world, version):
    world = make_world("fattree", replace(POLICY, default_allow=False), version)
    host = world.hosts["h9"]
    answer = done(world.do("static-member-add", group=NAME, dpid=host.dpid, port_no=host.port_no))
    assert answer["served"]
    world.settle()
    world.feed(PolicyLoaded(POLICY))
    world.send("h1")
    world.settle()
    check(world, ["h9"], ["h1"])
    world.join("h9")
    world.leave("h9")
    world.settle()
    check(world, ["h9"], ["h1"])
    world.record("h9", RecordType.ALLOW_NEW_SOURCES, GROUP, world.hosts["h5"].v4)
    world.settle()
    check(world, ["h9"], ["h1"])
    done(world.do("static-member-remove", group=NAME, dpid=host.dpid, port_no=host.port_no))
    world.settle()
    assert world.send("h1") == {}
    assert world.send("h5") == {"h9": 1}


def test_a_static_member_is_served_while_its_port_leads_to_hosts(make_world):
    world = make_world("leaf-spine", POLICY)
    dpid, port_no = world.hosts["h3"].place
    world.send("h1")
    world.feed(PortRoleChanged(dpid, port_no, PortRole.DOWN))
    assert not done(world.do("static-member-add", group=NAME, dpid=dpid, port_no=port_no))["served"]
    world.settle()
    assert world.core.forest.tree(GROUP).receivers == frozenset()
    world.feed(PortRoleChanged(dpid, port_no, PortRole.EDGE))
    world.settle()
    check(world, ["h3"], ["h1"])
    world.join("h3")
    world.feed(PortRoleChanged(dpid, port_no, PortRole.DOWN))
    world.settle()
    assert world.core.forest.tree(GROUP).receivers == frozenset()


def test_static_members_and_joins_in_any_order_lead_to_the_same_rules(make_world):
    worlds = [make_world("tree", POLICY) for _ in range(2)]
    host = worlds[0].hosts["h9"]
    steps = [
        lambda world: world.join("h9"),
        lambda world: world.do("static-member-add", group=NAME, dpid=host.dpid, port_no=host.port_no),
        lambda world: world.join("h2"),
        lambda world: world.send("h1"),
    ]
    for world, order in zip(worlds, (steps, steps[::-1]), strict=True):
        for step in order:
            step(world)
        world.leave("h9")
        world.settle()
    assert worlds[0].rules() == worlds[1].rules()
    check(worlds[0], ["h2", "h9"], ["h1"])


def test_static_members_that_cannot_be_are_refused(make_world):
    world = make_world("leaf-spine", replace(POLICY, limits=replace(POLICY.limits, groups=9)))
    dpid, port_no = world.hosts["h3"].place
    trunk = next(end for ends in world.links.values() for end in ends)

    def add(group: str = NAME, dpid: int = dpid, port_no: int = port_no) -> Any:
        return world.do("static-member-add", group=group, dpid=dpid, port_no=port_no)

    assert refused(add(dpid=77)) == "dpid"
    assert refused(add(port_no=77)) == "port_no"
    assert refused(add(dpid=trunk[0], port_no=trunk[1])) == "port_no"
    assert refused(add("224.0.0.5")) == "group"
    assert refused(add("232.1.1.1")) == "group"
    for number in range(8):
        done(add(f"239.9.0.{number}"))
    assert refused(add()) == "port_no"
    done(add("239.9.0.0"))
    world.join("h1", bytes((239, 8, 8, 8)))
    assert refused(add(dpid=world.hosts["h1"].dpid, port_no=world.hosts["h1"].port_no)) == "group"
    assert refused(world.do("static-member-remove", group=NAME, dpid=dpid, port_no=port_no)) == "group"


# Router ports


def test_a_declared_router_port_gets_every_group_of_its_family(make_world):
    world = make_world("leaf-spine", POLICY)
    started(world, ["h2"], ["h1"])
    dpid, port_no = world.hosts["h5"].place
    assert done(world.do("router-port-add", dpid=dpid, port_no=port_no, family=4))["router"]
    world.settle()
    check(world, ["h2", "h5"], ["h1"])
    group_v6 = parse_ip("ff0e::1:2:3")
    world.join("h2", group_v6)
    world.send("h1", group_v6)
    world.settle()
    assert world.send("h1", group_v6) == {"h2": 1}
    world.feed(PolicyLoaded(POLICY))
    world.settle()
    check(world, ["h2", "h5"], ["h1"])
    done(world.do("router-port-remove", dpid=dpid, port_no=port_no, family=4))
    world.settle()
    check(world, ["h2"], ["h1"])
    assert refused(world.do("router-port-remove", dpid=dpid, port_no=port_no, family=4)) == "port_no"
    assert refused(world.do("router-port-add", dpid=dpid, port_no=99, family=4)) == "port_no"


# The rest


def test_a_group_is_built_anew_without_loss(make_world, version):
    """A tree that grew with members who left is made the smallest again."""
    changed = 0
    graph = make("jellyfish", {"switches": 20, "degree": 3, "hosts_per_switch": 1})
    for seed in range(4):
        world = make_world(graph, POLICY, version, seed=seed)
        names = list(world.hosts)
        members, senders = world.random.sample(names, 9), [names[0]]
        started(world, members, senders)
        for name in members[:5]:
            world.leave(name)
        world.settle()
        answer = done(world.do("group-rebuild", group=NAME))
        changed += answer["changed"]
        assert answer["changed"] == (answer["links"] < answer["links_before"])
        for _ in world.steps():
            check(world, members[5:], senders)
    assert changed
    world = make_world("leaf-spine", POLICY)
    assert refused(world.do("group-rebuild", group=NAME)) == "group"


def test_counters_begin_anew(make_world):
    world = make_world("leaf-spine", replace(POLICY, default_allow=False))
    world.join("h1")
    assert world.core.counters["membership-refused"] == 1
    assert world.core.admission.counters()["default"]["deny"] == 1
    done(world.do("counters-reset"))
    assert not world.core.counters
    assert world.core.admission.counters()["default"] == {"allow": 0, "deny": 0}
    world.join("h2")
    assert world.core.admission.counters()["default"]["deny"] == 1


def test_what_was_set_outlasts_a_restart_without_one_edit(make_world):
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h6"], ["h1"])
    place, router = world.hosts["h9"], world.hosts["h16"]
    first = min(on_the_way(world) - {host.dpid for host in world.hosts.values()})
    done(world.do("switch-drain", dpid=first))
    done(world.do("static-member-add", group=NAME, dpid=place.dpid, port_no=place.port_no))
    done(world.do("static-member-add", group="239.7.7.7", dpid=place.dpid, port_no=place.port_no))
    done(world.do("router-port-add", dpid=router.dpid, port_no=router.port_no, family=4))
    world.advance(1.0)
    members = ["h2", "h6", "h9", "h16"]
    check(world, members, ["h1"])
    assert first not in on_the_way(world)
    world.told_drained = ()
    world.restart()
    world.connect_all()
    world.settle()
    check(world, members, ["h1"])
    world.advance(30.0)
    assert world.applied == 0
    check(world, members, ["h1"])
    assert world.core.switches.drained == {first}
    assert world.told_drained == (first,)
    assert first not in on_the_way(world)
    done(world.do("switch-undrain", dpid=first))
    assert world.told_drained == ()
    done(world.do("static-member-remove", group=NAME, dpid=place.dpid, port_no=place.port_no))
    done(world.do("router-port-remove", dpid=router.dpid, port_no=router.port_no, family=4))
    world.advance(1.0)
    world.restart()
    world.connect_all()
    world.settle()
    check(world, ["h2", "h6"], ["h1"])
    assert world.core.switches.drained == set()


@pytest.mark.parametrize(
    ("name", "fields", "field"),
    [
        ("switch-drain", {}, "dpid"),
        ("switch-drain", {"dpid": "1"}, "dpid"),
        ("switch-drain", {"dpid": True}, "dpid"),
        ("switch-drain", {"dpid": -1}, "dpid"),
        ("switch-drain", {"dpid": 1 << 64}, "dpid"),
        ("switch-drain", {"dpid": 1, "more": 2}, "more"),
        ("static-member-add", {"dpid": 1, "port_no": 0, "group": NAME}, "port_no"),
        ("static-member-add", {"dpid": 1, "port_no": 1, "group": "10.0.0.1"}, "group"),
        ("static-member-add", {"dpid": 1, "port_no": 1, "group": "<b>"}, "group"),
        ("static-member-remove", {"dpid": 1, "port_no": 1, "group": 7}, "group"),
        ("router-port-add", {"dpid": 1, "port_no": 1, "family": 5}, "family"),
        ("router-port-remove", {"dpid": 1, "port_no": 1, "family": "4"}, "family"),
        ("group-rebuild", {"group": None}, "group"),
        ("counters-reset", {"all": True}, "all"),
    ],
)
def test_the_field_at_fault_is_named(name, fields, field):
    with pytest.raises(ActionInvalid, match=f"^{field}: ") as caught:
        read_action(name, fields)
    assert caught.value.field == field


def test_every_action_leaves_an_event(make_world):
    world = make_world(
        "leaf-spine",
        replace(
            POLICY,
            aliases=Aliases(mode="dynamic"),
            overcommit=Overcommit(mode="swap"),
            pools=(AddressPool("video", (Prefix(parse_ip("239.10.0.0"), 24),)),),
        ),
    )
    world.join("h1")
    world.send("h3")
    world.join("h1", parse_ip("239.8.8.8"))
    dpid, port_no = world.hosts["h3"].place
    gone = world.hosts["h5"].dpid
    assert gone != dpid
    world.disconnect(gone)
    fields = {
        "switch-forget": {"dpid": gone},
        "static-member-add": {"group": NAME, "dpid": dpid, "port_no": port_no},
        "router-port-add": {"family": 6, "dpid": dpid, "port_no": port_no},
        "switch-drain": {"dpid": dpid},
        "group-rebuild": {"group": NAME},
        "alias-add": {"group": NAME},
        "group-swap-in": {"group": "239.8.8.8"},
        "group-swap-out": {"group": "239.8.8.8"},
        "group-pin": {"group": NAME},
        "port-label-add": {"dpid": dpid, "port_no": port_no, "key": "room", "value": "a"},
        "port-label-remove": {"dpid": dpid, "port_no": port_no, "key": "room"},
        "switch-label-add": {"dpid": dpid, "key": "rack", "value": "b7"},
        "switch-label-remove": {"dpid": dpid, "key": "rack"},
        "address-take": {"pool": "video", "name": "cam7"},
        "address-release": {"pool": "video", "name": "cam7"},
        "counters-reset": {},
    }
    log = world.core.sections.events.section
    version = log.changes(0, 1000)["version"]
    for name in (name for name in ACTIONS if not name.startswith("maintenance-")):
        done(world.do(name, **fields.get(name, fields.get(name.replace("remove", "add").replace("un", ""), {}))))
        put = log.changes(version, 1000)["put"]
        version = log.changes(version, 1000)["version"]
        assert len(put) == (name != "switch-forget"), "the alarms, which are asked to forget, tell of it"
