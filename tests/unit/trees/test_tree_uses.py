"""Which links carry a tree's packets, kept while receivers come and go, is what looking at all of it finds."""

from __future__ import annotations

import random

import pytest

from controller.trees import flows
from controller.trees.algorithms import ALGORITHMS
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeKind

STEPS = 120


def test_of_trees_to_which_several_send_it_is_kept_whether_anything_changed(lab):
    forest = Forest(switch_graph(make("fattree", {"k": 4})), "vsrt", 1)
    tors = list(forest.graph.nodes(NodeKind.TOR))
    for node in tors[:2]:
        forest.join("g", node, TreeRole.SENDER)
    for node in tors[4:6]:
        forest.join("g", node, TreeRole.RECEIVER)
    tree = forest.tree("g")
    uses = flows.uses(tree, forest.loads)
    assert uses is not None and uses.numbers is None
    forest.set_rate("g", tors[0], 5e6)
    forest.join("g", tors[4], TreeRole.RECEIVER)
    assert tree.uses is uses
    for change, node, role in (
        (forest.join, tors[6], TreeRole.RECEIVER),
        (forest.leave, tors[4], TreeRole.RECEIVER),
        (forest.join, tors[3], TreeRole.SENDER),
        (forest.leave, tors[0], TreeRole.SENDER),
    ):
        before = flows.uses(tree, forest.loads)
        change("g", node, role)
        assert tree.uses is None
        assert flows.uses(tree, forest.loads) is not before
        lab.check_uses(tree, forest.loads)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_links_are_kept_while_receivers_come_and_go(lab, algorithm: str, seed: int):
    generator = random.Random(seed)
    forest = Forest(switch_graph(make("fattree", {"k": 4})), algorithm, seed)
    tors = list(forest.graph.nodes(NodeKind.TOR))
    sender, receivers = generator.choice(tors), set()
    forest.join("g", sender, TreeRole.SENDER)
    tree = forest.tree("g")
    kept = 0
    for _ in range(STEPS):
        # All leave at times, so that the first one comes to a tree without receivers.
        is_last = generator.random() < 0.1
        for node in sorted(receivers) if is_last else [generator.choice(tors)]:
            change = forest.leave if node in receivers else forest.join
            change("g", node, TreeRole.RECEIVER)
            receivers ^= {node}
            if generator.random() < 0.2:
                forest.set_rate("g", sender, generator.choice((0.0, 1e6, 3e7)))
            uses = tree.uses
            lab.check_uses(tree, forest.loads)
            kept += uses is not None
    assert tree.receivers == receivers
    forest.leave("g", sender, TreeRole.SENDER)
    if (tree := forest.tree("g")) is not None:
        assert flows.uses(tree, forest.loads) is None and tree.uses is None
    assert kept > STEPS // 3 or algorithm == "steiner", "links were looked at anew"
