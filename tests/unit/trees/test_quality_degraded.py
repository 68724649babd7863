"""The default on fat trees with links missing: as small as an exact solver says, whatever came before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees import degraded
from controller.trees.fabric import LayeredFabric
from controller.trees.forest import Forest
from controller.trees.tree import Form, TreeRole
from topology.graph import NodeKind

MEMBERS = 6


def narrow(lab):
    """Return a small portland-p6: aggregation j of every pod to cores 2j and 2j + 1 alone."""
    return lab.pods_and_cores(3, 3, 2, 4, lambda j: (2 * j, 2 * j + 1))


def wide(lab):
    return lab.pods_and_cores(2, 3, 3, 3, lambda j: (j, (j + 1) % 3))


FABRICS = {
    "fat tree": lambda lab: lab.fat_tree(),
    "avalanche24": lambda lab: lab.avalanche24(),
    "leaf-spine": lambda lab: lab.leaf_spine(leaves=5, spines=3),
    "narrow": narrow,
    "wide": wide,
}

picks = st.integers(0, 1000)


def assert_smallest(lab, forest):
    if not isinstance(forest.algorithm.network.shape, LayeredFabric):
        return
    for tree in forest:
        lab.check_tree(forest.graph, tree)
        attached = [node for node in tree.terminals if node not in tree.detached]
        if attached:
            assert tree.size == lab.dreyfus_wagner(forest.graph, attached)


@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=100)
@given(
    dead=st.lists(picks, max_size=16),
    members=st.lists(picks, min_size=2, max_size=MEMBERS),
    seed=st.integers(0, 3),
)
def test_with_any_links_missing_the_tree_is_smallest(lab, name, dead, members, seed):
    graph = FABRICS[name](lab)
    links = [link[:2] for link in graph.links()]
    for number in {pick % len(links) for pick in dead}:
        graph.remove_link(*links[number])
    tors = graph.nodes(NodeKind.TOR)
    forest, _ = lab.joined(graph, [tors[pick % len(tors)] for pick in members], seed=seed)
    assert_smallest(lab, forest)


@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=60)
@given(
    dead=st.lists(picks, max_size=10),
    steps=st.lists(st.tuples(st.sampled_from(["join", "join", "leave", "fail", "return"]), picks), max_size=16),
)
def test_it_stays_smallest_while_members_come_and_go_and_links_fail_and_return(lab, name, dead, steps):
    graph = FABRICS[name](lab)
    whole = list(graph.links())
    for number in {pick % len(whole) for pick in dead}:
        graph.remove_link(*whole[number][:2])
    tors = graph.nodes(NodeKind.TOR)
    forest = Forest(graph)
    for word, pick in steps:
        tree = forest.tree("g")
        present = list(tree.terminals) if tree else []
        if word == "join" and len(present) < MEMBERS:
            forest.join("g", tors[pick % len(tors)], TreeRole.RECEIVER)
        elif word == "leave" and present:
            forest.leave("g", present[pick % len(present)], TreeRole.RECEIVER)
        elif word == "fail":
            alive = [link[:2] for link in forest.graph.links()]
            forest.remove_link(*alive[pick % len(alive)])
        elif word == "return":
            gone = [link for link in whole if not forest.graph.has_link(link.u, link.v)]
            if gone:
                forest.add_link(*gone[pick % len(gone)])
        assert_smallest(lab, forest)
    lab.check_forest(forest)


def test_a_tor_without_members_joins_aggregations_that_share_no_core(lab):
    graph = narrow(lab)
    for tor, aggregation in (("t0.0", "a0.1"), ("t0.1", "a0.0")):
        graph.remove_link(tor, aggregation)
    forest, tree = lab.joined(graph, ["t0.0", "t0.1"])
    assert tree.form is Form.GENERAL
    assert tree.size == 4 and "t0.2" in tree.adjacent
    lab.check_forest(forest)


def test_a_pod_without_members_joins_two_cores(lab):
    graph = lab.pods_and_cores(3, 1, 2, 2, lambda j: (0, 1))
    for pod, core in ((0, "c1"), (1, "c0")):
        for j in range(2):
            graph.remove_link(f"a{pod}.{j}", core)
    _, tree = lab.joined(graph, ["t0.0", "t1.0"])
    assert tree.size == 6
    assert any(node.startswith("a2.") for node in tree.adjacent)


def test_of_equal_trees_the_one_that_keeps_most_of_the_old_one_is_taken(lab):
    graph = narrow(lab)
    for tor, aggregation in (("t0.0", "a0.1"), ("t0.1", "a0.0")):
        graph.remove_link(tor, aggregation)
    forest, tree = lab.joined(graph, ["t0.0", "t0.1", "t1.0", "t2.0"])
    before = set(map(frozenset, tree.links()))
    free = next(
        link[:2] for link in forest.graph.links() if "c" in str(link[:2]) and frozenset(link[:2]) not in before
    )
    assert forest.remove_link(*free) == []
    used = next(pair for pair in tree.links() if pair[1] in ("c0", "c1", "c2", "c3"))
    (change,) = forest.remove_link(*used)
    assert len(change.added) + len(change.removed) <= 8
    assert_smallest(lab, forest)


def test_a_search_that_is_too_large_leaves_the_tree_that_is_known(lab, monkeypatch):
    graph = narrow(lab)
    for link in list(graph.links())[::3]:
        graph.remove_link(*link[:2])
    members = [node for node in graph.nodes(NodeKind.TOR) if graph.neighbours(node)]
    monkeypatch.setattr(degraded, "MAX_STEPS", 1)
    forest, tree = lab.joined(graph, members)
    lab.check_forest(forest)
    attached = [node for node in tree.terminals if node not in tree.detached]
    exact = lab.dreyfus_wagner(graph, attached)
    assert exact <= tree.size <= 2 * exact
