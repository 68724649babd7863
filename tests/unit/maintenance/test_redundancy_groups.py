"""Which switches stand in for each other, and what holds a fabric together."""

from __future__ import annotations

from collections import Counter

import pytest
from maintained_fabrics import switches_of

from controller.maintenance.groups import FabricReach, redundancy_groups
from controller.maintenance.schedule import least_ready, least_waves, next_switches, phase_ends, waves, widths
from topology.generators import make
from topology.graph import Graph, NodeKind


def sizes(graph: Graph) -> dict[str, int]:
    """Return how many switches each group has."""
    found: dict[str, int] = {}
    for group in redundancy_groups(graph).values():
        found[group.name] = found.get(group.name, 0) + 1
    return found


def test_a_fat_tree_has_planes_of_cores_and_tiers_of_pods() -> None:
    assert sizes(switches_of(make("fattree", {"k": 4}))) == {
        **{f"core-{plane}": 2 for plane in (1, 2)},
        **{f"aggregation-{pod}": 2 for pod in (1, 2, 3, 4)},
        **{f"tor-{pod}": 2 for pod in (1, 2, 3, 4)},
    }


def test_leaves_that_nobody_stands_in_for_are_one_group() -> None:
    assert sizes(switches_of(make("leaf-spine", {"leaves": 5, "spines": 3}))) == {"aggregation-1": 3, "tor-1": 5}


def test_a_fabric_of_one_tier_is_one_group() -> None:
    assert sizes(switches_of(make("jellyfish", {"switches": 12, "degree": 4}))) == {"tor-1": 12}


def test_a_fabric_without_hosts_has_no_tiers() -> None:
    graph = Graph()
    for dpid in (1, 2, 3):
        graph.add_node(dpid, NodeKind.SWITCH)
    for dpid in (1, 2):
        graph.add_link(dpid, dpid + 1, 1, 2)
    assert sizes(graph) == {"switch-1": 3}


def test_groups_of_more_than_three_tiers_have_names_of_their_own() -> None:
    graph = Graph()
    for level in range(1, 6):
        for half in (0, 1):
            graph.add_node(10 * level + half, NodeKind.TOR if level == 1 else NodeKind.SWITCH)
            for below in (0, 1) if level > 1 else ():
                graph.add_link(10 * level + half, 10 * (level - 1) + below, 1 + below, 11 + half)
    groups = redundancy_groups(graph)
    assert sizes(graph) == {"core-1": 2, "core-2": 2, "core-3": 2, "aggregation-1": 2, "tor-1": 2}
    assert [groups[10 * level].rank for level in range(1, 6)] == [4, 3, 2, 1, 0]


def test_a_core_that_lost_a_link_makes_its_tier_one_group() -> None:
    graph = switches_of(make("fattree", {"k": 4}))
    core = max(graph.switches(), key=graph.level)
    graph.remove_link(core, graph.neighbours(core)[0])
    assert {name: size for name, size in sizes(graph).items() if name.startswith("core")} == {"core-1": 4}


def test_groups_sort_as_they_are_maintained() -> None:
    groups = sorted(set(redundancy_groups(switches_of(make("fattree", {"k": 4}))).values()))
    assert [group.tier for group in groups] == ["core"] * 2 + ["aggregation"] * 4 + ["tor"] * 4


def ring(count: int) -> Graph:
    graph = Graph()
    for dpid in range(1, count + 1):
        graph.add_node(dpid, NodeKind.TOR)
    for dpid in range(1, count + 1):
        graph.add_link(dpid, dpid % count + 1, 1, 2)
    return graph


def test_two_switches_of_a_ring_cut_it_and_one_does_not() -> None:
    reach = FabricReach(ring(6), range(1, 7))
    assert reach.cut_without({3}) is None
    assert reach.cut_without({3, 4}) is None
    assert reach.cut_without({3, 5}) == 4


def test_what_is_cut_off_already_cuts_nothing() -> None:
    graph = ring(6)
    for other in graph.neighbours(6):
        graph.remove_link(6, other)
    assert FabricReach(graph, range(1, 7)).cut_without({1}) is None


@pytest.mark.parametrize(
    ("count", "ends"),
    [(0, ()), (1, (1,)), (5, (1, 5)), (20, (1, 2, 4, 20)), (25, (1, 3, 5, 25)), (320, (1, 32, 64, 320))],
)
def test_phases_end_after_one_a_tenth_a_fifth_and_all(count: int, ends: tuple[int, ...]) -> None:
    assert phase_ends(count) == ends


@pytest.mark.parametrize(
    ("size", "pct", "least"), [(1, 75, 0), (2, 75, 1), (4, 75, 3), (8, 75, 6), (3, 100, 3), (20, 70, 14)]
)
def test_so_many_of_a_group_stay(size: int, pct: float, least: int) -> None:
    assert least_ready(size, pct) == least


def test_waves_of_a_fat_tree_are_the_least_there_can_be() -> None:
    graph = switches_of(make("fattree", {"k": 4}))
    groups = {int(str(dpid)): group for dpid, group in redundancy_groups(graph).items()}
    width = widths(Counter(groups.values()), 75)
    found = waves(groups, width, 4)
    assert sorted(dpid for wave in found for dpid in wave) == sorted(groups)
    # one core, one more, the other two at once, then eight aggregations and eight ToRs, four at a time
    assert [len(wave) for wave in found] == [1, 1, 2, 4, 4, 4, 4]
    assert len(found) == least_waves(groups, width, 4)


def test_the_group_with_most_left_is_first() -> None:
    graph = switches_of(make("fattree", {"k": 4}))
    groups = redundancy_groups(graph)
    first, second = sorted({group for group in groups.values() if group.tier == "tor"})[:2]
    waiting = {first: [1], second: [2, 3]}
    one = dict.fromkeys(waiting, 1)
    assert list(next_switches(waiting, one, one, 1, lambda _dpid: True)) == [2]
    assert list(next_switches(waiting, one, one, 4, lambda dpid: dpid != 2)) == [1, 3]
