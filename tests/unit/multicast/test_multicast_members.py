"""Who receives what: joins, leaves, versions, source filters, shared ports; each packet once and nobody else."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast, Querier
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType

T = RecordType
GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.1.2.4")
SSM = parse_ip("232.9.9.9")
GROUP_V6 = parse_ip("ff0e::1:2:3")
SSM_V6 = parse_ip("ff3e::9")
LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
FAST = Policy(default_allow=True, limits=LIMITS, multicast=Multicast(fast_leave=True))
ASKING = Policy(
    default_allow=True,
    limits=LIMITS,
    multicast=Multicast(querier=Querier(last_member_interval_s=0.2, last_member_count=2)),
)


def sent(world, name, group=GROUP):
    """Send until the sender's entries stand, then return who gets the next packet."""
    world.send(name, group)
    world.settle()
    return dict(world.send(name, group))


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "leaf-spine", "ring", "tree"])
def test_members_get_each_packet_once_and_nobody_else(make_world, graph, version):
    world = make_world(graph, version=version)
    names = list(world.hosts)
    members = names[::2]
    for name in members:
        world.join(name)
    world.settle()
    for sender in (names[0], names[1], names[-1]):
        assert sent(world, sender) == {name: 1 for name in members if name != sender}
        assert sent(world, sender, OTHER) == {}
    assert world.refused_edits() == []


@pytest.mark.parametrize("protocol", [1, 2, 3])
def test_igmp_versions(make_world, protocol, version):
    world = make_world("leaf-spine", FAST, version)
    world.join("h3", version=protocol)
    world.join("h5", version=protocol)
    world.settle()
    assert sent(world, "h1") == {"h3": 1, "h5": 1}
    if protocol > 1:
        world.leave("h3", version=protocol)
        world.settle()
        assert world.send("h1") == {"h5": 1}


@pytest.mark.parametrize("protocol", [1, 2])
def test_mld_versions(make_world, protocol):
    world = make_world("leaf-spine", FAST)
    world.join("h3", GROUP_V6, version=protocol)
    world.join("h5", GROUP_V6, version=protocol)
    world.settle()
    assert sent(world, "h1", GROUP_V6) == {"h3": 1, "h5": 1}
    world.leave("h3", GROUP_V6, version=protocol)
    world.settle()
    assert world.send("h1", GROUP_V6) == {"h5": 1}


@pytest.mark.parametrize("group", [SSM, SSM_V6], ids=["igmp", "mld"])
def test_a_source_specific_member_gets_its_source_only(make_world, group):
    world = make_world("fattree", FAST)
    first, second = (world.hosts[name].address(group) for name in ("h2", "h3"))
    world.record("h9", T.ALLOW_NEW_SOURCES, group, first)
    world.record("h16", T.ALLOW_NEW_SOURCES, group, first, second)
    world.settle()
    assert sent(world, "h2", group) == {"h9": 1, "h16": 1}
    assert sent(world, "h3", group) == {"h16": 1}
    assert sent(world, "h4", group) == {}
    world.record("h16", T.BLOCK_OLD_SOURCES, group, first)
    world.settle()
    assert sent(world, "h2", group) == {"h9": 1}
    assert sent(world, "h3", group) == {"h16": 1}


def test_source_filters_on_openflow_1_0(make_world):
    world = make_world("fattree", FAST, 1)
    world.record("h9", T.ALLOW_NEW_SOURCES, SSM, world.hosts["h2"].v4)
    world.settle()
    assert sent(world, "h2", SSM) == {"h9": 1}
    assert sent(world, "h3", SSM) == {}


def test_excluded_sources_come_back_when_the_filter_opens(make_world, version):
    world = make_world("fattree", FAST, version)
    excluded = world.hosts["h2"].v4
    world.record("h9", T.CHANGE_TO_EXCLUDE, GROUP, excluded)
    world.join("h10")
    world.settle()
    assert sent(world, "h2") == {"h10": 1}
    assert sent(world, "h3") == {"h9": 1, "h10": 1}
    world.join("h9")
    world.settle()
    assert sent(world, "h2") == {"h9": 1, "h10": 1}


def test_a_filter_that_names_sources_becomes_open(make_world, version):
    """One port goes from named sources to all of them while the rest of the tree had a channel for the names."""
    world = make_world("fattree", FAST, version)
    world.record("h9", T.ALLOW_NEW_SOURCES, GROUP, world.hosts["h2"].v4)
    world.settle()
    assert sent(world, "h3") == {}
    world.record("h9", T.CHANGE_TO_EXCLUDE, GROUP)
    world.settle()
    assert sent(world, "h2") == {"h9": 1}
    assert sent(world, "h3") == {"h9": 1}
    world.leave("h9")
    world.settle()
    assert sent(world, "h3") == {}


def test_a_leave_is_asked_about_first(make_world, version):
    world = make_world("leaf-spine", ASKING, version)
    world.join("h3")
    world.settle()
    assert sent(world, "h1") == {"h3": 1}
    outs = len(world.packet_outs)
    world.leave("h3")
    world.settle(0.1)
    assert world.send("h1") == {"h3": 1}
    asked = [query for place, query in world.queries(outs) if place == world.hosts["h3"].place]
    assert [query.group for query in asked] == [GROUP]
    world.advance(1.0)
    assert world.send("h1") == {}


def test_a_member_that_answers_the_question_stays(make_world):
    world = make_world("leaf-spine", ASKING)
    world.join("h3", version=2)
    world.leave("h3", version=2)
    world.settle(0.1)
    world.join("h3", version=2)
    world.advance(2.0)
    assert sent(world, "h1") == {"h3": 1}


def test_a_member_that_says_nothing_more_is_forgotten(make_world):
    world = make_world("leaf-spine", ASKING)
    world.join("h3")
    world.advance(250.0)
    assert sent(world, "h1") == {"h3": 1}
    world.advance(20.0)
    assert sent(world, "h1") == {}
    assert world.core.plane.groups.keys() <= {GROUP}


def test_two_hosts_of_a_switch_share_its_entry(make_world, version):
    world = make_world("leaf-spine", FAST, version)
    world.join("h3")
    world.join("h4")
    world.settle()
    assert sent(world, "h1") == {"h3": 1, "h4": 1}
    world.leave("h3")
    world.settle()
    assert world.send("h1") == {"h4": 1}
    world.leave("h4")
    world.settle()
    assert world.send("h1") == {}


def test_nothing_is_left_of_a_group_that_ends(make_world, version):
    world = make_world("fattree", FAST, version)
    empty = world.rules()
    for name in ("h2", "h9", "h16"):
        world.join(name)
    world.settle()
    assert world.rules() != empty
    for name in ("h2", "h9", "h16"):
        world.leave(name)
    world.settle()
    assert world.rules() == empty
    assert not world.core.plane.groups
    assert len(world.core.forest) == 0


def test_refreshes_change_nothing(make_world, version):
    world = make_world("leaf-spine", version=version)
    world.join("h3")
    world.settle()
    applied = world.applied
    for _ in range(3):
        world.record("h3", T.MODE_IS_EXCLUDE)
        world.settle()
    assert world.applied == applied


def test_edge_ports_are_asked_for_their_members(make_world):
    world = make_world("leaf-spine")
    asked = {(place, query.family) for place, query in world.queries() if query.group is None}
    assert asked == {(host.place, family) for host in world.hosts.values() for family in (4, 6)}


@pytest.mark.parametrize("graph", ["fattree", "ring"])
def test_a_report_from_a_trunk_port_counts_for_nothing(make_world, graph):
    world = make_world(graph)
    ends = next(iter(world.links.values()))
    dpid, port_no = ends[0]
    world.hosts["h99"] = world.hosts["h1"]._replace(mac=b"\x02\0\0\0\0\x99", dpid=dpid, port_no=port_no)
    world.join("h99")
    assert not world.core.plane.groups
    assert world.core.counters["report-not-at-edge"] == 1
