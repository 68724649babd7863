"""Entries of groups at each switch, and with those that are silent under covering trees.

    python benchmarks/overcommit_covers.py [--groups 10000] [--topology portland-p6] [--silent 0.9] [--seeds 3]
                                           [--rates-bps 1e5 1e7] [--silence-s 60] [--spurious-pct 5] [--json]

Trees of vsrt over a fabric; the first member of each group sends, at a rate between the bounds. A part of the groups
has been silent for some time; `CoverChoice`, which the controller has, takes these in turns of 128 as they come.
Counted are the entries of the table of groups at the fullest core, aggregation and ToR where all groups have their
own trees, and then; what links are expected to carry in vain; and covering trees. `best` is without a bound on copies
in vain, all of these groups under one tree that has all ToRs.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from math import ceil

from measure import Measurement, report
from overcommit_sharing import KINDS, placed

from controller.overcommit.covers import CoverChoice, CoverNeed, sending_part
from controller.simulation.data_centre import DataCentre
from controller.simulation.workload import Workload, generate
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import NodeKind

AT_ONCE = 128


class Builder:
    """Builds covering trees over a fabric, by numbers of switches."""

    def __init__(self, centre: DataCentre) -> None:
        self._centre = centre
        self._forest = Forest(centre.graph.subgraph(centre.switches))
        self.count = 0

    def __call__(self, ends: frozenset[int]) -> tuple[int, dict[int, set[int]]] | None:
        """Return the number and the links of another tree."""
        self.count += 1
        number_of, key = self._centre.number, f"cover {self.count}"
        for at in sorted(ends):
            self._forest.join(key, self._centre.switches[at], TreeRole.RECEIVER)
        tree = self._forest.tree(key)
        assert tree is not None
        return self.count, {number_of[u]: {number_of[v] for v in near} for u, near in tree.adjacent.items()}


def fullest(centre: DataCentre, counts: Counter[int]) -> dict[NodeKind, int]:
    """Return how many entries the fullest switch of each kind has."""
    kinds = [centre.graph.kind(node) for node in centre.switches]
    return {kind: max((n for at, n in counts.items() if kinds[at] is kind), default=0) for kind in KINDS}


def count(args: argparse.Namespace, seed: int) -> dict[str, float]:
    """Return what is counted of a workload."""
    centre = DataCentre(make(args.topology), args.capacity_bps)
    rates = (float(args.rates_bps[0]), float(args.rates_bps[1]))
    rate_of = generate(centre, Workload(groups=args.groups, rate_bps=rates), seed).rates_bps.tolist()
    dice, part = random.Random(seed), sending_part(args.silence_s)
    own: Counter[int] = Counter()
    best: Counter[int] = Counter()
    trees: list[dict[int, set[int]]] = []
    silent: dict[int, CoverNeed] = {}
    for number, (near, members) in enumerate(placed(centre, args.groups, seed)):
        trees.append(near)
        own.update(near.keys())
        if dice.random() < args.silent:
            silent[number] = CoverNeed({members[0]: ceil(rate_of[number] * part)}, frozenset(members[1:]))
            best.update(members)
        else:
            best.update(near.keys())
    best.update(at for at, node in enumerate(centre.switches) if centre.graph.kind(node) is not NodeKind.TOR)

    def capacity_bps(u: int, v: int) -> float:
        return centre.graph.link(centre.switches[u], centre.switches[v]).capacity_bps

    choice: CoverChoice[int] = CoverChoice(capacity_bps)
    choice.use(args.spurious_pct)
    builder, waiting = Builder(centre), list(silent)
    for first in range(0, len(waiting), AT_ONCE):
        turn = {number: silent[number] for number in waiting[first : first + AT_ONCE]}
        choice.choose(turn, builder, lambda _group, _number: True)
    covered: Counter[int] = Counter()
    for number, near in enumerate(trees):
        covered.update(silent[number].switches if number in choice.under else near.keys())
    for tree in choice.trees.values():
        covered.update(at for at, near in tree.adjacent.items() if len(near) > 1)
    found: dict[str, float] = {}
    for name, counts in (("own", own), ("covered", covered), ("best", best)):
        found |= {f"{kind.value}: {name}": float(n) for kind, n in fullest(centre, counts).items()}
    share = max((bps / capacity_bps(*link) for link, bps in choice.charges.items()), default=0.0)
    found["in vain, fullest link"] = 100 * share
    found["groups under covering trees"] = 100 * len(choice.under) / max(1, len(silent))
    found["covering trees"] = float(len(choice.trees))
    return found


UNITS = {"in vain, fullest link": "% of it", "groups under covering trees": "% of silent", "covering trees": "trees"}


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--topology", default="portland-p6")
    parser.add_argument("--silent", type=float, default=0.9)
    parser.add_argument("--rates-bps", type=float, nargs=2, default=(1e5, 1e7))
    parser.add_argument("--silence-s", type=float, default=60.0)
    parser.add_argument("--capacity-bps", type=float, default=1e10)
    parser.add_argument("--spurious-pct", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = [count(args, seed) for seed in range(1, args.seeds + 1)]
    measurements = [
        Measurement(name, UNITS.get(name, "entries"), [each[name] for each in found]) for name in found[0]
    ]
    report(measurements, as_json=args.json, source="overcommit_covers")


if __name__ == "__main__":
    main()
