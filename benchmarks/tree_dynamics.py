"""Joins, leaves and failures over time on portland-p6, beside libraries that build a group's tree anew for each join.

The same join storm (all groups interleaved) goes through the live controller's `Forest`, the bulk form's `Stream`
and, for a sample of its joins, networkx (mehlhorn) and rustworkx over the same switches. Then links fail under the
groups: what moves, how long a repair takes, and how far the busiest link is from its lower bound.
Times are CPU time. Python's cyclic collector has the thresholds that a controller gives it.
`--count` tells how many functions of the code under `Forest` an event calls and how many bytecodes they execute, and
what a tree takes of memory: figures that no other program of the machine changes.
Run: PYTHONPATH=. python benchmarks/tree_dynamics.py --groups 10000
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from time import process_time

import networkx as nx
import numpy as np
import rustworkx as rx
from measure import Measurement, print_table, report, tallied, touch_memory

from apps.openflow.collector import COLLECTOR_THRESHOLDS
from controller.simulation.churn import link_failures
from controller.simulation.data_centre import DataCentre
from controller.simulation.dynamics import Dynamics, EventKind, GroupEvent
from controller.simulation.groups import SimulatedGroups
from controller.simulation.outcome import least_max_pct
from controller.simulation.workload import Workload, generate
from controller.trees.bulk import BulkFabric, Stream
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeId, NodeKind

REBUILDS = 100
"""Joins for which the libraries build a tree anew, in each repeat."""

Step = tuple[int, NodeId, bool]
"""Group, switch, and whether it joins."""


def storm(centre: DataCentre, groups: SimulatedGroups, seed: int) -> list[Step]:
    """Return the joins of all groups, interleaved at random."""
    group = groups.group_of_terminal()
    order = np.random.default_rng(seed).permutation(len(group))
    return [(int(group[i]), centre.switches[groups.terminals[i]], True) for i in order]


def churn(joins: list[Step], seed: int) -> list[Step]:
    """Return leaves and joins in turn: each time a member leaves, another of its group joins at a random switch."""
    generator = np.random.default_rng(seed)
    switches = list(dict.fromkeys(node for _, node, _ in joins))
    present = {(group, node) for group, node, _ in joins}
    steps: list[Step] = []
    for i in generator.permutation(len(joins))[: len(joins) // 2].tolist():
        group, node, _ = joins[i]
        other = switches[int(generator.integers(len(switches)))]
        if (group, other) not in present and (group, node) in present:
            present.discard((group, node))
            present.add((group, other))
            steps += [(group, node, False), (group, other, True)]
    return steps


def empty_forest(centre: DataCentre, groups: SimulatedGroups) -> Forest:
    forest = Forest(centre.graph.copy())
    for key, rate_bps in enumerate(groups.rates_bps.tolist()):
        forest.set_group_rate(key, rate_bps)
    return forest


def forest_speeds(centre: DataCentre, groups: SimulatedGroups, joins: list[Step]) -> dict[str, float]:
    forest = empty_forest(centre, groups)
    found = {"join storm": per_s(lambda: walk(forest, joins), joins)}
    found["maximum over lower bound"] = 100 * forest.loads.max_utilisation() / least_max_pct(centre, groups)
    steps = churn(joins, 1)
    found["churn"] = per_s(lambda: walk(forest, steps), steps)
    last = leaves(forest)
    found["leaves"] = per_s(lambda: walk(forest, last), last)
    assert not any(forest.loads.bps)
    return found


def leaves(forest: Forest) -> list[Step]:
    """Return the leaves of everybody, group by group."""
    return [(tree.key, node, False) for tree in forest for node in tree.terminals]


def count_work(centre: DataCentre, groups: SimulatedGroups) -> None:
    """Tell what an event and a tree take, counted: what `walk` itself does is left out."""
    joins = storm(centre, groups, 0)
    forest, rows = empty_forest(centre, groups), []
    for what in ("join storm", "churn", "leaves"):
        steps = joins if what == "join storm" else churn(joins, 1) if what == "churn" else leaves(forest)
        bytecodes, calls = tallied(lambda steps=steps: walk(forest, steps))
        rows.append((what, f"{bytecodes / len(steps):.0f}", f"{calls / len(steps):.1f}"))
    print_table(("an event", "bytecodes", "calls"), rows)
    forest = empty_forest(centre, groups)
    tracemalloc.start()
    walk(forest, joins)
    print(f"a tree takes {tracemalloc.get_traced_memory()[0] / len(forest):.0f} bytes")
    tracemalloc.stop()


def walk(forest: Forest, steps: list[Step]) -> None:
    role = TreeRole.RECEIVER  # what looking at the enumeration takes is the caller's
    for group, node, joins in steps:
        if joins:
            forest.join(group, node, role)
        else:
            forest.leave(group, node, role)


def stream_speeds(centre: DataCentre, groups: SimulatedGroups, joins: list[Step]) -> dict[str, float]:
    fabric = BulkFabric.of(centre.graph)
    assert fabric is not None
    number = {tor: i for i, tor in enumerate(fabric.tors)}
    stream = Stream(fabric, groups.rates_bps)
    found = {}
    for what, steps in (("join storm", joins), ("churn", churn(joins, 1))):
        columns = zip(*((group, number[node], comes) for group, node, comes in steps), strict=True)
        group, tor, comes = (np.array(column) for column in columns)
        found[what] = per_s(lambda: stream.apply(group, tor, comes), steps)  # noqa: B023
    return found


def rebuild_speeds(centre: DataCentre, joins: list[Step], seed: int) -> dict[str, float]:
    """Return joins per second where the group's tree is built anew at each of a sample of joins of the storm."""
    members: dict[int, list[NodeId]] = {}
    grown = []
    for group, node, _ in joins:
        members.setdefault(group, []).append(node)
        grown.append((group, len(members[group])))
    chosen = [grown[i] for i in np.random.default_rng(seed).permutation(len(grown))[:REBUILDS]]
    sets = [members[group][:count] for group, count in chosen if count > 1]
    library = nx.Graph((link.u, link.v) for link in centre.graph.links())
    compiled = rx.PyGraph()
    compiled.add_nodes_from(centre.switches)
    compiled.add_edges_from([(centre.number[u], centre.number[v], 1.0) for u, v in centre.cables])
    numbers = [[centre.number[node] for node in nodes] for nodes in sets]

    def by_networkx() -> None:
        for nodes in sets:
            nx.algorithms.approximation.steiner_tree(library, nodes, method="mehlhorn")

    def by_rustworkx() -> None:
        for nodes in numbers:
            rx.steiner_tree(compiled, nodes, float)

    return {"networkx": per_s(by_networkx, sets), "rustworkx": per_s(by_rustworkx, sets)}


def per_s(run, done: list) -> float:
    touch_memory()
    start = process_time()
    run()
    return len(done) / (process_time() - start)


def failures(
    centre: DataCentre, groups: SimulatedGroups, seed: int, kind: NodeKind, count: int
) -> dict[str, list[float]]:
    """Let links up from switches of a kind fail one after the other, and return what each failure changed."""
    found: dict[str, list[float]] = {}
    links = [cable for cable in centre.cables if {centre.graph.kind(node) for node in cable} & {kind}]
    for rebalances in (False, True):
        world = Dynamics(centre.graph, {}, seed=seed, rebalances=rebalances)
        for key, rate_bps in enumerate(groups.rates_bps.tolist()):
            world.forest.set_group_rate(key, rate_bps)
        for group, node, _ in storm(centre, groups, seed):
            world.step(GroupEvent(0.0, EventKind.JOIN, group, node))
        what = "repaired and rebalanced" if rebalances else "repaired"
        for event in link_failures(links, count, 1.0, 1e9, np.random.default_rng(seed)):
            start = process_time()
            outcome = world.step(event)
            found.setdefault(f"{what}: time ms", []).append(1e3 * (process_time() - start))
            for column in ("trees_changed", "rules_put", "rules_removed", "members_cut_off"):
                found.setdefault(f"{what}: {column}", []).append(getattr(outcome, column))
        left = DataCentre(world.forest.graph)
        bound = least_max_pct(left, groups) / 100
        found[f"{what}: maximum over lower bound"] = [world.forest.loads.max_utilisation() / bound]
        assert world.loads_are_exact()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--failures", type=int, default=20, help="links that fail of each kind, under 1,000 groups")
    parser.add_argument("--count", action="store_true", help="count bytecodes, calls and bytes, and measure no time")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    centre = DataCentre(make("portland-p6"), 1e10)
    if args.count:
        count_work(centre, generate(centre, Workload(groups=args.groups), 0))
        return
    speeds: dict[str, list[float]] = {}
    for seed in range(args.repeats):
        groups = generate(centre, Workload(groups=args.groups), seed)
        joins = storm(centre, groups, seed)
        for name, found in (
            ("Forest", forest_speeds(centre, groups, joins)),
            ("Stream", stream_speeds(centre, groups, joins)),
            ("built anew", rebuild_speeds(centre, joins, seed)),
        ):
            for what, value in found.items():
                speeds.setdefault(f"{name}, {what}", []).append(value)
    measurements = [
        Measurement(name, "ratio" if "bound" in name else "joins/s" if "anew" in name else "events/s", values)
        for name, values in speeds.items()
    ]
    few = DataCentre(make("portland-p6"))
    groups = generate(few, Workload(groups=1000), 0)
    for kind, count in ((NodeKind.TOR, args.failures), (NodeKind.CORE, args.failures // 3)):
        for what, values in failures(few, groups, 0, kind, count).items():
            unit = "ms" if what.endswith("ms") else "ratio" if "bound" in what else "per failure"
            measurements.append(Measurement(f"{count} {kind} links fail, {what.removesuffix(' ms')}", unit, values))
    report(measurements, as_json=args.json, source="tree_dynamics")


if __name__ == "__main__":
    main()
