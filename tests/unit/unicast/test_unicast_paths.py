"""Next hops and the choice among equal ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from controller.unicast.paths import NO_PATHS, NextHop, approaches, choose, mix, paths_to
from topology.graph import Graph


def ring(count):
    graph = Graph()
    for dpid in range(count):
        graph.add_node(dpid)
    for dpid in range(count):
        graph.add_link(dpid, (dpid + 1) % count, 1, 2)
    return graph


def test_paths_on_a_ring_go_the_shorter_way_and_both_where_equal():
    paths = paths_to(approaches(ring(4)), 0)
    assert paths.distance == {0: 0, 1: 1, 2: 2, 3: 1}
    assert paths.next_hops == {1: (NextHop(0, 2),), 3: (NextHop(0, 1),), 2: (NextHop(1, 2), NextHop(3, 1))}


def test_switches_that_are_cut_off_have_no_path():
    graph = ring(4)
    graph.add_node(9)
    assert 9 not in paths_to(approaches(graph), 0).distance
    assert paths_to(approaches(graph), 9) == ({9: 0}, {})
    assert paths_to(approaches(graph), 77) == NO_PATHS


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1), st.integers(2, 8))
def test_only_destinations_of_a_lost_next_hop_move(mac, dpid, count):
    hops = [NextHop(n, n) for n in range(count)]
    chosen = choose(mix(mac), dpid, hops)
    assert choose(mix(mac), dpid, hops[::-1]) == chosen
    for lost in hops:
        if lost != chosen:
            assert choose(mix(mac), dpid, [hop for hop in hops if hop != lost]) == chosen


def test_consecutive_addresses_spread_evenly():
    hops = [NextHop(n, n) for n in range(4)]
    counts = Counter(choose(mix(mac), 7, hops) for mac in range(0x020000000000, 0x020000000000 + 4000))
    assert all(850 < count < 1150 for count in counts.values())


def test_the_choices_of_two_switches_are_independent():
    hops = [NextHop(n, n) for n in range(2)]
    both = Counter((choose(mix(mac), 1, hops).dpid, choose(mix(mac), 2, hops).dpid) for mac in range(4000))
    assert all(850 < count < 1150 for count in both.values())
