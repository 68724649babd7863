"""Two of our ports on one segment behind somebody else's switch: one is used, the other held."""

from __future__ import annotations

import pytest

from controller.discovery.base_rules import base_rules, hold_rule
from controller.discovery.settings import DiscoverySettings
from controller.rules.evaluate import Fields, FlowTables, Sent
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER
from controller.wire.arp import encode_arp
from controller.wire.lldp import NEAREST_BRIDGE_MAC, SEGMENT_MAC
from controller.wire.packets import Arp
from topology.events import PortRole, PortRoleChanged

MAC, ADDRESS = b"\x02\0\0\0\0\x07", b"\x0a\0\0\x07"
LOW, HIGH = (1, 3), (2, 2)


def pair(make_world, *segment, settings=None):
    """Two cabled switches, and a segment between some of their other ports."""
    world = make_world(settings)
    world.cable((1, 1), (2, 1))
    world.segments.append(set(segment))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    return world


def says(world, *ends):
    """Let a host behind the segment announce itself: both ports hear it."""
    for end in ends:
        world.frame(end, encode_arp(Arp(MAC, b"\xff" * 6, 1, MAC, ADDRESS, bytes(6), ADDRESS)))


def holds(world, end):
    return hold_rule(4, end[1]).key in world.rules[end[0]]


def assert_held(world, end=HIGH, by=LOW):
    assert world.fabric.role(*end) is PortRole.UNKNOWN
    assert world.fabric.role(*by) is PortRole.EDGE
    assert (holds(world, end), holds(world, by)) == (True, False)


def test_of_two_ports_to_a_segment_the_higher_is_held_before_it_is_edge(make_world):
    world = pair(make_world, LOW, HIGH)
    assert_held(world)
    assert PortRoleChanged(*HIGH, PortRole.EDGE) not in world.events
    (notice,) = (notice for notice in world.notices if notice.kind == "segment-looped")
    assert "Port 1:3 and port 2:2 lead to one segment" in notice.text
    assert notice.fields == (("dpid", 2), ("port_no", 2))
    del world.events[:]
    assert world.run(120.0) == [], "and stays so"


def test_hosts_behind_the_segment_are_learnt_at_the_other_port_alone(make_world):
    world = pair(make_world, LOW, HIGH)
    says(world, HIGH, LOW, HIGH)
    host = world.fabric.host(MAC)
    assert (host.dpid, host.port_no) == LOW
    world.run(5.0)
    assert not {"spoof-suspected", "spoof-blocked"} & set(world.core.counters)


def test_a_loop_that_no_port_tells_of_is_found_by_the_frames_that_cross_it(make_world):
    world = pair(make_world)
    assert world.fabric.role(*HIGH) is PortRole.EDGE
    world.segments.append({LOW, HIGH})
    world.run(2 * world.settings.lldp_interval_s + 0.2)
    assert_held(world)


def test_a_host_heard_at_two_ports_shows_the_loop_at_once(make_world):
    world = pair(make_world)
    world.run(0.1)
    world.segments.append({LOW, HIGH})
    says(world, HIGH, LOW)
    world.run(0.2)
    assert_held(world)
    says(world, LOW, HIGH)
    assert (world.fabric.host(MAC).dpid, world.fabric.host(MAC).port_no) == LOW


def test_bridges_are_told_that_other_hosts_are_no_more_behind_the_held_port(make_world):
    world = pair(make_world)
    others = {bytes((2, 0, 0, 0, 1, n)): ((1, 2), (1, 4), (2, 3))[n % 3] for n in range(9)}
    for mac, end in others.items():
        world.host(mac, end, bytes((10, 0, 1, mac[5])))
        world.say(mac, bytes((10, 0, 1, mac[5])))
    says(world, LOW)
    world.segments.append({LOW, HIGH})
    del world.sent[:]
    says(world, HIGH)
    world.run(0.2)
    assert_held(world)
    moved = [packet for packet in world.sent if packet.data[12:14] == b"\x88\xb5"]
    assert {packet.data[6:12] for packet in moved} == set(others)
    assert {(packet.dpid, packet.ports) for packet in moved} == {(LOW[0], (LOW[1],))}
    del world.sent[:]
    world.run(1.2)
    again = [packet for packet in world.sent if packet.data[12:14] == b"\x88\xb5"]
    assert {packet.data[6:12] for packet in again} == set(others), (
        "frames came by the held port until it dropped them"
    )
    del world.sent[:]
    world.run(10.0)
    assert not any(packet.data[12:14] == b"\x88\xb5" for packet in world.sent)


def test_a_host_that_speaks_at_two_ports_has_few_frames_sent(make_world):
    world = pair(make_world)
    del world.sent[:]
    for _ in range(100):
        says(world, HIGH, LOW)
        world.run(0.01)
    assert sum(packet.data[:6] == SEGMENT_MAC for packet in world.sent) <= 6


def test_the_held_port_takes_over_when_the_other_goes_down_and_gives_way_when_it_is_back(make_world):
    world = pair(make_world, LOW, HIGH)
    world.port(LOW, up=False)
    assert not holds(world, HIGH)
    world.run(0.5)
    assert world.fabric.role(*HIGH) is PortRole.EDGE
    assert "segment-released" in {notice.kind for notice in world.notices}
    world.port(LOW, up=True)
    world.run(1.0)
    assert_held(world)


def test_a_held_port_whose_loop_is_gone_leads_to_hosts_again(make_world):
    world = pair(make_world, LOW, HIGH)
    world.segments.clear()
    world.run(4.0)
    assert_held(world)
    world.run(6 * world.settings.lldp_interval_s)
    assert world.fabric.role(*HIGH) is PortRole.EDGE
    assert not holds(world, HIGH)


def test_a_held_port_that_goes_down_is_let_go(make_world):
    world = pair(make_world, LOW, HIGH)
    world.port(HIGH, up=False)
    assert not holds(world, HIGH)
    world.segments.clear()
    world.port(HIGH, up=True)
    world.run(0.5)
    assert world.fabric.role(*HIGH) is PortRole.EDGE


def test_a_cable_between_two_edge_ports_is_a_link_and_no_segment(make_world):
    world = pair(make_world)
    world.cable((1, 4), (2, 4))
    world.run(world.settings.lldp_interval_s + 0.2)
    assert world.fabric.role(1, 4) is world.fabric.role(2, 4) is PortRole.TRUNK
    assert "segment-looped" not in world.core.counters
    world.run(30.0)
    assert not holds(world, (2, 4))


def test_one_switch_cabled_twice_and_three_ports_leave_one_each(make_world):
    world = pair(make_world, (1, 2), (1, 3), (2, 3))
    assert [world.fabric.edge_ports(dpid) for dpid in (1, 2)] == [(2, 4), (2, 4)]
    world.port((1, 2), up=False)
    world.run(2.0)
    assert [world.fabric.edge_ports(dpid) for dpid in (1, 2)] == [(3, 4), (2, 4)]


def test_a_port_is_held_on_while_a_switch_has_no_connection(make_world):
    world = pair(make_world, LOW, HIGH, settings=DiscoverySettings(switch_grace_s=100.0))
    world.disconnect(1)
    world.run(60.0)
    assert world.fabric.role(*HIGH) is PortRole.UNKNOWN
    world.connect(1)
    world.run(60.0)
    assert_held(world)


@pytest.mark.parametrize("version", [1, 4])
def test_a_switch_that_goes_or_changes_its_version_leaves_nothing_held(make_world, version):
    world = pair(make_world, LOW, HIGH)
    world.rules[2].clear()
    world.connect(2, version=version)
    world.run(1.0)
    assert world.fabric.role(*HIGH) is PortRole.UNKNOWN
    world.disconnect(1)
    world.run(world.settings.switch_grace_s + 1.0)
    assert world.fabric.role(*HIGH) is PortRole.EDGE


def test_a_segment_frame_that_was_recorded_holds_no_port(make_world):
    world = pair(make_world)
    world.run(4.0)
    recorded = next(p.data for p in reversed(world.sent) if (p.dpid, *p.ports) == LOW and p.data[:6] == SEGMENT_MAC)
    world.run(5.0)
    world.frame(HIGH, recorded)
    world.frame(HIGH, recorded[:-4] + bytes((recorded[-4] ^ 1,)) + recorded[-3:])
    world.run(1.0)
    assert world.fabric.role(*HIGH) is PortRole.EDGE
    assert world.core.counters["lldp-replayed"] == world.core.counters["lldp-forged"] == 1


@pytest.mark.parametrize("version", [1, 4])
def test_nothing_but_lldp_passes_a_held_port(version):
    tables = FlowTables()
    for rule in (*base_rules(version), hold_rule(version, 7)):
        assert LOWERINGS[version].expressible(rule) is None
        tables.put(rule)
    assert tables.process(version, Fields(b"\xff" * 6, MAC, 0x0806), 7).sent == ()
    assert len(tables.process(version, Fields(b"\xff" * 6, MAC, 0x0806), 8).sent) == 1
    for mac in (NEAREST_BRIDGE_MAC, SEGMENT_MAC):
        assert tables.process(version, Fields(mac, MAC, 0x88CC), 7).sent == (Sent(OFPP_CONTROLLER, mac),)
