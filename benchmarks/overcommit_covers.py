"""Entries of groups at each switch, and with those that are silent under covering trees.

    python benchmarks/overcommit_covers.py [--groups 10000] [--topology portland-p6] [--silent 0.9] [--seeds 3]
                                           [--rates-bps 1e5 1e7] [--silence-s 60] [--spurious-pct 5]
                                           [--channels 1] [--json]

Trees of vsrt over a fabric; the first member of each group sends, at a rate between the bounds. A part of the groups
has been silent for some time; `CoverChoice`, which the controller has, takes these in turns of 128 as they come.
Counted are the entries of the table of groups at the fullest core, aggregation and ToR where all groups have their
own trees, and then; what links are expected to carry in vain; and covering trees. `best` is without a bound on copies
in vain, all of these groups under one tree that has all ToRs.

With `--channels` the first so many members of each group send, each a channel of its own that every other member
wants, with an entry at each switch of the tree. Each is silent or not by itself; groups go under trees as a whole,
and then, by the rows `one by one`, as the controller has it: each silent channel of a group that has others as well.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import NamedTuple

from measure import Measurement, report
from overcommit_sharing import KINDS, placed

from controller.overcommit.covers import CoverChoice, CoverNeed, sending_part
from controller.simulation.covered_tables import CoverBuilder
from controller.simulation.data_centre import DataCentre
from controller.simulation.workload import Workload, generate
from topology.generators import make
from topology.graph import NodeKind

AT_ONCE = 128


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
    channels: list[Channel] = []
    for number, (near, members) in enumerate(placed(centre, args.groups, seed)):
        for sender in members[: args.channels]:
            receivers = frozenset(at for at in members if at != sender)
            need = CoverNeed({sender: ceil(rate_of[number] * part)}, receivers)
            channels.append(Channel(number, near, need, dice.random() < args.silent))
            own.update(near.keys())
            best.update(need.switches if channels[-1].is_silent else near.keys())
    best.update(at for at, node in enumerate(centre.switches) if centre.graph.kind(node) is not NodeKind.TOR)
    heard = {each.group for each in channels if not each.is_silent}
    whole: dict[int, CoverNeed] = {}
    for each in channels:
        if each.group not in heard:
            before = whole.get(each.group, CoverNeed({}, frozenset()))
            senders = {**before.senders, **each.need.senders}
            whole[each.group] = CoverNeed(senders, before.members | each.need.members)
    found: dict[str, float] = {}
    for name, counts in (("own", own), ("best", best)):
        found |= {f"{kind.value}: {name}": float(n) for kind, n in fullest(centre, counts).items()}
    choice = chosen(centre, args.spurious_pct, whole)
    found |= told("covered", centre, choice, channels, {number: each.group for number, each in enumerate(channels)})
    found["in vain, fullest link"] = in_vain_pct(centre, choice)
    found["groups under covering trees"] = 100 * len(choice.under) / max(1, len(whole))
    found["covering trees"] = float(len(choice.trees))
    if args.channels > 1:
        alone = {~n: each.need for n, each in enumerate(channels) if each.is_silent and each.group in heard}
        choice = chosen(centre, args.spurious_pct, {**whole, **alone})
        keys = {n: ~n if each.group in heard else each.group for n, each in enumerate(channels)}
        found |= told("one by one", centre, choice, channels, keys)
        found["in vain, fullest link: one by one"] = in_vain_pct(centre, choice)
        found["covering trees: one by one"] = float(len(choice.trees))
    return found


class Channel(NamedTuple):
    """What one sender of a group sends: the group's tree, whom it is to reach, and whether it is silent."""

    group: int
    near: Mapping[int, set[int]]
    need: CoverNeed
    is_silent: bool


def capacity_of(centre: DataCentre, u: int, v: int) -> float:
    """Return what a link carries, in bits per second."""
    return centre.graph.link(centre.switches[u], centre.switches[v]).capacity_bps


def chosen(centre: DataCentre, spurious_pct: float, silent: Mapping[int, CoverNeed]) -> CoverChoice[int]:
    """Return which of those that are silent are under which trees, offered in turns."""
    choice: CoverChoice[int] = CoverChoice(partial(capacity_of, centre))
    choice.use(spurious_pct)
    builder, waiting = CoverBuilder(centre), list(silent)
    for first in range(0, len(waiting), AT_ONCE):
        turn = {number: silent[number] for number in waiting[first : first + AT_ONCE]}
        choice.choose(turn, builder, lambda _group, _number: True)
    return choice


def told(
    name: str, centre: DataCentre, choice: CoverChoice[int], channels: list[Channel], key_of: Mapping[int, int]
) -> dict[str, float]:
    """Return the entries of the fullest switch of each kind; `key_of` has by what a channel is under a tree."""
    counts: Counter[int] = Counter()
    for number, each in enumerate(channels):
        counts.update(each.need.switches if key_of[number] in choice.under else each.near.keys())
    for tree in choice.trees.values():
        counts.update(at for at, near in tree.adjacent.items() if len(near) > 1)
    return {f"{kind.value}: {name}": float(n) for kind, n in fullest(centre, counts).items()}


def in_vain_pct(centre: DataCentre, choice: CoverChoice[int]) -> float:
    """Return what the fullest link is expected to carry in vain, in percent of what it can."""
    return 100 * max((bps / capacity_of(centre, *link) for link, bps in choice.charges.items()), default=0.0)


UNITS = {
    "in vain, fullest link": "% of it",
    "in vain, fullest link: one by one": "% of it",
    "groups under covering trees": "% of silent",
    "covering trees": "trees",
    "covering trees: one by one": "trees",
}


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--topology", default="portland-p6")
    parser.add_argument("--silent", type=float, default=0.9)
    parser.add_argument("--rates-bps", type=float, nargs=2, default=(1e5, 1e7))
    parser.add_argument("--silence-s", type=float, default=60.0)
    parser.add_argument("--capacity-bps", type=float, default=1e10)
    parser.add_argument("--channels", type=int, default=1)
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
