"""Trees that lost a link are built around it some at a time: as all at once, whatever befalls others meanwhile."""

from __future__ import annotations

import random

import pytest

from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import NodeKind
from turns import calls_of

NAMES = ("fattree4", "avalanche24", "leaf-spine", "tree", "hub-and-ring", "petersen")


def filled(graph, draw, groups=12, members=3):
    """Return a forest of some groups with senders and receivers at random switches."""
    forest = Forest(graph)
    places = graph.nodes(NodeKind.TOR) or graph.nodes()
    for key in range(groups):
        forest.join(key, draw.choice(places), TreeRole.SENDER)
        for node in draw.sample(places, min(members, len(places))):
            forest.join(key, node, TreeRole.RECEIVER)
    return forest


def trees_of(forest):
    return {tree.key: (dict(tree.parent), set(tree.detached)) for tree in forest}


def busiest(forest):
    return max(((link.u, link.v) for link in forest.graph.links()), key=lambda link: len(forest.groups_on(*link)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_the_trees_are_those_that_are_built_all_at_once(lab, name, seed):
    at_once, in_parts = (filled(lab.FABRICS[name](), random.Random(seed)) for _ in range(2))
    u, v = busiest(at_once)
    changes = at_once.remove_link(u, v)
    users = in_parts.groups_on(u, v)
    assert in_parts.lose_link(u, v) == len(users) > 0
    parts = []
    while in_parts.is_broken:
        parts += [in_parts.repair(1)]
    assert [change for part in parts for change in part] == changes
    assert all(len(part) <= 1 for part in parts)
    assert trees_of(in_parts) == trees_of(at_once)
    lab.check_forest(in_parts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_before_the_last_tree_is_built_holds_in_the_end(lab, name, seed):
    draw = random.Random(seed)
    forest = filled(lab.FABRICS[name](), draw)
    places = forest.graph.nodes(NodeKind.TOR) or forest.graph.nodes()
    gone = []
    for _ in range(60):
        key, node = draw.randrange(12), draw.choice(places)
        what = draw.choice(("lose", "lose", "node", "join", "leave", "rate", "group rate", "part", "back", "rebuild"))
        links = [(link.u, link.v) for link in forest.graph.links()]
        if what == "lose" and len(links) > len(forest.graph) - 2:
            u, v = draw.choice(links)
            gone.append((u, v))
            assert forest.lose_link(u, v) >= 0
        elif what == "node" and len(gone) > 3 and draw.random() < 0.3:
            lost = draw.choice(forest.graph.nodes())
            kind = forest.graph.kind(lost)
            beside = forest.graph.neighbours(lost)
            forest.lose_node(lost)
            forest.repair(2)
            forest.add_node(lost, kind)
            for other in beside:
                forest.add_link(lost, other)
        elif what == "join":
            forest.join(key, node, draw.choice((TreeRole.SENDER, TreeRole.RECEIVER)))
        elif what == "leave":
            forest.leave(key, node, draw.choice((TreeRole.SENDER, TreeRole.RECEIVER)))
        elif what == "rate":
            forest.set_rate(key, node, draw.randrange(10**6))
        elif what == "part":
            forest.repair(draw.randrange(1, 8))
        elif what == "back" and gone:
            forest.add_link(*gone.pop())
            assert not forest.is_broken
            lab.check_forest(forest)
        elif what == "rebuild" and key in forest:
            forest.rebuild(key)
    forest.repair()
    lab.check_forest(forest)


def test_a_change_of_one_group_leaves_the_others_for_later(lab):
    forest = filled(lab.FABRICS["fattree4"](), random.Random(1), groups=30, members=6)
    u, v = busiest(forest)
    broken = sorted(forest.groups_on(u, v))
    assert forest.lose_link(u, v) == len(broken) > 3
    change = forest.join(broken[1], next(n for n in forest.graph.nodes(NodeKind.TOR)), TreeRole.RECEIVER)
    mended = forest.mend(broken[2])
    assert frozenset((u, v)) in set(map(frozenset, change.removed)) & set(map(frozenset, mended.removed))
    assert forest.mend(broken[1]).empty
    assert {change.key for change in forest.repair()} == set(broken) - {broken[1], broken[2]}
    lab.check_forest(forest)


def test_a_link_that_comes_back_costs_as_much_in_a_small_fabric_as_in_a_large_one(lab):
    def calls(k):
        forest = filled(lab.fat_tree(k), random.Random(1), groups=20, members=4)
        graph = forest.graph
        for node in graph.nodes(NodeKind.AGGREGATION, NodeKind.CORE):
            forest.add_node(node, NodeKind.SWITCH)
        u, v = next((link.u, link.v) for link in graph.links() if graph.kind(link.u) is graph.kind(link.v))
        forest.remove_link(u, v)
        return calls_of(lambda: forest.add_link(u, v))

    assert calls(12) <= 4 * calls(4)
