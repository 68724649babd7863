"""VLANs are broadcast domains: groups, members, senders, queriers and link-scope flooding of each are its own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.config.multicast_settings import RouterPorts
from controller.config.policy import HOST_ROLES, Rule
from controller.config.vlans import PortVlans
from controller.discovery.vlan_rules import edge_rules
from controller.effects import Put
from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.multicast.edge_ports import MOVED_REPEAT_S
from controller.multicast.events import PolicyLoaded
from controller.rules.pipeline import VLAN_ADMIT
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag, without_tag
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, PimHello, Query, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import PortRole, PortRoleChanged

from .conftest import GRAPHS, GROUP, OPEN, World
from .vlan_world import VlanWorld, started, vlans_of

GROUP_OF = {4: GROUP, 6: parse_ip("ff0e::1:2:3")}
MANY = 10_000
"""More documents than a section has here."""
MDNS = parse_ip("224.0.0.251")
TRUNK = PortVlans(None, frozenset((10, 20)))
PORTS = {
    "h1": PortVlans(10, frozenset()),
    "h2": PortVlans(10, frozenset()),
    "h3": PortVlans(20, frozenset()),
    "h5": TRUNK,
    "h7": PortVlans(10, frozenset((20,))),
    "h9": PortVlans(20, frozenset()),
    "h16": PortVlans(10, frozenset()),
}
"""The ports of a fat tree's hosts that are in VLANs; the others are in the fabric's own domain."""


@pytest.fixture
def world():
    return VlanWorld(PORTS)


def put_of(section):
    return section.changes(0, MANY)["put"]


def test_a_group_of_one_vlan_is_not_that_of_another(world):
    for name in ("h2", "h16", "h9", "h4"):
        world.joins(name)
    world.joins("h5", vlan_id=10)
    world.settle()
    assert started(world, "h1") == {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1}
    assert started(world, "h3") == {("h9", ()): 1}
    assert started(world, "h8") == {("h4", ()): 1}
    shown = {(document["group"], document["vlan"]) for document in world.core.group_view.groups()}
    assert shown == {("239.1.2.3", None), ("239.1.2.3@10", 10), ("239.1.2.3@20", 20)}


def test_the_first_packets_reach_members_before_there_are_entries(world):
    for name in ("h2", "h16"):
        world.joins(name)
    world.joins("h5", vlan_id=10)
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1}


def test_a_port_has_its_domains_with_tag_and_without(world):
    world.joins("h7")
    world.joins("h7", vlan_id=20)
    world.joins("h5", vlan_id=20)
    world.settle()
    assert started(world, "h1") == {("h7", ()): 1}
    assert started(world, "h9") == {("h7", (20,)): 1, ("h5", (20,)): 1}
    assert started(world, "h5", vlan_id=20) == {("h7", (20,)): 1}


def test_frames_of_other_vlans_than_the_ports_own_go_nowhere(world):
    for name in ("h2", "h9", "h4"):
        world.joins(name)
    world.settle()
    place = world.hosts["h1"].place
    data = encode_udp(world.hosts["h1"].mac, world.hosts["h1"].v4, GROUP, b"data")
    for tag in (10, 20, 30, 0, 4095):
        assert world.utter(place, with_tag(data, tag)) == {}
    assert world.utter(world.hosts["h5"].place, data) == {}
    assert world.utter(world.hosts["h4"].place, with_tag(data, 10)) == {}
    assert world.utter(world.hosts["h5"].place, with_tag(with_tag(data, 20), 10)) == {}
    assert not list(world.core.plane.groups[in_domain(GROUP, 10)].senders)


def test_a_report_with_the_tag_of_another_vlan_is_no_membership(world):
    host = world.hosts["h4"]
    report = encode(Report(4, 3, host.mac, host.v4, (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP, ()),)))
    world.feed(PacketReceived(*host.place, with_tag(report, 10)))
    world.feed(PacketReceived(*world.hosts["h5"].place, report))
    assert not list(world.core.memberships.groups())
    assert (world.core.counters["vlan-tagged"], world.core.counters["vlan-untagged"]) == (1, 1)


def test_link_scope_groups_reach_all_of_their_vlan_alone(world):
    assert world.sends("h1", MDNS) == {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1, ("h7", ()): 1}
    assert world.sends("h9", MDNS) == {("h3", ()): 1, ("h5", (20,)): 1, ("h7", (20,)): 1}
    own = {f"h{n}" for n in range(1, 17)} - PORTS.keys() - {"h4"}
    assert world.sends("h4", MDNS) == {(name, ()): 1 for name in own}


def test_every_domain_of_a_port_is_asked(world):
    world.packet_outs.clear()
    world.advance(200.0)
    asked: dict[str, set[int]] = {}
    at = {host.place: host.name for host in world.hosts.values()}
    for place, frame in world.packet_outs:
        tag, inner = without_tag(frame) or (0, frame)
        if isinstance(decode(inner), Query):
            asked.setdefault(at[place], set()).add(tag)
    assert asked == {**{name: {0} for name in world.hosts}, "h5": {10, 20}, "h7": {0, 20}}


def test_members_end_in_their_own_domain(world):
    world.joins("h7")
    world.joins("h7", vlan_id=20)
    world.settle()
    world.tell("h7", RecordType.CHANGE_TO_INCLUDE, vlan_id=20)
    world.advance(10.0)
    assert list(world.core.plane.groups) == [in_domain(GROUP, 10)]
    assert started(world, "h1") == {("h7", ()): 1}
    world.advance(600.0)
    assert not list(world.core.memberships.groups())


def test_trees_of_vlans_are_built_around_what_is_lost(world):
    for name in ("h2", "h16"):
        world.joins(name)
    world.joins("h5", vlan_id=10)
    world.settle()
    assert len(started(world, "h1")) == 3
    a, b = sorted(next(iter(world.core.forest.tree(in_domain(GROUP, 10)).links())))
    world.cut(a, b)
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1}
    world.mend(a, b)
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1}


def test_a_restarted_controller_knows_the_groups_of_vlans(world):
    for name in ("h2", "h16", "h9"):
        world.joins(name)
    world.joins("h5", vlan_id=10)
    world.settle()
    before = started(world, "h1")
    started(world, "h3")
    world.restart()
    world.connect_all()
    world.settle()
    assert world.sends("h1") == before
    world.advance(70.0)
    assert world.sends("h1") == before
    assert world.sends("h3") == {("h9", ()): 1}
    assert not world.refused_edits()


@pytest.mark.parametrize("domains", [PortVlans(20, frozenset()), PortVlans(0, frozenset())], ids=["20", "own"])
def test_a_port_that_is_in_another_vlan_after_a_restart_gets_nothing_of_its_former_one(world, domains):
    for name in ("h2", "h16"):
        world.joins(name)
    world.settle()
    started(world, "h1")
    started(world, "h16")
    ports = {**world.port_vlans, world.hosts["h16"].place: domains}
    world.restart(policy=replace(world.policy, vlans=vlans_of(ports)))
    world.port_vlans = ports
    world.connect_all()
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1}
    senders = world.core.plane.groups[in_domain(GROUP, 10)].senders
    assert [key.mac for key in senders] == [world.hosts["h1"].mac]


def test_a_port_that_is_in_a_vlan_after_a_restart_gets_nothing_of_the_own_domain(world):
    for name in ("h4", "h6"):
        world.joins(name)
    world.settle()
    assert started(world, "h8") == {("h4", ()): 1, ("h6", ()): 1}
    ports = {**world.port_vlans, world.hosts["h6"].place: PortVlans(20, frozenset())}
    world.restart(policy=replace(world.policy, vlans=vlans_of(ports)))
    world.port_vlans = ports
    world.connect_all()
    world.settle()
    assert world.sends("h8") == {("h4", ()): 1}


def test_without_its_log_a_controller_finds_the_senders_of_vlans(world):
    world.joins("h2")
    world.settle()
    started(world, "h1")
    world.restart(journal=False)
    world.connect_all()
    world.settle()
    assert [key.mac for key in world.core.plane.groups[in_domain(GROUP, 10)].senders] == [world.hosts["h1"].mac]


def test_a_port_that_is_put_into_another_vlan_leaves_its_own(world):
    for name in ("h2", "h16", "h9"):
        world.joins(name)
    world.settle()
    started(world, "h1")
    place = world.hosts["h16"].place
    ports = {**world.port_vlans, place: PortVlans(20, frozenset())}
    world.feed(PolicyLoaded(replace(world.policy, vlans=vlans_of(ports))))
    for rule in edge_rules(place[1], ports[place]):
        world.switches[place[0]].apply(Put(rule))
    world.port_vlans = ports
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1}
    world.joins("h16")
    world.settle()
    assert started(world, "h3") == {("h9", ()): 1, ("h16", ()): 1}
    assert world.sends("h1") == {("h2", ()): 1}


def test_a_port_that_is_put_into_another_vlan_is_asked_again_once_its_switch_knows(world):
    """What hosts answer at once still has the tag of the VLAN before, since discovery has not told the switch yet."""
    place = world.hosts["h16"].place
    ports = {**world.port_vlans, place: PortVlans(20, frozenset())}
    world.packet_outs.clear()
    world.feed(PolicyLoaded(replace(world.policy, vlans=vlans_of(ports))))
    assert len([at for at, _ in world.queries() if at == place]) == 2, "one of each family"
    world.tell("h16", RecordType.MODE_IS_EXCLUDE)
    for rule in edge_rules(place[1], ports[place]):
        world.switches[place[0]].apply(Put(rule))
    world.port_vlans = ports
    world.packet_outs.clear()
    world.advance(MOVED_REPEAT_S)
    assert len([at for at, _ in world.queries() if at == place]) == 2
    world.joins("h16")
    world.settle()
    assert started(world, "h3") == {("h16", ()): 1}


def test_a_port_whose_tag_changes_gets_its_group_as_it_is_now(world):
    world.joins("h2")
    world.joins("h7")
    world.settle()
    assert started(world, "h1") == {("h2", ()): 1, ("h7", ()): 1}
    place = world.hosts["h7"].place
    ports = {**world.port_vlans, place: PortVlans(None, frozenset((10, 20)))}
    world.feed(PolicyLoaded(replace(world.policy, vlans=vlans_of(ports))))
    world.settle()
    assert world.sends("h1") == {("h2", ()): 1, ("h7", (10,)): 1}


def test_a_static_member_is_of_the_domain_that_its_group_names(world):
    host = world.hosts["h16"]
    place = {"dpid": host.dpid, "port_no": host.port_no}
    assert world.do("static-member-add", group="239.1.2.3@10", **place).document["served"]
    waits = world.do("static-member-add", group="239.1.2.3", **place).document["waiting_for"]
    assert waits.endswith("is not in the fabric's own domain, but in VLANs alone")
    waits = world.do("static-member-add", group="239.1.2.3@20", **place).document["waiting_for"]
    assert waits.endswith("is not in VLAN 20")
    world.settle()
    assert started(world, "h1") == {("h16", ()): 1}
    assert started(world, "h3") == {} == started(world, "h4")
    ports = {**world.port_vlans, host.place: PortVlans(20, frozenset())}
    world.feed(PolicyLoaded(replace(world.policy, vlans=vlans_of(ports))))
    world.settle()
    assert world.sends("h1") == {}
    assert world.sends("h3") == {("h16", ()): 1}


def test_a_querier_of_one_vlan_is_none_of_another():
    multicast = replace(OPEN.multicast, querier=replace(OPEN.multicast.querier, accept_others=True))
    world = VlanWorld(PORTS)
    world.feed(PolicyLoaded(replace(world.policy, multicast=multicast)))
    world.settle()
    host = world.hosts["h1"]
    query = Query(4, 3, host.mac, parse_ip("10.0.0.1"), None, (), 10.0, False, 2, 125.0)
    before = len(world.packet_outs)
    world.speak("h1", encode(query))
    passed = [(place, without_tag(frame)) for place, frame in world.packet_outs[before:]]
    at = {host.place: host.name for host in world.hosts.values()}
    assert {(at[place], tagged[0] if tagged else 0) for place, tagged in passed} == {
        ("h2", 0),
        ("h16", 0),
        ("h7", 0),
        ("h5", 10),
    }
    assert not world.core.memberships.of(10).querier(4).is_ours
    assert world.core.memberships.of(20).querier(4).is_ours
    assert world.core.membership.querier(4).is_ours


def world_with_a_router():
    """Return a world with a querier and router at h7 in VLAN 20, whose port has VLAN 10 too, and members there."""
    learning = replace(
        OPEN.multicast,
        querier=replace(OPEN.multicast.querier, accept_others=True),
        router_ports=RouterPorts(learn=True),
    )
    world = VlanWorld(PORTS)
    world.feed(PolicyLoaded(replace(world.policy, multicast=learning)))
    host = world.hosts["h7"]
    query = Query(4, 3, host.mac, parse_ip("10.0.0.1"), None, (), 10.0, False, 2, 125.0)
    world.speak("h7", encode(query), 20)
    world.speak("h7", encode(PimHello(4, host.mac, host.v4, 105.0)), 20)
    world.joins("h9")
    world.settle()
    assert started(world, "h3") == {("h9", ()): 1, ("h7", (20,)): 1}
    world.advance(1.0)
    return world


def test_a_restarted_controller_knows_the_queriers_and_routers_of_vlans():
    world = world_with_a_router()
    before = world.rules()
    world.restart(policy=world.core.policy)
    querier = world.core.memberships.of(20).querier(4)
    assert (querier.is_ours, querier.address) == (False, parse_ip("10.0.0.1"))
    assert world.core.membership.querier(4).is_ours
    world.connect_all()
    world.settle()
    assert (world.applied, world.rules()) == (0, before)
    assert world.sends("h3") == {("h9", ()): 1, ("h7", (20,)): 1}
    world.advance(600.0)
    assert world.core.memberships.of(20).querier(4).is_ours
    assert not [entry for entry in world.log.read() if entry.key.startswith("vlan-routers/")]


def test_a_router_at_a_port_that_is_in_another_vlan_after_a_restart_is_none():
    world = world_with_a_router()
    ports = {**world.port_vlans, world.hosts["h7"].place: PortVlans(10, frozenset())}
    world.restart(policy=replace(world.core.policy, vlans=vlans_of(ports)))
    world.port_vlans = ports
    assert world.core.memberships.of(20).querier(4).is_ours
    assert not world.core.plane.routers.at(world.hosts["h7"].dpid)
    world.advance(1.0)
    assert not [entry for entry in world.log.read() if entry.key.startswith("vlan-routers/")]


@pytest.mark.parametrize("family", [4, 6])
def test_pim_of_a_router_reaches_its_vlan_alone(family):
    learning = replace(OPEN, multicast=replace(OPEN.multicast, router_ports=RouterPorts(learn=True)))
    world = VlanWorld(PORTS)
    world.feed(PolicyLoaded(replace(learning, vlans=world.policy.vlans)))
    world.settle()

    def pim(name, vlan_id=None):
        host = world.hosts[name]
        return world.speak(name, encode(PimHello(family, host.mac, host.address(GROUP_OF[family]), 105.0)), vlan_id)

    assert pim("h1") == {}, "there is no other router yet"
    world.advance(2.0)
    in_vlan_10 = {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1, ("h7", ()): 1}
    assert pim("h1") == in_vlan_10
    assert pim("h7", 20) == {}
    world.advance(2.0)
    assert pim("h7", 20) == {("h3", ()): 1, ("h9", ()): 1, ("h5", (20,)): 1}
    assert pim("h7") == {("h1", ()): 1}, "the controller alone hears of a port's first router in another VLAN"
    assert pim("h1") == in_vlan_10
    world.feed(PolicyLoaded(replace(OPEN, vlans=world.policy.vlans)))
    world.advance(2.0)
    assert pim("h1") == {}


def test_operators_see_which_vlans_ports_groups_and_routers_are_in():
    world = VlanWorld({**PORTS, "h6": PortVlans(None, frozenset((20, *range(30, 36))))})
    sections = world.core.sections
    accepting = replace(OPEN.multicast, router_ports=RouterPorts(learn=True))
    accepting = replace(accepting, querier=replace(OPEN.multicast.querier, accept_others=True))
    seen = sections.ports.changes(0, MANY)["version"]
    named = replace(world.policy.vlans, names=((20, "video"), (35, "storage")))
    world.feed(PolicyLoaded(replace(world.policy, multicast=accepting, vlans=named)))
    world.joins("h9")
    world.settle()

    def port(name):
        return put_of(sections.ports)["{}:{}".format(*world.hosts[name].place)]["vlans"]

    assert sections.ports.changes(seen, MANY)["whole"], "all are told anew"
    assert port("h1") == {"untagged": 10, "tagged": "", "names": {}}
    assert port("h7") == {"untagged": 10, "tagged": "20", "names": {"20": "video"}}
    assert port("h6") == {"untagged": None, "tagged": "20,30-35", "names": {"20": "video", "35": "storage"}}
    assert port("h4") == {"untagged": 0, "tagged": "", "names": {}}
    trunk = next(iter(world.links.values()))[0]
    assert put_of(sections.ports)["{}:{}".format(*trunk)]["vlans"] is None
    group = put_of(sections.groups)["239.1.2.3@20"]
    assert (group["group"], group["vlan"], group["vlan_name"]) == ("239.1.2.3@20", 20, "video")

    router = world.hosts["h7"]
    query = Query(4, 3, router.mac, parse_ip("10.0.0.1"), None, (), 10.0, False, 2, 125.0)
    world.speak("h7", encode(query), 20)
    shown = world.core.router_view.routers()
    queriers = [(found["family"], found["vlan"], found["ours"], found["address"]) for found in shown["queriers"]]
    assert queriers == [(4, None, True, None), (6, None, True, None), (4, 20, False, "10.0.0.1")]
    place = {"dpid": router.dpid, "port_no": router.port_no, "family": 4, "vlan": 20}
    assert [{name: found[name] for name in place} for found in shown["router_ports"]] == [place]
    assert f"{router.dpid}:{router.port_no}:4@20" in put_of(sections.routers)


def test_a_fabric_whose_ports_are_put_into_vlans_while_it_runs_knows_them_at_every_switch():
    world = World(GRAPHS["fattree"](), OPEN)
    world.settle()
    place = world.hosts["h1"].place
    world.feed(PolicyLoaded(replace(OPEN, vlans=vlans_of({place: PortVlans(10, frozenset())}))))
    world.settle()
    assert all(any(key.table == VLAN_ADMIT for key in switch.rules) for switch in world.switches.values())
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert not any(any(key.table == VLAN_ADMIT for key in switch.rules) for switch in world.switches.values())


def test_an_ipv6_group_of_a_vlan_is_refused_where_a_switch_speaks_openflow_1_0():
    world = VlanWorld({"h1": PortVlans(10, frozenset()), "h2": PortVlans(10, frozenset())}, version=1)
    group = parse_ip("ff1e::1")
    host = world.hosts["h2"]
    world.feed(PacketReceived(*host.place, encode_udp(host.mac, host.v6, group, b"data")))
    world.settle()
    (notice,) = [notice for notice in world.notices if notice.kind == "group-unsupported"]
    assert notice.text.startswith("Group ff1e::1@10 is not served: switch ")
    assert "IPv6 groups need OpenFlow 1.3" in notice.text


def test_rules_are_about_the_vlan_in_which_a_host_asks():
    rule = Rule("one", (), HOST_ROLES, True, any_host=True, vlans=frozenset({10}))
    policy = replace(OPEN, default_allow=False, rules=(rule,))
    ports = {name: PortVlans(None, frozenset((10, 20))) for name in ("h1", "h5")}
    world = VlanWorld(ports, policy=policy)
    for vlan_id in (10, 20):
        world.joins("h5", vlan_id=vlan_id)
    assert started(world, "h1", vlan_id=10) == {("h5", (10,)): 1}
    assert started(world, "h1", vlan_id=20) == {}
    other = replace(rule, vlans=frozenset({20}))
    world.feed(PolicyLoaded(replace(world.core.policy, rules=(other,))))
    world.settle()
    assert started(world, "h1", vlan_id=10) == {}
    assert started(world, "h1", vlan_id=20) == {("h5", (20,)): 1}


def test_a_port_of_an_openflow_1_0_switch_that_closes_and_opens_holds_no_entries_that_overlap():
    """In 1.0 a closed port drops frames with any tag, and one of the fabric's own domain has entries for others.

    Of two entries of one priority that match the same frame a switch may take either.
    """
    world = VlanWorld({"h1": PortVlans(10, frozenset())}, version=1)
    place = world.hosts["h2"].place
    for role in (PortRole.DOWN, PortRole.UNKNOWN, PortRole.EDGE, PortRole.DOWN, PortRole.EDGE):
        world.feed(PortRoleChanged(*place, role))
        world.settle()
    assert world.refused_edits() == []
    world.joins("h2")
    world.settle()
    assert started(world, "h4") == {("h2", ()): 1}


def join_of(host):
    return Report(4, 3, host.mac, host.v4, (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP, ()),))


@pytest.mark.parametrize("version", [4, 1])
@pytest.mark.parametrize("seed", range(4))
def test_each_member_gets_each_packet_once_with_its_tag(seed, version):
    chosen = random.Random(seed)
    names = [f"h{n}" for n in range(1, 17)]
    ports = {}
    for name in names:
        untagged = chosen.choice((None, 0, 10, 20))
        tagged = frozenset(vlan_id for vlan_id in (10, 20, 30) if vlan_id != untagged and chosen.random() < 0.4)
        if untagged is not None or tagged:
            ports[name] = PortVlans(untagged, tagged)
    world = VlanWorld(ports, version=version)
    members: dict[int, set[str]] = {}
    for _ in range(60):
        name = chosen.choice(sorted(ports))
        vlan_id = chosen.choice(sorted(ports[name].vlans()))
        if chosen.random() < 0.7:
            world.joins(name, vlan_id=vlan_id)
            members.setdefault(vlan_id, set()).add(name)
        else:
            world.tell(name, RecordType.CHANGE_TO_INCLUDE, vlan_id=vlan_id)
            members.setdefault(vlan_id, set()).discard(name)
    world.advance(5.0)
    for name in sorted(ports):
        for vlan_id in sorted(ports[name].vlans()):
            expected = {
                (other, (vlan_id,) if vlan_id and ports[other].untagged != vlan_id else ()): 1
                for other in members.get(vlan_id, ())
                if other != name
            }
            assert started(world, name, vlan_id=vlan_id) == expected
