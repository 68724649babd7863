"""What scripts cost joins in the multicast core of one process, some joins at a time with a script and without."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from math import sqrt
from statistics import median
from typing import Any

from measure import Measurement, tallied
from multicast_core import Bench, frames

from apps.openflow.app_watch import AppWatch
from apps.probe_points import recorded_points
from controller.config.probe_settings import Probes
from controller.events import PacketReceived
from controller.probes.live import LoopBudget, LoopRun
from controller.probes.script import load
from controller.wire.packets import RecordType

TURNS = 10
LOADS = 50
"""Scripts that come and go before joins are compared."""
AT_ONCE = 20
"""Joins of one core before it is the other's turn."""
JOINS_FIRST, JOINS_COUNTED = 100, 1280
"""Joins of which bytecodes are counted, and those before."""
JOIN_NS, LOOK_NS = 40_000, 100
"""What a join and a look at the clock take where bytecodes are counted: so little that no firing is refused."""
CHANGES = 30
"""How often it is each core's turn; the median counts, so that what befalls a few of them by chance does not."""

Clock = Callable[[], int]

COUNT = "aggr n[1][0]; multicast:event:PacketReceived when (in_port != 99) { n[dpid]++; }"
LATENCY = """aggr us[1][0]; bag at; multicast:event:PacketReceived { at[dpid] <- now_ns; }
multicast:effect:Audit { us[host.dpid] <- (now_ns - at[host.dpid]) / 1000; }"""
EIGHT = """aggr n[1][0]; aggr who[0][1]; aggr size[0][0]; aggr us[1][0]; bag at;
multicast:event:PacketReceived { at[dpid] <- now_ns; } multicast:event:PacketReceived { n[dpid]++; }
multicast:event:PacketReceived { size <- len(data); } multicast:event:PacketReceived { n[in_port]++; }
multicast:effect:Audit { us[host.dpid] <- now_ns - at[host.dpid]; } multicast:effect:Audit { who[role]++; }
multicast:effect:Audit { n[host.port_no]++; } multicast:effect:Audit { who[decision.rule]++; }"""
SCRIPTS: Mapping[str, tuple[str, int, float]] = {
    "one count": (COUNT, 1, 0.98),
    "a latency of two firings": (LATENCY, 2, 0.96),
    "8 firings": (EIGHT, 8, 0.92),
}
"""Scripts, how often they fire for a join, and the least ratio of joins with them to those without."""


class WatchedBench(Bench):
    """A core that joins groups which nobody was in before, and at which scripts may look."""

    takes_events = True

    def __init__(self) -> None:
        super().__init__()
        self._watch = AppWatch(self)
        self._groups = count(0, AT_ONCE)

    @contextmanager
    def watched(self, text: str, clocks: tuple[Clock, Clock] = (time.monotonic_ns, time.thread_time_ns)) -> Any:
        """Have a script look on, by a clock and one of processor time."""
        script = load(text, recorded_points())
        run = LoopRun(script, *clocks, LoopBudget(Probes().budget_pct), Probes().keys)
        watchers = run.watchers(script.points)
        ends = [self._watch.watch(point.what, point.record, watcher) for point, watcher in watchers.items()]
        yield run
        for end in ends:
            end()

    def reports(self) -> list[PacketReceived]:
        """Return reports of groups that nobody is in."""
        return [
            PacketReceived(1, 1, frame, False)
            for frame in frames(next(self._groups), AT_ONCE, 1, RecordType.CHANGE_TO_EXCLUDE)
        ]

    def join_us(self) -> float:
        """Return the processor time of a join, in microseconds."""
        events = self.reports()
        began_ns = time.thread_time_ns()
        for event in events:
            self.feed(event)
        return (time.thread_time_ns() - began_ns) / 1000 / AT_ONCE


def _ratio(one: WatchedBench, other: WatchedBench) -> float:
    """Return joins per second of one core, to those of another one."""
    took_us: dict[WatchedBench, list[float]] = {one: [], other: []}
    gc.collect()
    gc.disable()
    for number in range(CHANGES):
        for bench in (one, other) if number % 2 else (other, one):
            took_us[bench].append(bench.join_us())
    gc.enable()
    return median(took_us[other]) / median(took_us[one])


def joins_after_scripts() -> list[Measurement]:
    """Compare joins of a core at which scripts looked to those of others."""
    ratios, anchors = zip(*(_nothing() for _ in range(TURNS)), strict=True)
    return [
        Measurement(f"core: joins after {LOADS} scripts, to joins without any (goal 0.99)", "times", ratios),
        Measurement("core: anchor, two cores at which no script looked", "times", anchors),
    ]


def joins_in_core() -> list[Measurement]:
    """Compare joins with scripts to joins without."""
    found: list[Measurement] = []
    one, other = WatchedBench(), WatchedBench()
    for what, (script, firings, goal) in SCRIPTS.items():
        refused: list[float] = []
        watched = [
            sqrt(_turn(one, other, script, firings, refused) * _turn(other, one, script, firings, refused))
            for _ in range(TURNS)
        ]
        found.append(Measurement(f"core: joins with {what} to joins without (goal {goal})", "times", watched))
        found.append(Measurement(f"core: firings refused, {what}", "%", refused))
    return found


def bytecodes_in_core() -> list[Measurement]:
    """Count the bytecodes of joins with scripts, to which time passes as `JOIN_NS` and `LOOK_NS` say, and without.

    They are the same whatever else the machine does; functions written in C are not among them.
    """
    plain = _bytecodes(WatchedBench(), _Passing())
    found = [Measurement("bytecodes of a join", "", [plain])]
    for what, (script, firings, goal) in SCRIPTS.items():
        bench, passing = WatchedBench(), _Passing()
        with bench.watched(script, (passing.read, passing.read)) as run:
            watched = _bytecodes(bench, passing)
        kept = run.findings().run
        assert (kept.fired, kept.skipped) == (firings * (JOINS_FIRST + JOINS_COUNTED), 0), kept
        found.append(Measurement(f"bytecodes more with {what}", "", [watched - plain]))
        found.append(
            Measurement(f"by bytecodes: joins with {what} to joins without (goal {goal})", "times", [plain / watched])
        )
    return found


class _Passing:
    """Time, of which a look at the clock takes some."""

    def __init__(self) -> None:
        self.now_ns = 0

    def read(self) -> int:
        """Return the time."""
        self.now_ns += LOOK_NS
        return self.now_ns


def _bytecodes(bench: WatchedBench, passing: _Passing) -> float:
    """Return the bytecodes of a join, when some were done before."""
    first, events = (
        [event for _ in range(joins // AT_ONCE) for event in bench.reports()]
        for joins in (JOINS_FIRST, JOINS_COUNTED)
    )

    def join(events: Sequence[PacketReceived]) -> None:
        for event in events:
            passing.now_ns += JOIN_NS
            bench.feed(event)

    join(first)
    return tallied(lambda: join(events))[0] / JOINS_COUNTED


def _nothing() -> tuple[float, float]:
    """Return the ratio of joins after scripts to joins without any, and that of two cores without any.

    Cores that are made one after the other differ by themselves, so each is made before the other, and after it.
    """
    ratios, anchors = [], []
    for is_first in (True, False):
        cores = [WatchedBench() for _ in range(3)]
        used, plain, again = cores if is_first else cores[::-1]
        for _ in range(LOADS):
            with used.watched(COUNT):
                used.join_us()
        for bench in (plain, again):
            for _ in range(LOADS):
                bench.join_us()
        ratios.append(_ratio(used, plain))
        anchors.append(_ratio(again, plain))
    return sqrt(ratios[0] * ratios[1]), sqrt(anchors[0] * anchors[1])


def _turn(watched: WatchedBench, plain: WatchedBench, script: str, firings: int, refused: list[float]) -> float:
    with watched.watched(script) as run:
        ratio = _ratio(watched, plain)
    kept = run.findings().run
    happened = firings * CHANGES * AT_ONCE
    assert (kept.fired + kept.skipped, dict(kept.faults)) == (happened, {}), kept
    refused.append(100 * kept.skipped / happened)
    return ratio
