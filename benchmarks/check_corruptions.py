"""A thousand entries that somebody changes by hand: how many a check finds, invents and cures, and what that costs.

    python benchmarks/check_corruptions.py [--count 1000] [--at-a-time 50] [--seed 1] [--json]

A fat tree of k = 4 in memory, whose switches speak OpenFlow 1.0 and 1.3 in turn, under discovery, multicast and
unicast; 24 groups of 4 members. Every other round of changes goes on while hosts join and leave. What a check should
find is told by the tables themselves. A group of which no packet meets a changed entry, or should, is untouched: it
is sent to at each step of a repair, and a receiver that gets more or less of it than before counts as disturbed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from corruption import CorruptedFabric, Found
from measure import print_json, print_table, summarise

CHURN_EVERY, CHURN_STEPS = 7, 300


class Tally:
    """What became of the changes."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.survey_ms: list[float] = []

    def survey(self, fabric: CorruptedFabric) -> None:
        """Have all switches read at once, with nothing going on beside it, in so much processor time."""
        began_s = time.process_time()
        fabric.survey()
        fabric.settle(0.1)
        self.survey_ms.append((time.process_time() - began_s) * 1e3)


def at_rest(fabric: CorruptedFabric, count: int, tally: Tally) -> None:
    """Change so many entries, check, repair, and watch receivers meanwhile."""
    ways = fabric.ways()
    changed = Counter(fabric.corrupt() for _ in range(count))
    tally.kinds.update((found.app, found.kind) for found in changed)
    tally.survey(fabric)
    judge(fabric, changed, tally)
    untouched = [group for group, way in fabric.ways().items() if way == ways[group]]
    before = {group: fabric.receivers(group) for group in untouched}
    tally.counts["untouched groups"] += len(untouched)
    edits = fabric.edit_count
    fabric.survey(repair=True)
    for _ in fabric.steps():
        for group in untouched:
            tally.counts["packets to untouched groups"] += 1
            got = fabric.receivers(group)
            tally.counts["receivers disturbed"] += sum(got[place] != count for place, count in before[group].items())
    tally.counts["edits of repairs"] += fabric.edit_count - edits
    tally.counts["not cured"] += fabric.differences().total()


def beside_joins(fabric: CorruptedFabric, count: int, tally: Tally) -> None:
    """Change so many entries, and check and repair while hosts join and leave."""
    changed = Counter(fabric.corrupt() for _ in range(count))
    tally.kinds.update((found.app, found.kind) for found in changed)
    fabric.survey(repair=True)
    for number, _ in enumerate(fabric.steps()):
        if number % CHURN_EVERY == 0 and number < CHURN_STEPS:
            fabric.churn()
            tally.counts["joins and leaves"] += 1
    reported = fabric.reported()
    left = fabric.differences()
    tally.counts["found"] += (reported & changed).total()
    tally.counts["mended by a join or leave before"] += (changed - reported - left).total()
    tally.counts["missed"] += (changed & left).total()
    tally.counts["invented"] += (reported - changed).total()
    tally.counts["not cured"] += left.total()


def judge(fabric: CorruptedFabric, changed: Counter[Found], tally: Tally) -> None:
    """Count what a report names of what was changed."""
    reported = fabric.reported()
    tally.counts["found"] += (reported & changed).total()
    tally.counts["missed"] += (changed - reported).total()
    tally.counts["invented"] += (reported - changed).total()


def main() -> None:
    parser = argparse.ArgumentParser(description="How many entries changed by hand a check finds and cures.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--at-a-time", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    fabric, tally = CorruptedFabric(arguments.seed), Tally()
    entries = sum(len(table.desired(dpid)) for table in fabric.entries.values() for dpid in fabric.switches)
    for first in range(0, arguments.count, arguments.at_a_time):
        count = min(arguments.at_a_time, arguments.count - first)
        (beside_joins if first // arguments.at_a_time % 2 else at_rest)(fabric, count, tally)
        fabric.advance(3.0)
    survey = summarise(tally.survey_ms)
    if arguments.json:
        kinds = {f"{app} {kind}": count for (app, kind), count in sorted(tally.kinds.items())}
        print_json({"entries": entries, "kinds": kinds, "counts": dict(tally.counts), "survey_ms": survey})
        return
    print(f"{entries} entries at {len(fabric.switches)} switches; {tally.kinds.total()} changed by hand:")
    rows = [[app, *(tally.kinds[app, kind] for kind in ("missing", "extra", "altered"))] for app in fabric.entries]
    print_table(("app", "missing", "extra", "altered"), rows)
    names = ("found", "mended by a join or leave before", "missed", "invented", "not cured", "receivers disturbed")
    print_table(("what became of them", "number"), [(name, tally.counts[name]) for name in names])
    for name in ("joins and leaves", "edits of repairs", "untouched groups", "packets to untouched groups"):
        print(f"{name}: {tally.counts[name]:,}")
    middle, most = f"{survey.median:.0f} ms", f"{survey.maximum:.0f}"
    print(f"a check of all switches, which are in the same process: {middle} of processor time, at most {most}")


if __name__ == "__main__":
    main()
