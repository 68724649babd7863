"""The lower bound against figures by hand, exhaustive search and what any algorithm reaches."""

from __future__ import annotations

from itertools import product
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees.algorithms import ALGORITHMS
from controller.trees.bound import NO_BOUND, lower_bound
from controller.trees.bulk import BulkFabric, Groups, place
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind


def groups_of(nodes, members, rates_bps):
    """Return the groups with these members, each given by name."""
    number = {node: i for i, node in enumerate(nodes)}
    flat = [number[node] for part in members for node in part]
    return Groups.of(np.cumsum([0, *map(len, members)]), np.array(flat, dtype=int), rates_bps, len(nodes))


def article(fabric, seed, count=1000):
    """Return groups as the article draws them: 3 to 20 of 100,000 machines on 11,520 servers, 0.1 to 10 Mbit/s."""
    generator = np.random.default_rng(seed)
    machines = generator.integers(0, 11_520, 100_000) // 40
    sizes = generator.integers(3, 21, count)
    members = machines[generator.integers(0, len(machines), sizes.sum())]
    rates_bps = generator.uniform(1e5, 1e7, count)
    return Groups.of(np.append(0, np.cumsum(sizes)), members, rates_bps, len(fabric.tors))


def test_on_the_articles_fabric_the_cut_around_a_pod_binds_and_the_default_reaches_it():
    graph = switch_graph(make("portland-p6"))
    fabric = BulkFabric.of(graph)
    percents = []
    for seed in range(6):
        groups = article(fabric, seed)
        bound = lower_bound(graph, fabric.tors, groups)
        percents.append(bound.percent)
        assert sorted(graph.kind(node) for node in bound.side).count(NodeKind.TOR) == 48
        assert bound.capacity_bps == 8e9
        assert bound.utilisation <= place(fabric, groups).max_utilisation <= 1.02 * bound.utilisation
        assert place(fabric, groups, order="arrival").max_utilisation <= 1.02 * bound.utilisation
    assert mean(percents) == pytest.approx(52.6, abs=1)


@pytest.mark.parametrize("name", ["fattree4", "avalanche24", "leaf-spine", "tree", "hub-and-ring", "petersen"])
@settings(max_examples=8, deadline=None)
@given(
    members=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=5), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
def test_no_algorithm_is_below_it(lab, name, members, seed):
    graph = lab.FABRICS[name]()
    generator = np.random.default_rng(seed)
    for link in list(graph.links()):
        graph.add_link(link.u, link.v, capacity_bps=1e6 * int(generator.integers(1, 9)))
        if generator.random() < 0.1:
            graph.remove_link(link.u, link.v)
    nodes = graph.nodes(NodeKind.TOR) or graph.nodes()
    named = [[nodes[i % len(nodes)] for i in part] for part in members]
    rates_bps = generator.integers(1, 10**6, len(members))
    bound = lower_bound(graph, nodes, groups_of(nodes, named, rates_bps))
    for algorithm in ALGORITHMS:
        forest = Forest(graph.copy(), algorithm)
        for group, (part, rate) in enumerate(zip(named, rates_bps, strict=True)):
            forest.set_group_rate(group, int(rate))
            for node in part:
                forest.join(group, node, TreeRole.RECEIVER)
        assert forest.loads.max_utilisation() >= bound.utilisation * (1 - 1e-12)
    across = [link for link in graph.links() if (link.u in bound.side) != (link.v in bound.side)]
    assert sum(link.capacity_bps for link in across) == bound.capacity_bps


def test_in_a_graph_without_a_cycle_it_is_what_the_only_trees_come_to(lab):
    graph = lab.k_ary_tree()
    for number, link in enumerate(list(graph.links())):
        graph.add_link(link.u, link.v, capacity_bps=1e6 + number, weight=1 + number)
    nodes = graph.nodes(NodeKind.TOR)
    members = [nodes[0:2], nodes[1:6], [nodes[0], nodes[7]]]
    forest = Forest(graph.copy(), default_rate_bps=1000)
    for group, part in enumerate(members):
        for node in part:
            forest.join(group, node, TreeRole.RECEIVER)
    bound = lower_bound(graph, nodes, groups_of(nodes, members, [1000] * 3))
    assert bound.utilisation == forest.loads.max_utilisation()


def test_a_thin_waist_of_a_general_graph_is_found():
    graph = Graph()
    for node in range(12):
        graph.add_node(node, NodeKind.TOR)
    for first in (0, 6):
        for i, j in product(range(6), repeat=2):
            if i < j:
                graph.add_link(first + i, first + j, capacity_bps=100)
    graph.add_link(0, 6, capacity_bps=10)
    graph.add_link(1, 7, capacity_bps=30)
    nodes = graph.nodes()
    bound = lower_bound(graph, nodes, groups_of(nodes, [(2, 8), (3, 9, 10), (4, 5)], [5, 15, 20]))
    assert bound.percent == 50
    assert bound.side in (set(range(6)), set(range(6, 12)))
    assert (bound.rate_bps, bound.capacity_bps) == (20, 40)


def test_members_that_nothing_joins_with_the_others_do_not_count(lab):
    graph = lab.fat_tree()
    for aggregation in ("a0.0", "a0.1"):
        graph.remove_link("t0.0", aggregation)
    nodes = graph.nodes(NodeKind.TOR)
    cut_off = groups_of(nodes, [("t0.0", "t0.1")], [1000])
    assert lower_bound(graph, nodes, cut_off) == NO_BOUND
    with_two_others = groups_of(nodes, [("t0.0", "t0.1", "t1.0")], [1000])
    assert lower_bound(graph, nodes, with_two_others).utilisation == pytest.approx(1000 / 2e7)


def test_groups_on_one_switch_bound_nothing(lab):
    for name in lab.FABRICS:
        graph = lab.FABRICS[name]()
        nodes = graph.nodes()
        assert lower_bound(graph, nodes, groups_of(nodes, [nodes[:1], [nodes[1]] * 3, []], [1, 2, 3])) == NO_BOUND
