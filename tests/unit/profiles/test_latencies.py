"""Times by switch, and joins whose segments add up to the whole."""

from __future__ import annotations

import pytest

from controller.profiles import latencies as module
from controller.profiles.latencies import JOIN_SEGMENTS, LatencyFigures
from controller.profiles.spans import Operation, Span, SpanOutcome, SpanWaits


def join(dpid: int | None, *points_s: float, outcome: SpanOutcome = SpanOutcome.DONE) -> Span:
    """Return a join that was there, taken, decided, sent and confirmed at these times."""
    there_s, taken_s, decided_s, sent_s, confirmed_s = points_s
    waits = SpanWaits(taken_s - there_s, sent_s - taken_s, confirmed_s - sent_s, None, decided_s - taken_s)
    return Span(Operation.JOIN, "239.1.1.1 at 3:7", there_s, confirmed_s, waits, outcome, dpid)


def test_echoes_are_timed_by_switch_and_late_ones_are_counted_besides() -> None:
    figures = LatencyFigures()
    figures.echo_asked(3, 1, 10.0)
    figures.echo_asked(4, 1, 10.0)
    figures.echo_answered(3, 1, 10.002)
    figures.echo_asked(3, 2, 10.25)
    figures.echo_asked(4, 2, 10.25)
    figures.echo_answered(4, 1, 10.3)
    figures.echo_answered(4, 2, 10.35)
    figures.echo_answered(9, 2, 10.35)
    third, fourth = figures.document()
    assert (third["dpid"], third["unanswered_echoes"], third["echo"]["count"]) == (3, 0, 1)
    assert third["echo"]["mean_ms"] == third["echo"]["max_ms"] == pytest.approx(2)
    assert (fourth["unanswered_echoes"], fourth["echo"]["count"]) == (1, 2)
    assert (fourth["echo"]["mean_ms"], fourth["echo"]["max_ms"]) == pytest.approx((200, 300))


def test_a_switch_that_is_always_late_has_times() -> None:
    figures = LatencyFigures()
    for turn in range(12):
        figures.echo_asked(3, turn + 1, turn * 0.25)
        if turn >= 3:
            figures.echo_answered(3, turn - 2, turn * 0.25 + 0.05)
    (third,) = figures.document()
    assert (third["unanswered_echoes"], third["echo"]["count"]) == (11, 9)
    assert third["echo"]["p50_ms"] == pytest.approx(800, rel=0.05)
    figures.disconnected(3)
    figures.echo_answered(3, 12, 4.0)
    figures.echo_asked(3, 13, 4.0)
    (third,) = figures.document()
    assert (third["unanswered_echoes"], third["echo"]["count"]) == (11, 9)


def test_barriers_are_timed_from_the_edits_in_front_of_them() -> None:
    figures = LatencyFigures()
    figures.edits_sent(3, 7, 1.0)
    figures.edits_sent(3, 9, 1.5)
    figures.confirmed(3, 7, 1.25)
    figures.confirmed(3, 8, 1.25)
    figures.disconnected(3)
    figures.confirmed(3, 9, 9.0)
    (third,) = figures.document()
    assert (third["barrier"]["count"], third["barrier"]["mean_ms"]) == (1, 250.0)
    assert (third["echo"], third["join"]) == (None, None)


def test_the_segments_of_joins_add_up_to_the_whole() -> None:
    figures = LatencyFigures()
    figures.joined(join(3, 10.0, 10.001, 10.0015, 10.0016, 10.0046))
    figures.joined(join(3, 11.0, 11.003, 11.0035, 11.0135, 11.0137))
    (third,) = figures.document()
    assert third["join"]["count"] == 2
    means = [third["segments"][name]["mean_ms"] for name in JOIN_SEGMENTS]
    assert means == pytest.approx([2, 0.5, 5.05, 1.6], abs=1e-5)
    assert sum(means) == pytest.approx(third["join"]["mean_ms"], abs=1e-5)


def test_what_is_no_join_that_was_done_is_in_no_time() -> None:
    figures = LatencyFigures()
    figures.joined(join(3, 10.0, 10.001, 10.0015, 10.0016, 10.0046, outcome=SpanOutcome.NO_EDITS))
    figures.joined(join(None, 10.0, 10.001, 10.0015, 10.0016, 10.0046))
    figures.joined(Span(Operation.LEAVE, "", 1.0, 2.0, SpanWaits(), SpanOutcome.DONE, 3))
    assert figures.document() == []
    assert figures.others_count == 2


def test_what_waits_for_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_BOUND", 1)
    monkeypatch.setattr(module, "ECHOES_BOUND", 1)
    monkeypatch.setattr(module, "SWITCHES_BOUND", 1)
    figures = LatencyFigures()
    figures.edits_sent(3, 1, 1.0)
    figures.edits_sent(3, 2, 1.0)
    figures.echo_asked(3, 1, 1.0)
    figures.echo_asked(3, 2, 1.25)
    figures.echo_asked(4, 1, 1.0)
    assert figures.missed_count == 3
    assert [each["dpid"] for each in figures.document()] == [3]
