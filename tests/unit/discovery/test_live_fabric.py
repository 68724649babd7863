"""What topology events add up to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.events import DeadlineReached
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRole,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)
from topology.graph import Link, NodeKind
from topology.live import LiveFabric

A, B = b"\x02\0\0\0\0\x0a", b"\x02\0\0\0\0\x0b"
IP, IP_2 = b"\x0a\0\0\1", b"\x0a\0\0\2"

STATE = [
    SwitchUp(1, 4),
    SwitchUp(2, 4),
    SwitchUp(3, 1),
    LinkUp(1, 10, 2, 20, 1e9),
    LinkUp(3, 30, 2, 21, 1e10),
    PortRoleChanged(1, 1, PortRole.EDGE),
    PortRoleChanged(1, 2, PortRole.DOWN),
    PortRoleChanged(2, 20, PortRole.TRUNK),
    HostLearnt(A, 1, 1, (IP, IP_2)),
    HostLearnt(B, 3, 4, ()),
]


def built(events):
    fabric = LiveFabric()
    for event in events:
        fabric.apply(event)
    return fabric


def test_the_graph_has_levels_from_the_hosts_up():
    fabric = built(STATE)
    assert [fabric.graph.level(dpid) for dpid in (1, 2, 3)] == [1, 2, 1]
    assert fabric.graph.link(2, 3) == (2, 3, 21, 30, 1e10, 1.0)
    fabric.apply(HostGone(B, 3, 4))
    assert fabric.graph.kind(3) is NodeKind.SWITCH
    assert fabric.graph.level(3) == 3


def test_hosts_are_found_by_mac_address_ip_address_and_port():
    fabric = built(STATE)
    host = HostLearnt(A, 1, 1, (IP, IP_2))
    assert fabric.host(A) == fabric.host_by_ip(IP_2) == host
    assert fabric.hosts_at(1, 1) == fabric.hosts_of(1) == (host,)
    assert fabric.edge_ports(1) == (1,)
    assert (fabric.role(1, 2), fabric.role(1, 9)) == (PortRole.DOWN, PortRole.UNKNOWN)
    fabric.apply(HostLearnt(A, 1, 1, (IP,)))
    assert fabric.host_by_ip(IP_2) is None


def test_conflicts_are_with_what_is_known_only():
    fabric = built(STATE)
    assert not fabric.binding_conflict(A, IP, 1, 1)
    assert not fabric.binding_conflict(A, b"\x0a\0\0\x63", 1, 1)
    assert fabric.binding_conflict(A, IP, 1, 2)
    assert fabric.binding_conflict(A, IP, 2, 1)
    assert fabric.binding_conflict(B, IP, 3, 4)
    assert not fabric.binding_conflict(b"\x02\0\0\0\0\x0c", b"\x0a\0\0\x63", 3, 4)
    assert fabric.binding_conflict(b"\x02\0\0\0\0\x0c", IP, 3, 4)


def test_a_late_farewell_to_an_old_place_changes_nothing():
    fabric = built([*STATE, HostLearnt(A, 3, 9, (IP,))])
    assert not fabric.apply(HostGone(A, 1, 1))
    assert fabric.host(A) == HostLearnt(A, 3, 9, (IP,))
    assert fabric.graph.kind(1) is NodeKind.SWITCH


def test_a_switch_that_goes_takes_all_of_its_own():
    fabric = built([*STATE, SwitchDown(1)])
    assert fabric.switches() == (2, 3)
    assert fabric.hosts() == (HostLearnt(B, 3, 4, ()),)
    assert fabric.edge_ports(1) == ()
    fabric.apply(SwitchUp(1, 4))
    assert not fabric.graph.has_link(1, 2)


def test_repeats_change_nothing():
    fabric = built(STATE)
    version = fabric.graph.version
    assert not any(fabric.apply(event) for event in STATE)
    assert not fabric.apply(LinkUp(2, 20, 1, 10, 1e9)), "the same cable from its other end"
    assert fabric.graph.version == version
    assert fabric.apply(LinkDown(2, 20, 1, 10))
    assert not fabric.apply(LinkDown(1, 10, 2, 20))


def test_an_end_has_one_cable_and_two_switches_may_have_several():
    fabric = built([SwitchUp(1, 4), SwitchUp(2, 4), LinkUp(1, 10, 2, 20, 1e9), LinkUp(2, 21, 1, 11, 1e9)])
    assert [cable[:4] for cable in fabric.cables(1, 2)] == [(1, 10, 2, 20), (1, 11, 2, 21)]
    moved = LinkUp(1, 11, 2, 20, 1e9)
    assert [cable[:4] for cable in fabric.displaced(moved)] == [(1, 10, 2, 20), (1, 11, 2, 21)]
    fabric.apply(moved)
    assert list(fabric.graph.links()) == [Link(1, 2, 11, 20, 1e9)]
    assert fabric.cable(1, 10) is None
    assert fabric.cable(2, 20) == moved
    again = built(fabric.snapshot())
    assert again.snapshot() == fabric.snapshot()


def test_a_link_waits_for_both_its_switches():
    fabric = built([LinkUp(1, 10, 2, 20, 1e9), SwitchUp(1, 4)])
    assert list(fabric.graph.links()) == []
    fabric.apply(SwitchUp(2, 4))
    assert fabric.graph.has_link(1, 2)


def test_only_topology_events_are_taken():
    with pytest.raises(KeyError):
        LiveFabric().apply(DeadlineReached())


@settings(max_examples=100)
@given(st.permutations(STATE), st.lists(st.sampled_from(STATE)))
def test_order_and_repetition_make_no_difference(events, repeats):
    fabric = built([*events, *repeats])
    expected = built(STATE)
    assert fabric.snapshot() == expected.snapshot()
    assert list(fabric.graph.links()) == list(expected.graph.links())
    assert [fabric.graph.level(dpid) for dpid in (1, 2, 3)] == [1, 2, 1]
    assert built(fabric.snapshot()).snapshot() == expected.snapshot()
