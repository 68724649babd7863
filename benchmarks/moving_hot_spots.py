"""Aliases while hot groups move, beside one tree per group, trees placed anew by load, and aliases that stay.

Run: PYTHONPATH=. python benchmarks/moving_hot_spots.py [--seed N] [--runs N]
"""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Sequence
from statistics import mean

from measure import print_table, summarise

from controller.service_classes.measures import LinkUse, group_queue, group_utilisation, is_gain
from controller.service_classes.split import split
from controller.service_classes.transfers import PACES, GroupState, TransferDecision, TransferPass, decide

SPINES, HOT_GROUPS, HOT_AT_ONCE, ALL_ALIASES = 8, 64, 4, 16
HOT_S, RUN_S, SAMPLE_S = 900, 3600, 10
WHO = ("one tree", "rebalanced", "static", "steady", "fast")


class Spots:
    """Groups of 8 senders that share spines; each tree takes one, and hot groups are others every `HOT_S`.

    Rates are parts of what a spine passes. `trees` are the spines of each group's trees, its own first, and `flows`
    the tree of each sender.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.trees = [[self.random.randrange(SPINES)] for _ in range(HOT_GROUPS)]
        self.flows: list[dict[int, int]] = [dict.fromkeys(range(8), 0) for _ in range(HOT_GROUPS)]
        self.senders: list[dict[int, float]] = []
        self.heat()

    def heat(self) -> None:
        """Have other groups be hot."""
        hot = self.random.sample(range(HOT_GROUPS), HOT_AT_ONCE)
        self.senders = []
        for group in range(HOT_GROUPS):
            rate = self.random.uniform(0.8, 1.2) if group in hot else self.random.uniform(0.01, 0.03)
            shares = [self.random.uniform(0.5, 1.5) for _ in range(8)]
            self.senders.append({n: rate * share / sum(shares) for n, share in enumerate(shares)})

    def own(self, group: int) -> dict[int, float]:
        """Return what a group puts on each spine."""
        found: dict[int, float] = {}
        for sender, tree in self.flows[group].items():
            spine = self.trees[group][tree]
            found[spine] = found.get(spine, 0.0) + self.senders[group][sender]
        return found

    def loads(self) -> list[float]:
        loads = [0.0] * SPINES
        for group in range(HOT_GROUPS):
            for spine, load in self.own(group).items():
                loads[spine] += load
        return loads

    def lost(self) -> float:
        loads = self.loads()
        return sum(max(0.0, load - 1.0) for load in loads) / sum(loads)

    def add(self, group: int) -> None:
        """Give a group one tree more, on the spine that is least loaded of those that it has not."""
        loads = self.loads()
        others = [spine for spine in range(SPINES) if spine not in self.trees[group]]
        self.trees[group].append(min(others, key=loads.__getitem__))
        count = len(self.trees[group])
        self.flows[group] = split(self.senders[group], range(count), self.flows[group], [count - 1])

    def take(self, group: int) -> None:
        """Take the tree that a group got last."""
        self.trees[group].pop()
        self.flows[group] = split(self.senders[group], range(len(self.trees[group])), self.flows[group])

    def would_gain(self, group: int) -> bool:
        if len(self.trees[group]) == SPINES:
            return False
        before = max(self.loads()[spine] for spine in self.own(group))
        flows = dict(self.flows[group])
        self.add(group)
        after = max(self.loads()[spine] for spine in self.own(group))
        self.trees[group].pop()
        self.flows[group] = flows
        return is_gain(before, after)

    def rebalance(self) -> None:
        """Have each group's one tree be on the least loaded spine, the largest first."""
        for group in sorted(range(HOT_GROUPS), key=lambda group: -sum(self.senders[group].values())):
            loads = self.loads()
            rate = sum(self.senders[group].values())
            loads[self.trees[group][0]] -= rate
            self.trees[group][0] = min(range(SPINES), key=loads.__getitem__)


def spots_run(seed: int, who: str) -> float:
    """Return the part of what was sent that is lost, mean over the time."""
    spots, lost = Spots(seed), []
    if who == "static":
        for group in spots.random.sample(range(HOT_GROUPS), ALL_ALIASES):
            spots.add(group)
    pace = PACES.get(who)
    samples: dict[int, deque[tuple[float, float]]] = {group: deque(maxlen=7) for group in range(HOT_GROUPS)}
    moved: dict[int, float] = {}
    last: TransferDecision | None = None
    for now in range(0, RUN_S, SAMPLE_S):
        if now and now % HOT_S == 0:
            spots.heat()
        if who == "rebalanced" and now % 60 == 0:
            spots.rebalance()
        lost.append(spots.lost())
        if pace is None:
            continue
        loads = spots.loads()
        count = max(1, int(pace.window_s / SAMPLE_S))
        groups: dict[str, GroupState] = {}
        for group in range(HOT_GROUPS):
            uses = [LinkUse(own, loads[spine], 1.0) for spine, own in spots.own(group).items()]
            samples[group].append((group_queue(uses), group_utilisation(uses)))
            recent = list(samples[group])[-count:]
            queue, use = (mean(one[part] for one in recent) for part in (0, 1))
            gain = queue > 0.25 and spots.would_gain(group)
            trees = len(spots.trees[group])
            if trees > 1 or gain:
                groups[str(group)] = GroupState(6, trees, queue, use, gain, True, moved.get(group))
        free = ALL_ALIASES - sum(len(trees) - 1 for trees in spots.trees)
        times = (None, None, None) if last is None else last[1:]
        last = decide(TransferPass(now, free, 4, *times), [], groups, pace)
        for transfer in last.transfers:
            if transfer.donor is not None:
                spots.take(int(transfer.donor))
                moved[int(transfer.donor)] = now
            spots.add(int(transfer.receiver))
            moved[int(transfer.receiver)] = now
    return mean(lost)


def spots(seeds: Sequence[int]) -> dict[str, list[float]]:
    """Loss while hot groups move, over that of one tree per group: rebalanced, with 16 static and moving aliases."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        base = spots_run(seed, "one tree")
        found.setdefault("one tree: part lost", []).append(base)
        for who in WHO[1:]:
            found.setdefault(f"{who}: loss / that of one tree", []).append(spots_run(seed, who) / base)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="the first seed")
    parser.add_argument("--runs", type=int, default=8, help="seeds, one after the other (default: %(default)s)")
    args = parser.parse_args()
    rows = []
    for what, samples in spots(range(args.seed, args.seed + args.runs)).items():
        found = summarise(samples)
        rows.append([what, found.median, found.first_quartile, found.third_quartile, found.minimum, found.maximum])
    print_table(["", "median", "first quartile", "third quartile", "least", "most"], rows)


if __name__ == "__main__":
    main()
