"""How small the trees are: SteinLib B, both PortLand presets, fat trees with links missing, and Jellyfish.

SteinLib and Jellyfish are measured against the optimum, beside networkx (mehlhorn) and rustworkx over the same
members; the presets against the closed form, after joins and leaves in random order; fat trees with missing links
against an exact solver. SteinLib is measured where `--steinlib` names the folder of its set B: b01.stp to b18.stp,
and optimum.csv with the columns filename and opt. Run: PYTHONPATH=. python benchmarks/tree_quality.py
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from statistics import mean

import networkx as nx
import numpy as np
import rustworkx as rx
from measure import Measurement, report

from controller.trees.fabric import LayeredFabric, recognise
from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.files import parse
from topology.generators import make
from topology.graph import Graph, NodeKind

SEEDS = range(5)
STEPS = 30_000
DEGRADED = (
    ("fattree", {"k": 4}, 0.05, 100, 1),
    ("fattree", {"k": 4}, 0.2, 100, 1),
    ("fattree", {"k": 8}, 0.2, 2, 20),
    ("portland-p6", None, 0.05, 1, 40),
    ("portland-p6", None, 0.2, 1, 40),
    ("portland-p12", None, 0.2, 1, 40),
)
"""Fabric and parameters, share of links missing, fabrics per seed, and groups on each."""


def ours(graph: Graph, members: list, seed: int, steady_state: bool = False, algorithm: str = "vsrt") -> float:
    """Return the cost of our tree after the members joined in their order."""
    forest = Forest(graph.copy(), algorithm, seed)
    for member in members:
        forest.join("g", member, TreeRole.RECEIVER)
    if steady_state:
        forest.rebuild("g", steady_state=True)
    tree = forest.tree("g")
    assert tree is not None
    return sum(graph.link(u, v).weight for u, v in tree.links())


class Libraries:
    """The same graph in both libraries."""

    def __init__(self, graph: Graph) -> None:
        self.nx = nx.Graph()
        self.nx.add_weighted_edges_from((link.u, link.v, link.weight) for link in graph.links())
        self.rx = rx.PyGraph()
        self.number = dict(zip(graph.nodes(), self.rx.add_nodes_from(graph.nodes()), strict=True))
        self.rx.add_edges_from([(self.number[link.u], self.number[link.v], link.weight) for link in graph.links()])

    def networkx(self, members: list) -> float:
        return nx.algorithms.approximation.steiner_tree(self.nx, members, method="mehlhorn").size(weight="weight")

    def rustworkx(self, members: list) -> float:
        tree = rx.steiner_tree(self.rx, [self.number[node] for node in members], float)
        return sum(tree.edges())


def exact(graph: Graph, members: list) -> float:
    """Return the least cost of a tree (Dreyfus and Wagner, Networks 1, 1971), over sets of members as bits."""
    nodes = graph.nodes()
    number = {node: i for i, node in enumerate(nodes)}
    distance = np.full((len(nodes), len(nodes)), np.inf)
    np.fill_diagonal(distance, 0)
    for link in graph.links():
        u, v = number[link.u], number[link.v]
        distance[u, v] = distance[v, u] = link.weight
    for through in range(len(nodes)):
        np.minimum(distance, distance[:, through, None] + distance[None, through], out=distance)
    root, *rest = dict.fromkeys(members)
    best = {1 << i: distance[number[node]] for i, node in enumerate(rest)}
    for whole in range(1, 1 << len(rest)):
        if whole not in best:
            lowest = whole & -whole
            merged = np.full(len(nodes), np.inf)
            part = (whole - 1) & whole
            while part:
                if part & lowest:
                    np.minimum(merged, best[part] + best[whole - part], out=merged)
                part = (part - 1) & whole
            best[whole] = (merged[:, None] + distance).min(axis=0)
    return float(best[(1 << len(rest)) - 1][number[root]]) if rest else 0.0


def excess_pct(costs: list[float], optima: list[float]) -> float:
    return mean(100 * (cost / optimum - 1) for cost, optimum in zip(costs, optima, strict=True) if optimum)


def steinlib(folder: Path) -> list[Measurement]:
    """Return the mean excess of 18 instances, per seed."""
    with (folder / "optimum.csv").open(encoding="utf-8", newline="") as rows:
        listed = [(row["filename"], float(row["opt"])) for row in csv.DictReader(rows)]
    instances = [parse((folder / name).read_bytes(), name) for name, _ in listed]
    optima = [optimum for _, optimum in listed]
    samples: dict[str, list[float]] = {}
    for name, steady, algorithm in (
        ("vsrt", False, "vsrt"),
        ("vsrt --steady-state", True, "vsrt"),
        ("vsrt-literal", False, "vsrt-literal"),
        ("pim-sm-fixed-core", False, "pim-sm-fixed-core"),
    ):
        for seed in SEEDS:
            costs = [ours(one.graph, list(one.terminals), seed, steady, algorithm) for one in instances]
            samples.setdefault(name, []).append(excess_pct(costs, optima))
    libraries = [Libraries(one.graph) for one in instances]
    for name in ("networkx", "rustworkx"):
        costs = [getattr(them, name)(list(one.terminals)) for them, one in zip(libraries, instances, strict=True)]
        samples[name] = [excess_pct(costs, optima)]
    return [Measurement(f"SteinLib B, {name}: mean above the optimum", "%", found) for name, found in samples.items()]


def presets() -> list[Measurement]:
    """Return the share of optimal groups after joins and leaves of all groups in random order."""
    found = []
    for name in ("portland-p6", "portland-p12"):
        shares = []
        for seed in SEEDS:
            graph = switch_graph(make(name))
            fabric, tors = recognise(graph), graph.nodes(NodeKind.TOR)
            assert isinstance(fabric, LayeredFabric)
            generator = np.random.default_rng(seed)
            forest = Forest(graph, seed=seed)
            present: list[list] = [[] for _ in range(1000)]
            for group, pick, leaves in zip(
                generator.integers(0, len(present), STEPS).tolist(),
                generator.integers(0, len(tors), STEPS).tolist(),
                (generator.random(STEPS) < 0.4).tolist(),
                strict=True,
            ):
                here = present[group]
                if leaves and here:
                    forest.leave(group, here.pop(pick % len(here)), TreeRole.RECEIVER)
                elif tors[pick] not in here:
                    here.append(tors[pick])
                    forest.join(group, tors[pick], TreeRole.RECEIVER)
            good = [tree.size == fabric.optimum(tree.terminals) for tree in forest]
            shares.append(100 * mean(good))
        found.append(Measurement(f"{name}, {STEPS:,} joins and leaves: optimal groups", "%", shares))
    return found


def degraded() -> list[Measurement]:
    """Return the share of smallest trees on fat trees with random links missing, groups of 3 to 7."""
    found = []
    for name, parameters, share, fabrics, groups in DEGRADED:
        smallest = []
        for seed in SEEDS:
            generator = np.random.default_rng(seed)
            good = []
            for _ in range(fabrics):
                graph = switch_graph(make(name, parameters))
                links = [link[:2] for link in graph.links()]
                for i in generator.choice(len(links), max(1, round(share * len(links))), replace=False):
                    graph.remove_link(*links[i])
                tors = graph.nodes(NodeKind.TOR)
                forest = Forest(graph, seed=seed)
                for group in range(groups):
                    for i in generator.permutation(len(tors))[: generator.integers(3, 8)]:
                        forest.join(group, tors[i], TreeRole.RECEIVER)
                    tree = forest.tree(group)
                    assert tree is not None
                    on_tree = [node for node in tree.terminals if node in tree]
                    good.append(tree.size == exact(graph, on_tree))
            smallest.append(100 * mean(good))
        what = f"{name} {parameters['k']}" if parameters else name
        found.append(Measurement(f"{what}, {share:.0%} of links missing: smallest trees", "%", smallest))
    return found


def jellyfish() -> list[Measurement]:
    """Return the mean excess over the optimum for groups of 3 to 8 switches among 100 with 6 links each."""
    samples: dict[str, list[float]] = {}
    for seed in SEEDS:
        graph = switch_graph(make("jellyfish", {"switches": 100, "degree": 6, "seed": seed}))
        them = Libraries(graph)
        nodes = graph.nodes()
        generator = np.random.default_rng(seed)
        groups = [
            [nodes[i] for i in generator.permutation(len(nodes))[: generator.integers(3, 9)]] for _ in range(40)
        ]
        optima = [exact(graph, group) for group in groups]
        for name, costs in {
            "vsrt": [ours(graph, group, seed) for group in groups],
            "vsrt --steady-state": [ours(graph, group, seed, steady_state=True) for group in groups],
            "vsrt-literal": [ours(graph, group, seed, algorithm="vsrt-literal") for group in groups],
            "pim-sm-random-core": [ours(graph, group, seed, algorithm="pim-sm-random-core") for group in groups],
            "networkx": [them.networkx(group) for group in groups],
            "rustworkx": [them.rustworkx(group) for group in groups],
        }.items():
            samples.setdefault(name, []).append(excess_pct(costs, optima))
    return [Measurement(f"Jellyfish, {name}: mean above the optimum", "%", found) for name, found in samples.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steinlib", type=Path, metavar="DIR", help="folder of SteinLib's set B")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = [] if args.steinlib is None else steinlib(args.steinlib)
    report([*found, *presets(), *degraded(), *jellyfish()], as_json=args.json, source="tree_quality")


if __name__ == "__main__":
    main()
