"""Spans made of what a controller takes and sends."""

from __future__ import annotations

from typing import Any

import pytest

from controller.effects import ApplyEdits, Put, Remove
from controller.profiles import collector as module
from controller.profiles.collector import SpanCollector
from controller.profiles.spans import LONGEST_S, Operation, Span, SpanOutcome, SpanWaits
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.wire.addresses import parse_ip

GROUP, OTHER = parse_ip("239.1.1.1"), parse_ip("239.1.1.2")


def put(group: bytes, *ports: int, in_port: int | None = None) -> Put:
    match = Match(eth_type=0x0800, ip_dst=group, in_port=in_port)
    return Put(FlowEntry(FlowKey(2, 100, match), tuple(map(Output, ports)), 7))


def remove(group: bytes) -> Remove:
    return Remove(FlowKey(2, 100, Match(eth_type=0x0800, ip_dst=group)))


def edits(dpid: int, first_xid: int, *some: Any) -> ApplyEdits:
    return ApplyEdits(dpid, first_xid, some)


def told(span: Span) -> tuple[Any, ...]:
    waits = [None if each is None else round(each, 6) for each in span.waits]
    return span.operation, span.subject, span.outcome, round(span.ended_s - span.begun_s, 6), waits


def join(spans: SpanCollector, group: bytes = GROUP, at: tuple[int, int] = (3, 7), now: float = 10.0) -> None:
    spans.packet_taken(*at, now - 0.25, now)
    spans.joined(*at, group, now + 0.0625)


def test_a_join_ends_when_its_own_switch_confirms_the_output_to_its_port() -> None:
    spans = SpanCollector()
    join(spans)
    spans.edits_sent(edits(4, 1, put(GROUP, 7)), 10.1)  # another switch of the tree
    spans.edits_sent(edits(3, 1, put(GROUP, 5)), 10.2)  # another port
    spans.edits_sent(edits(3, 5, put(OTHER, 7), put(GROUP, 5, 7)), 10.5)
    spans.edits_sent(edits(3, 9, put(GROUP, 5, 7, 8)), 10.6)
    for dpid, xid in ((4, 2), (3, 2), (4, 7), (3, 6)):
        spans.confirmed(dpid, xid, 11.0)
    assert spans.take() == []
    spans.confirmed(3, 7, 12.0)
    (span,) = spans.take()
    assert told(span) == (Operation.JOIN, "239.1.1.1 at 3:7", SpanOutcome.DONE, 2.25, [0.25, 0.5, 1.5, None, 0.0625])
    spans.confirmed(3, 10, 13.0)
    assert spans.take() == []
    assert spans.open_count == 0


def test_who_is_admitted_without_a_packet_of_its_own_is_no_join() -> None:
    spans = SpanCollector()
    spans.joined(3, 7, GROUP, 9.0)
    spans.packet_taken(3, 6, 9.0, 9.0)
    spans.joined(3, 7, GROUP, 9.0)
    spans.packet_taken(3, 7, 9.0, 9.0)
    spans.turned_away()
    spans.joined(3, 7, GROUP, 9.0)
    assert spans.open_count == 0


def test_a_leave_waits_for_an_entry_without_its_port_and_not_for_a_sender_s() -> None:
    spans = SpanCollector()
    spans.packet_taken(3, 7, 10.0, 10.0)
    spans.left(GROUP)
    spans.packet_taken(3, 7, 10.5, 10.5)
    spans.left(GROUP)  # hosts say it twice
    assert spans.open_count == 1
    spans.edits_sent(edits(3, 1, put(GROUP, 7, 8), put(GROUP, in_port=4)), 11.0)
    spans.confirmed(3, 3, 11.1)
    assert spans.take() == []
    spans.edits_sent(edits(3, 5, put(GROUP, 8)), 12.0)
    spans.confirmed(3, 6, 12.5)
    (span,) = spans.take()
    assert told(span) == (Operation.LEAVE, "239.1.1.1 at 3:7", SpanOutcome.DONE, 2.5, [0.0, 2.0, 0.5, None, None])
    spans.left(GROUP)
    spans.edits_sent(edits(3, 8, remove(GROUP)), 13.0)
    spans.confirmed(3, 9, 13.5)
    assert [each.operation for each in spans.take()] == [Operation.LEAVE]


def test_a_join_at_a_switch_that_holds_all_has_changed_nothing_and_took_no_longer_than_to_be_taken() -> None:
    spans = SpanCollector()
    join(spans, now=10.0)
    join(spans, OTHER, (4, 1), now=10.0)
    spans.look({4}, 10.04)
    assert spans.take() == []
    spans.look({4}, 10.06)
    (span,) = spans.take()
    assert told(span) == (
        Operation.JOIN,
        "239.1.1.1 at 3:7",
        SpanOutcome.NO_EDITS,
        0.25,
        [0.25, None, None, None, None],
    )
    spans.look({4}, 10.0 + LONGEST_S)
    assert [each.outcome for each in spans.take()] == [SpanOutcome.UNFINISHED]


def test_a_leave_that_changes_nothing_in_time_is_of_a_port_with_other_members() -> None:
    spans = SpanCollector()
    spans.packet_taken(3, 7, 10.0, 10.0)
    spans.left(GROUP)
    spans.look((), 10.0 + module.LONGEST_LEAVE_S)
    assert spans.take() == []
    spans.look((), 10.1 + module.LONGEST_LEAVE_S)
    assert [(each.operation, each.outcome) for each in spans.take()] == [(Operation.LEAVE, SpanOutcome.NO_EDITS)]


def test_what_waits_for_a_switch_that_is_lost_has_failed() -> None:
    spans = SpanCollector()
    join(spans)
    spans.edits_sent(edits(3, 1, put(GROUP, 7)), 10.2)
    spans.connected(3, 10.0)
    spans.connected(3, 10.0)
    spans.requested(3, 77, "port", 10.0)
    spans.requested(4, 77, "port", 10.0)
    spans.disconnected(3, 11.0)
    found = spans.take()
    assert {each.operation for each in found} == {Operation.JOIN, Operation.CONNECT, Operation.POLL}
    assert {each.outcome for each in found} == {SpanOutcome.FAILED}
    assert len(found) == 3
    assert spans.open_count == 1


def test_a_connection_and_a_repair_end_with_the_last_word_of_the_switches_concerned() -> None:
    spans = SpanCollector()
    spans.connected(3, 10.0)
    spans.began(Operation.REPAIR, "1:2-3:4", 10.0, 10.0)
    spans.heard(3, 10.5)
    spans.settled({3, 4}, False, 10.6)
    assert spans.take() == []
    spans.settled({4}, False, 10.7)
    assert [told(each)[:4] for each in spans.take()] == [(Operation.CONNECT, "3", SpanOutcome.DONE, 0.5)]
    spans.confirmed(4, 1, 12.0)
    spans.settled((), False, 12.01)
    assert [told(each)[:4] for each in spans.take()] == [(Operation.REPAIR, "1:2-3:4", SpanOutcome.DONE, 2.0)]
    spans.began(Operation.REPAIR, "switch 9", 13.0, 13.0)
    spans.settled((), False, 13.01)
    assert [each.outcome for each in spans.take()] == [SpanOutcome.NO_EDITS]
    spans.began(Operation.DRAIN, "9 drained", 14.0, 14.0)
    spans.settled({1}, False, 14.0 + LONGEST_S)
    assert spans.is_settling
    spans.settled({1}, False, 14.1 + LONGEST_S)
    assert [each.outcome for each in spans.take()] == [SpanOutcome.UNFINISHED]


def test_a_repair_waits_for_the_loop_the_controller_and_the_switches() -> None:
    spans = SpanCollector()
    spans.began(Operation.REPAIR, "1:2-3:4", 10.0, 10.25)
    spans.began(Operation.DRAIN, "3 drained", 10.0, 10.25)
    spans.edits_sent(edits(4, 7), 10.5)
    spans.edits_sent(edits(4, 7, put(GROUP, 5)), 11.0)
    spans.edits_sent(edits(5, 9, put(GROUP, 5)), 12.0)
    spans.confirmed(5, 10, 13.0)
    spans.settled((), False, 13.01)
    for span in spans.take():
        assert (span.begun_s, span.ended_s, span.outcome) == (10.0, 13.0, SpanOutcome.DONE)
        assert span.waits == SpanWaits(0.25, 0.75, 2.0), "they add up to what it took"
    spans.began(Operation.RELOAD, "policy", 14.0, 14.5)
    spans.settled((), False, 15.0)
    (span,) = spans.take()
    assert (span.outcome, span.waits) == (SpanOutcome.NO_EDITS, SpanWaits(0.5))
    spans.began(Operation.DRAIN, "3 used again", 16.0, 16.0)
    spans.edits_sent(edits(4, 11, put(GROUP, 5)), 16.5)
    spans.end(17.0)
    (span,) = spans.take()
    assert (span.outcome, span.waits) == (SpanOutcome.UNFINISHED, SpanWaits(0.0, 0.5))


def test_a_reload_waits_until_everybody_is_judged_and_a_repair_does_not() -> None:
    spans = SpanCollector()
    spans.began(Operation.RELOAD, "policy", 10.0, 10.0)
    spans.began(Operation.REPAIR, "switch 2", 10.0, 10.0)
    spans.settled((), True, 10.5)
    assert [each.operation for each in spans.take()] == [Operation.REPAIR]
    spans.settled((), False, 11.0)
    assert [told(each)[:4] for each in spans.take()] == [(Operation.RELOAD, "policy", SpanOutcome.NO_EDITS, 1.0)]


def test_polls_commits_and_steps_have_their_waits() -> None:
    spans = SpanCollector()
    spans.requested(3, 5, "port", 1.0)
    spans.answered(3, 6, 1.1)
    spans.answered(3, 5, 1.5)
    spans.committed(12, 2.0, 2.25, True, 3.0)
    spans.committed(1, 2.0, 2.25, False, 3.0)
    spans.stepped(4, "draining", True, 5.0)
    spans.stepped(4, "draining", True, 6.0)
    spans.stepped(4, "hook", True, 7.0)
    spans.stepped(4, "failed", False, 9.0)
    spans.stepped(4, "failed", False, 9.5)
    assert [told(each) for each in spans.take()] == [
        (Operation.POLL, "3 port", SpanOutcome.DONE, 0.5, [None, None, 0.5, None, None]),
        (Operation.JOURNAL, "12 entries", SpanOutcome.DONE, 1.0, [None, 0.25, None, 0.75, None]),
        (Operation.JOURNAL, "1 entries", SpanOutcome.FAILED, 1.0, [None, 0.25, None, 0.75, None]),
        (Operation.CAMPAIGN_STEP, "4 draining", SpanOutcome.DONE, 2.0, [None] * 5),
        (Operation.CAMPAIGN_STEP, "4 hook", SpanOutcome.FAILED, 2.0, [None] * 5),
    ]
    assert spans.open_count == 0


def test_the_end_leaves_nothing_under_way() -> None:
    spans = SpanCollector()
    join(spans)
    spans.edits_sent(edits(3, 1, put(GROUP, 7)), 10.2)
    spans.connected(3, 10.0)
    spans.requested(3, 5, "port", 10.0)
    spans.stepped(4, "hook", True, 10.0)
    spans.end(11.0)
    found = spans.take()
    assert len(found) == 4
    assert {each.outcome for each in found} == {SpanOutcome.UNFINISHED}
    assert spans.open_count == 0


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_BOUND", 2)
    monkeypatch.setattr(module, "FINISHED_BOUND", 3)
    spans = SpanCollector()
    for number in range(3):
        join(spans, at=(3, number))
        spans.requested(3, number, "port", 1.0)
        spans.began(Operation.DRAIN, str(number), 1.0, 1.0)
        spans.stepped(number, "hook", True, 1.0)
    assert spans.missed == 3
    spans.end(11.0)
    assert len(spans.take()) == 3
    assert spans.missed == 3 + 8 - 3
