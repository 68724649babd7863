"""Flow tables too small for their groups: what misses by the controller's choice, and by others, on the same traces.

    python benchmarks/overcommit.py [--seeds 3] [--sensitivity | --fabric] [--json]

LRU sees every packet, Belady's choice the future; a controller sees misses, and counters when it reads them. Belady's
choice may leave a group that misses outside, as the controller's may. With --sensitivity each constant of the
controller's choice is halved and doubled in turn. With --fabric whole trees meet the tables of a fabric: 10,000
groups over portland-p6, each table with a quarter of the entries that the fullest switch needs; LRU has, at each full
switch there, the group leave whose last packet is longest ago.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from measure import Measurement, report
from packet_traces import active_in_a_second, independent

from controller.overcommit import residence
from controller.overcommit.tables import GroupTables
from controller.simulation.data_centre import DataCentre
from controller.simulation.fabric_tables import WholeTrees, entries_of_groups, fullest_need, run_fabric_trace
from controller.simulation.placement import connected, place_trees
from controller.simulation.sessions import sessions
from controller.simulation.table_choices import CHOICES
from controller.simulation.table_trace import Trace, TraceResult, run_trace
from controller.simulation.trees import TreeLinks
from controller.simulation.workload import Workload, generate
from topology.generators import make

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
        silent = sessions(Random(seed), 3000, on_s=on_s, off_s=off_s, duration_s=200)
        table = round(1.3 * active_in_a_second(silent, 50))
        yield Case(name, silent, table, 50)
        kept = sessions(Random(seed), 3000, on_s=on_s, off_s=off_s, duration_s=200, keepalives=True)
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


class FabricLru:
    """Has the group leave, at each full switch, whose last packet is longest ago."""

    readings = 0

    def __init__(self, table: int, entries: list[dict[int, int]]) -> None:
        self._table = table
        self._entries = entries
        self._inside: set[int] = set()
        self._order: dict[int, OrderedDict[int, None]] = {}

    def __contains__(self, group: int) -> bool:
        return group in self._inside

    def hit(self, group: int) -> None:
        """Note a packet."""
        for at in self._entries[group]:
            self._order[at].move_to_end(group)

    def missed(self, group: int, now_s: float) -> bool:
        """Take the group in."""
        return True

    def find_leaving(self, group: int, now_s: float) -> list[int]:
        """Return the groups whose last packet at a full switch is longest ago."""
        leaving: dict[int, None] = {}
        for at in self._entries[group]:
            order = self._order.setdefault(at, OrderedDict())
            if len(order) >= self._table and leaving.keys().isdisjoint(order):
                leaving[next(iter(order))] = None
        return list(leaving)

    def came_in(self, group: int, now_s: float) -> None:
        """Note that a group is in."""
        self._inside.add(group)
        for at in self._entries[group]:
            self._order.setdefault(at, OrderedDict())[group] = None

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        self._inside.remove(group)
        for at in self._entries[group]:
            del self._order[at][group]

    def due(self, now_s: float) -> tuple[int, ...]:
        """Have nobody leave ahead of need."""
        return ()


def fabric(seeds: int) -> list[Measurement]:
    """Return how whole trees fare at tables of a quarter of the fullest need, by the controller's choice and LRU."""
    centre = DataCentre(make("portland-p6"))
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(1, seeds + 1):
        groups, _ = connected(centre, generate(centre, Workload(groups=10_000), seed))
        links: list[TreeLinks] = []
        place_trees(centre, groups, seed=seed, links=links)
        entries = entries_of_groups(centre, groups, links)
        table = int(fullest_need(entries, len(centre.switches)).max()) // 4
        for off_s in (150.0, 120.0, 90.0):
            trace = sessions(Random(seed), len(groups), on_s=30, off_s=off_s, duration_s=120)
            tables: GroupTables[int] = GroupTables(Random(seed), 1 << 20)
            for number in range(len(centre.switches)):
                tables.set_capacity(number, table)
            own = run_fabric_trace(trace, WholeTrees(tables, entries), warmup_s=30)
            lru = run_fabric_trace(trace, FabricLru(table, entries), warmup_s=30)
            figures = {
                ("victims of a group that needs some, controller", ""): own.victims / max(1, own.needing),
                ("victims of a group that needs some, LRU", ""): lru.victims / max(1, lru.needing),
                ("misses of groups that were turned away", "%"): 100 * own.turned_away / own.misses,
                ("groups that came in where a table was full, controller to LRU", "times"): own.needing / lru.needing,
                ("misses, controller to LRU", "times"): own.misses / lru.misses,
            }
            for (name, unit), value in figures.items():
                name = f"30 s of {30 + off_s:.0f} s: {name}"
                found.setdefault((name, unit), []).append(value)
    return [Measurement(name, unit, samples) for (name, unit), samples in found.items()]


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sensitivity", action="store_true", help="halve and double each constant instead")
    what.add_argument("--fabric", action="store_true", help="whole trees over a fabric instead")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.fabric:
        measurements = fabric(args.seeds)
    else:
        measurements = sensitivity() if args.sensitivity else compare(args.seeds)
    report(measurements, as_json=args.json, source="overcommit")


if __name__ == "__main__":
    main()
