"""Flow tables too small for their groups: what misses by the controller's choice, and by others, on the same traces.

    python benchmarks/overcommit.py [--seeds 3] [--sensitivity] [--json]

LRU sees every packet, Belady's choice the future; a controller sees misses, and counters when it reads them. Belady's
choice may leave a group that misses outside, as the controller's may. With --sensitivity each constant of the
controller's choice is halved and doubled in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from measure import Measurement, report
from packet_traces import active_in_a_second, independent, sessions

from controller.overcommit import residence
from controller.simulation.table_choices import CHOICES
from controller.simulation.table_trace import Trace, TraceResult, run_trace

ANCHORS = ("lru", "random", "fifo", "belady")
CONSTANTS = (
    "READING_INTERVAL_S",
    "LEAST_READING_INTERVAL_S",
    "USED_UP",
    "WORTH_PART",
    "SECOND_PACKET_S",
    "RISE_WEIGHT",
    "RATE_MEMORY_S",
    "LEAST_RATE",
    "END_RATE",
    "ENDED_RATE",
    "LEAST_ADVANTAGE",
)


class Case(NamedTuple):
    """A trace, the table that it meets, and what is not counted of it."""

    name: str
    trace: Trace
    table: int
    warmup_s: float


def cases(seed: int) -> Iterator[Case]:
    """Yield the traces of a seed; tables of sessions have room for 1.3 times the groups active in a second."""
    for name, on_s, off_s in (("sessions of 30 s", 30, 300), ("sessions of 8 s", 8, 120)):
        silent = sessions(seed, 3000, on_s=on_s, off_s=off_s, duration_s=200)
        table = round(1.3 * active_in_a_second(silent, 50))
        yield Case(name, silent, table, 50)
        kept = sessions(seed, 3000, on_s=on_s, off_s=off_s, duration_s=200, keepalives=True)
        yield Case(f"{name}, keepalives", kept, table, 50)
    for packets, duration_s, table in ((400_000, 200, 250), (400_000, 200, 1000), (800_000, 100, 500)):
        name = f"Zipf 1.0, {packets // duration_s} packets/s, {table} of 5,000"
        yield Case(name, independent(seed, 5000, packets=packets, duration_s=duration_s), table, duration_s / 4)


def run(case: Case, policy: str) -> TraceResult:
    """Return what becomes of a trace by a choice."""
    choice = CHOICES[policy](case.trace, case.table, Random(1))
    return run_trace(case.trace, case.table, choice, warmup_s=case.warmup_s)


def compare(seeds: int) -> list[Measurement]:
    """Return how the controller and its anchors fare beside LRU, and the controller beside Belady's choice."""
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(1, seeds + 1):
        for case in cases(seed):
            results = {policy: run(case, policy) for policy in ("default", *ANCHORS)}
            lru, own = results["lru"], results["default"]
            for policy in ("default", *ANCHORS[1:]):
                name = f"{case.name}: misses, {policy} to lru"
                found.setdefault((name, "times"), []).append(results[policy].misses / lru.misses)
            figures = {
                "misses, default to belady": own.misses / results["belady"].misses,
                "swaps in, default to lru": own.swaps_in / lru.swaps_in,
            }
            for name, value in figures.items():
                found.setdefault((f"{case.name}: {name}", "times"), []).append(value)
            counted_s = case.trace.times_s[-1] - case.warmup_s
            found.setdefault((f"{case.name}: readings", "1/s"), []).append(own.readings / counted_s)
    return [Measurement(name, unit, samples) for (name, unit), samples in found.items()]


def sensitivity() -> list[Measurement]:
    """Return misses beside LRU with each constant halved, as it is, and doubled."""
    found = []
    for case in cases(1):
        lru = run(case, "lru").misses
        found.append(Measurement(f"{case.name}: as it is", "times", [run(case, "default").misses / lru]))
        for constant in CONSTANTS:
            value = getattr(residence, constant)
            for factor, said in ((0.5, "halved"), (2.0, "doubled")):
                setattr(residence, constant, value * factor)
                try:
                    ratio = run(case, "default").misses / lru
                finally:
                    setattr(residence, constant, value)
                found.append(Measurement(f"{case.name}: {constant} {said}", "times", [ratio]))
    return found


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sensitivity", action="store_true", help="halve and double each constant instead")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measurements = sensitivity() if args.sensitivity else compare(args.seeds)
    report(measurements, as_json=args.json, source="overcommit")


if __name__ == "__main__":
    main()
