"""How many edits at once: windows side by side, and a switch that is programmed anew while hosts join.

    python benchmarks/edit_windows.py [windows|programming] [--seeds 5] [--json]

Everything runs in virtual time: figures do not depend on the machine. `windows` programs switches of several kinds
without end; their rate falls to a fifth after half of the time. `programming` has an `Installer` bring an empty
switch to its entries while a host joins every 0.1 s. "Before" is a fixed window of 512 edits and one lane.
"""

from __future__ import annotations

import argparse
from statistics import mean
from typing import Any

from measure import percentile, print_json, print_table
from slow_switch import KINDS, Kind, Outcome, Programmed, Programming, keep_busy

from controller.config.edit_settings import WINDOW_POLICIES, Edits

PROGRAMMED = (
    (Kind("1,000 edits/s", 0.005, 1000), 3000),
    (Kind("200 edits/s", 0.005, 200), 2000),
    (Kind("60 edits/s", 0.005, 60), 600),
    (Kind("1,000 edits/s, holds 256", 0.005, 1000, holds=256), 3000),
    (Kind("5,000 edits/s, holds 256, far away", 0.02, 5000, holds=256), 3000),
    (Kind("20,000 edits/s", 0.001, 20000), 5000),
)
BEFORE = Edits(window="fixed", at_once=512)


def windows(seeds: int) -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        for policy in WINDOW_POLICIES:
            outcomes = [keep_busy(kind, Edits(window=policy), seed=seed) for seed in range(1, seeds + 1)]
            rows.append({"switch": kind.name, "window": policy, **_mean(outcomes)})
    return rows


def _mean(outcomes: list[Outcome]) -> dict[str, float]:
    return {
        "share_pct": 100 * mean(outcome.share for outcome in outcomes),
        "mean_wait_ms": 1000 * mean(outcome.mean_wait_s for outcome in outcomes),
        "worst_wait_ms": 1000 * max(outcome.worst_wait_s for outcome in outcomes),
        "connections_lost": mean(outcome.connections_lost for outcome in outcomes),
    }


def programming(seeds: int) -> list[dict[str, Any]]:
    rows = []
    for kind, entries in PROGRAMMED:
        for name, edits, lanes in (("before", BEFORE, False), ("after", Edits(), True)):
            runs: list[Programming | None] = []
            for seed in range(1, seeds + 1):
                try:
                    runs.append(Programmed(kind, entries, edits, lanes, seed=seed).run())
                except RuntimeError:
                    runs.append(None)
            done = [run for run in runs if run is not None]
            rows.append({"switch": kind.name, "entries": entries, "": name, **_programming(done)})
    return rows


def _programming(runs: list[Programming]) -> dict[str, object]:
    if not runs:
        return dict.fromkeys(("join_median_s", "join_worst_s", "whole_s", "of_least", "lost", "readings"), "never")
    waits = [wait_s for run in runs for wait_s in run.join_waits_s]
    return {
        "join_median_s": percentile(waits, 50),
        "join_worst_s": max(waits),
        "whole_s": mean(run.whole_s for run in runs),
        "of_least": mean(run.whole for run in runs),
        "lost": mean(run.connections_lost for run in runs),
        "readings": mean(run.readings for run in runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="How many edits at once.")
    parser.add_argument("part", nargs="?", choices=("windows", "programming"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    parts = {"windows": windows, "programming": programming}
    tables = {name: part(arguments.seeds) for name, part in parts.items() if arguments.part in (None, name)}
    if arguments.json:
        print_json({"benchmark": "edit_windows", **tables})
        return
    for table in tables.values():
        print_table(tuple(table[0]), [tuple(row.values()) for row in table])
        print()


if __name__ == "__main__":
    main()
