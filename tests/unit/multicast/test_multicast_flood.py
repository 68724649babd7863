"""Link-scope groups reach every host whatever is joined, and never circle, whatever happens to the fabric."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.events import SwitchDisconnected
from controller.multicast.flood import LINK_SCOPE_GROUPS_BOUND
from controller.rules.pipeline import PRIORITY_LINK_SCOPE_GROUP
from controller.wire.addresses import parse_ip

ALL_SYSTEMS = parse_ip("224.0.0.1")
OSPF = parse_ip("224.0.0.5")
MDNS = parse_ip("224.0.0.251")
ALL_NODES = parse_ip("ff02::1")
MDNS_V6 = parse_ip("ff02::fb")
NODE_SCOPE = parse_ip("ff01::7")
SOLICITED = parse_ip("ff02::1:ff00:9")
DENY = Policy(default_allow=False)


@pytest.fixture(params=[1, 320])
def ports_at_once(request, monkeypatch):
    """How many ports' switches are looked at in one turn: one switch, or all of a small fabric."""
    monkeypatch.setattr("controller.multicast.flood.PORTS_AT_ONCE", request.param)
    return request.param


def reached_by_all(world, group, names=None):
    names = list(names or world.hosts)
    for sender in (names[0], names[-1]):
        assert world.send(sender, group) == {name: 1 for name in names if name != sender}


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "leaf-spine", "ring", "tree", "bundles"])
def test_link_scope_reaches_every_host_without_a_report(make_world, graph, version):
    world = make_world(graph, DENY, version)
    for group in (ALL_SYSTEMS, OSPF, MDNS):
        reached_by_all(world, group)
    if version == 4:
        for group in (ALL_NODES, MDNS_V6, NODE_SCOPE, SOLICITED):
            reached_by_all(world, group)
    assert not world.core.plane.groups


def test_link_scope_never_circles_while_the_fabric_changes(make_world, version, ports_at_once):
    for graph in ("fattree", "ring", "leaf-spine", "bundles"):
        world = make_world(graph, version=version, seed=3)
        world.is_hasty = ports_at_once == 1
        pairs = sorted(sorted(pair) for pair in world.links)
        names = list(world.hosts)
        for _ in range(30):
            pair = world.random.choice(pairs)
            if frozenset(pair) in world.down_links:
                for end, _ in world.links[frozenset(pair)]:
                    while world.queues[end]:
                        world.step(end)
                world.mend(*pair)
            else:
                world.cut(*pair)
            for _, _step in zip(range(world.random.randrange(25)), world.steps(), strict=False):
                got = world.send(world.random.choice(names), OSPF)
                assert all(count == 1 for count in got.values())
        for pair in sorted(sorted(pair) for pair in world.down_links):
            world.settle()
            world.mend(*pair)
        world.settle()
        reached_by_all(world, OSPF)


def test_link_scope_is_flooded_again_when_switches_return(make_world, version, ports_at_once):
    world = make_world("fattree", version=version)
    dpids = [1, 9, 17]
    for dpid in dpids:
        world.disconnect(dpid)
        for _ in world.steps():
            world.send("h16", OSPF)
    living = [name for name, host in world.hosts.items() if host.dpid not in dpids]
    reached_by_all(world, OSPF, living)
    for dpid in dpids:
        world.reconnect(dpid)
        for _ in world.steps():
            assert all(count == 1 for count in world.send("h16", OSPF).values())
    reached_by_all(world, OSPF)


def test_a_switch_that_lost_us_and_went_on_forwarding_closes_no_loop_when_it_is_back(
    make_world, version, ports_at_once
):
    world = make_world("ring", version=version)
    world.disconnect(3, dies=False)
    world.settle()
    world.reconnect(3)
    for _ in world.steps():
        assert all(count == 1 for count in world.send("h1", OSPF).values())
    reached_by_all(world, OSPF)


def test_no_loop_is_closed_over_a_switch_that_cannot_be_told(make_world, version, ports_at_once):
    """Discovery counts a switch without a connection as there for a while; it forwards on by what it holds."""
    world = make_world("ring", version=version)
    world.cut(1, 2)
    world.settle()
    world.connected.discard(4)
    world.feed(SwitchDisconnected(4))
    world.mend(1, 2)
    for _ in world.steps():
        assert all(count == 1 for count in world.send("h1", OSPF).values())
    world.connect(4)
    for _ in world.steps():
        assert all(count == 1 for count in world.send("h1", OSPF).values())
    reached_by_all(world, OSPF)


def test_link_scope_groups_with_members_go_to_them_only(make_world):
    world = make_world("fattree")
    world.join("h9", MDNS_V6)
    world.join("h2", MDNS_V6)
    world.settle()
    assert world.send("h1", MDNS_V6) == {"h2": 1, "h9": 1}
    assert world.send("h16", MDNS_V6) == {"h2": 1, "h9": 1}
    reached_by_all(world, ALL_NODES)
    reached_by_all(world, SOLICITED)
    for name in ("h9", "h2"):
        world.leave(name, MDNS_V6)
    world.advance(5.0)
    reached_by_all(world, MDNS_V6)


def test_solicited_node_groups_stay_flooded(make_world):
    world = make_world("leaf-spine")
    world.join("h3", SOLICITED)
    world.settle()
    reached_by_all(world, SOLICITED)


def test_link_scope_groups_with_entries_of_their_own_are_bounded(make_world):
    world = make_world("leaf-spine")
    for n in range(LINK_SCOPE_GROUPS_BOUND + 3):
        world.join("h3", parse_ip(f"ff02::1:{n + 1:x}"))
        world.now += 0.1
    world.settle()
    own = [rule for rule in world.rules()[1].values() if rule.key.priority == PRIORITY_LINK_SCOPE_GROUP]
    assert len(own) == LINK_SCOPE_GROUPS_BOUND
    assert [notice.kind for notice in world.notices] == ["link-scope-groups-bound"]
    reached_by_all(world, parse_ip(f"ff02::1:{LINK_SCOPE_GROUPS_BOUND + 3:x}"))
