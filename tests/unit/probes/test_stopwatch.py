"""What is short is timed by the clock that is quick to read, and what may be long by the processor time."""

from __future__ import annotations

import pytest

from controller.probes.live import WINDOW_NS, LoopBudget, LoopRun
from controller.probes.script import load
from controller.probes.stopwatch import LONG_NS, Stopwatch

from .conftest import CATALOGUE, Packet


class Thread:
    """A thread that runs and waits as a test says; it counts how often its processor time is looked at."""

    def __init__(self) -> None:
        self.now_ns = self.cpu_ns = 5 * WINDOW_NS
        self.looks = 0

    def run(self, ns: int) -> None:
        self.now_ns += ns
        self.cpu_ns += ns

    def clock(self) -> int:
        return self.now_ns

    def cpu_clock(self) -> int:
        self.looks += 1
        self.run(700)
        return self.cpu_ns


def timed(stopwatch: Stopwatch, thread: Thread, run_ns: int, wait_ns: int = 0) -> int:
    stopwatch.begin()
    thread.run(run_ns)
    thread.now_ns += wait_ns
    return stopwatch.took_ns()


@pytest.fixture
def thread() -> Thread:
    return Thread()


@pytest.fixture
def stopwatch(thread: Thread) -> Stopwatch:
    return Stopwatch(thread.clock, thread.cpu_clock, 700)


def test_what_is_short_costs_no_look_at_the_processor_time_but_for_the_first(stopwatch: Stopwatch, thread: Thread):
    assert [timed(stopwatch, thread, run_ns) for run_ns in (300, 500, 0, LONG_NS)] == [300, 500, 1, LONG_NS]
    assert thread.looks == 2


def test_what_is_long_is_timed_to_the_nanosecond_from_the_second_on(stopwatch: Stopwatch, thread: Thread):
    assert timed(stopwatch, thread, 3 * LONG_NS, wait_ns=10**9) == 3 * LONG_NS  # the first of all, too
    assert timed(stopwatch, thread, 5 * LONG_NS, wait_ns=10**9) == 5 * LONG_NS
    assert [timed(stopwatch, thread, run_ns) for run_ns in (300, 4 * LONG_NS)] == [300, LONG_NS]
    assert timed(stopwatch, thread, 4 * LONG_NS) == 4 * LONG_NS


def test_who_waited_is_not_taken_to_have_run_so_long(stopwatch: Stopwatch, thread: Thread):
    timed(stopwatch, thread, 300)
    assert timed(stopwatch, thread, 300, wait_ns=10**9) == LONG_NS
    assert timed(stopwatch, thread, 300, wait_ns=10**9) == 300


def test_a_thread_that_often_waits_loses_no_firing(thread: Thread):
    script = load("aggr n[1][0]; app:event:Packet { n[dpid]++; }", CATALOGUE)
    run = LoopRun(script, thread.clock, thread.cpu_clock, LoopBudget(5.0), 4096, 700)
    (fire,) = run.watchers(script.points).values()

    class Slow:
        @property
        def dpid(self) -> int:
            thread.run(300)
            thread.now_ns += 5_000_000  # all of the share in a window, if it had run
            return 7

    for _ in range(1000):
        fire(Slow())
        fire(Packet(7, b""))
    kept = run.findings().run
    assert (kept.fired, kept.skipped, kept.rows("n")[0].count) == (2000, 0, 2000)


def test_a_script_that_becomes_slow_is_kept_to_its_share(thread: Thread):
    script = load("aggr n[1][0]; app:event:Packet { n[dpid]++; }", CATALOGUE)
    run = LoopRun(script, thread.clock, thread.cpu_clock, LoopBudget(5.0), 4096, 700)
    (fire,) = run.watchers(script.points).values()
    for _ in range(65):
        fire(Packet(7, b""))
    thread.now_ns += WINDOW_NS

    class Slow:
        @property
        def dpid(self) -> int:
            thread.run(1_000_000)
            return 7

    before = run.findings().run.fired
    for _ in range(63):  # granted before
        fire(Packet(7, b""))
    for _ in range(100):
        fire(Slow())
    kept = run.findings().run
    assert kept.fired + kept.skipped == 65 + 63 + 100
    assert kept.fired - before - 63 <= 7
