"""Trees of groups in fabrics that no link joins: one in each where the group has terminals."""

from __future__ import annotations

import random

import pytest

from controller.trees.forest import Forest
from controller.trees.islands import IslandKey, Islands, group_of
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind

GROUP = b"\xef\x01\x01\x01"


def pairs(count=3):
    """Return switches a1-b1, a2-b2, ...: fabrics of two switches each."""
    graph = Graph()
    for number in range(1, count + 1):
        for name in (f"a{number}", f"b{number}"):
            graph.add_node(name, NodeKind.TOR)
        graph.add_link(f"a{number}", f"b{number}")
    return graph


@pytest.fixture
def forest():
    return Forest(pairs())


def nodes_of(islands, group=GROUP):
    return sorted(sorted(tree.adjacent) for tree in islands.trees(group))


def joined(forest, islands, *nodes, role=TreeRole.RECEIVER):
    for node in nodes:
        forest.join(GROUP, node, role)
        islands.sync(GROUP)


def test_a_group_has_a_tree_in_each_fabric(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2", "b2", "b3")
    assert nodes_of(islands) == [["a1", "b1"], ["a2", "b2"], ["b3"]]
    assert len(islands) == 2
    assert not islands.cut_off(GROUP)


def test_a_tree_of_an_island_ends_with_its_last_terminal(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2")
    forest.leave(GROUP, "a2", TreeRole.RECEIVER)
    assert [change.key for change in islands.sync(GROUP)] == []
    assert nodes_of(islands) == [["a1", "b1"]]
    assert GROUP not in islands
    assert len(forest) == 1


def test_islands_that_are_joined_have_one_tree(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2", "b2", "a3", "b3")
    forest.add_link("b2", "a3")
    assert {group_of(change.key) for change in islands.review()} == {GROUP}
    assert nodes_of(islands) == [["a1", "b1"], ["a2", "a3", "b2", "b3"]]
    for change in forest.add_link("b1", "a2"):
        islands.sync(group_of(change.key))
    list(islands.review())
    assert nodes_of(islands) == [["a1", "a2", "a3", "b1", "b2", "b3"]]
    assert not list(islands.review())


def test_a_fabric_that_is_cut_in_two_has_two_trees(forest):
    islands = Islands(forest)
    for link in (("b1", "a2"), ("b2", "a3")):
        forest.add_link(*link)
    joined(forest, islands, "a1", "b1", "a2", "b2", "a3", "b3")
    for change in forest.remove_link("b2", "a3"):
        islands.sync(group_of(change.key))
    assert nodes_of(islands) == [["a1", "a2", "b1", "b2"], ["a3", "b3"]]


def test_a_switch_that_is_gone_is_cut_off(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2", "b2")
    for change in forest.remove_node("b2"):
        islands.sync(group_of(change.key))
    assert islands.cut_off(GROUP) == {"b2"}
    assert nodes_of(islands) == [["a1", "b1"], ["a2"]]


def test_rates_count_on_the_tree_that_carries_them(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "b2", "b3")
    for node in ("a1", "a2"):
        joined(forest, islands, node, role=TreeRole.SENDER)
        forest.set_rate(GROUP, node, 3e6)
        islands.set_rate(GROUP, node, 3e6)
    assert forest.loads.load_bps("a1", "b1") == forest.loads.load_bps("a2", "b2") == 3_000_000


@pytest.mark.parametrize("seed", range(12))
def test_every_terminal_is_on_one_tree_with_all_others_of_its_fabric(seed):
    chosen = random.Random(seed)
    graph = switch_graph(make("fattree", {"k": 4}))
    switches = graph.switches()
    links = [link[:2] for link in graph.links()]
    forest = Forest(graph)
    islands = Islands(forest)
    down: set[tuple[object, object]] = set()
    members: dict[object, TreeRole] = {}
    for _ in range(150):
        draw = chosen.random()
        changes = []
        if draw < 0.3:
            node, role = chosen.choice(switches), chosen.choice(list(TreeRole))
            members[node] = members.get(node, TreeRole(0)) | role
            forest.join(GROUP, node, role)
        elif draw < 0.45 and members:
            node = chosen.choice(sorted(members))
            forest.leave(GROUP, node, members.pop(node))
        elif draw < 0.75:
            link = chosen.choice(links)
            if link not in down:
                down.add(link)
                changes = forest.remove_link(*link)
        elif down:
            link = chosen.choice(sorted(down))
            down.discard(link)
            changes = forest.add_link(*link)
        for group in {GROUP, *(group_of(change.key) for change in changes)}:
            islands.sync(group)
        list(islands.review())
        components = forest.components()
        trees = list(islands.trees(GROUP))
        served = [node for tree in trees for node in tree.terminals if node not in tree.detached]
        assert sorted(served) == sorted(members)
        assert len(trees) == len({components[node] for node in members})
        for tree in trees:
            assert len({components[node] for node in tree.adjacent}) == 1
            for node, role in tree.terminals.items():
                assert node in tree.detached or role == members[node]
        assert all(isinstance(tree.key, IslandKey) or tree.key == GROUP for tree in forest)
        assert len(forest) == len(trees)
