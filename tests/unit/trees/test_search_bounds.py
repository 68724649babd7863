"""What the searches for smallest trees may take while a fabric looks as no fabric should."""

from __future__ import annotations

import random

import pytest

from controller.trees import degraded
from controller.trees.degraded import smallest
from controller.trees.fabric import LayeredFabric
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeKind


@pytest.fixture
def steps(monkeypatch):
    """What searches look at, counted."""
    counted = []
    step = degraded._Search._step

    def counting(self, count=1):
        counted.append(count)
        step(self, count)

    monkeypatch.setattr(degraded._Search, "_step", counting)
    return counted


def fabric(k=8):
    """Return the switches of a fat tree of whose kinds only the ToRs are known, with one core."""
    graph = switch_graph(make("fattree", {"k": k}))
    core = graph.nodes(NodeKind.CORE)[0]
    for node in graph.nodes(NodeKind.AGGREGATION, NodeKind.CORE):
        graph.add_node(node, NodeKind.SWITCH)
    return graph, core


def grown(graph, groups, members=8):
    forest = Forest(graph)
    choice, tors = random.Random(7), graph.nodes(NodeKind.TOR)
    for key in range(groups):
        for node in choice.sample(tors, members):
            forest.join(key, node, TreeRole.RECEIVER)
    return forest


def test_a_search_that_cannot_end_is_not_begun(steps):
    graph, core = fabric()
    pods = {}
    for tor in graph.nodes(NodeKind.TOR):
        pods.setdefault(graph.neighbours(tor), tor)
    members = list(pods.values())
    graph.add_node(core, NodeKind.TOR)
    network = Forest(graph).algorithm.network
    assert isinstance(network.shape, LayeredFabric)
    assert len(set(network.shape.pod.values())) == 1
    assert smallest(network, network.shape, members, 100, 1, {}) is None
    assert sum(steps) == 0


def test_trees_that_follow_one_change_share_what_searches_may_take(steps, monkeypatch):
    graph, _ = fabric()
    choice = random.Random(3)
    for link in choice.sample(list(graph.links()), 60):
        graph.remove_link(*link[:2])
    forest = grown(graph, 30)
    monkeypatch.setattr(degraded, "MAX_STEPS", 100)
    searched = []
    for link in choice.sample(list(forest.graph.links()), 20):
        for change in (lambda link=link: forest.remove_link(*link[:2]), lambda link=link: forest.add_link(*link)):
            del steps[:]
            change()
            searched.append(sum(count for count in steps if count == 1))
    assert 50 < max(searched) <= 100 + len(forest)
    assert forest.algorithm.network.steps_left is None
    for tree in forest:
        assert len(tree.adjacent) == tree.size + 1


def test_what_was_too_large_for_one_change_is_found_by_the_next(lab, monkeypatch):
    graph = lab.pods_and_cores(3, 3, 2, 4, lambda j: (2 * j, 2 * j + 1))
    for tor, aggregation in (("t0.0", "a0.1"), ("t0.1", "a0.0")):
        graph.remove_link(tor, aggregation)
    forest = Forest(graph)
    for node in ("t0.0", "t0.1", "t1.0", "t2.0"):
        forest.join(b"g", node, TreeRole.RECEIVER)
    tree = forest.tree(b"g")
    assert tree is not None
    wanted = lab.dreyfus_wagner(graph, list(tree.terminals))
    used = next(pair for pair in tree.links() if str(pair[1]).startswith("c"))
    link = forest.graph.link(*used)
    with monkeypatch.context() as patch:
        patch.setattr(degraded, "MAX_STEPS", 0)
        forest.remove_link(*used)
        lab.check_forest(forest)
    forest.add_link(*link)
    assert tree.size == wanted
    lab.check_forest(forest)
