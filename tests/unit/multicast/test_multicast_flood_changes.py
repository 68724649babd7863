"""Link-scope flooding follows each change by what it concerns, and ends where a computation from nothing would."""

from __future__ import annotations

import random

import pytest

from controller.events import DeadlineReached, Port, PortChanged
from controller.multicast.flood import LINK_SCOPE_GROUPS_BOUND, PORTS_AT_ONCE, FloodPlane
from controller.multicast.flood_schedule import FLOOD_SETTLE_PER_SWITCH_S, FLOOD_SETTLE_S
from controller.multicast.switch_ports import SwitchPorts
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.pipeline import MULTICAST_TAG, OPENFLOW_1_3
from controller.wire.addresses import parse_ip
from topology.events import PortRole, PortRoleChanged
from topology.graph import Graph

GROUPS = [parse_ip(f"ff02::{number:x}:1") for number in range(1, 6)]


def from_nothing(world):
    """Return the entries that follow from the fabric, its ports and the members, computed at once."""
    core = world.core
    fresh = FloodPlane(Installer(MULTICAST_TAG))
    for group in core.flood.groups():
        for dpid, port_no in core.flood.members(group):
            fresh.interest_changed(dpid, port_no, group, True, world.now)
    fresh.refresh(core.plane.forest.graph, core.flooding.switch_ports(), world.now)
    while fresh.is_behind:
        fresh.advance(world.now)
    return {dpid: dict(fresh._installer.desired(dpid)) for dpid in world.switches}


def held(world, expected):
    cookies = {rule.cookie for rules in expected.values() for rule in rules.values()}
    return {
        dpid: {key: rule for key, rule in rules.items() if rule.cookie in cookies}
        for dpid, rules in world.rules().items()
    }


@pytest.mark.parametrize("ports_at_once", [1, 60, 320])
@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_the_entries_are_those_computed_from_nothing(make_world, monkeypatch, seed, ports_at_once):
    monkeypatch.setattr("controller.multicast.flood.PORTS_AT_ONCE", ports_at_once)
    monkeypatch.setattr("controller.multicast.flood_schedule.PORTS_AT_ONCE", 8 * ports_at_once)
    draw = random.Random(seed)
    world = make_world(draw.choice(("fattree", "leaf-spine")), seed=seed)
    world.is_hasty = ports_at_once == 60
    names = sorted(world.hosts)
    for _ in range(25):
        kind = draw.randrange(8)
        if kind == 0 and not world.down_links:
            world.cut(*draw.choice(sorted(tuple(sorted(pair)) for pair in world.links)))
        elif kind == 1 and world.down_links:
            world.mend(*sorted(next(iter(world.down_links))))
        elif kind == 5:
            world.do(draw.choice(("switch-drain", "switch-undrain")), dpid=draw.choice(sorted(world.switches)))
        elif kind == 6:
            host = world.hosts[draw.choice(names)]
            role = draw.choice((PortRole.EDGE, PortRole.UNKNOWN, PortRole.DOWN))
            world.feed(PortRoleChanged(host.dpid, host.port_no, role))
        elif kind == 7:
            dpid = draw.choice(sorted(world.connected))
            world.disconnect(dpid)
            world.advance(draw.choice((0.0, 2.0)))
            world.reconnect(dpid)
        elif kind == 2:
            world.leave(draw.choice(names), draw.choice(GROUPS))
        else:
            world.join(draw.choice(names), draw.choice(GROUPS))
        if draw.random() < 0.5:
            world.advance(5.0)
    world.advance(10.0)
    assert world.core.flooding._ports == world.core.flooding.switch_ports()
    expected = from_nothing(world)
    assert held(world, expected) == expected


def test_a_member_costs_edits_of_its_own_group_alone_and_no_refresh(make_world):
    world = make_world("fattree")
    for group in GROUPS:
        world.join("h1", group)
        world.settle()
    world.applied = 0
    world.join("h2", GROUPS[0])
    assert world.core.flooding.due_s is None
    world.settle()
    assert world.applied == 1


@pytest.mark.parametrize("group", ["ff02::1:ff00:1234", "224.0.0.251"])
def test_what_is_flooded_anyhow_changes_nothing(make_world, group):
    world = make_world("fattree")
    world.applied = 0
    world.join("h1", parse_ip(group))
    assert world.core.flooding.due_s is None
    world.settle()
    assert world.applied == 0


def test_groups_beyond_the_bound_change_nothing(make_world):
    world = make_world("leaf-spine")
    for number in range(LINK_SCOPE_GROUPS_BOUND):
        world.join("h1", parse_ip(f"ff02::{number + 1:x}:2"))
    world.settle()
    world.applied = 0
    world.join("h1", parse_ip("ff02::ffff:2"))
    assert world.core.flooding.due_s is None
    world.settle()
    assert world.applied == 0


def test_while_much_of_the_fabric_changes_the_entries_change_more_rarely(make_world):
    world = make_world("fattree")
    world.advance(1.0)
    flooding = world.core.flooding
    flooding.soon(world.now)
    assert flooding.due_s == world.now
    world.feed(DeadlineReached())
    flooding.soon(world.now)
    assert flooding.due_s == pytest.approx(world.now + FLOOD_SETTLE_S)
    world.advance(1.0)
    for dpid in sorted(world.switches):
        world.feed(PortChanged(dpid, Port(99, "new", bytes(6), True, 1e9), deleted=False))
    world.feed(DeadlineReached())
    flooding.soon(world.now)
    wait_s = FLOOD_SETTLE_S + FLOOD_SETTLE_PER_SWITCH_S * len(world.switches)
    assert flooding.due_s == pytest.approx(world.now + wait_s)


class Recorded(Installer):
    """An installer that keeps how many edits each change had."""

    def __init__(self) -> None:
        super().__init__(MULTICAST_TAG)
        self.sizes: list[int] = []

    def change(self, stages, *args, **named):
        self.sizes.append(sum(map(len, stages)))
        return super().change(stages, *args, **named)

    def extend_plan(self, plan, stages, now):
        self.sizes.append(sum(map(len, stages)))
        return super().extend_plan(plan, stages, now)


def test_what_is_not_confirmed_yet_is_gone_over_again_as_far_as_it_could_close_a_loop():
    """While a fabric comes up every switch has edits under way: punts and what ports let in are told once."""
    count, ports = 40, 16
    graph, installer = Graph(), Recorded()
    switches = {
        dpid: SwitchPorts(OPENFLOW_1_3, tuple(range(10, 10 + ports)), tuple(range(40, 40 + ports)))
        for dpid in range(1, count + 1)
    }
    flood = FloodPlane(installer)
    for dpid in switches:
        graph.add_node(dpid)
        (request,) = installer.switch_connected(dpid, OPENFLOW_1_3, 0.0)
        (told,) = FakeSwitch(dpid, OPENFLOW_1_3).respond(request)
        installer.handle(told, 0.0)
    flood.refresh(graph, switches, 0.0)
    for dpid in range(1, count):
        graph.add_link(dpid, dpid + 1, 1, 2)
    flood.refresh(graph, switches, 1.0, ())
    graph.add_link(1, count, 3, 3)
    del installer.sizes[:]
    flood.refresh(graph, switches, 2.0, (1, count))
    while flood.is_behind:
        flood.advance(2.0)
    assert flood.brought_count == count
    assert 0 < sum(installer.sizes) <= 2 * 3 * count


def test_a_turn_tells_few_switches_however_many_a_change_concerns():
    """A fabric whose ports are all told apart at once: each switch has some 60 entries more."""
    count, ports = 100, 16
    graph, installer = Graph(), Recorded()
    switches = {}
    for dpid in range(1, count + 1):
        graph.add_node(dpid)
        if dpid > 1:
            graph.add_link(dpid - 1, dpid, 1, 2)
        switches[dpid] = SwitchPorts(OPENFLOW_1_3, (), tuple(range(10, 10 + ports)))
    flood = FloodPlane(installer)
    flood.refresh(graph, switches, 0.0)
    while flood.is_behind:
        flood.advance(0.0)
    graph.add_link(1, count, 3, 3)
    graph.remove_link(50, 51)
    flood.refresh(graph, switches, 1.0)
    while flood.is_behind:
        flood.advance(1.0)
    assert len(installer.sizes) >= count * ports / PORTS_AT_ONCE
    assert max(installer.sizes) <= (PORTS_AT_ONCE / ports + 1) * (4 * ports + 16)
