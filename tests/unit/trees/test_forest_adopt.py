"""A forest takes over the trees that the switches hold already."""

from __future__ import annotations

import pytest

from controller.trees.algorithms import ALGORITHMS
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make

GROUP = b"\xef\1\2\3"
TORS = ("s1", "s2", "s5")


def links_of(forest: Forest) -> set[frozenset[object]]:
    tree = forest.tree(GROUP)
    assert tree is not None
    return {frozenset(link) for link in tree.links()}


def grown(algorithm: str, seed: int, tors: tuple[str, ...] = TORS) -> Forest:
    forest = Forest(switch_graph(make("fattree", {"k": 4})), algorithm, seed)
    for tor in tors:
        forest.join(GROUP, tor, TreeRole.RECEIVER)
    return forest


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@pytest.mark.parametrize("seed", range(4))
def test_a_valid_tree_is_taken_as_it_is(algorithm, seed):
    held = links_of(grown("vsrt", seed))
    forest = grown(algorithm, seed + 100)
    forest.adopt(GROUP, [tuple(link) for link in held])
    assert links_of(forest) == held


def test_joins_after_an_adoption_only_add():
    for seed in range(8):
        held = links_of(grown("vsrt", seed))
        forest = grown("vsrt", seed + 100)
        forest.adopt(GROUP, [tuple(link) for link in held])
        change = forest.join(GROUP, "s7", TreeRole.RECEIVER)
        assert change.removed == ()
        assert held < links_of(forest)
        assert len(links_of(forest)) == 4 + 3


def test_loads_follow_the_adopted_tree():
    forest = grown("vsrt", 1)
    forest.adopt(GROUP, [tuple(link) for link in links_of(grown("vsrt", 2))])
    for tor in TORS:
        forest.leave(GROUP, tor, TreeRole.RECEIVER)
    assert forest.loads.max_utilisation() == 0


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_what_no_longer_holds_is_not_taken(algorithm):
    held = [tuple(link) for link in links_of(grown("vsrt", 1))]
    forest = grown(algorithm, 1)
    for broken in (held[:-1], [*held, ("s1", "nowhere")], []):
        forest.adopt(GROUP, broken)
        tree = forest.tree(GROUP)
        assert tree is not None
        assert set(TORS) <= set(tree.adjacent)
        assert tree.size == len(tree.adjacent) - 1


def test_a_group_without_members_is_left_alone():
    forest = Forest(switch_graph(make("fattree", {"k": 4})))
    assert forest.adopt(GROUP, [("s1", "s9")]).empty
    assert forest.tree(GROUP) is None
