"""Makes spans of what a controller takes and sends, as it is told of that; everything is bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from controller.effects import ApplyEdits, Put, Remove
from controller.profiles.spans import LONGEST_S, Operation, Span, SpanOutcome, SpanWaits
from controller.rules.model import FlowEntry, Match, Output
from controller.wire.addresses import format_ip

OPEN_BOUND = 16_384
"""Operations of a kind that are under way at a time at most; those beyond are counted as missed."""

FINISHED_BOUND = 131_072
"""Spans that wait to be taken at most; those beyond are counted as missed."""

IN_SYNC_S = 0.05
"""A join at a switch that has held all that it shall for so long has had nothing changed."""

LONGEST_LEAVE_S = 15.0
"""By then a leave has changed something, or other members of its port remain."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A join or a leave under way: `sent_s` and `xid` once the edits that it waits for were sent.

    `decided_s` is when the core had decided on a join.
    """

    operation: Operation
    dpid: int
    port_no: int
    group: bytes
    begun_s: float
    taken_s: float
    decided_s: float | None = None
    sent_s: float | None = None
    xid: int = 0

    @property
    def subject(self) -> str:
        """What it is about."""
        return f"{format_ip(self.group)} at {self.dpid}:{self.port_no}"


class _Packet(NamedTuple):
    """The packet that is taken now: it was there at `there_s`, and is taken at `taken_s`."""

    dpid: int
    port_no: int
    there_s: float
    taken_s: float


@dataclass(slots=True, eq=False)
class _Begun:
    """What ends when switches hold what they shall; `sent_s` once the first edits after it were sent."""

    operation: Operation
    subject: str
    dpid: int | None
    begun_s: float
    taken_s: float
    sent_s: float | None = None

    def waits(self, ended_s: float | None) -> SpanWaits:
        """Return what it waited for; `ended_s` is None where switches have not confirmed all."""
        if self.dpid is not None:
            return SpanWaits()  # a switch is read first, which is no wait for edits
        loop_s = self.taken_s - self.begun_s
        if self.sent_s is None:
            return SpanWaits(loop_s)
        switch_s = None if ended_s is None else max(0.0, ended_s - self.sent_s)
        return SpanWaits(loop_s, self.sent_s - self.taken_s, switch_s)


class SpanCollector:
    """The spans of one loop; all times are given, in seconds of a clock that is never set.

    Attributes
    ----------
    missed
        Spans that found no room.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._finished: list[Span] = []
        self._packet: _Packet | None = None
        self._asked: dict[tuple[int, bytes], list[_Asked]] = {}
        self._asked_count = 0
        self._confirming: dict[tuple[int, int], list[_Asked]] = {}
        self._settling: list[_Begun] = []
        self._heard_s: dict[int, float] = {}
        self._last_heard_s = 0.0
        self._polls: dict[tuple[int, int], tuple[str, float]] = {}
        self._steps: dict[int, tuple[str, float]] = {}

    def take(self) -> list[Span]:
        """Return the spans that have ended since they were taken last."""
        finished, self._finished = self._finished, []
        return finished

    @property
    def is_settling(self) -> bool:
        """Whether something is to end by what switches hold."""
        return bool(self._settling)

    @property
    def open_count(self) -> int:
        """How many operations are under way."""
        return self._asked_count + len(self._settling) + len(self._polls) + len(self._steps)

    # Joins and leaves

    def packet_taken(self, dpid: int, port_no: int, there_s: float, now: float) -> None:
        """Take it that a packet, which had come in by `there_s`, is taken now."""
        self._packet = _Packet(dpid, port_no, min(there_s, now), now)

    def turned_away(self) -> None:
        """Take it that something else than a packet is taken: what follows is not of the last one."""
        self._packet = None

    def joined(self, dpid: int, port_no: int, group: bytes, now: float) -> None:
        """Take it that a host was admitted, which is done now; nothing where no packet of its port asked for it."""
        packet = self._packet
        if packet is not None and (packet.dpid, packet.port_no) == (dpid, port_no):
            self._ask(Operation.JOIN, packet, group, now)

    def left(self, group: bytes) -> None:
        """Take it that the host of the packet that is taken wants a group, or sources of it, no more."""
        packet = self._packet
        if packet is None:
            return
        for asked in self._asked.get((packet.dpid, group), ()):
            if asked.operation is Operation.LEAVE and asked.port_no == packet.port_no:
                return  # hosts say it twice
        self._ask(Operation.LEAVE, packet, group)

    def _ask(self, operation: Operation, packet: _Packet, group: bytes, decided_s: float | None = None) -> None:
        if self._asked_count >= OPEN_BOUND:
            self.missed += 1
            return
        asked = _Asked(operation, packet.dpid, packet.port_no, group, packet.there_s, packet.taken_s, decided_s)
        self._asked.setdefault((packet.dpid, group), []).append(asked)
        self._asked_count += 1

    def edits_sent(self, effect: ApplyEdits, now: float) -> None:
        """Take it that edits go to a switch, with a barrier behind them."""
        for begun in self._settling:
            if begun.sent_s is None and effect.edits:
                begun.sent_s = now
        if not self._asked:
            return
        xid = effect.first_xid + len(effect.edits)
        for edit in effect.edits:
            if isinstance(edit, Put):
                self._edited(effect.dpid, edit.rule.key.match, _ports(edit.rule), xid, now)
            elif isinstance(edit, Remove):
                self._edited(effect.dpid, edit.key.match, frozenset(), xid, now)

    def _edited(self, dpid: int, match: Match, ports: Collection[int], xid: int, now: float) -> None:
        if match.ip_dst is None:
            return
        for asked in self._asked.get((dpid, match.ip_dst), ()):
            is_join = asked.operation is Operation.JOIN
            is_of_sender = match.in_port is not None and not ports
            if asked.sent_s is None and is_join is (asked.port_no in ports) and not is_of_sender:
                asked.sent_s, asked.xid = now, xid
                self._confirming.setdefault((dpid, xid), []).append(asked)

    def confirmed(self, dpid: int, xid: int, now: float) -> None:
        """Take it that a switch has done all up to a barrier."""
        self.heard(dpid, now)
        for asked in self._confirming.pop((dpid, xid), ()):
            self._close(asked, now, SpanOutcome.DONE)

    def heard(self, dpid: int, now: float) -> None:
        """Take it that a switch told of its entries."""
        self._heard_s[dpid] = self._last_heard_s = now

    def _close(self, asked: _Asked, now: float, outcome: SpanOutcome) -> None:
        of_group = self._asked.get((asked.dpid, asked.group), [])
        if asked not in of_group:
            return
        of_group.remove(asked)
        if not of_group:
            del self._asked[asked.dpid, asked.group]
        self._asked_count -= 1
        sent_s = asked.sent_s
        waits = SpanWaits(asked.taken_s - asked.begun_s)
        if sent_s is not None:
            switch_s = now - sent_s if outcome is SpanOutcome.DONE else None
            core_s = None if asked.decided_s is None else asked.decided_s - asked.taken_s
            waits = SpanWaits(waits.loop_s, sent_s - asked.taken_s, switch_s, None, core_s)
        self._add(Span(asked.operation, asked.subject, asked.begun_s, now, waits, outcome, asked.dpid))

    # What ends when switches hold what they shall

    def connected(self, dpid: int, now: float) -> None:
        """Take it that a switch connected; once, whichever apps hear of it."""
        if not any(each.dpid == dpid for each in self._settling):
            self._settle(_Begun(Operation.CONNECT, str(dpid), dpid, now, now))

    def disconnected(self, dpid: int, now: float) -> None:
        """Take it that a switch's connection ended: what waited for it has failed."""
        for each in [each for each in self._settling if each.dpid == dpid]:
            self._settling.remove(each)
            self._add(Span(each.operation, each.subject, each.begun_s, now, each.waits(None), SpanOutcome.FAILED))
        for key in [key for key in self._confirming if key[0] == dpid]:
            for asked in self._confirming.pop(key):
                self._close(asked, now, SpanOutcome.FAILED)
        for poll in [key for key in self._polls if key[0] == dpid]:
            self._answered(poll, now, SpanOutcome.FAILED)

    def began(self, operation: Operation, subject: str, there_s: float, now: float) -> None:
        """Take it that something began that ends when every switch holds what it shall.

        It was there at `there_s`, and is taken now.
        """
        self._settle(_Begun(operation, subject, None, min(there_s, now), now))

    def _settle(self, begun: _Begun) -> None:
        if len(self._settling) >= OPEN_BOUND:
            self.missed += 1
        else:
            self._settling.append(begun)

    def settled(self, unsettled: Collection[int], is_judging: bool, now: float) -> None:
        """Take it which connected switches do not hold what they shall yet.

        `is_judging`: members wait to be judged by a policy.
        """
        behind = set(unsettled)
        for each in self._settling[:]:
            is_behind = bool(behind) if each.dpid is None else each.dpid in behind
            if not is_behind and not (is_judging and each.operation is Operation.RELOAD):
                heard_s = self._last_heard_s if each.dpid is None else self._heard_s.get(each.dpid, 0.0)
                has_changed = heard_s > each.taken_s
                outcome = SpanOutcome.DONE if has_changed else SpanOutcome.NO_EDITS
                ended_s = heard_s if has_changed else now
            elif now > each.begun_s + LONGEST_S:
                outcome, ended_s = SpanOutcome.UNFINISHED, now
            else:
                continue
            self._settling.remove(each)
            waits = each.waits(ended_s if outcome is SpanOutcome.DONE else None)
            self._add(Span(each.operation, each.subject, each.begun_s, ended_s, waits, outcome))

    def look(self, unsettled: Collection[int], now: float) -> None:
        """Give up what lasts too long; joins at switches that hold all that they shall have had nothing changed."""
        behind = set(unsettled)
        for asked in [each for of_group in self._asked.values() for each in of_group]:
            longest_s = LONGEST_S if asked.operation is Operation.JOIN else LONGEST_LEAVE_S
            is_join = asked.operation is Operation.JOIN
            if asked.sent_s is None and is_join and asked.dpid not in behind and now > asked.taken_s + IN_SYNC_S:
                self._close(asked, asked.taken_s, SpanOutcome.NO_EDITS)
            elif now > asked.begun_s + longest_s:
                is_idle = asked.sent_s is None and not is_join
                self._close(asked, now, SpanOutcome.NO_EDITS if is_idle else SpanOutcome.UNFINISHED)
        for key, (_, begun_s) in list(self._polls.items()):
            if now > begun_s + LONGEST_S:
                self._answered(key, now, SpanOutcome.UNFINISHED)

    # Polls, the log, campaigns

    def requested(self, dpid: int, xid: int, what: str, now: float) -> None:
        """Take it that a switch is asked for counters."""
        if len(self._polls) >= OPEN_BOUND:
            self.missed += 1
        else:
            self._polls[dpid, xid] = f"{dpid} {what}", now

    def answered(self, dpid: int, xid: int, now: float) -> None:
        """Take it that the last part of an answer came."""
        self._answered((dpid, xid), now, SpanOutcome.DONE)

    def _answered(self, key: tuple[int, int], now: float, outcome: SpanOutcome) -> None:
        found = self._polls.pop(key, None)
        if found is not None:
            subject, begun_s = found
            self._add(Span(Operation.POLL, subject, begun_s, now, SpanWaits(switch_s=now - begun_s), outcome))

    def committed(self, entries: int, since_s: float, handed_s: float, is_done: bool, now: float) -> None:
        """Take it that entries of the log, the first made at `since_s`, were handed to the disk, and are there."""
        outcome = SpanOutcome.DONE if is_done else SpanOutcome.FAILED
        waits = SpanWaits(controller_s=handed_s - since_s, disk_s=now - handed_s)
        self._add(Span(Operation.JOURNAL, f"{entries} entries", since_s, now, waits, outcome))

    def stepped(self, dpid: int, step: str, is_in_work: bool, now: float) -> None:
        """Take it which step a switch of a campaign is at; the first that is heard of began before."""
        known = self._steps.get(dpid)
        if known is not None and known[0] == step:
            return
        if known is not None:
            subject = f"{dpid} {known[0]}"
            outcome = SpanOutcome.FAILED if step == "failed" else SpanOutcome.DONE
            self._add(Span(Operation.CAMPAIGN_STEP, subject, known[1], now, SpanWaits(), outcome))
        if is_in_work and (known is not None or len(self._steps) < OPEN_BOUND):
            self._steps[dpid] = step, now
        else:
            self._steps.pop(dpid, None)

    # The end

    def end(self, now: float) -> None:
        """Take what is under way as unfinished."""
        for asked in [each for of_group in self._asked.values() for each in of_group]:
            self._close(asked, now, SpanOutcome.UNFINISHED)
        for begun in self._settling:
            waits = begun.waits(None)
            self._add(Span(begun.operation, begun.subject, begun.begun_s, now, waits, SpanOutcome.UNFINISHED))
        open_now: Iterable[tuple[Operation, str, float]] = (
            *((Operation.POLL, *found) for found in self._polls.values()),
            *((Operation.CAMPAIGN_STEP, f"{dpid} {step}", at_s) for dpid, (step, at_s) in self._steps.items()),
        )
        for operation, subject, begun_s in open_now:
            self._add(Span(operation, subject, begun_s, now, SpanWaits(), SpanOutcome.UNFINISHED))
        self._settling.clear()
        self._polls.clear()
        self._steps.clear()
        self._confirming.clear()

    def _add(self, span: Span) -> None:
        if len(self._finished) >= FINISHED_BOUND:
            self.missed += 1
        else:
            self._finished.append(span)


def _ports(rule: FlowEntry) -> frozenset[int]:
    return frozenset([action.port_no for action in rule.actions if isinstance(action, Output)])
