"""Entries of groups at each switch, and with those shared that switches without hosts of a group can share.

    python benchmarks/overcommit_sharing.py [--groups 10000] [--topology portland-p6] [--seeds 3] [--json]

Trees of vsrt over a fabric; the first member of each group sends. All entries are made as the controller makes them,
and counted at the fullest core, aggregation and ToR: those of the table of groups, not those of senders.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from measure import Measurement, report

from controller.rules.compile import (
    TREE_VERSIONS,
    RuleSet,
    SenderEntry,
    SwitchDuty,
    channel_duties,
    lower_to_1_3,
)
from controller.rules.compile_shared import GroupDuty, SharedDuty, in_shared_form, shared_duties, shared_rules
from controller.rules.model import FlowKey
from controller.rules.pipeline import FORWARD
from controller.simulation.data_centre import DataCentre
from controller.simulation.placement import connected, place_trees
from controller.simulation.trees import TreeLinks
from controller.simulation.workload import Workload, generate
from topology.generators import make
from topology.graph import NodeKind

HOST_PORT = 1000
VERSION = TREE_VERSIONS + 1
KINDS = (NodeKind.CORE, NodeKind.AGGREGATION, NodeKind.TOR)


def placed(centre: DataCentre, group_count: int, seed: int) -> Iterator[tuple[dict[int, set[int]], list[int]]]:
    """Yield of each group the switches next to each on its tree, and those with a member."""
    groups, _ = connected(centre, generate(centre, Workload(groups=group_count), seed))
    links: list[TreeLinks] = []
    place_trees(centre, groups, seed=seed, links=links)
    near: list[dict[int, set[int]]] = [{} for _ in range(len(groups))]
    for part in links:
        for group, cable in zip(part.group.tolist(), part.cable.tolist(), strict=True):
            u, v = (centre.number[node] for node in centre.cables[cable])
            near[group].setdefault(u, set()).add(v)
            near[group].setdefault(v, set()).add(u)
    members: list[list[int]] = [[] for _ in range(len(groups))]
    for group, at in zip(groups.group_of_terminal().tolist(), groups.terminals.tolist(), strict=True):
        members[group].append(at)
        near[group].setdefault(at, set())
    yield from zip(near, members, strict=True)


def entries(address: bytes, duties: dict[int, GroupDuty]) -> Iterator[tuple[int, FlowKey]]:
    """Yield the entries of a group by switch and key, those of senders left out."""
    for at, duty in duties.items():
        rules: RuleSet
        if isinstance(duty, SharedDuty):
            rules = shared_rules(address, False, duty)
        else:
            plain = lower_to_1_3(address, SwitchDuty(*duty[:3]), 0)
            rules = in_shared_form(address, duty, plain)  # type: ignore[arg-type]
        yield from ((at, key) for key in rules if key.table == FORWARD)


def count(topology: str, group_count: int, seed: int) -> dict[str, dict[NodeKind, int]]:
    """Return how many entries the fullest switch of each kind has, each group with its own and with some shared."""
    centre = DataCentre(make(topology))
    own: Counter[int] = Counter()
    shared: set[tuple[int, FlowKey]] = set()
    everywhere = range(len(centre.switches))

    def port(at: int, neighbour: int) -> int:
        return centre.graph.port(centre.switches[at], centre.switches[neighbour])

    for number, (near, members) in enumerate(placed(centre, group_count, seed)):
        address = bytes((239, *number.to_bytes(3, "big")))
        channels = channel_duties(near, port, {at: {None: [HOST_PORT]} for at in members}, (None,))
        duties = {at: SwitchDuty(VERSION, does, _senders(at == members[0])) for at, does in channels.items() if does}
        own.update(duties.keys())
        shared.update(entries(address, shared_duties(duties, near, port, everywhere)))
    with_shared = Counter(at for at, _ in shared)
    kinds = [centre.graph.kind(node) for node in centre.switches]
    return {
        name: {kind: max(n for at, n in counts.items() if kinds[at] is kind) for kind in KINDS}
        for name, counts in (("own", own), ("shared", with_shared))
    }


def _senders(sends: bool) -> tuple[SenderEntry, ...]:
    return (SenderEntry(HOST_PORT + 1, bytes(6), bytes((10, 0, 0, 1)), True),) if sends else ()


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--topology", default="portland-p6")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = [count(args.topology, args.groups, seed) for seed in range(1, args.seeds + 1)]
    measurements = [
        Measurement(f"{kind.value}: {name}", "entries", [float(each[name][kind]) for each in found])
        for kind in KINDS
        for name in ("own", "shared")
    ]
    report(measurements, as_json=args.json, source="overcommit_sharing")


if __name__ == "__main__":
    main()
