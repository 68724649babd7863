"""Scripts on a loop: counted, timed, refused beyond their share, and ended for what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controller.probes.live import (
    EXITED,
    FAULTS_IN_A_ROW,
    FAULTY,
    FULL_WINDOWS,
    OVER_BUDGET,
    WINDOW_NS,
    LoopBudget,
    LoopRun,
)
from controller.probes.points import ProbePoint
from controller.probes.script import load

from .conftest import CATALOGUE, Answer, Packet

PACKET = Packet(7, b"")


class Loop:
    """A loop whose time a test sets: each firing takes `cost_ns` of the processor."""

    def __init__(self, script: str, budget_pct: float = 5.0, cost_ns: int = 100, budget: LoopBudget | None = None):
        self.now_ns = 10 * WINDOW_NS
        self.cost_ns = cost_ns
        self.cpu_ns = 0
        self.budget = LoopBudget(budget_pct) if budget is None else budget
        compiled = load(script, CATALOGUE)
        self.run = LoopRun(compiled, lambda: self.now_ns, self._cpu, self.budget, 4096)
        self.at = self.run.watchers(compiled.points)
        self.run.begin()

    def _cpu(self) -> int:
        self.cpu_ns += self.cost_ns
        return self.cpu_ns

    def watcher(self, record: type = Packet, app: str = "app") -> Callable[[Any], None]:
        what = "event" if record is Packet else "effect"
        return self.at[ProbePoint(app, what, record)]

    @property
    def counted(self) -> tuple[int, int]:
        run = self.run.findings().run
        return run.fired, run.skipped


COUNT = "aggr n[1][0]; app:event:Packet { n[dpid]++; }"


def test_a_cheap_script_sees_all_that_happens():
    loop = Loop(COUNT)
    fire = loop.watcher()
    for _ in range(100_000):
        fire(PACKET)
        loop.now_ns += 10_000
    assert loop.counted == (100_000, 0)
    assert [row.count for row in loop.run.findings().run.rows("n")] == [100_000]


def test_what_is_beyond_the_share_is_refused_and_counted():
    loop = Loop(COUNT, cost_ns=1_000_000)  # a millisecond each, of five in a window
    fire = loop.watcher()
    for _ in range(10):
        for _ in range(1000):
            fire(PACKET)
        loop.now_ns += WINDOW_NS
    fired, skipped = loop.counted
    assert fired + skipped == 10_000 and 40 <= fired <= 60
    assert loop.run.findings().run.rows("n")[0].count == fired


def test_clauses_at_one_point_are_refused_and_counted_each():
    loop = Loop("aggr n[1][0]; app:event:Packet { n[dpid]++; } app:event:Packet { n[dpid]++; }", cost_ns=1_000_000)
    fire = loop.watcher()
    for _ in range(10):
        for _ in range(500):
            fire(PACKET)
        loop.now_ns += WINDOW_NS
    fired, skipped = loop.counted
    assert fired + skipped == 10_000 and 40 <= fired <= 60
    loop.run.end()
    fire(PACKET)
    assert loop.counted == (fired, skipped)


def test_scripts_on_a_loop_share_its_budget():
    budget = LoopBudget(8.0)
    budget.script_count = 2
    loop = Loop(COUNT, cost_ns=1_000_000, budget=budget)
    for _ in range(100):
        loop.watcher()(PACKET)
    assert loop.counted == (4, 96)


def test_one_long_firing_by_chance_does_not_count_for_the_others():
    loop = Loop(COUNT, cost_ns=300)
    fire = loop.watcher()
    for _ in range(64):
        fire(PACKET)
    loop.cost_ns = 1_000_000  # a collection of garbage in the one that is timed next
    fire(PACKET)
    loop.cost_ns = 300
    for _ in range(1000):
        fire(PACKET)
    assert loop.counted == (1065, 0)


def test_a_script_that_is_always_at_its_budget_ends():
    loop = Loop(COUNT, cost_ns=10_000_000)
    for _ in range(FULL_WINDOWS + 1):
        assert loop.run.ending == ""
        loop.watcher()(PACKET)
        loop.now_ns += WINDOW_NS
    assert loop.run.ending == OVER_BUDGET
    before = loop.counted
    loop.watcher()(PACKET)
    assert loop.counted == before


def test_a_script_that_rests_between_full_windows_goes_on():
    loop = Loop(COUNT, cost_ns=10_000_000)
    for _ in range(3 * FULL_WINDOWS):
        loop.watcher()(PACKET)
        loop.now_ns += 3 * WINDOW_NS
    assert loop.run.ending == ""


def test_faults_in_a_row_end_a_script_and_others_do_not():
    script = "int sometimes; app:event:Packet { sometimes = 1 / (dpid - 7); }"
    loop = Loop(script)
    for number in range(2 * FAULTS_IN_A_ROW):
        loop.watcher()(Packet(7 + (number % 500 == 499), b""))
    assert loop.run.ending == ""
    for _ in range(FAULTS_IN_A_ROW + 5):
        loop.watcher()(PACKET)
    assert loop.run.ending == FAULTY
    assert loop.run.findings().run.faults["division by zero"] == loop.counted[0] - 4


def test_exit_ends_it_and_the_end_is_done_once():
    loop = Loop('app:event:Packet { print("%d", dpid); exit(); } end { print("end"); }')
    for _ in range(200):
        loop.watcher()(PACKET)
    assert loop.run.ending == EXITED and loop.counted == (1, 0)
    loop.run.end()
    assert loop.run.findings().run.printed == ["7", "end"]


def test_sampling_and_several_clauses_at_a_point():
    loop = Loop("aggr a[0][0]; aggr b[0][0]; app:event:Packet sample 1/4 { a++; } *:event:Packet { b++; }")
    for _ in range(100):
        loop.watcher()(PACKET)
        loop.watcher(app="other")(PACKET)
    run = loop.run.findings().run
    assert (run.rows("a")[0].count, run.rows("b")[0].count, run.fired) == (25, 200, 225)


def test_of_several_clauses_at_a_point_one_that_fails_or_ends_leaves_the_figures_right():
    first, last = "app:event:Packet { a++; }", "app:event:Packet { b++; if (dpid == 9) { exit(); } }"
    fails = "app:event:Packet { c = 1 / (dpid - 8); c = 1 / (dpid - 9); }"
    loop = Loop(f"aggr a[0][0]; aggr b[0][0]; int c; {first} {fails} {last}")
    for _ in range(50):
        loop.watcher()(Packet(7, b""))
    for _ in range(50):
        loop.watcher()(Packet(8, b""))
    run = loop.run.findings().run
    counted = [run.rows(name)[0].count for name in "ab"]
    assert (counted, run.fired, dict(run.faults)) == ([100, 100], 300, {"division by zero": 50})
    loop = Loop(f"aggr a[0][0]; aggr b[0][0]; {last} {first}")
    for dpid in (*range(10, 40), 9, 10):
        loop.watcher()(Packet(dpid, b""))
    run = loop.run.findings().run
    counted = [run.rows(name)[0].count for name in "ab"]
    assert (counted, run.fired, loop.run.ending) == ([30, 31], 61, EXITED)


def test_times_and_names_are_those_of_the_point():
    loop = Loop('app:effect:Answer { print("%s %s %d %d", app, point, now_ns, time_s); }')
    loop.watcher(Answer)(Answer(1, 2))
    assert loop.run.findings().run.printed == ["app app:effect:Answer 1000000000 1"]


def test_lines_have_a_bound_for_each_second():
    loop = Loop('app:event:Packet { print("line"); }')
    for second in range(3):
        loop.now_ns = (second + 20) * 1_000_000_000
        for _ in range(1500):
            loop.watcher()(PACKET)
    run = loop.run.findings().run
    assert (len(run.lines), run.lost_lines) == (3000, 1500)


def test_what_is_decoded_for_a_point_takes_of_the_share_and_is_refused_with_it():
    loop = Loop(COUNT, cost_ns=1_000_000)  # a millisecond to decode, one to fire, of five in a window
    decoded: list[Any] = []

    def decode(record: Any, _core: Any) -> list[Any]:
        decoded.append(record)
        return [record, record]

    derive = loop.run.in_time(decode)
    for window in range(1, 11):
        for _ in range(1000):
            for each in derive(PACKET, None):
                loop.watcher()(each)
        assert len(decoded) <= 3 * window
        loop.now_ns += WINDOW_NS
    fired, skipped = loop.counted
    assert fired <= 2 * len(decoded) and fired + skipped == 10_000 + len(decoded)
    assert loop.run.findings().run.rows("n")[0].count == fired


def test_a_script_for_which_only_decoding_takes_its_time_ends():
    loop = Loop(COUNT, cost_ns=10_000_000)
    derive = loop.run.in_time(lambda _record, _core: ())
    for _ in range(FULL_WINDOWS + 1):
        assert loop.run.ending == ""
        assert derive(PACKET, None) == ()
        loop.now_ns += WINDOW_NS
    assert loop.run.ending == OVER_BUDGET
    before = loop.counted
    assert derive(PACKET, None) == () and loop.counted == before


def test_what_cannot_be_decoded_took_its_time_and_is_raised():
    loop = Loop(COUNT, cost_ns=10_000_000)

    def fail(_record: Any, _core: Any) -> list[Any]:
        raise ValueError("no")

    derive = loop.run.in_time(fail)
    with pytest.raises(ValueError, match="no"):
        derive(PACKET, None)
    assert derive(PACKET, None) == () and loop.counted == (0, 1)
