"""The same operations give the same trees in every process, whatever Python's hashes of texts are there."""

import os
import subprocess
import sys
from pathlib import Path

OPERATIONS = """
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import Graph, NodeKind

graph = Graph()
names = [f"switch {number}" for number in range(12)]
for name in names:
    graph.add_node(name, NodeKind.TOR)
for step in (1, 3, 5):
    for number, name in enumerate(names):
        graph.add_link(name, names[(number + step) % 12])
forest = Forest(graph)
for key in range(12):
    for number in range(key, key + 7):
        forest.join(key, names[number * 5 % 12], TreeRole.RECEIVER)
for number in range(0, 12, 2):
    forest.remove_link(names[number], names[number + 1])
print([(tree.key, tree.root, list(tree.parent.items())) for tree in forest])
"""


def trees(hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", OPERATIONS],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_trees_do_not_depend_on_the_hashes_of_names():
    found = {trees(hash_seed) for hash_seed in (1, 2, 3)}
    (same,) = found
    assert same.count("switch") > 100
