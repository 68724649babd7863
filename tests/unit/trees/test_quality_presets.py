"""Optimal sizes at scale, trees on graphs of no known shape, and the yardstick where links have failed."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees.fabric import recognise
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeKind

BASELINES = ("pim-sm-fixed-core", "pim-sm-random-core", "pim-sm-static-uplink")


@pytest.mark.parametrize("name", ["portland-p6", "portland-p12"])
@pytest.mark.parametrize("interleaved", [True, False])
def test_every_group_is_optimal_after_any_sequence_of_joins_and_leaves(name, interleaved):
    graph = switch_graph(make(name))
    fabric, tors = recognise(graph), graph.nodes(NodeKind.TOR)
    generator = np.random.default_rng(7)
    forest = Forest(graph, seed=3)
    present: list[set] = [set() for _ in range(60)]
    groups = generator.integers(0, len(present), 4000)
    if not interleaved:
        groups.sort()
    for group, tor, leaves in zip(groups, generator.integers(0, 40, 4000), generator.random(4000) < 0.4, strict=True):
        node = tors[int(tor) * len(tors) // 40]
        here = present[group]
        if leaves and here:
            node = sorted(here)[int(tor) % len(here)]
            forest.leave(int(group), node, TreeRole.RECEIVER)
            here.discard(node)
        else:
            forest.join(int(group), node, TreeRole.RECEIVER)
            here.add(node)
        tree = forest.tree(int(group))
        assert (tree.size if tree else 0) == fabric.optimum(here)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 5),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), min_size=1, max_size=14),
    dead=st.lists(st.integers(0, 1000), max_size=4),
)
def test_elsewhere_no_tree_is_larger_than_a_pruned_shared_tree(lab, seed, steps, dead):
    graph = switch_graph(make("jellyfish", {"switches": 14, "degree": 3, "seed": seed}))
    for pick in dead:
        links = [link[:2] for link in graph.links()]
        graph.remove_link(*links[pick % len(links)])
    nodes = graph.nodes()
    forest = Forest(graph.copy())
    for joins, pick in steps:
        tree = forest.tree("g")
        if joins or not tree:
            forest.join("g", nodes[pick % len(nodes)], TreeRole.RECEIVER)
        else:
            forest.leave("g", list(tree.terminals)[pick % len(tree.terminals)], TreeRole.RECEIVER)
    tree = forest.tree("g")
    if tree is None:
        return
    lab.check_forest(forest)
    attached = [node for node in tree.terminals if node in tree.adjacent]
    for name in BASELINES:
        _, shared = lab.joined(graph.copy(), attached, name, key="g")
        assert tree.size <= lab.size_without_stub(shared)
    if len(attached) <= 7:
        exact = lab.dreyfus_wagner(graph, attached)
        before = tree.size
        forest.rebuild("g", steady_state=True)
        assert exact <= tree.size <= min(before, 2 * exact)


def test_the_yardstick_survives_graphs_on_which_its_library_fails(lab):
    graph = lab.hub_and_ring()
    for far in range(3):
        graph.add_node(f"x{far}", NodeKind.TOR)
    graph.add_link("x0", "x1")
    whole = nx.Graph()
    whole.add_nodes_from(graph.nodes())
    whole.add_edges_from((link.u, link.v) for link in graph.links())
    with pytest.raises(KeyError):
        nx.algorithms.approximation.steiner_tree(whole, [0, 4], method="mehlhorn")
    forest, tree = lab.joined(graph, [0, 4, "x0", "x1", "x2"], "steiner")
    lab.check_forest(forest)
    assert tree.detached == {"x0", "x1", "x2"}
    for link in list(graph.links()):
        forest.remove_link(link.u, link.v)
        lab.check_forest(forest)
    assert tree.size == 0


@settings(max_examples=25)
@given(
    members=st.lists(st.integers(0, 1000), min_size=1, max_size=6),
    failures=st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=20),
)
def test_the_yardstick_survives_any_failures(lab, members, failures):
    graph = lab.fat_tree()
    whole = list(graph.links())
    tors = graph.nodes(NodeKind.TOR)
    forest, _ = lab.joined(graph, [tors[pick % len(tors)] for pick in members], "steiner")
    for fails, pick in failures:
        alive = [link[:2] for link in forest.graph.links()]
        gone = [link for link in whole if not forest.graph.has_link(link.u, link.v)]
        if fails and alive:
            forest.remove_link(*alive[pick % len(alive)])
        elif gone:
            forest.add_link(*gone[pick % len(gone)])
    lab.check_forest(forest)
