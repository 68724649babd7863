"""Next hops, found anew and kept up to date, and the choice among equal ones."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.unicast.paths import NextHop, Paths, choose, mix


def links_of(pairs, nodes=()):
    """The neighbours of each node with ports, as `Paths` has them; a link's port is the number of the other end."""
    near = {node: {} for node in nodes}
    for one, other in pairs:
        near.setdefault(one, {})[other] = (100 + other,)
        near.setdefault(other, {})[one] = (100 + one,)
    return near


def ring(count):
    return links_of([(dpid, (dpid + 1) % count) for dpid in range(count)])


def test_paths_on_a_ring_go_the_shorter_way_and_both_where_equal():
    paths = Paths(ring(4), 0)
    assert paths.distance == {0: 0, 1: 1, 2: 2, 3: 1}
    assert paths.next_hops == {1: (NextHop(0, 100),), 3: (NextHop(0, 100),), 2: (NextHop(1, 101), NextHop(3, 103))}


def test_switches_that_are_cut_off_have_no_path():
    near = {**ring(4), 9: {}}
    assert 9 not in Paths(near, 0).distance
    assert (Paths(near, 9).distance, Paths(near, 9).next_hops) == ({9: 0}, {})
    assert Paths(near, 77).distance == {}


def _links_among(count):
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    return st.lists(st.sampled_from(pairs), unique=True, max_size=16)


LINKS_AMONG = {count: _links_among(count) for count in range(3, 10)}
LATER_LINKS_AMONG = {count: st.lists(links, min_size=1, max_size=4) for count, links in LINKS_AMONG.items()}


@st.composite
def changing_links(draw):
    count = draw(st.integers(3, 9))
    return range(count), [draw(LINKS_AMONG[count]), *draw(LATER_LINKS_AMONG[count])]


@settings(max_examples=500, deadline=None)
@given(changing_links(), st.booleans())
def test_paths_that_follow_changes_are_those_found_anew(change, root_stays):
    nodes, steps = change
    near = links_of(steps[0], nodes)
    paths = Paths(near, 0)
    for former, now in pairwise(steps):
        before = dict(paths.next_hops)
        kept = nodes if root_stays or len(now) % 3 else [node for node in nodes if node]
        near = links_of([pair for pair in now if set(pair) <= set(kept)], kept)
        pairs = set(former) ^ set(now) | {(0, other) for other in nodes}
        changed = paths.update(near, pairs)
        anew = Paths(near, 0)
        assert (paths.distance, paths.next_hops) == (anew.distance, anew.next_hops)
        differing = {node for node in nodes if before.get(node) != anew.next_hops.get(node)}
        assert differing <= changed <= differing | {0}


def test_a_port_that_is_another_is_followed():
    near = ring(4)
    paths = Paths(near, 0)
    near[1][0] = (7,)
    assert paths.update(near, {(1, 0)}) == {1}
    assert paths.next_hops[1] == (NextHop(0, 7),)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1), st.integers(2, 8), st.integers(1, 3))
def test_labels_take_different_next_hops_and_move_only_where_they_must(seed, dpid, count, label_count):
    hops = [NextHop(n, n) for n in range(count)]
    chosen = choose(mix(seed), dpid, hops, label_count)
    assert len(set(chosen)) == min(label_count, count)
    assert choose(mix(seed), dpid, hops[::-1], label_count) == chosen
    for lost in hops:
        if lost not in chosen:
            assert choose(mix(seed), dpid, [hop for hop in hops if hop != lost], label_count) == chosen


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1), st.integers(1, 3), st.integers(2, 4), st.integers(1, 3))
def test_labels_take_different_neighbours_before_different_cables(seed, dpid, far_count, cable_count, label_count):
    single = [NextHop(far, 10 * far) for far in range(far_count)]
    hops = [NextHop(far, 10 * far + cable) for far in range(far_count) for cable in range(cable_count)]
    chosen = choose(mix(seed), dpid, hops, label_count)
    assert [hop.dpid for hop in chosen] == [hop.dpid for hop in choose(mix(seed), dpid, single, label_count)]
    to_last = [hop for hop in chosen if hop.dpid == chosen[-1].dpid]
    assert len(set(to_last)) == min(len(to_last), cable_count)
    assert choose(mix(seed), dpid, hops[::-1], label_count) == chosen
    for lost in hops:
        if lost not in chosen:
            assert choose(mix(seed), dpid, [hop for hop in hops if hop != lost], label_count) == chosen


def test_destinations_spread_evenly_over_parallel_cables():
    hops = [NextHop(5, port_no) for port_no in range(1, 4)]
    counts = Counter(choose(mix(seed), 7, hops, 2)[0] for seed in range(3000))
    assert all(900 < count < 1100 for count in counts.values()) and len(counts) == 3


def test_consecutive_destinations_spread_evenly():
    hops = [NextHop(n, n) for n in range(4)]
    counts = Counter(hop for dpid in range(2000) for hop in choose(mix(dpid), 7, hops, 2))
    assert all(850 < count < 1150 for count in counts.values())


def test_the_choices_of_two_switches_are_independent():
    hops = [NextHop(n, n) for n in range(2)]
    both = Counter(
        (choose(mix(seed), 1, hops, 1)[0].dpid, choose(mix(seed), 2, hops, 1)[0].dpid) for seed in range(4000)
    )
    assert all(850 < count < 1150 for count in both.values())


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1), st.integers(2, 6), st.integers(1, 3), st.integers(0, 9))
def test_ports_that_are_equally_busy_are_taken_as_idle_ones(seed, dpid, count, label_count, level):
    hops = [NextHop(n // 2, n) for n in range(count)]
    alike = dict.fromkeys(range(count), level)
    assert choose(mix(seed), dpid, hops, label_count, alike) == choose(mix(seed), dpid, hops, label_count)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize(("levels", "shares"), [({0: 5}, (5, 10)), ({0: 8, 1: 2}, (2, 8)), ({1: 10}, (10, 1))])
def test_ports_are_taken_as_often_as_they_have_room(label, levels, shares):
    hops = [NextHop(n, n) for n in range(2)]
    counts = Counter(choose(mix(seed), 7, hops, 2, levels)[label].port_no for seed in range(4000))
    assert counts[0] / 4000 == pytest.approx(shares[0] / sum(shares), abs=0.03)


def test_of_several_ports_the_busy_one_is_taken_least_and_the_others_alike():
    hops = [NextHop(n, n) for n in range(4)]
    counts = Counter(hop.port_no for seed in range(4000) for hop in choose(mix(seed), 7, hops, 2, {2: 9}))
    assert counts[2] < 400
    assert all(2200 < counts[n] < 2800 for n in (0, 1, 3))


@given(st.integers(0, 2**48 - 1), st.integers(0, 9), st.integers(0, 9))
def test_a_port_that_gets_busier_only_loses(seed, before, after):
    before, after = sorted((before, after))
    hops = [NextHop(n, n) for n in range(3)]
    first = choose(mix(seed), 7, hops, 1, {0: before, 1: 1})[0]
    assert choose(mix(seed), 7, hops, 1, {0: after, 1: 1})[0] in (first, *(hops[1:] if first == hops[0] else ()))


def test_of_parallel_cables_the_busy_one_is_taken_least():
    hops = [NextHop(5, port_no) for port_no in (1, 2)]
    counts = Counter(choose(mix(seed), 7, hops, 1, {1: 9})[0].port_no for seed in range(2000))
    assert counts[1] / 2000 == pytest.approx(1 / 11, abs=0.03)
