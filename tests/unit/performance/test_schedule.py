"""The timetable of polls: who is asked when, and what answers count."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.performance import schedule as module
from controller.performance.schedule import (
    PollSettings,
    ReplyVerdict,
    Request,
    Schedule,
    StatKind,
    next_due,
    phase,
)
from topology.graph import NodeKind

TAG = 0x04


class Bench:
    """A schedule under a clock of its own; `silent` switches answer nothing, others `delay_s` later."""

    def __init__(self, count: int = 0, silent: tuple[int, ...] = (), delay_s: float = 0.0, **settings: Any) -> None:
        self.now = 0.0
        self.schedule = Schedule(PollSettings(**settings), TAG)
        self.silent = set(silent)
        self.delay_s = delay_s
        self.sent: list[tuple[float, Request]] = []
        self.most = 0
        self._answers: list[tuple[float, Request]] = []
        for dpid in range(1, count + 1):
            self.schedule.connected(dpid, 4, self.now)

    def run(self, until_s: float) -> None:
        """Let time pass, answering what is asked."""
        while True:
            deadline = self.schedule.next_deadline()
            times = [self._answers[0][0]] if self._answers else []
            times += [] if deadline is None else [deadline]
            if not times or min(times) > until_s:
                self.now = until_s
                return
            self.now = max(self.now, min(times))
            if self._answers and self._answers[0][0] <= self.now:
                _, request = self._answers.pop(0)
                self.schedule.replied(request.dpid, request.xid, request.kind, False, self.now)
                self._took(self.schedule.send(self.now))
            else:
                self._took(self.schedule.on_deadline(self.now))

    def _took(self, requests: list[Request]) -> None:
        for request in requests:
            self.sent.append((self.now, request))
            if request.dpid not in self.silent:
                self._answers.append((self.now + self.delay_s, request))
        self.most = max(self.most, self.schedule.outstanding)

    def times(self, dpid: int) -> list[float]:
        return [at_s for at_s, request in self.sent if request.dpid == dpid]


def test_each_switch_is_polled_once_per_interval():
    bench = Bench(20, interval_s=10)
    bench.run(100.0)
    for dpid in range(1, 21):
        times = bench.times(dpid)
        assert len(times) == 10
        assert [b - a for a, b in pairwise(times)] == pytest.approx([10.0] * 9)


def test_polls_are_spread_over_the_interval():
    bench = Bench(1000, interval_s=10)
    bench.run(10.0)
    per_tenth = [0] * 10
    for at_s, _ in bench.sent:
        per_tenth[int(at_s) % 10] += 1
    assert sum(per_tenth) == 1000
    assert max(per_tenth) <= 110
    assert min(per_tenth) >= 90


def test_a_switch_keeps_its_place_whoever_else_is_there():
    alone, crowd = Bench(interval_s=7), Bench(300, interval_s=7)
    alone.schedule.connected(42, 4, 0.0)
    alone.run(70.0)
    crowd.run(70.0)
    assert alone.times(42) == pytest.approx(crowd.times(42))


@given(st.integers(0, 2**64 - 1), st.integers(1, 65535), st.floats(0, 1e9))
def test_the_next_poll_is_within_one_interval(dpid: int, interval_s: int, now: float):
    due_s = next_due(dpid, interval_s, now)
    assert now < due_s <= now + interval_s * (1 + 1e-6) + 1e-6
    assert 0 <= phase(dpid) < 1


def test_each_class_has_its_interval():
    bench = Bench(3, interval_s=30, class_interval_s={NodeKind.TOR: 5, NodeKind.CORE: 10})
    bench.schedule.classify(1, NodeKind.TOR, 0.0)
    bench.schedule.classify(2, NodeKind.CORE, 0.0)
    bench.run(60.0)
    assert [len(bench.times(dpid)) for dpid in (1, 2, 3)] == [12, 6, 2]


def test_at_most_so_many_requests_wait_for_an_answer():
    bench = Bench(500, delay_s=0.5, interval_s=10, outstanding=16)
    bench.run(10.0)
    assert bench.most == 16
    bench.schedule.configure(bench.schedule.settings._replace(outstanding=64), bench.now)
    bench.most = 0
    bench.run(40.0)
    assert 16 < bench.most <= 64
    assert bench.schedule.waiting == 0


def test_a_silent_switch_times_out_alone_and_is_down():
    bench = Bench(50, silent=(7,), delay_s=0.01, interval_s=5, timeout_s=2.0)
    bench.run(50.0)
    switches = bench.schedule.switches
    assert not switches[7].up
    assert switches[7].timeouts >= 9
    assert all(switches[dpid].up for dpid in switches if dpid != 7)
    assert bench.schedule.counters["requests-timed-out"] == switches[7].timeouts
    assert all(len(bench.times(dpid)) == 10 for dpid in switches if dpid != 7)


def test_silent_switches_hold_up_nobody():
    """More silent switches than requests may be outstanding: the others are asked in time after the first round."""
    quiet = tuple(range(1, 201))
    bench = Bench(220, silent=quiet, delay_s=0.01, interval_s=10, outstanding=64, timeout_s=2.0)
    bench.run(30.0)
    bench.sent.clear()
    bench.run(60.0)
    for dpid in range(201, 221):
        places = [at_s - next_due(dpid, 10, at_s - 5.0) for at_s in bench.times(dpid)]
        assert len(places) == 3
        assert max(abs(late_s) for late_s in places) < 1e-6
    assert bench.most <= 64


def test_a_switch_that_answers_again_is_up():
    bench = Bench(2, silent=(1,), interval_s=5)
    bench.run(20.0)
    assert not bench.schedule.switches[1].up
    bench.silent.clear()
    bench.run(30.0)
    assert bench.schedule.switches[1].up
    bench.sent.clear()
    bench.run(50.0)
    assert len(bench.times(1)) == 4


def test_a_sweep_that_overlaps_the_next_is_skipped_and_counted():
    bench = Bench(1, delay_s=2.5, interval_s=1, timeout_s=10.0)
    bench.run(20.0)
    switch = bench.schedule.switches[1]
    assert switch.skipped == bench.schedule.counters["sweeps-skipped"] >= 10
    assert len(bench.sent) + switch.skipped == 20
    assert bench.most == 1


def test_sweeps_that_came_due_while_nobody_looked_are_counted():
    bench = Bench(1, interval_s=1)
    assert len(bench.schedule.on_deadline(10.0)) == 1
    assert bench.schedule.switches[1].skipped == 9


def test_all_kinds_are_asked_ports_first_and_only_what_the_version_has():
    bench = Bench(interval_s=10, kinds=frozenset(StatKind))
    bench.schedule.connected(1, 4, 0.0)
    bench.schedule.connected(2, 1, 0.0)
    bench.run(10.0)
    asked = {dpid: [r.kind for _, r in bench.sent if r.dpid == dpid] for dpid in (1, 2)}
    assert asked[1] == [StatKind.PORT, StatKind.FLOW, StatKind.TABLE, StatKind.QUEUE, StatKind.GROUP, StatKind.METER]
    assert asked[2] == [StatKind.PORT, StatKind.FLOW, StatKind.TABLE, StatKind.QUEUE]


def test_a_kind_that_a_switch_refuses_is_asked_no_more():
    bench = Bench(1, silent=(1,), interval_s=5, timeout_s=3.0, kinds=frozenset((StatKind.PORT, StatKind.METER)))
    bench.run(5.0)
    (_, port), (_, meter) = bench.sent
    bench.schedule.replied(1, port.xid, port.kind, False, 5.0)
    assert bench.schedule.unsupported(1, meter.xid, 5.0) is StatKind.METER
    assert bench.schedule.unsupported(2, port.xid, 5.0) is None
    bench.silent.clear()
    bench.sent.clear()
    bench.run(30.0)
    assert {request.kind for _, request in bench.sent} == {StatKind.PORT}
    bench.schedule.connected(1, 4, bench.now)
    bench.run(40.0)
    assert StatKind.METER in {request.kind for _, request in bench.sent}


@pytest.fixture
def asked() -> tuple[Schedule, Request]:
    bench = Bench(2, silent=(1, 2), interval_s=10, timeout_s=5.0)
    bench.run(7.0)
    return bench.schedule, next(request for _, request in bench.sent if request.dpid == 1)


def test_replies_from_the_wrong_switch_do_not_count(asked: tuple[Schedule, Request]):
    schedule, request = asked
    assert schedule.replied(2, request.xid, request.kind, False, 7.0) is ReplyVerdict.WRONG_SWITCH
    assert schedule.replied(1, request.xid, StatKind.QUEUE, False, 7.0) is ReplyVerdict.WRONG_KIND
    assert schedule.replied(1, request.xid, request.kind, False, 7.0) is ReplyVerdict.AWAITED


def test_late_repeated_and_invented_replies_do_not_count(asked: tuple[Schedule, Request]):
    schedule, request = asked
    schedule.replied(1, request.xid, request.kind, False, 7.0)
    assert schedule.replied(1, request.xid, request.kind, False, 7.0) is ReplyVerdict.TWICE
    assert schedule.replied(1, request.xid + 1000, request.kind, False, 7.0) is ReplyVerdict.UNKNOWN
    (other,) = [xid for xid in range(request.xid - 2, request.xid + 3) if schedule._open.get(xid)]
    schedule.on_deadline(7.5)
    assert schedule.replied(2, other, StatKind.PORT, False, 7.5) is ReplyVerdict.LATE
    assert dict(schedule.counters) == {
        "requests-sent": 2,
        "requests-answered": 1,
        "requests-timed-out": 1,
        "reply-twice": 1,
        "reply-unknown": 1,
        "reply-late": 1,
    }


def test_a_monitor_that_looked_too_late_reads_what_waits_first(asked: tuple[Schedule, Request]):
    """Answers may wait unread while the monitor was busy: no switch is down for that."""
    schedule, request = asked
    schedule.on_deadline(60.0)
    assert schedule.replied(1, request.xid, request.kind, False, 60.1) is ReplyVerdict.AWAITED
    assert schedule.switches[1].up
    schedule.on_deadline(60.3)
    assert not schedule.switches[2].up


def test_a_reply_in_parts_is_awaited_to_its_last(asked: tuple[Schedule, Request]):
    schedule, request = asked
    for at_s in (7.0, 11.0, 15.0, 19.0):
        schedule.on_deadline(at_s)
        assert schedule.replied(1, request.xid, request.kind, True, at_s) is ReplyVerdict.AWAITED
    assert schedule.replied(1, request.xid, request.kind, False, 20.0) is ReplyVerdict.AWAITED
    assert schedule.switches[1].timeouts == 0


def test_a_reply_without_end_is_given_up(asked: tuple[Schedule, Request], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_PARTS", 3)
    schedule, request = asked
    verdicts = [schedule.replied(1, request.xid, request.kind, True, 7.0) for _ in range(5)]
    assert verdicts == [ReplyVerdict.AWAITED] * 3 + [ReplyVerdict.ENDLESS, ReplyVerdict.LATE]


def test_a_switch_that_is_gone_is_down_and_asked_nothing():
    bench = Bench(2, silent=(1,), interval_s=10)
    bench.run(10.0)
    bench.schedule.disconnected(1, 10.0)
    bench.sent.clear()
    bench.run(60.0)
    assert bench.times(1) == []
    assert not bench.schedule.switches[1].up
    assert bench.schedule.outstanding == 0


def test_the_switch_gone_for_longest_gives_way(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_SWITCHES", 3)
    schedule = Schedule(PollSettings(), TAG)
    for dpid in (1, 2, 3):
        assert schedule.connected(dpid, 4, 0.0)
    assert not schedule.connected(4, 4, 0.0)
    schedule.disconnected(2, 1.0)
    schedule.disconnected(1, 2.0)
    assert schedule.connected(4, 4, 3.0)
    assert sorted(schedule.switches) == [1, 3, 4]
    assert schedule.counters == {"switches-over-limit": 1, "switches-forgotten": 1}


def test_another_interval_counts_at_once_and_the_timetable_stays_small():
    bench = Bench(10, interval_s=65535)
    bench.schedule.configure(bench.schedule.settings._replace(interval_s=2), 0.0)
    bench.run(20.0)
    assert all(len(bench.times(dpid)) == 10 for dpid in range(1, 11))
    for number in range(1000):
        bench.schedule.configure(bench.schedule.settings._replace(interval_s=2 + number % 2), bench.now)
    assert len(bench.schedule._due) <= 2 * 10 + 64


events = st.lists(
    st.tuples(
        st.sampled_from(("connect", "disconnect", "reply", "part", "wrong", "refuse", "wait", "configure")),
        st.integers(1, 5),
        st.integers(0, 8),
    ),
    max_size=60,
)


@given(events)
def test_whatever_happens_the_bounds_hold(steps: list[tuple[str, int, int]]):
    schedule = Schedule(PollSettings(frozenset(StatKind), 2, outstanding=4), TAG)
    open_requests: list[Request] = []
    now = 0.0
    for what, dpid, number in steps:
        chosen = open_requests[number % len(open_requests)] if open_requests else Request(dpid, StatKind.PORT, number)
        if what == "connect":
            schedule.connected(dpid, 1 if number % 2 else 4, now)
        elif what == "disconnect":
            schedule.disconnected(dpid, now)
        elif what in ("reply", "part"):
            schedule.replied(chosen.dpid, chosen.xid, chosen.kind, what == "part", now)
        elif what == "wrong":
            schedule.replied(dpid, chosen.xid, StatKind.FLOW, False, now)
        elif what == "refuse":
            schedule.unsupported(chosen.dpid, chosen.xid, now)
        elif what == "configure":
            schedule.configure(schedule.settings._replace(interval_s=1 + number, outstanding=1 + number), now)
        else:
            now += number / 2
        limit = max(schedule.settings.outstanding, schedule.outstanding)
        open_requests += schedule.on_deadline(now)
        assert schedule.outstanding <= limit
        for switch in schedule.switches.values():
            pending = [1 for xid in schedule._open.values() if xid.dpid == switch.dpid]
            lined = [1 for line in (schedule._waiting, schedule._probing) for d, _ in line if d == switch.dpid]
            assert switch.open == len(pending) + len(lined)
        assert schedule._probes_open == sum(asked.probe for asked in schedule._open.values())
