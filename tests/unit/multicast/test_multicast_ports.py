"""Ports of unknown use: nothing comes in there, but the trees of a fabric that is found again lose nothing by it."""

from __future__ import annotations

from itertools import combinations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import DeadlineReached, SwitchDisconnected
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.events import PortRole, PortRoleChanged

GROUP = parse_ip("239.1.2.3")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
MIXED = {4: 1, 5: 1}


@pytest.fixture(params=[1, 4, MIXED], ids=["of10", "of13", "mixed"])
def versions(request):
    """The OpenFlow versions of a leaf-spine fabric, whose spines are switches 4 and 5."""
    return request.param


def started(make_world, versions, graph="leaf-spine"):
    world = make_world(graph, POLICY, versions)
    names = list(world.hosts)
    members = names[1:]
    for name in members:
        world.join(name)
    world.send("h1")
    world.settle()
    check(world, members)
    return world, members


def check(world, members):
    assert world.send("h1") == dict.fromkeys(members, 1)


def settled(world, members, until_s=0.6):
    """Carry out all edits one by one, with a packet between each two that must reach every member."""
    for _ in world.steps(until_s):
        check(world, members)


def test_a_link_that_returns_loses_nothing(make_world, versions):
    world, members = started(make_world, versions)
    for pair in [sorted(pair) for pair in world.links]:
        world.cut(*pair)
        world.advance(1.0)
        check(world, members)
        ends = world.plug(*pair)
        settled(world, members, 0.001)
        world.link_up(*ends)
        settled(world, members)


def test_links_that_return_together_lose_nothing(make_world, versions):
    for pairs in combinations(sorted(sorted(pair) for pair in make_world("leaf-spine").links), 2):
        world, members = started(make_world, versions)
        for pair in pairs:
            world.cut(*pair)
            world.advance(1.0)
        whole = world.core.forest.tree(GROUP).detached == set()
        found = []
        for pair in pairs:
            found.append(world.plug(*pair))
            for _ in world.steps(0.001):
                if whole:
                    check(world, members)
        for ends in found:
            world.link_up(*ends)
            for _ in world.steps(0.002):
                if whole:
                    check(world, members)
        world.settle()
        check(world, members)


def waiting(world):
    """Have the spanning tree wait: it is to take up 1-5 again, but switch 3 cannot be told to give up a link."""
    for pair in ((1, 5), (1, 4)):
        world.cut(*pair)
        world.settle()
    world.connected.discard(3)
    world.feed(SwitchDisconnected(3))
    ends = world.plug(1, 5)
    world.settle()
    return ends


def test_a_link_that_returns_is_used_while_the_spanning_tree_has_to_wait(make_world, versions):
    world, members = started(make_world, versions)
    world.link_up(*waiting(world))
    world.settle()
    got = world.send("h1")
    reached = [name for name in members if world.hosts[name].dpid != 3]
    assert {name: got[name] for name in reached} == dict.fromkeys(reached, 1)


def test_ports_open_and_close_while_the_spanning_tree_has_to_wait(make_world, version):
    world, _ = started(make_world, version)
    opened, shut = world.hosts["h2"], world.hosts["h3"]
    world.feed(PortRoleChanged(*opened.place, PortRole.DOWN))
    world.settle()
    world.link_up(*waiting(world))
    world.feed(PortRoleChanged(*opened.place, PortRole.EDGE))
    world.learn(opened)
    for role in (PortRole.DOWN, PortRole.UNKNOWN):
        world.feed(PortRoleChanged(*shut.place, role))
    world.settle()
    assert world.send("h2")["h4"] == 1
    assert closed(world, shut)


def test_nothing_comes_in_at_a_port_of_unknown_use(make_world, version):
    world, _ = started(make_world, version)
    host = world.hosts["h3"]
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.UNKNOWN))
    world.settle(0.1)
    assert world.inject(host.place, world.data("h3")) == {}


def test_a_start_without_the_journal_loses_nothing(make_world, versions):
    world, members = started(make_world, versions)
    world.restart(journal=False)
    for dpid in world.switches:
        world.connect(dpid)
        settled(world, members, 0.001)
    settled(world, members, 0.05)
    for ends in world.links.values():
        world.link_up(*ends)
        settled(world, members, 0.001)
    settled(world, members, 0.4)
    for host in world.hosts.values():
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        world.learn(host)
    settled(world, members)
    for name in members:
        world.record(name, RecordType.MODE_IS_EXCLUDE)
        settled(world, members, 0.1)
    end_s = world.now + 20.0
    while world.now < end_s:
        settled(world, members, 0.3)
        world.now += 0.3


def test_after_a_start_ports_are_closed_once_they_come_up_or_the_grace_ends(make_world, version):
    """Ports that nobody speaks of are left as an earlier run had them, on switches that hold entries of one."""
    world = make_world("leaf-spine", POLICY, version)
    world.join("h2")
    world.send("h1")
    world.settle()
    early, late = world.hosts["h3"], world.hosts["h5"]
    world.restart(journal=False)
    for dpid in world.switches:
        world.connect(dpid)
    world.settle(0.1)
    for role in (PortRole.DOWN, PortRole.UNKNOWN):
        world.feed(PortRoleChanged(early.dpid, early.port_no, role))
    world.settle(0.1)
    assert closed(world, early)
    assert not closed(world, late)
    for dpid in world.switches:
        world.connect(dpid)
    world.settle(0.1)
    assert closed(world, early)
    assert not closed(world, late)
    world.advance(15.0)
    assert closed(world, late)


def test_a_switch_that_holds_nothing_is_closed_at_once(make_world, version):
    world = make_world("leaf-spine", POLICY, version, start=False)
    for dpid in world.switches:
        world.connect(dpid)
    world.feed(DeadlineReached())
    world.settle(0.001)
    assert all(closed(world, host) for host in world.hosts.values())


def closed(world, host):
    switch = world.switches[host.dpid]
    return any(
        key.match.in_port == host.port_no and key.match.eth_type == 0x0800 and rule.actions == ()
        for key, rule in switch.rules.items()
    )
