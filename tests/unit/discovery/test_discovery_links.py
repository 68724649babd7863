"""Links and port roles."""

from __future__ import annotations

import pytest

from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.events import DeadlineReached, Port
from controller.wire.frame import decode
from controller.wire.lldp import NEAREST_BRIDGE_MAC, encode_lldp
from controller.wire.packets import Lldp
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp

HOST = b"\x02\0\0\0\0\x0a"


def pair(make_world, settings=None):
    world = make_world(settings)
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    return world


def test_two_switches_with_a_cable_have_a_link_and_edge_ports(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.connect(2)
    events = world.events
    assert events[0] == SwitchUp(1, 4)
    assert LinkUp(1, 1, 2, 1, 1e9) in events, "the link is there before any time has passed"
    assert not any(isinstance(event, PortRoleChanged) and event.role is PortRole.EDGE for event in events)
    world.run(0.5)
    assert world.fabric.role(1, 1) is PortRole.TRUNK
    assert world.fabric.edge_ports(1) == world.fabric.edge_ports(2) == (2, 3, 4)


def lldp_frames(world, end):
    """Return how many LLDP frames left a port."""
    return sum(
        packet.dpid == end[0] and end[1] in packet.ports and isinstance(decode(packet.data), Lldp)
        for packet in world.sent
    )


def test_a_port_is_asked_at_once_where_somebody_is_heard_after_its_first_frames_alone(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.cut |= {(1, 1), (2, 1)}
    world.connect(1)
    world.connect(2)
    while world.fabric.role(2, 1) is not PortRole.EDGE:
        world.run(0.05)
    world.cut.clear()
    events = world.say(HOST, b"\x0a\0\0\1", (2, 1))  # what a switch behind the cable sends on
    assert PortRoleChanged(2, 1, PortRole.TRUNK) in events and world.links() == {(1, 2)}
    assert world.fabric.host(HOST) is None


def test_who_is_heard_at_a_port_later_has_it_asked_no_more(make_world):
    world = make_world()
    world.connect(1)
    while world.fabric.role(1, 1) is not PortRole.EDGE:
        world.run(0.05)
    before = lldp_frames(world, (1, 1))
    for _ in range(3):
        world.say(HOST, b"\x0a\0\0\1", (1, 1))
    assert lldp_frames(world, (1, 1)) == before + 1
    world.run(3.0)
    before = lldp_frames(world, (1, 1))
    world.say(HOST[:5] + b"\x0b", b"\x0a\0\0\2", (1, 1))
    assert lldp_frames(world, (1, 1)) == before


def test_a_port_waits_for_switches_that_have_just_connected_before_it_is_edge(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.cut |= {(1, 1), (2, 1)}
    world.connect(1)
    world.run(0.3)
    world.connect(2)
    world.run(0.2)
    assert world.fabric.role(1, 1) is PortRole.UNKNOWN
    world.cut.clear()
    world.run(0.5)
    assert world.links() == {(1, 2)}
    assert PortRoleChanged(1, 1, PortRole.EDGE) not in world.events
    for dpid in range(3, 40):
        world.connect(dpid)
        world.run(0.2)
    assert world.fabric.role(3, 1) is PortRole.EDGE, "but not for ever"


def test_port_down_takes_the_link_down_at_once_and_its_return_is_quick(make_world):
    world = pair(make_world)
    assert world.port((1, 1), up=False)[:2] == [LinkDown(1, 1, 2, 1), PortRoleChanged(1, 1, PortRole.DOWN)]
    world.port((2, 1), up=False)
    world.run(30.0)
    world.port((1, 1), up=True)
    world.run(0.05)
    assert LinkUp(1, 1, 2, 1, 1e9) in world.port((2, 1), up=True)


def test_a_link_needs_both_directions(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.cut.add((2, 1))
    world.connect(1)
    world.connect(2)
    world.run(10.0)
    assert world.links() == set()
    assert world.fabric.role(1, 1) is world.fabric.role(2, 1) is PortRole.TRUNK
    world.cut.clear()
    world.run(world.settings.lldp_interval_s)
    assert world.links() == {(1, 2)}


def test_a_link_that_loses_its_frames_times_out_and_becomes_edge(make_world):
    world = pair(make_world)
    world.cut |= {(1, 1), (2, 1)}
    interval = world.settings.lldp_interval_s
    world.run(interval + 1.0)
    assert world.links() == set()
    world.run(1.0)
    assert world.fabric.role(1, 1) is PortRole.EDGE
    world.cut.clear()
    world.run(interval)
    assert world.links() == {(1, 2)}


def test_parallel_cables_are_links_of_their_own(make_world):
    world = make_world()
    for port_no in (1, 2, 3):
        world.cable((1, port_no), (2, 4 - port_no))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    assert [link.ports for link in world.fabric.graph.cables(1, 2)] == [(1, 3), (2, 2), (3, 1)]
    assert {world.fabric.role(1, port_no) for port_no in (1, 2, 3)} == {PortRole.TRUNK}
    events = world.port((1, 1), up=False)
    assert [event for event in events if not isinstance(event, PortRoleChanged)] == [LinkDown(1, 1, 2, 3)]
    assert [link.ports for link in world.fabric.graph.cables(1, 2)] == [(2, 2), (3, 1)]
    assert LinkUp(1, 1, 2, 3, 1e9) in world.port((1, 1), up=True)
    world.port((1, 3), up=True, speed_bps=1e10)
    assert world.port((2, 1), up=True, speed_bps=1e10) == [LinkUp(1, 3, 2, 1, 1e10)]


def test_other_settings_hold_from_then_on(make_world):
    world = pair(make_world)
    changed = world.settings._replace(link_capacity_bps=4e9, lldp_interval_s=0.5, missed_count=2)
    before = len(world.events)
    world.feed(DiscoveryChanged(changed))
    assert world.events[before:] == [LinkUp(1, 1, 2, 1, 4e9)]
    world.run(world.settings.lldp_interval_s)
    world.cut |= {(1, 1), (2, 1)}
    world.run(1.6)
    assert world.links() == set()
    world.cut.clear()
    world.run(0.5)
    assert world.links() == {(1, 2)}
    world.feed(DiscoveryChanged(changed._replace(link_capacity_bps=0.0)))
    assert world.events[-1] == LinkUp(1, 1, 2, 1, 1e9)


def test_settings_that_contradict_each_other_are_refused_and_the_others_stay(make_world):
    world = pair(make_world)
    with pytest.raises(ValueError, match="host_timeout_s leaves no time"):
        world.feed(DiscoveryChanged(world.settings._replace(link_capacity_bps=4e9, host_timeout_s=3.0)))
    assert world.port((1, 1), up=True) == []


def test_a_moved_cable_moves_the_link(make_world):
    world = pair(make_world)
    world.connect(3)
    world.run(1.0)
    world.unplug((1, 1))
    world.cable((1, 1), (3, 2))
    world.run(world.settings.lldp_interval_s)
    assert world.links() == {(1, 3)}
    world.run(1.0)
    assert world.fabric.role(2, 1) is PortRole.EDGE
    assert world.fabric.role(3, 2) is PortRole.TRUNK


def test_a_looped_cable_is_neither_trunk_nor_edge(make_world):
    world = make_world()
    world.cable((1, 1), (1, 2))
    world.cable((1, 3), (1, 3))
    world.connect(1)
    world.run(10.0)
    assert world.links() == set()
    assert [world.fabric.role(1, port_no) for port_no in (1, 2, 3)] == [PortRole.UNKNOWN] * 3
    assert world.fabric.edge_ports(1) == (4,)
    assert "port-looped" in world.core.counters


def test_a_switch_that_goes_takes_its_links_first_and_leaves_trunks_behind(make_world):
    world = pair(make_world)
    del world.events[:]
    world.disconnect(2)
    world.run(world.settings.switch_grace_s - 0.1)
    assert world.events == []
    world.run(0.2)
    assert world.events == [LinkDown(1, 1, 2, 1), SwitchDown(2)]
    world.run(60.0)
    assert world.fabric.role(1, 1) is PortRole.TRUNK, "the cable still leads to a switch that may forward"
    world.connect(2)
    assert world.links() == {(1, 2)}


def test_a_trunk_whose_switch_returns_elsewhere_becomes_edge(make_world):
    world = pair(make_world)
    world.disconnect(2)
    world.run(world.settings.switch_grace_s)
    world.unplug((1, 1))
    world.connect(2)
    world.run(3 * world.settings.lldp_interval_s + 1)
    assert world.fabric.role(1, 1) is PortRole.EDGE


def test_a_switch_whose_connection_blinks_keeps_all_and_is_filled_again(make_world):
    world = pair(make_world, DiscoverySettings(switch_grace_s=60.0))
    del world.events[:]
    rules = dict(world.rules[2])
    world.disconnect(2)
    world.run(50.0)
    world.rules[2].clear()
    world.connect(2)
    world.run(50.0)
    assert world.events == []
    assert world.links() == {(1, 2)}
    assert world.rules[2] == rules


def test_a_cable_pulled_while_its_switch_is_lost_is_noticed_after_that(make_world):
    world = pair(make_world)
    world.disconnect(2)
    world.unplug((1, 1))
    world.connect(2)
    world.run(4 * world.settings.lldp_interval_s + 1)
    assert world.links() == set()
    assert world.fabric.role(1, 1) is world.fabric.role(2, 1) is PortRole.EDGE


def test_without_a_grace_a_switch_goes_with_its_connection(make_world):
    world = pair(make_world, DiscoverySettings(switch_grace_s=0.0))
    del world.events[:]
    world.disconnect(2)
    assert world.events == [LinkDown(1, 1, 2, 1), SwitchDown(2)]


def test_a_lost_switch_goes_with_the_last_port_that_leads_to_it(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.cable((2, 2), (3, 1))
    for dpid in (1, 2, 3):
        world.connect(dpid)
    world.run(1.0)
    del world.events[:]
    world.disconnect(2)
    world.run(1.0)
    assert world.port((1, 1), up=False)[0] == LinkDown(1, 1, 2, 1)
    assert world.fabric.role(2, 1) is PortRole.UNKNOWN
    assert world.links() == {(2, 3)}
    world.run(1.0)
    assert SwitchDown(2) not in world.events
    events = world.port((3, 1), up=False)
    gone = [event for event in events if not isinstance(event, PortRoleChanged)]
    assert gone == [LinkDown(2, 2, 3, 1), SwitchDown(2)]


def test_a_switch_whose_links_are_down_already_goes_with_its_connection(make_world):
    world = pair(make_world)
    world.link((1, 1), up=False)
    world.disconnect(2)
    assert world.events[-1] == SwitchDown(2)


def test_a_switch_that_never_had_a_link_has_the_grace_too(make_world):
    world = make_world()
    world.cable((1, 1), (1, 2))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    del world.events[:]
    world.disconnect(1)
    world.run(world.settings.switch_grace_s - 0.1)
    assert world.events == []
    world.run(0.1)
    assert world.events == [SwitchDown(1)]


def test_no_switch_is_given_up_while_none_is_connected(make_world):
    """It is the controller that is cut off: what it knew of the fabric holds when the switches are back."""
    world = pair(make_world)
    world.connect(3)
    world.run(1.0)
    del world.events[:]
    for dpid in (1, 2, 3):
        world.disconnect(dpid)
    world.run(100 * world.settings.switch_grace_s)
    assert world.events == []
    (told,) = [notice for notice in world.notices if notice.kind == "all-switches-lost"]
    assert told.text.startswith("No switch of 3 is connected any more.")
    world.connect(1)
    world.run(world.settings.switch_grace_s - 0.1)
    assert world.events == []
    world.connect(2)
    world.run(0.2)
    assert world.events == [SwitchDown(3)], "it had its time anew when the first was back"
    assert world.links() == {(1, 2)}


def test_a_port_of_a_lost_switch_is_not_taken_for_one_that_leads_to_hosts(make_world):
    world = make_world()
    world.connect(1)
    world.run(0.2)
    world.disconnect(1)
    world.run(5.0)
    assert world.fabric.edge_ports(1) == ()
    world.connect(1)
    world.run(1.0)
    assert world.fabric.edge_ports(1) == (1, 2, 3, 4)


def test_a_switch_that_connects_again_unnoticed_keeps_its_links(make_world):
    world = pair(make_world)
    del world.events[:]
    world.connect(2, ports=(1, 2, 3), down=(2,))
    world.run(1.0)
    assert set(world.events) == {PortRoleChanged(2, 2, PortRole.DOWN), PortRoleChanged(2, 4, PortRole.DOWN)}
    assert world.links() == {(1, 2)}


def test_a_switch_that_returns_with_another_version_starts_anew(make_world):
    world = pair(make_world)
    world.connect(2, version=1)
    world.run(1.0)
    assert world.fabric.ofp_version(2) == 1
    assert world.links() == {(1, 2)}
    assert {key.table for key in world.rules[2]} >= {0}


def test_forged_and_foreign_lldp_make_no_link(make_world):
    world = pair(make_world)
    world.frame((1, 2), encode_lldp(2, 2, bytes(16)))
    world.frame((1, 2), encode_lldp(2, 99, bytes(16)))
    world.frame((1, 2), b"\x01\x80\xc2\0\0\x0e" + bytes(6) + b"\x88\xcc" + b"\x02\x07\x04abcdef\x00\x00")
    world.run(1.0)
    assert world.fabric.role(1, 2) is PortRole.EDGE
    assert world.core.counters["lldp-forged"] == 2
    assert [notice.kind for notice in world.notices].count("lldp-forged") == 1


def lldp_of(world, end):
    """The last LLDP frame that left a port."""
    frames = [p.data for p in world.sent if (p.dpid, *p.ports) == end and p.data[:6] == NEAREST_BRIDGE_MAC]
    return frames[-1]


@pytest.mark.parametrize("later_s", [2.5, 60.0])
def test_an_old_frame_of_an_edge_port_makes_no_trunk_elsewhere(make_world, later_s):
    world = pair(make_world)
    mac, address = b"\x02\0\0\0\0\x07", b"\x0a\0\0\x07"
    world.host(mac, (1, 2), address)
    world.say(mac, address)
    recorded = lldp_of(world, (1, 2))
    world.run(later_s)
    sent = len(world.sent)
    assert world.frame((2, 3), recorded) == []
    (asked,) = world.sent[sent:]
    assert (asked.dpid, asked.ports) == (1, (2,)), "it may be a cable whose frames came late: its port is asked again"
    assert world.frame((2, 3), recorded) == []
    assert len(world.sent) == sent + 1, "once"
    assert world.fabric.role(1, 2) is world.fabric.role(2, 3) is PortRole.EDGE
    assert world.fabric.host(mac) is not None
    assert world.core.counters["lldp-replayed"] == 2
    assert [notice.kind for notice in world.notices].count("lldp-replayed") == 1


def test_a_frame_that_arrived_counts_nowhere_else(make_world):
    world = pair(make_world)
    world.run(world.settings.lldp_interval_s)
    recorded = lldp_of(world, (1, 1))
    assert world.frame((2, 3), recorded) == []
    assert world.frame((2, 1), recorded) == []
    assert world.links() == {(1, 2)}
    assert world.core.counters["lldp-replayed"] == 2


def test_a_relayed_frame_counts_once_and_its_trunks_end_soon(make_world):
    world = pair(make_world)
    world.run(world.settings.lldp_interval_s)
    world.frame((2, 3), lldp_of(world, (1, 2)))
    assert world.fabric.role(1, 2) is PortRole.TRUNK, "a live relay is not told from a cable"
    world.run(world.settings.lldp_interval_s * (world.settings.missed_count + 1) + 1)
    assert world.fabric.role(1, 2) is world.fabric.role(2, 3) is PortRole.EDGE
    assert world.links() == {(1, 2)}


def test_frames_of_a_controller_with_our_key_whose_clock_is_ahead_count_nowhere(make_world):
    """Machines that share a fabric count their seconds from different days on."""
    world, former = pair(make_world), pair(make_world)
    former.run(3600.0)
    assert world.frame((2, 3), lldp_of(former, (1, 2))) == []
    assert world.frame((2, 1), lldp_of(former, (1, 1))) == []
    assert world.core.counters["lldp-replayed"] == 2
    world.run(10 * world.settings.lldp_interval_s)
    assert world.links() == {(1, 2)}
    assert world.core.counters["lldp-replayed"] == 2


def test_frames_of_another_run_or_from_before_the_port_came_make_no_link(make_world):
    world, other = pair(make_world), pair(lambda settings: make_world(settings, secret=bytes(32)))
    world.frame((2, 3), lldp_of(other, (1, 2)))
    assert world.core.counters["lldp-forged"] == 1
    recorded = lldp_of(world, (1, 2))
    world.port((1, 2), up=False, deleted=True)
    world.run(0.2)
    world.port((1, 2), up=True)
    world.frame((2, 3), recorded)
    assert world.core.counters["lldp-replayed"] == 1
    assert world.links() == {(1, 2)}


def test_a_frame_that_waited_for_the_controller_itself_counts(make_world):
    world = make_world()
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.run(1.0)
    waiting = lldp_of(world, (1, 1))
    world.cut |= {(1, 1), (2, 1)}
    world.connect(2)
    world.now += 3.0
    world.feed(DeadlineReached())
    world.frame((2, 1), waiting)
    assert world.fabric.role(2, 1) is PortRole.TRUNK


def test_an_edge_port_that_hears_our_lldp_becomes_trunk_and_loses_its_hosts(make_world):
    world = pair(make_world)
    mac, address = b"\x02\0\0\0\0\x07", b"\x0a\0\0\x07"
    world.host(mac, (1, 2), address)
    world.say(mac, address)
    assert world.fabric.host(mac) is not None
    world.cable((1, 2), (2, 2))
    world.run(world.settings.lldp_interval_s)
    assert world.fabric.role(1, 2) is PortRole.TRUNK
    assert world.fabric.host(mac) is None
    assert "edge-became-trunk" in {notice.kind for notice in world.notices}


def test_a_flapping_cable_causes_a_bounded_number_of_events(make_world):
    world = pair(make_world)
    del world.events[:]
    for _ in range(1000):
        world.link((1, 1), up=False)
        world.link((1, 1), up=True)
        world.run(0.01)
    bound = world.settings.flap_burst_count + 10 * world.settings.flap_refill_per_s
    assert sum(isinstance(event, LinkUp) for event in world.events) <= bound
    assert len(world.events) <= 8 * bound
    world.run(60.0)
    assert world.links() == {(1, 2)}, "once it rests it is used again"


def test_probes_are_spread_over_the_interval(make_world):
    world = make_world()
    world.connect(1, ports=range(1, 41))
    world.run(10.0)
    del world.sent[:]
    interval = world.settings.lldp_interval_s
    counts = []
    for _ in range(10):
        before = len(world.sent)
        world.run(interval / 10)
        counts.append(len(world.sent) - before)
    assert sum(counts) == 40
    assert max(counts) <= 16


def test_reserved_ports_are_ignored(make_world):
    world = make_world()
    world.connect(1, ports=(1, 0xFFFFFFFE))
    world.connect(2, ports=(1, 0xFFFE), version=1)
    world.run(1.0)
    assert world.fabric.edge_ports(1) == world.fabric.edge_ports(2) == (1,)


def test_a_switch_that_never_confirms_is_probed_all_the_same(make_world):
    world = make_world(DiscoverySettings(base_rules_latest_s=0.7))
    ports = (Port(1, "eth1", bytes(6), True, 1e9),)
    world.core.switch_connected(1, 4, ports, world.now)
    world.run(0.6)
    assert world.sent == []
    world.run(0.2)
    assert {type(decode(packet.data)) for packet in world.sent} == {Lldp}
