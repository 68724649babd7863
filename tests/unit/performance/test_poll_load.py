"""How heavy polling is for a monitor, as its timetable counts it."""

from __future__ import annotations

import pytest

from controller.performance.poll_load import PollLoadReading, filled_bins, late_of_99
from controller.performance.schedule import PollSettings, Schedule, StatKind, next_due
from topology.graph import NodeKind


def polled(schedule: Schedule, now: float, after_s: float) -> float:
    """Have what is due at a time be answered so much later; return when."""
    for dpid, kind, xid in schedule.on_deadline(now):
        schedule.replied(dpid, xid, kind, False, now + after_s)
    return now + after_s


def made(**settings: object) -> Schedule:
    schedule = Schedule(PollSettings(**settings), 4)  # type: ignore[arg-type]
    schedule.connected(1, 4, 0.0)
    return schedule


def due_s(schedule: Schedule) -> float:
    return schedule.switches[1].due_s


def test_lateness_is_from_when_a_poll_was_due_in_terms_of_the_switchs_own_interval() -> None:
    schedule = made(interval_s=10, class_interval_s={NodeKind.CORE: 2})
    polled(schedule, due_s(schedule), 0.5)
    late = late_of_99(filled_bins(schedule.load.reading().latenesses))
    assert 0.05 <= late < 0.05 * 1.19
    schedule.classify(1, NodeKind.CORE, 20.0)
    before = schedule.load.reading()
    polled(schedule, due_s(schedule) + 0.5, 0.5)
    since = schedule.load.reading().since(before)
    assert since.polls == 1
    assert 0.5 <= late_of_99(filled_bins(since.latenesses)) < 0.5 * 1.19


def test_a_poll_of_several_kinds_is_answered_when_the_last_is() -> None:
    schedule = made(interval_s=10, kinds=frozenset({StatKind.PORT, StatKind.TABLE}))
    now = due_s(schedule)
    one, other = schedule.on_deadline(now)
    schedule.replied(1, one.xid, one.kind, False, now + 0.1)
    assert schedule.load.reading().polls == 0
    schedule.replied(1, other.xid, other.kind, False, now + 1.0)
    reading = schedule.load.reading()
    assert reading.polls == 1 and 0.1 <= late_of_99(filled_bins(reading.latenesses)) < 0.12
    assert reading.busy_s == pytest.approx(1.1)


def test_what_was_not_polled_is_skipped() -> None:
    schedule = made(interval_s=10)
    schedule.on_deadline(due_s(schedule) + 35.0)
    assert schedule.load.reading().skipped == 3


def test_the_turn_of_one_that_has_just_come_is_no_skipped_poll_and_the_turn_after_is() -> None:
    schedule = Schedule(PollSettings(interval_s=10), 4)
    now = next_due(1, 10, 0.0) - 1.0
    schedule.connected(1, 4, now, 0.0)
    schedule.settings = PollSettings(interval_s=10, timeout_s=60.0)
    schedule.on_deadline(now)
    schedule.on_deadline(now + 1.0)
    assert schedule.load.reading().skipped == schedule.counters["sweeps-skipped"] == schedule.switches[1].skipped == 0
    schedule.on_deadline(now + 11.0)
    assert schedule.load.reading().skipped == schedule.counters["sweeps-skipped"] == schedule.switches[1].skipped == 1


def test_a_switch_that_answers_no_more_says_nothing_of_the_monitor_and_one_that_does_after_all_was_given_up() -> None:
    schedule = made(interval_s=10, timeout_s=2.0)
    now = due_s(schedule)
    schedule.on_deadline(now)
    schedule.on_deadline(now + 2.0)
    while now < 60.0:
        now = schedule.next_deadline() or 60.0
        requests = schedule.on_deadline(now)
    silent = schedule.load.reading()
    assert (silent.polls, silent.skipped, silent.given_up) == (0, 0, 0)
    assert silent.busy_s == pytest.approx(2.0), "places that probes take are a quarter at most, and not counted"
    if not requests:
        (requests,) = (found for found in [schedule.on_deadline(due_s(schedule))] if found)
    schedule.replied(1, requests[0].xid, requests[0].kind, False, due_s(schedule) + 0.01)
    back = schedule.load.reading().since(silent)
    assert (back.polls, back.given_up) == (0, 1)


def test_readings_are_of_the_time_between_two() -> None:
    schedule = made(interval_s=10)
    polled(schedule, due_s(schedule), 0.1)
    before = schedule.load.reading()
    assert schedule.load.reading().since(before) == PollLoadReading()
    assert before.since(PollLoadReading()) == before
