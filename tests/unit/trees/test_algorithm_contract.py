"""What every registered algorithm keeps, on every fabric."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import NodeKind

FABRIC_NAMES = ("fattree4", "avalanche24", "leaf-spine", "tree", "hub-and-ring", "petersen")
SIZE_FOLLOWS_MEMBERS = ("pim-sm-fixed-core", "pim-sm-random-core", "pim-sm-static-uplink", "steiner")

members = st.lists(st.integers(0, 100), min_size=1, max_size=8)


def edges(graph):
    return graph.nodes(NodeKind.TOR) or graph.switches()


def pick(graph, numbers):
    nodes = edges(graph)
    return list(dict.fromkeys(nodes[number % len(nodes)] for number in numbers))


def test_the_registry_holds_the_names_of_the_interface():
    assert DEFAULT_ALGORITHM == "vsrt"
    assert list(ALGORITHMS) == [
        "vsrt",
        "pim-sm-fixed-core",
        "pim-sm-random-core",
        "pim-sm-static-uplink",
        "source-tree",
        "steiner",
        "vsrt-literal",
    ]


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=15, deadline=None)
@given(numbers=members, seed=st.integers(0, 3))
def test_trees_span_their_members_without_loop_and_repeat_under_a_seed(lab, algorithm, fabric, numbers, seed):
    graph = lab.FABRICS[fabric]()
    nodes = pick(graph, numbers)
    forest, tree = lab.joined(graph, nodes, algorithm, seed)
    lab.check_forest(forest)
    assert not tree.detached
    _, again = lab.joined(lab.FABRICS[fabric](), nodes, algorithm, seed)
    assert again.adjacent == tree.adjacent
    for node in nodes:
        forest.leave(b"g", node, TreeRole.RECEIVER)
        lab.check_forest(forest)
    assert len(forest) == 0
    assert forest.loads.max_utilisation() == 0.0


@pytest.mark.parametrize("fabric", FABRIC_NAMES)
@pytest.mark.parametrize("algorithm", SIZE_FOLLOWS_MEMBERS)
@settings(max_examples=10, deadline=None)
@given(numbers=members, order=st.randoms(use_true_random=False))
def test_size_follows_the_members_alone(lab, algorithm, fabric, numbers, order):
    graph = lab.FABRICS[fabric]()
    nodes = pick(graph, numbers)
    _, tree = lab.joined(graph, nodes, algorithm)
    others = [*nodes, *(n for n in edges(graph)[:3] if n not in nodes)]
    order.shuffle(others)
    forest, other = lab.joined(graph.copy(), others, algorithm)
    for node in others:
        if node not in nodes:
            forest.leave(b"g", node, TreeRole.RECEIVER)
    assert other.size == tree.size


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_disconnected_members_are_reported_and_the_rest_is_built(lab, algorithm):
    graph = lab.fat_tree()
    for a in ("a0.0", "a0.1"):
        graph.remove_link("t0.0", a)
    forest, tree = lab.joined(graph, ["t0.0", "t0.1", "t1.0", "t2.1"], algorithm)
    lab.check_forest(forest)
    assert tree.detached == {"t0.0"}
    assert {"t0.1", "t1.0", "t2.1"} <= set(tree.adjacent)
    (change,) = forest.add_link("t0.0", "a0.1")
    assert change.attached == ("t0.0",)
    lab.check_forest(forest)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_switch_that_fails_and_returns_keeps_its_members(lab, algorithm):
    graph = lab.avalanche24()
    forest, tree = lab.joined(graph, ["t0.0", "t0.1", "t1.0", "t2.1"], algorithm)
    links = [(u, "t1.0") for u in graph.neighbours("t1.0")]
    (change,) = forest.remove_node("t1.0")
    assert change.detached == ("t1.0",)
    lab.check_forest(forest)
    forest.add_node("t1.0", NodeKind.TOR)
    for link in links:
        forest.add_link(*link)
    assert not tree.detached
    lab.check_forest(forest)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_switch_may_go(lab, algorithm):
    graph = lab.avalanche24()
    forest, tree = lab.joined(graph, ["t0.0", "t0.1", "t1.0"], algorithm, role=TreeRole.RECEIVER | TreeRole.SENDER)
    for node in graph.nodes():
        forest.remove_node(node)
        lab.check_forest(forest)
    assert tree.detached == {"t0.0", "t0.1", "t1.0"}
    assert tree.size == 0
    for node in ("t0.0", "t0.1", "t1.0"):
        forest.leave(b"g", node, TreeRole.RECEIVER | TreeRole.SENDER)
    assert len(forest) == 0


def test_an_unknown_algorithm_and_hosts_in_the_graph_are_refused(lab):
    with pytest.raises(KeyError):
        Forest(lab.fat_tree(), "no-such")
    graph = lab.fat_tree()
    graph.add_node("h", NodeKind.HOST)
    with pytest.raises(ValueError, match="hosts"):
        Forest(graph)
