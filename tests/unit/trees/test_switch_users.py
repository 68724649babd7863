"""Which groups are at a switch or on a cable, as trees take links and leave them."""

import pytest

from controller.trees.forest import Forest
from controller.trees.switch_users import SwitchUsers
from controller.trees.tree import Tree, TreeRole
from topology.graph import Graph
from topology.loads import LinkLoads


@pytest.fixture
def line():
    """Switches a - b - c - d, and a tree of the only terminal a, in its table."""
    graph = Graph()
    for name in "abcd":
        graph.add_node(name)
    for u, v in ("ab", "bc", "cd"):
        graph.add_link(u, v)
    tree = Tree("g", 0, 5)
    trees = {"g": tree}
    users = SwitchUsers(trees, LinkLoads(graph.links()))
    users.attach(tree, ["a"])
    tree.terminals["a"] = TreeRole.RECEIVER
    return users, tree, users._loads


def test_a_path_is_hung_below_its_last_switch(line):
    users, tree, loads = line
    tree.terminals["d"] = TreeRole.RECEIVER
    assert users.attach(tree, ["d", "c", "b", "a"]) == (("d", "c"), ("c", "b"), ("b", "a"))
    assert tree.root == "a" and list(tree.nodes()) == ["a", "b", "c", "d"]
    assert list(tree.parent.items()) == [("b", "a"), ("c", "b"), ("d", "c")]
    assert dict(tree.children) == {"a": ["b"], "b": ["c"], "c": ["d"]}
    assert tree.neighbours("b") == ["a", "c"] and tree.neighbours("d") == ["c"]
    assert loads.bps == [5] * 6
    assert all(users.at(node) == {"g"} for node in "abcd")
    assert users.of("c", "b") == users.of("b", "c") == {"g"} and not users.of("a", "d")


def test_a_leaf_goes_with_all_that_led_to_it_alone(line):
    users, tree, loads = line
    users.attach(tree, ["d", "c", "b", "a"])
    tree.terminals["b"] = TreeRole.RECEIVER
    assert users.prune(tree, "d") == (("d", "c"), ("c", "b"))
    assert dict(tree.parent) == {"b": "a"} and dict(tree.children) == {"a": ["b"]}
    assert loads.bps == [5, 5, 0, 0, 0, 0]
    assert users.at("a") == users.at("b") == {"g"} and not users.at("c") and not users.at("d")


def test_a_root_that_is_no_terminal_any_more_gives_way_to_the_next_branch(line):
    users, tree, loads = line
    users.attach(tree, ["d", "c", "b", "a"])
    tree.terminals = {"c": TreeRole.RECEIVER, "d": TreeRole.RECEIVER}
    assert users.prune(tree, "a") == (("b", "a"), ("c", "b"))
    assert tree.root == "c" and dict(tree.parent) == {"d": "c"}
    assert loads.bps == [0, 0, 0, 0, 5, 5]
    tree.terminals = {}
    assert users.prune(tree, "d") == (("d", "c"),)
    assert tree.root is None and not any(loads.bps) and not any(users.at(node) for node in "abcd")


@pytest.mark.parametrize("cable", [None, 1, 3])
def test_of_several_cables_a_group_is_on_the_one_that_its_tree_has(cable):
    graph = Graph()
    for name in "ab":
        graph.add_node(name)
    graph.add_link("a", "b", 1, 2)
    graph.add_link("a", "b", 3, 4)
    forest = Forest(graph)
    for key in range(4):
        for node in "ab":
            forest.join(key, node, TreeRole.RECEIVER)
    on = {key for key in range(4) if cable in (None, forest.loads.links[forest.tree(key).cables["a"]["b"]].u_port)}
    assert forest._users.of("a", "b", cable) == on and len(on) == (4 if cable is None else 2)


def test_a_switch_is_home_to_the_groups_with_a_terminal_there_and_forgotten_with_the_last(line):
    users, tree, _ = line
    users.attach(tree, ["c", "b", "a"])
    users.add("g", ["far"])
    tree.terminals = {"a": TreeRole.RECEIVER, "far": TreeRole.RECEIVER}
    assert users.homed("a") == users.homed("far") == {"g"} and not users.homed("b")
    users.discard(tree, ["a", "b", "far"])
    assert users.at("a") == users.at("b") == users.at("far") == {"g"}
    del tree.terminals["far"]
    users.discard(tree, ["far", "nowhere"])
    assert not users.at("far") and set(users._keys) == {"a", "b", "c"}


def test_a_tree_that_lost_its_cables_to_a_switch_is_not_there_until_it_is_built_anew():
    graph = Graph()
    for name in "abcd":
        graph.add_node(name)
    for u, v in ("ab", "bc", "cd", "da"):
        graph.add_link(u, v)
    forest = Forest(graph)
    for node in "ac":
        forest.join("g", node, TreeRole.RECEIVER)
    (via,) = [node for node in "bd" if node in forest.tree("g")]
    other = "d" if via == "b" else "b"
    assert forest.lose_link("a", via) == 1 and forest._users.at(via) == {"g"}
    assert forest.lose_link("c", via) == 1 and not forest._users.at(via)
    assert forest.lose_node(via) == 0 and forest._users.at("a") == {"g"}
    forest.repair()
    assert forest.groups_on("a", other) == {"g"} and set(forest._users._keys) == {"a", "c", other}


def test_a_rendezvous_point_is_left_when_no_member_reaches_it():
    graph = Graph()
    for name in "abc":
        graph.add_node(name)
    for u, v in ("ab", "bc"):
        graph.add_link(u, v)
    forest = Forest(graph, "pim-sm-fixed-core")
    forest.join("g", "a", TreeRole.RECEIVER)
    for node in forest.tree("g").nodes():
        assert "g" in forest._users._keys[node]
    for node in "bca":
        forest.remove_node(node)
        assert {at for at, keys in forest._users._keys.items() if keys} == {"a", *forest.tree("g").nodes()}
    forest.leave("g", "a", TreeRole.RECEIVER)
    assert not forest._users._keys
