"""How monitors divide switches, and what becomes of a share when its monitor ends, by simulated histories.

    python benchmarks/cluster_shares.py [--seeds 100] [--first 1] [--switches 1000] [--monitors 10]
        [--size small|large] [--json]

Monitors are the real ones as far as shares go (`controller.cluster.shares`), so is the timetable of their polls; the
store is the twin in memory. One large fabric first: its division, the death of a monitor, a monitor that comes back,
one that is drained. Then fabrics by seed, of four monitors and 40 switches or as large (`--size`), in which processes
are killed, stopped, cut off from the store and from switches, while the store is silent, stands still, loses requests
and replies, and is emptied.

A history ends with an AssertionError that names its seed where a switch was polled twice though the store had
answered both; where it had no monitor for two intervals in which the store answered; where it was not polled for two
intervals, beside the time in which the store gave a monitor no answer and, for each fault but the first in that time,
the time after which a monitor is taken for gone; and where in the end switches have no monitor or more than one.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import Counter, defaultdict
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from measure import Measurement, report
from simulated_monitors import INTERVAL_S, LEASE_S, MonitoredFabric, MonitorNode, counted_rows

from controller.cluster.draining import DrainRefused
from controller.cluster.memory_engine import RequestFault
from controller.cluster.shares import STEADY_S

PORTS = 158_016
SIZES = {"small": (4, 40), "large": (10, 1000)}
"""Monitors and switches of a history."""

FAULTS_FROM_S, FAULTS_UNTIL_S = 15.0, 90.0
LOOK_S = 0.1
FAULT_S = 6.0
LONGEST_FAULT_S = 8.0
SETTLE_S = 40.0
PATIENCE_S = 20.0


def ports_of(switches: int, ports: int, seed: int) -> dict[int, int]:
    """Return switches of different sizes that have so many ports together."""
    chance = random.Random(seed)
    sizes = [chance.choice((24, 48, 48, 96, 192, 384, 384)) for _ in range(switches)]
    scaled = [max(1, size * ports // sum(sizes)) for size in sizes]
    scaled[0] += ports - sum(scaled)
    return dict(enumerate(scaled, 1))


def owners(world: MonitoredFabric) -> dict[int, str]:
    """Return who polls which switch."""
    return {dpid: name for name, epochs in world.shares().items() for dpid in epochs}


def calm(switches: int, monitors: int, ports: int, seed: int = 1) -> list[Measurement]:
    """Return how a fabric is divided, and what moves when monitors come and go."""
    world = MonitoredFabric(seed, monitors, ports_of(switches, ports, seed))
    begun_s = time.process_time()
    world.run(PATIENCE_S, world.is_divided)
    assert world.is_divided()
    found = [
        Measurement("first division: after", "s", [world.now]),
        Measurement("first division: load of a monitor to the mean", "", [*world.load().values()]),
    ]
    world.run(world.now + 2 * INTERVAL_S)
    former, dead = owners(world), max(world.monitors.values(), key=lambda node: len(node.epochs))
    its_own = set(dead.epochs)
    dead.kill()
    killed_s = world.now
    world.run(killed_s + PATIENCE_S, world.is_divided)
    moved = {dpid for dpid, owner in owners(world).items() if former[dpid] != owner}
    found += [
        Measurement("a monitor was killed: its switches", "", [len(its_own)]),
        Measurement("a monitor was killed: other switches that moved", "", [len(moved - its_own)]),
        Measurement("a monitor was killed: load of a monitor to the mean", "", [*world.load().values()]),
    ]
    world.run(killed_s + 2 * INTERVAL_S)
    gaps_s = []
    for dpid in its_own:
        before_s = max(row.at_s for row in world.rows[dpid] if row.at_s <= killed_s)
        gaps_s.append(min(row.at_s for row in world.rows[dpid] if row.at_s > killed_s) - before_s)
    found.append(Measurement("a monitor was killed: its switches not polled for", "intervals", _intervals(gaps_s)))
    for what, action in (("came back", dead.start), ("was drained", lambda: world.drain(dead.name))):
        former = owners(world)
        action()
        world.run(world.now + 3 * INTERVAL_S)
        assert world.is_divided()
        changed = sum(former[dpid] != owner for dpid, owner in owners(world).items())
        load = [value for name, value in world.load().items() if what == "came back" or name != dead.name]
        mean = sum(load) / len(load)
        found += [
            Measurement(f"a monitor {what}: switches that moved", "", [changed]),
            Measurement(f"a monitor {what}: load of the others to the mean", "", [value / mean for value in load]),
        ]
    gaps_s, dropped = [], 0
    for rows in world.rows.values():
        counted, twice = counted_rows(rows)
        dropped += len(twice)
        gaps_s += [later.at_s - row.at_s for row, later in itertools.pairwise(counted)]
    assert not dropped
    found += [
        Measurement("time between two polls of a switch", "intervals", _intervals(gaps_s)),
        Measurement(
            "processor time for a second of the fabric", "ms", [(time.process_time() - begun_s) / world.now * 1e3]
        ),
    ]
    return found


def _intervals(gaps_s: list[float]) -> list[float]:
    return [gap_s / INTERVAL_S for gap_s in gaps_s]


class History(MonitoredFabric):
    """A fabric in which things go wrong."""

    def __init__(self, seed: int, monitors: int = 4, switches: int = 40) -> None:
        super().__init__(seed, monitors, ports_of(switches, 48 * switches, seed))
        self.faults: Counter[str] = Counter()
        self.silent: list[tuple[float, float]] = []
        self.faults_s: list[float] = []
        self.unowned_since_s: dict[int, float] = {}
        self.unowned: list[tuple[float, float]] = []
        self.later(FAULTS_FROM_S, self.begin_fault)
        self.later(FAULTS_FROM_S, self.look_for_owners)

    def look_for_owners(self) -> None:
        """Take note of the times in which a switch has no monitor that lives, is connected to it, and may poll it."""
        owned = {
            dpid
            for node in self.monitors.values()
            if node.is_up and not node.is_stopped and self.now < node.until_s
            for dpid in node.epochs.keys() & node.connected
        }
        for dpid in self.ports:
            if dpid not in owned:
                self.unowned_since_s.setdefault(dpid, self.now)
            elif dpid in self.unowned_since_s:
                self.unowned.append((self.unowned_since_s.pop(dpid), self.now))
        self.later(LOOK_S, self.look_for_owners)

    def silent_s(self, from_s: float, until_s: float) -> float:
        """Return for how long the store gave some monitor no answer."""
        ends_s = from_s
        total_s = 0.0
        for begin_s, end_s in sorted(self.silent):
            total_s += max(0.0, min(until_s, end_s) - max(ends_s, begin_s))
            ends_s = max(ends_s, min(until_s, end_s))
        return total_s

    def begin_fault(self) -> None:
        """Have something go wrong for a while, and the next thing some time later."""
        if self.now >= FAULTS_UNTIL_S:
            return
        kinds = (
            *(self.fault_kill, self.fault_kill, self.fault_stop, self.fault_stop, self.fault_store_cut),
            *(self.fault_switch_cut, self.fault_store_silent, self.fault_store_stands_still),
            *(self.fault_store_loses, self.fault_drain),
        )
        kind = self.fault_store_emptied if self.chance.random() < 0.04 else self.chance.choice(kinds)
        node = self.chance.choice([*self.monitors.values()])
        others = sum(each.is_up and not each.is_stopped for each in self.monitors.values()) - 1
        if node.is_up and not node.is_stopped and others >= 2:
            self.faults[kind.__name__.removeprefix("fault_")] += 1
            self.faults_s.append(self.now)
            kind(node, min(self.chance.uniform(0.2, LONGEST_FAULT_S), FAULTS_UNTIL_S - self.now))
        self.later(self.chance.expovariate(1 / FAULT_S), self.begin_fault)

    def fault_kill(self, node: MonitorNode, for_s: float) -> None:
        node.kill()
        self.later(for_s, node.start)

    def fault_stop(self, node: MonitorNode, for_s: float) -> None:
        node.is_stopped = True
        run = node.run
        self.later(for_s, lambda: node.resume() if node.run == run and node.is_up else None)

    def fault_store_cut(self, node: MonitorNode, for_s: float) -> None:
        node.engine.fault = self.chance.choice((RequestFault.REQUEST_LOST, RequestFault.REPLY_LOST))
        self.silent.append((self.now, self.now + for_s))
        self.later(for_s, lambda: setattr(node.engine, "fault", None))

    def fault_switch_cut(self, node: MonitorNode, for_s: float) -> None:
        if node.connected:
            node.lose(self.chance.choice(sorted(node.connected)), for_s)

    def fault_store_silent(self, _node: MonitorNode, for_s: float) -> None:
        self.store.advance(self.now)
        self.store.be_silent(for_s)
        self.silent.append((self.now, self.now + for_s))

    def fault_store_stands_still(self, _node: MonitorNode, for_s: float) -> None:
        self.store.advance(self.now)
        self.store.stand_still(for_s)
        self.silent.append((self.now, self.now + for_s))

    def fault_store_loses(self, _node: MonitorNode, for_s: float) -> None:
        self.loss = self.chance.uniform(0.05, 0.4)
        self.silent.append((self.now, self.now + for_s))
        self.later(for_s, lambda: setattr(self, "loss", 0.0))

    def fault_store_emptied(self, _node: MonitorNode, _for_s: float) -> None:
        self.store.empty()

    def fault_drain(self, node: MonitorNode, for_s: float) -> None:
        with suppress(DrainRefused):
            self.drain(node.name)
            self.later(for_s, partial(self.undrain_there, node.name))

    def undrain_there(self, name: str) -> None:
        """Have a monitor take its part again, if it is there."""
        with suppress(DrainRefused):
            self.undrain(name)

    def bound_s(self, from_s: float, until_s: float) -> float:
        """Return how long a switch may not be polled, by what went wrong meanwhile."""
        silent_s = sum(max(0.0, min(until_s, end_s) - max(from_s, begin_s)) for begin_s, end_s in self.silent)
        further = sum(from_s <= at_s <= until_s for at_s in self.faults_s) - 1
        return 2 * INTERVAL_S + silent_s + max(further, 0) * (LEASE_S + STEADY_S)


class Outcome(NamedTuple):
    """What came of a history; times are in intervals.

    `gaps` are the times between two polls of a switch, `unowned` those in which one had no monitor;
    `gaps_answered` and `unowned_answered` are both without the time in which the store gave some monitor no answer.
    `dropped` is how many rows do not count.
    """

    world: History
    gaps: list[float]
    gaps_answered: list[float]
    unowned: list[float]
    unowned_answered: list[float]
    dropped: int


def history(seed: int, monitors: int = 4, switches: int = 40) -> Outcome:
    """Return a fabric after a history."""
    world = History(seed, monitors, switches)
    world.run(FAULTS_UNTIL_S + SETTLE_S)
    assert world.is_divided(), (seed, "not divided", world.shares())
    gaps, gaps_answered, dropped = [], [], 0
    for dpid, rows in world.rows.items():
        counted, twice = counted_rows(rows)
        dropped += len(twice)
        unexpected = [row for row in twice if row.is_heard]
        assert not unexpected, (seed, dpid, "polled twice", unexpected[0])
        for row, later in itertools.pairwise(counted):
            gap_s = later.at_s - row.at_s
            assert gap_s <= world.bound_s(row.at_s, later.at_s), (
                seed,
                dpid,
                f"not polled for {gap_s:.1f} s",
                row,
                later,
            )
            gaps.append(gap_s)
            gaps_answered.append(gap_s - world.silent_s(row.at_s, later.at_s))
        assert rows[-1].at_s > world.now - 2 * INTERVAL_S, (seed, dpid, "not polled in the end")
    unowned = [until_s - from_s for from_s, until_s in world.unowned]
    answered = [until_s - from_s - world.silent_s(from_s, until_s) for from_s, until_s in world.unowned]
    longest_s = max(answered, default=0.0)
    assert longest_s <= 2 * INTERVAL_S, (seed, f"a switch had no monitor for {longest_s:.1f} s")
    gaps, gaps_answered = _intervals(gaps), _intervals(gaps_answered)
    return Outcome(world, gaps, gaps_answered, _intervals(unowned), _intervals(answered), dropped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--switches", type=int, default=1000)
    parser.add_argument("--monitors", type=int, default=10)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measurements = calm(args.switches, args.monitors, PORTS * args.switches // 1000)
    faults, dropped, rows = Counter[str](), [], 0
    times: defaultdict[str, list[float]] = defaultdict(list)
    for seed in range(args.first, args.first + args.seeds):
        found = history(seed, *SIZES[args.size])
        faults += found.world.faults
        times["time between two polls of a switch"] += found.gaps
        times["time between two polls, in which the store answered"] += found.gaps_answered
        times["time in which a switch had no monitor"] += found.unowned
        times["time without a monitor, in which the store answered"] += found.unowned_answered
        dropped.append(found.dropped)
        rows += sum(map(len, found.world.rows.values()))
    if args.seeds:
        for what, intervals in times.items():
            above = sum(each > 2 for each in intervals)
            measurements += [
                Measurement(f"histories: {what}", "intervals", intervals),
                Measurement("histories: of these above 2 intervals", "", [above]),
            ]
        measurements += [
            Measurement("histories: rows", "", [rows]),
            Measurement("histories: rows of a history that two monitors had", "", dropped),
        ]
    measurements += [Measurement(f"fault: {name}", "", [count]) for name, count in sorted(faults.items())]
    report(measurements, as_json=args.json, source="cluster_shares")


if __name__ == "__main__":
    main()
