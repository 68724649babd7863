"""Trees at data-centre scale: groups per second, distance from the optimum and from the lower bound, and memory.

The groups are those of the VSRT article, section 5.2: 3 to 20 of 100,000 machines on 11,520 servers, 0.1 to 10
Mbit/s on links of 1 Gbit/s. networkx (method mehlhorn) and rustworkx get groups of the same set on the same switches
in the same process, but only some of them. Run: PYTHONPATH=. python benchmarks/tree_scale.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np
import rustworkx as rx
from measure import Measurement, report

from controller.trees.bound import lower_bound
from controller.trees.bulk import BulkFabric, Groups, Stream, place
from controller.trees.fabric import LayeredFabric
from controller.trees.network import switch_graph
from topology.generators import make

MACHINES = 100_000
SERVERS = 11_520
SERVERS_PER_TOR = 40


class Load:
    """Groups of the article, as members and as joins in random order."""

    def __init__(self, fabric: BulkFabric, count: int, seed: int) -> None:
        self.fabric = fabric
        generator = np.random.default_rng(seed)
        tor_of_machine = generator.integers(0, SERVERS, MACHINES) // SERVERS_PER_TOR
        sizes = generator.integers(3, 21, count)
        self.offsets = np.append(0, np.cumsum(sizes))
        self.tors = tor_of_machine[generator.integers(0, MACHINES, self.offsets[-1])]
        self.rates_bps = generator.uniform(1e5, 1e7, count)
        order = generator.permutation(len(self.tors))
        self.joins = np.repeat(np.arange(count), sizes)[order], self.tors[order]

    def groups(self) -> Groups:
        return Groups.of(self.offsets, self.tors, self.rates_bps, len(self.fabric.tors))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def places(fabric: BulkFabric, count: int, repeats: int) -> Iterator[Measurement]:
    """Yield the time from members in any order to trees and loads, with numpy alone and compiled."""
    load = Load(fabric, count, 0)
    kinds = {"numpy alone": False} | ({"compiled": True} if find_spec("numba") else {})
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    placement = None
    for _ in range(repeats):
        for kind, compiled in kinds.items():
            elapsed, placement = timed(lambda: place(fabric, load.groups(), compiled=compiled))  # noqa: B023
            seconds[kind].append(elapsed)
    for kind, samples in seconds.items():
        yield Measurement(f"{count:,} groups, {kind}", "s", samples)
        yield Measurement(f"{count:,} groups, {kind}, per join", "ns", [s / len(load.tors) * 1e9 for s in samples])
    if placement is not None:
        yield Measurement(f"{count:,} groups: memory per group", "bytes", [placement.bytes_per_group])


def peers(fabric: BulkFabric, sample: int, repeats: int) -> Iterator[Measurement]:
    """Yield groups per second and excess over the optimum of the libraries and of ours, on the same groups."""
    load = Load(fabric, 10_000, 0)
    groups = load.groups()
    number = {node: i for i, node in enumerate(fabric.graph.nodes())}
    numbered = [(number[u], number[v]) for u, v in fabric.links]
    in_networkx, in_rustworkx = nx.Graph(numbered), rx.PyGraph()
    in_rustworkx.add_nodes_from(range(len(number)))
    in_rustworkx.add_edges_from([(u, v, 1.0) for u, v in numbered])
    tor = np.array([number[node] for node in fabric.tors])
    members = [tor[groups.tors[groups.offsets[g] : groups.offsets[g + 1]]].tolist() for g in range(sample)]
    steiner = nx.algorithms.approximation.steiner_tree
    contenders: dict[str, Callable[[list[int]], int]] = {
        "networkx steiner_tree (mehlhorn)": lambda m: steiner(in_networkx, m, method="mehlhorn").number_of_edges(),
        "rustworkx steiner_tree": lambda m: rx.steiner_tree(in_rustworkx, m, float).num_edges(),
    }
    per_second: dict[str, list[float]] = {name: [] for name in contenders}
    ours: dict[str, list[float]] = {"numpy alone": [], **({"compiled": []} if find_spec("numba") else {})}
    sizes: dict[str, list[int]] = {}
    for _ in range(repeats):
        for name, function in contenders.items():
            elapsed, sizes[name] = timed(lambda: [function(m) for m in members])  # noqa: B023
            per_second[name].append(sample / elapsed)
        for kind, samples in ours.items():
            elapsed, placement = timed(lambda: place(fabric, load.groups(), compiled=kind == "compiled"))  # noqa: B023
            samples.append(groups.count / elapsed)
            sizes[kind] = placement.tree_links[:sample].tolist()
    assert isinstance(fabric.shape, LayeredFabric)
    optimum = [fabric.shape.optimum([fabric.tors[t] for t in groups.tors[a:b]]) for a, b in pairs(groups, sample)]
    for name, samples in per_second.items():
        yield Measurement(f"{name}, {sample} of 10,000 groups", "groups/s", samples)
    for kind, samples in ours.items():
        yield Measurement(f"bulk, {kind}, 10,000 groups", "groups/s", samples)
    for name, found in sizes.items():
        excess = [100 * (size / best - 1) for size, best in zip(found, optimum, strict=True) if best]
        yield Measurement(f"size above the optimum, {name}", "%", excess)


def pairs(groups: Groups, count: int) -> Iterator[tuple[int, int]]:
    yield from zip(groups.offsets[:count].tolist(), groups.offsets[1 : count + 1].tolist(), strict=True)


def streams(fabric: BulkFabric, count: int, repeats: int) -> Iterator[Measurement]:
    """Yield joins and leaves per second, all groups interleaved."""
    load = Load(fabric, count, 0)
    samples: dict[str, list[float]] = {"joins": [], "leaves": []}
    for _ in range(repeats):
        stream = Stream(fabric, load.rates_bps)
        for what, rates in samples.items():
            comes = np.full(len(load.tors), what == "joins")
            elapsed, _ = timed(lambda: stream.apply(*load.joins, comes))  # noqa: B023
            rates.append(len(load.tors) / elapsed)
        if stream.load_bps.any():
            raise SystemExit("loads did not return to zero")
    for what, rates in samples.items():
        yield Measurement(f"{what} one by one, {count:,} groups interleaved", "per second", rates)


def bounds(name: str, fabric: BulkFabric, count: int, seeds: int) -> Iterator[Measurement]:
    """Yield the lower bound, the busiest cable over it, and the share of trees of optimal size, over seeds."""
    samples: dict[tuple[str, str], list[float]] = {}
    for seed in range(seeds):
        load = Load(fabric, count, seed)
        groups = load.groups()
        bound = lower_bound(fabric.graph, fabric.tors, groups)
        at_once, in_order = place(fabric, groups, seed=seed), place(fabric, groups, seed=seed, order="arrival")
        stream = Stream(fabric, load.rates_bps, seed=seed)
        stream.apply(*load.joins, np.ones(len(load.tors), dtype=bool))
        assert isinstance(fabric.shape, LayeredFabric)
        optimum = [fabric.shape.optimum([fabric.tors[t] for t in groups.tors[a:b]]) for a, b in pairs(groups, count)]

        def above(utilisation: float) -> float:
            return 100 * (utilisation / bound.utilisation - 1)  # noqa: B023

        found = {
            ("lower bound on the busiest cable", "%"): bound.percent,
            ("busiest cable above the bound, largest rates first", "%"): above(at_once.max_utilisation),
            ("busiest cable above the bound, by arrival", "%"): above(in_order.max_utilisation),
            ("busiest cable above the bound, joins interleaved", "%"): above(
                (stream.load_bps / fabric.capacity_bps).max()
            ),
            ("optimal, placed at once", "% of groups"): 100 * float((at_once.tree_links == optimum).mean()),
            ("optimal, joins interleaved", "% of groups"): 100 * float((stream.tree_links == optimum).mean()),
        }
        for key, value in found.items():
            samples.setdefault(key, []).append(value)
    for (what, unit), values in samples.items():
        yield Measurement(f"{name}, {count:,} groups: {what}", unit, values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000, help="groups in the largest run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sample", type=int, default=100, help="groups that the libraries get")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    fabrics = {name: BulkFabric.of(switch_graph(make(name))) for name in ("portland-p6", "portland-p12")}
    measurements: list[Measurement] = []
    fabric = fabrics["portland-p6"]
    if fabric is None:
        raise SystemExit("portland-p6 was not recognised")
    if find_spec("numba"):
        few = Load(fabric, 10, 0).groups()
        elapsed, _ = timed(lambda: place(fabric, few, compiled=True))
        measurements.append(Measurement("import and load the compiled kernel, once", "s", [elapsed]))
    measurements += peers(fabric, arguments.sample, arguments.repeats)
    count = 1_000
    while count <= arguments.largest:
        measurements += places(fabric, count, arguments.repeats)
        count *= 10
    measurements += streams(fabric, 10_000, arguments.repeats)
    for name, other in fabrics.items():
        if other is not None:
            measurements += bounds(name, other, 1_000, arguments.seeds)
    measurements += bounds("portland-p6", fabric, 10_000, max(1, arguments.seeds // 4))
    report(measurements, as_json=arguments.json, source="tree_scale")


if __name__ == "__main__":
    main()
