"""Multicast VLAN registration: receivers of some VLANs get groups of a source VLAN, one copy on each link."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.config.multicast_settings import Proxy, RouterPorts
from controller.config.policy import Role, Rule, StaticMember, Tenant
from controller.config.registrations import Registrations
from controller.config.terms import SwitchPort, parse_prefix
from controller.config.vlans import PortVlans
from controller.effects import ActionTaken
from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.wire.addresses import format_ip, parse_ip
from controller.wire.encode import encode
from controller.wire.ethernet import without_tag
from controller.wire.frame import decode
from controller.wire.packets import PimHello, Query, RecordType, Report
from controller.wire.udp import encode_udp
from wire_frames import fields_of

from .conftest import OPEN
from .registered_world import (
    EVERYBODY,
    GROUP,
    GROUP_V6,
    HOME,
    NAME,
    OTHER,
    PORTS,
    REGISTERED,
    SHOP,
    SOURCE,
    RegisteredWorld,
    access,
    join_all,
)
from .vlan_world import started


@pytest.fixture
def world():
    return RegisteredWorld()


def test_every_receiver_has_one_copy_with_its_own_tag_and_every_link_one(world):
    join_all(world)
    assert started(world, "h1", GROUP) == EVERYBODY
    world.crossed.clear()
    world.sends("h1", GROUP)
    assert len(world.crossed) == world.core.forest.tree(NAME).size > 0
    assert set(world.crossed.values()) == {1}
    assert list(world.core.plane.groups) == [NAME]
    assert not world.refused_edits()


def test_the_first_packets_reach_receivers_before_there_are_entries(world):
    join_all(world)
    assert world.sends("h1", GROUP) == EVERYBODY


def test_other_groups_stay_in_their_vlans(world):
    for name in ("h2", "h3"):
        world.joins(name, OTHER)
    world.settle()
    assert started(world, "h1", OTHER) == {("h2", ()): 1}
    assert started(world, "h9", OTHER) == {("h3", ()): 1}


def test_receivers_of_ipv6_groups_and_of_sources(world):
    world.asks_v6("h3")
    world.asks_v6("h5", SHOP)
    host = world.hosts["h1"]
    world.asks_for("h9", host.v4)
    world.asks_for("h5", parse_ip("10.9.9.9"), HOME)
    world.settle()
    frame = encode_udp(host.mac, host.v6, GROUP_V6, b"data")
    world.speak("h1", frame)
    world.settle()
    assert world.speak("h1", frame) == {("h3", ()): 1, ("h5", (SHOP,)): 1}
    assert started(world, "h1", GROUP) == {("h9", ()): 1}


def test_a_receiver_that_leaves_is_served_no_more_in_that_vlan_alone(world):
    join_all(world)
    started(world, "h1", GROUP)
    world.tell("h5", RecordType.CHANGE_TO_INCLUDE, GROUP, HOME)
    world.tell("h7", RecordType.CHANGE_TO_INCLUDE, GROUP)
    world.tell("h9", RecordType.CHANGE_TO_INCLUDE, GROUP)
    world.advance(10.0)
    gone = {("h5", (HOME,)), ("h7", ()), ("h9", ())}
    assert world.sends("h1", GROUP) == {copy: 1 for copy in EVERYBODY if copy not in gone}
    asked = {(tag, decode(inner).group) for tag, inner in queries(world) if decode(inner).group is not None}
    assert asked == {(HOME, GROUP), (0, GROUP)}, "leaves are asked about in the VLAN of the receiver"
    world.advance(600.0)
    assert not list(world.core.memberships.groups())
    assert NAME not in world.core.plane.groups


def queries(world, first=0):
    """Yield the queries that hosts got, each with its tag."""
    for _, frame in world.packet_outs[first:]:
        tag, inner = without_tag(frame) or (0, frame)
        if isinstance(decode(inner), Query):
            yield tag, inner


def test_senders_in_a_receiver_vlan_are_refused_at_their_port(world):
    join_all(world)
    started(world, "h1", GROUP)
    world.notices.clear()
    assert started(world, "h13", GROUP) == {}
    assert started(world, "h5", GROUP, SHOP) == {}
    (sender,) = world.core.plane.groups[in_domain(GROUP, HOME)].senders.values()
    assert (sender.admitted, sender.rule) == (False, "vlans.mvr")
    punted = sum(world.fabric.deliver(*world.hosts["h13"].place, *fields(world, "h13")).punts.values())
    assert punted == 0, "its own switch drops it"
    texts = [event["text"] for event in world.core.sections.events.section.changes(0, 100)["put"].values()]
    mac = "02:00:00:00:00:0d"
    (text,) = [text for text in texts if mac in text]
    place = "{:016x}:{}".format(*world.hosts["h13"].place)
    assert text == (
        f"{mac} at port {place} is refused as a sender of 239.5.1.1@20 (which comes from VLAN 100) by vlans.mvr: "
        "receivers here get the group from VLAN 100, by the entry on line 7."
    )
    assert started(world, "h1", GROUP) == EVERYBODY


def fields(world, name):
    host = world.hosts[name]
    return (fields_of(encode_udp(host.mac, host.v4, GROUP, b"data")), 60)


def test_a_receiver_is_judged_in_its_own_vlan_by_its_own_names():
    place = SwitchPort(*RegisteredWorld().hosts["h9"].place)
    rule = Rule("no", (parse_prefix("239.5.0.0/16"),), frozenset({Role.RECEIVER}), False, tenants=("shut",))
    policy = replace(REGISTERED, tenants=(Tenant("shut", (place,)),), rules=(rule,))
    world = RegisteredWorld(policy)
    join_all(world)
    assert started(world, "h1", GROUP) == {copy: 1 for copy in EVERYBODY if copy != ("h9", ())}
    (refused,) = world.core.group_view.group(in_domain(GROUP, HOME))["refused"]
    assert (refused["rule"], refused["mac"]) == ("no", "02:00:00:00:00:09")
    world.use(REGISTERED)
    assert world.sends("h1", GROUP) == EVERYBODY


def test_routers_have_the_groups_of_their_own_vlan_alone():
    plain = RegisteredWorld()
    ports = frozenset(SwitchPort(*plain.hosts[name].place) for name in ("h2", "h13"))
    policy = replace(REGISTERED, multicast=replace(OPEN.multicast, router_ports=RouterPorts(learn=ports)))
    world = RegisteredWorld(policy)
    for name in ("h2", "h13"):
        host = world.hosts[name]
        world.speak(name, encode(PimHello(4, host.mac, host.v4, 105.0)))
    world.settle()
    first = len(world.packet_outs)
    world.joins("h3", GROUP)
    world.settle()
    assert not [frame for _, frame in world.packet_outs[first:] if isinstance(decode(frame), Report)]
    world.joins("h3", OTHER)
    places = [place for place, frame in world.packet_outs[first:] if isinstance(decode(frame), Report)]
    assert places == [world.hosts["h13"].place], "the router of its VLAN hears of what is not registered"
    assert started(world, "h1", GROUP) == {("h3", ()): 1, ("h2", ()): 1}


def test_a_router_of_the_source_vlan_is_told_of_receivers_elsewhere_where_the_controller_reports():
    proxied = replace(OPEN.multicast, router_ports=RouterPorts(learn=True), proxy=Proxy(router_ports=True))
    world = RegisteredWorld(replace(REGISTERED, multicast=proxied))
    for name in ("h2", "h13"):
        host = world.hosts[name]
        world.speak(name, encode(PimHello(4, host.mac, host.v4, 105.0)))
    world.asks_for("h3", parse_ip("10.9.0.1"))
    world.asks_for("h16", parse_ip("10.9.0.2"))
    world.advance(5.0)
    heard = [(place, without_tag(frame) or (None, frame)) for place, frame in world.packet_outs]
    told = {(place, record) for place, (_, frame) in heard for record in getattr(decode(frame), "records", ())}
    assert {place for place, _ in told} == {world.hosts["h2"].place}, "the router of a receiver VLAN hears of nothing"
    assert {source for _, record in told for source in record.sources} == {parse_ip("10.9.0.1"), parse_ip("10.9.0.2")}


def test_another_querier_of_a_receiver_vlan_asks_the_receivers_there():
    accepting = replace(OPEN.multicast, querier=replace(OPEN.multicast.querier, accept_others=True))
    world = RegisteredWorld(replace(REGISTERED, multicast=accepting))
    join_all(world)
    router = world.hosts["h13"]

    def asked(group):
        first = len(world.packet_outs)
        frame = encode(Query(4, 3, router.mac, parse_ip("10.0.0.1"), group, (), 10.0, False, 2, 125.0))
        world.feed(PacketReceived(*router.place, frame))
        at = {host.place: host.name for host in world.hosts.values()}
        return {
            (at[place], (without_tag(sent) or (0,))[0])
            for place, sent in world.packet_outs[first:]
            if isinstance(decode((without_tag(sent) or (0, sent))[1]), Query)
        }

    asked(None)
    assert asked(GROUP) == {("h3", 0), ("h9", 0), ("h5", HOME), ("h7", HOME), ("h10", HOME)}


def test_a_restarted_controller_sends_not_one_edit_and_loses_nobody(world):
    join_all(world)
    started(world, "h1", GROUP)
    started(world, "h13", GROUP)
    static(world, "h16", SHOP)
    world.advance(1.0)
    before, tree = world.rules(), {frozenset(link) for link in world.core.forest.tree(NAME).links()}
    world.restart(policy=replace(world.policy, multicast=replace(world.policy.multicast, seed=77)))
    world.connect_all()
    world.settle()
    assert world.applied == 0
    assert world.rules() == before
    assert {frozenset(link) for link in world.core.forest.tree(NAME).links()} == tree
    world.advance(14.0)
    assert world.applied == 0
    assert world.sends("h1", GROUP) == EVERYBODY
    assert not list(filter(None, world.core.findings.search()))


def static(world, name, vlan_id, present=True):
    dpid, port_no = world.hosts[name].place
    action = "static-member-add" if present else "static-member-remove"
    return world.do(action, dpid=dpid, port_no=port_no, group=format_ip(in_domain(GROUP, vlan_id)))


def test_a_restart_without_the_line_gives_receivers_what_is_sent_in_their_own_vlan(world):
    join_all(world)
    started(world, "h1", GROUP)
    world.advance(1.0)
    world.restart(policy=replace(world.policy, registrations=Registrations()))
    world.connect_all()
    world.settle()
    assert world.sends("h1", GROUP) == {("h2", ()): 1, ("h7", ()): 1, ("h10", (SOURCE,)): 1}
    assert started(world, "h13", GROUP) == {copy: 1 for copy in EVERYBODY if copy in IN_HOME}


IN_HOME = {("h3", ()), ("h9", ()), ("h5", (HOME,)), ("h7", (HOME,)), ("h10", (HOME,))}


def test_a_policy_that_adds_and_takes_the_line_moves_the_groups_of_the_line_alone():
    world = RegisteredWorld(OPEN)
    join_all(world)
    for name in ("h2", "h9"):
        world.joins(name, OTHER)
    world.settle()
    assert started(world, "h13", GROUP) == dict.fromkeys(IN_HOME, 1)
    started(world, "h13", OTHER)
    others = rules_of(world, OTHER)
    in_source = {("h2", ()): 1, ("h7", ()): 1, ("h10", (SOURCE,)): 1}
    assert started(world, "h1", GROUP) == in_source
    for _ in range(2):
        world.use(REGISTERED)
        assert world.sends("h1", GROUP) == EVERYBODY
        assert started(world, "h13", GROUP) == {}
        assert rules_of(world, OTHER) == others
        assert not list(filter(None, world.core.findings.search()))
        world.use(OPEN)
        assert world.sends("h1", GROUP) == in_source
        assert started(world, "h13", GROUP) == dict.fromkeys(IN_HOME, 1)
        assert rules_of(world, OTHER) == others
    assert not world.refused_edits()


def rules_of(world, group):
    return {
        (dpid, key): rule
        for dpid, switch in world.switches.items()
        for key, rule in switch.rules.items()
        if key.match.ip_dst == group
    }


def test_the_log_has_what_a_restart_takes_up_after_the_line_came():
    world = RegisteredWorld(OPEN)
    join_all(world)
    started(world, "h1", GROUP)
    world.use(REGISTERED)
    world.advance(1.0)
    before = world.rules()
    world.restart(policy=world.core.policy)
    world.connect_all()
    world.settle()
    assert (world.applied, world.rules()) == (0, before)


def test_a_port_that_moves_between_vlans_has_the_tags_of_now(world):
    join_all(world)
    started(world, "h1", GROUP)
    place = world.hosts["h5"].place
    world.port_vlans = {**world.port_vlans, place: PortVlans(SHOP, frozenset((HOME,)))}
    world.use(REGISTERED)
    expected = {copy: 1 for copy in EVERYBODY if copy != ("h5", (SHOP,))} | {("h5", ()): 1}
    assert world.sends("h1", GROUP) == expected
    world.port_vlans = {**world.port_vlans, place: access(SOURCE)}
    world.use(REGISTERED)
    assert world.sends("h1", GROUP) == {copy: 1 for copy in EVERYBODY if copy[0] != "h5"}


def test_a_tree_that_moves_goes_on_serving_every_vlan(world):
    join_all(world)
    started(world, "h1", GROUP)
    for a, b in [sorted(link) for link in sorted(map(sorted, world.core.forest.tree(NAME).links()))][:3]:
        world.cut(a, b)
        world.settle()
        assert world.sends("h1", GROUP) == EVERYBODY
        world.mend(a, b)
        world.advance(1.0)
        assert world.sends("h1", GROUP) == EVERYBODY


def test_room_is_that_of_the_group_in_the_source_vlan():
    limits = replace(OPEN.limits, groups=1)
    world = RegisteredWorld(replace(REGISTERED, limits=limits))
    world.joins("h2", OTHER)
    for name in ("h3", "h16"):
        world.joins(name, GROUP)
    assert [len(world.core.plane.groups), world.core.counters["groups-bound"] > 0] == [1, True]
    world.tell("h2", RecordType.CHANGE_TO_INCLUDE, OTHER)
    world.advance(15.0)
    assert list(world.core.plane.groups) == [NAME]
    assert started(world, "h1", GROUP) == {("h3", ()): 1, ("h16", ()): 1}
    world.joins("h9", GROUP)
    world.settle()
    assert world.sends("h1", GROUP) == {("h3", ()): 1, ("h16", ()): 1, ("h9", ()): 1}


def test_static_members_get_groups_of_the_source_vlan(world):
    assert isinstance(static(world, "h16", SHOP), ActionTaken)
    world.settle()
    assert started(world, "h1", GROUP) == {("h16", ()): 1}
    world.use(OPEN)
    assert world.sends("h1", GROUP) == {}
    world.use(REGISTERED)
    assert world.sends("h1", GROUP) == {("h16", ()): 1}
    static(world, "h16", SHOP, present=False)
    world.settle()
    assert world.sends("h1", GROUP) == {}


def test_static_members_of_the_policy_file_have_their_vlan(world):
    place = SwitchPort(*world.hosts["h5"].place)
    members = (StaticMember(in_domain(GROUP, SHOP), place, 3), StaticMember(in_domain(OTHER, HOME), place, 4))
    world.use(replace(REGISTERED, static_members=members))
    assert started(world, "h1", GROUP) == {("h5", (SHOP,)): 1}
    assert started(world, "h9", OTHER) == {("h5", (HOME,)): 1}
    assert started(world, "h1", OTHER) == {}
    world.restart(policy=world.core.policy)
    world.connect_all()
    world.settle()
    assert world.applied == 0
    assert started(world, "h1", GROUP) == {("h5", (SHOP,)): 1}
    world.use(REGISTERED)
    assert world.sends("h1", GROUP) == {}


def test_documents_name_both_vlans(world):
    join_all(world)
    started(world, "h1", GROUP)
    shown = {document["group"]: document for document in world.core.group_view.groups()}
    assert set(shown) == {"239.5.1.1", "239.5.1.1@20", "239.5.1.1@30", "239.5.1.1@100"}
    assert {name: document["source_vlan"] for name, document in shown.items()} == {
        "239.5.1.1": SOURCE,
        "239.5.1.1@20": SOURCE,
        "239.5.1.1@30": SOURCE,
        "239.5.1.1@100": None,
    }
    carrier = shown["239.5.1.1@100"]
    assert carrier["size"] == 3
    assert [(entry["vlan"], entry["ports"]) for entry in carrier["receiver_vlans"]] == [(None, 1), (20, 5), (30, 2)]
    assert [shown["239.5.1.1@20"][name] for name in ("size", "links", "receiver_vlans")] == [5, [], []]
    put = world.core.sections.groups.changes(0, 100)["put"]
    assert set(put) == set(shown)
    world.tell("h16", RecordType.CHANGE_TO_INCLUDE, GROUP)
    world.tell("h5", RecordType.CHANGE_TO_INCLUDE, GROUP, SHOP)
    world.advance(10.0)
    put = world.core.sections.groups.changes(0, 100)["put"]
    assert set(put) == set(shown) - {"239.5.1.1@30"}
    assert [entry["vlan"] for entry in put["239.5.1.1@100"]["receiver_vlans"]] == [None, 20]


@pytest.mark.parametrize("version", [4, 1])
@pytest.mark.parametrize("seed", range(4))
def test_each_receiver_gets_each_packet_once_whatever_happened_before(seed, version):
    chosen = random.Random(seed)
    world = RegisteredWorld(chosen.choice((OPEN, REGISTERED)), version)
    wanted: set[tuple[str, int]] = set()
    is_registered = bool(world.policy.registrations.is_used)
    for _ in range(80):
        what = chosen.random()
        name = chosen.choice(sorted(PORTS))
        vlan_id = chosen.choice(sorted(world.port_vlans[world.hosts[name].place].vlans()))
        if what < 0.6:
            world.joins(name, GROUP, vlan_id)
            wanted.add((name, vlan_id))
        elif what < 0.9:
            world.tell(name, RecordType.CHANGE_TO_INCLUDE, GROUP, vlan_id)
            world.advance(5.0)
            wanted.discard((name, vlan_id))
        else:
            is_registered = not is_registered
            world.use(REGISTERED if is_registered else OPEN)
        if chosen.random() < 0.3:
            expected = {
                (other, () if PORTS[other].untagged == at else (at,)): 1
                for other, at in wanted
                if other != "h1" and (at == SOURCE or is_registered)
            }
            assert started(world, "h1", GROUP) == expected
            world.crossed.clear()
            world.sends("h1", GROUP)
            assert set(world.crossed.values()) <= {1}
    assert not list(filter(None, world.core.findings.search()))
    world.advance(2.0)
    before = world.rules()
    world.restart(policy=world.core.policy)
    world.connect_all()
    world.settle()
    assert (world.applied, world.rules()) == (0, before)
