"""Trees of groups in fabrics that no link joins: one in each where the group has terminals."""

from __future__ import annotations

import random

import pytest

from controller.trees.cables import told_apart
from controller.trees.forest import Forest
from controller.trees.islands import AliasKey, IslandKey, Islands, group_of, main_key
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


def test_keys_of_islands_and_aliases_lead_to_their_group():
    alias = AliasKey(GROUP, 2)
    assert main_key(GROUP) == main_key(IslandKey(GROUP, 1)) == GROUP
    assert main_key(alias) == main_key(IslandKey(alias, 1)) == alias
    assert group_of(alias) == group_of(IslandKey(alias, 1)) == group_of(IslandKey(GROUP, 0)) == GROUP


def test_a_group_without_trees_has_none_that_is_cut_off(forest):
    assert not Islands(forest).cut_off(GROUP)


def test_a_new_island_takes_a_number_that_no_other_has(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2", "a3")
    forest.leave(GROUP, "a2", TreeRole.RECEIVER)
    islands.sync(GROUP)
    joined(forest, islands, "b2")
    assert nodes_of(islands) == [["a1", "b1"], ["a3"], ["b2"]]
    assert len({tree.key for tree in islands.trees(GROUP)}) == 3


def chain_and_ring():
    """Return a chain a1-b1-c1-d1, and a ring a2-b2-c2 in another fabric."""
    graph = Graph()
    for name in ("a1", "b1", "c1", "d1", "a2", "b2", "c2"):
        graph.add_node(name, NodeKind.TOR)
    for link in (("a1", "b1"), ("b1", "c1"), ("c1", "d1"), ("a2", "b2"), ("b2", "c2"), ("a2", "c2")):
        graph.add_link(*link)
    return graph


def test_a_terminal_of_an_island_loses_one_role_and_keeps_the_other():
    forest = Forest(chain_and_ring())
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "c1", "d1", "a2", "b2")
    joined(forest, islands, "a1", "a2", role=TreeRole.SENDER)
    forest.leave(GROUP, "a2", TreeRole.RECEIVER)
    islands.sync(GROUP)
    (_, island) = islands.trees(GROUP)
    assert island.terminals == {"a2": TreeRole.SENDER, "b2": TreeRole.RECEIVER}


def test_an_island_that_falls_in_two_stays_where_most_of_its_terminals_are():
    forest = Forest(chain_and_ring())
    forest.remove_link("a2", "c2")
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "c1", "d1", "a2", "b2", "c2")
    (_, before) = islands.trees(GROUP)
    forest.remove_link("a2", "b2")
    changes = islands.sync(GROUP)
    assert nodes_of(islands) == [["a1", "b1", "c1", "d1"], ["a2"], ["b2", "c2"]]
    assert sorted(forest.tree(before.key).adjacent) == ["b2", "c2"]
    assert not [change for change in changes if change.empty]


def test_islands_that_nothing_has_happened_to_are_not_looked_at_again(forest, monkeypatch):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2")
    list(islands.review())
    monkeypatch.setattr(islands, "sync", lambda group: pytest.fail("nothing has changed"))
    assert not list(islands.review())


def links_of(islands):
    return [sorted(tuple(sorted(link)) for link in tree.links()) for tree in islands.trees(GROUP)]


def test_what_follows_a_change_has_the_links_that_islands_lost_and_gained():
    forest = Forest(chain_and_ring())
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "c1", "d1", "a2", "b2")
    assert links_of(islands)[1] == [("a2", "b2")]
    forest.lose_link("a2", "b2")
    added = {frozenset(link) for change in islands.followed(GROUP, ()) for link in change.added}
    assert links_of(islands)[1] == [("a2", "c2"), ("b2", "c2")]
    assert added == {frozenset(("a2", "c2")), frozenset(("b2", "c2"))}


def test_what_follows_a_change_has_the_links_that_the_main_tree_lost_before_the_change_itself():
    graph = chain_and_ring()
    graph.add_link("a1", "d1")
    forest = Forest(graph)
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "c1", "d1")
    change = forest.join(GROUP, "a2", TreeRole.RECEIVER)
    lost = links_of(islands)[0][0]
    forest.lose_link(*lost)
    mended, *others = islands.followed(GROUP, (change,))
    assert frozenset(lost) in {frozenset(link) for link in mended.removed}
    assert change in others
    assert lost not in links_of(islands)[0] and len(links_of(islands)[0]) == 3
    assert nodes_of(islands) == [["a1", "b1", "c1", "d1"], ["a2"]]


def test_the_last_terminal_of_an_island_ends_it_with_what_follows(forest):
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "a2", "b2")
    islands.followed(GROUP, (forest.leave(GROUP, "a2", TreeRole.RECEIVER),))
    followed = islands.followed(GROUP, (forest.leave(GROUP, "b2", TreeRole.RECEIVER),))
    assert GROUP not in islands
    assert nodes_of(islands) == [["a1", "b1"]]
    assert len(followed) >= 1


def test_links_that_switches_hold_already_are_kept_in_every_fabric():
    graph = Graph()
    for fabric in "xyz", "uvw":
        for name in fabric + fabric.upper():
            graph.add_node(name, NodeKind.TOR)
        for one in fabric[:2]:
            for middle in fabric[2], *fabric.upper():
                graph.add_link(one, middle)
    held = [("x", "Y"), ("Y", "y"), ("u", "V"), ("V", "v")]
    for wanted in (held, [("x", "Z"), ("Z", "y"), ("u", "W"), ("W", "v")]):
        forest = Forest(graph)
        islands = Islands(forest)
        for node in "xyuv":
            forest.join(GROUP, node, TreeRole.RECEIVER)
        islands.adopt(GROUP, wanted, {})
        assert sorted(link for tree in links_of(islands) for link in tree) == sorted(
            tuple(sorted(link)) for link in wanted
        )


def test_groups_move_to_another_forest_with_all_islands_their_rates_and_nothing_twice():
    graph = chain_and_ring()
    forest, new = Forest(graph), Forest(graph)
    islands, others = Islands(forest), Islands(new)
    joined(forest, islands, "a1", "d1", "a2")
    for node in ("b1", "b2"):
        joined(forest, islands, node, role=TreeRole.SENDER)
        forest.set_rate(GROUP, node, 3e6)
        islands.set_rate(GROUP, node, 3e6)
    (change,) = islands.moved_to(others)
    assert change.key == GROUP and change.empty
    assert links_of(others) == links_of(islands)
    assert len(new) == 2
    for tree in others.trees(GROUP):
        assert tree.terminals == forest.tree(tree.key).terminals
    assert new.loads.load_bps("c1", "d1") == new.loads.load_bps("b2", "a2") == 3_000_000


def test_a_move_to_another_forest_tells_the_links_that_change_in_every_fabric():
    graph = chain_and_ring()
    forest = Forest(graph)
    islands = Islands(forest)
    joined(forest, islands, "a1", "b1", "c1", "a2", "b2")
    graph_after = chain_and_ring()
    graph_after.remove_link("a2", "b2")
    others = Islands(Forest(graph_after))
    (change,) = islands.moved_to(others)
    assert {frozenset(link) for link in change.removed} == {frozenset(("a2", "b2"))}
    assert {frozenset(link) for link in change.added} == {frozenset(("a2", "c2")), frozenset(("b2", "c2"))}


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_move_to_another_forest_tells_the_cables_that_are_left_of_those_that_have_others_beside_them(is_busy):
    graph = Graph()
    for name in "uv":
        graph.add_node(name, NodeKind.TOR)
    for port_no in (1, 2):
        graph.add_link("u", "v", port_no, port_no)
    forest, new = Forest(graph), Forest(graph)
    islands = Islands(forest)
    joined(forest, islands, "u", "v")
    (used,) = (cable for tree in islands.trees(GROUP) for cable in told_apart(tree, forest.loads).values())
    if is_busy:
        for node in "uv":
            new.join(b"another", node, TreeRole.RECEIVER)
    (change,) = islands.moved_to(Islands(new))
    assert {cable.ends for cable in change.left} == ({used.ends} if is_busy else set())
    assert not change.added and not change.removed


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
        assert not any(tree.detached for tree in trees[1:])
        assert len(trees) == len({components[node] for node in members})
        for tree in trees:
            assert len({components[node] for node in tree.adjacent}) == 1
            for node, role in tree.terminals.items():
                assert node in tree.detached or role == members[node]
        assert all(isinstance(tree.key, IslandKey) or tree.key == GROUP for tree in forest)
        assert len(forest) == len(trees)
