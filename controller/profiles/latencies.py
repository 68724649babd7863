"""Where the time goes between hosts' reports and switches, switch by switch, in segments that add up."""

from __future__ import annotations

from typing import Any

from controller.profiles.hops import HopTimes
from controller.profiles.spans import Operation, Span, SpanOutcome
from controller.time_bins import TimeBins

OPEN_BOUND = 65_536
"""Batches of edits that wait for an answer at a time at most; those beyond are not timed."""

ECHOES_BOUND = 256
"""Echoes of one switch that wait for an answer at a time at most; those beyond are not timed."""

SWITCHES_BOUND = 65_536
LOOP, CORE, EDITS, BARRIER = "loop", "core", "edits", "barrier"

JOIN_SEGMENTS = (LOOP, CORE, EDITS, BARRIER)
"""The way of a join in the controller, one segment after the other: together they are the whole."""


PACKET_IN, ECHO, SWITCH = "packet_in", "echo", "switch"

JOIN_WAY = (PACKET_IN, LOOP, CORE, EDITS, ECHO, SWITCH)
"""The way of a join from its edge switch on: half an echo stands for its packet-in; the barrier's time is that of an
echo, the way to the switch and back, and the rest, in which the switch did what it was sent."""


class _SwitchTimes:
    __slots__ = ("barrier", "echo", "echoes", "join", "segments", "unanswered")

    def __init__(self) -> None:
        self.echo, self.barrier, self.join = TimeBins(), TimeBins(), TimeBins()
        self.segments = {name: TimeBins() for name in JOIN_SEGMENTS}
        self.unanswered = 0
        self.echoes: dict[int, float] = {}


class LatencyFigures:
    """Times by switch; all given in seconds of a clock that is never set.

    An echo goes to a switch and back, and nobody but its agent has a part in it. `barrier` is from when edits were
    sent to when the switch had confirmed them. A join's segments are: until the loop took the packet-in that was
    there (`loop`), until the core had decided (`core`), until the edits that serve the host's port were sent
    (`edits`: others are before them in the switch's window), until the switch had confirmed them (`barrier`).
    The hops between switches are timed by frames of discovery, in `hops`.

    Attributes
    ----------
    missed_count
        What found no room, and was not timed.
    others_count
        Joins that changed nothing at a switch, failed, or were not done: they are in no time.
    """

    def __init__(self) -> None:
        self.missed_count = self.others_count = 0
        self.hops = HopTimes()
        self._switches: dict[int, _SwitchTimes] = {}
        self._batches: dict[tuple[int, int], float] = {}

    def _of(self, dpid: int) -> _SwitchTimes | None:
        found = self._switches.get(dpid)
        if found is None and len(self._switches) < SWITCHES_BOUND:
            found = self._switches[dpid] = _SwitchTimes()
        if found is None:
            self.missed_count += 1
        return found

    def echo_asked(self, dpid: int, xid: int, now: float) -> None:
        """Take it that a switch is asked for an echo, with another `xid` each time."""
        times = self._of(dpid)
        if times is None:
            return
        times.unanswered += bool(times.echoes)
        if len(times.echoes) >= ECHOES_BOUND:
            self.missed_count += 1
        else:
            times.echoes[xid] = now

    def echo_answered(self, dpid: int, xid: int, now: float) -> None:
        """Take it that an echo came back; one that comes after the next was due is timed as well."""
        times = self._switches.get(dpid)
        asked_s = None if times is None else times.echoes.pop(xid, None)
        if times is not None and asked_s is not None:
            times.echo.count(_ns(now - asked_s))
            self.hops.echo_took(dpid, max(0.0, now - asked_s))

    def edits_sent(self, dpid: int, xid: int, now: float) -> None:
        """Take it that edits went to a switch with a barrier behind them, whose transaction id is `xid`."""
        if len(self._batches) >= OPEN_BOUND:
            self.missed_count += 1
        else:
            self._batches[dpid, xid] = now

    def confirmed(self, dpid: int, xid: int, now: float) -> None:
        """Take it that a switch has confirmed all up to a barrier."""
        sent_s = self._batches.pop((dpid, xid), None)
        times = None if sent_s is None else self._of(dpid)
        if sent_s is not None and times is not None:
            times.barrier.count(_ns(now - sent_s))

    def disconnected(self, dpid: int) -> None:
        """Take it that a switch's connection ended: nothing that it was asked is answered any more."""
        self.hops.disconnected(dpid)
        times = self._switches.get(dpid)
        if times is not None:
            times.echoes.clear()
        for key in [key for key in self._batches if key[0] == dpid]:
            del self._batches[key]

    def joined(self, span: Span) -> None:
        """Take a span; what is no join is left out."""
        if span.operation is not Operation.JOIN:
            return
        waits = span.waits
        if (
            span.outcome is not SpanOutcome.DONE
            or span.dpid is None
            or waits.loop_s is None
            or waits.core_s is None
            or waits.controller_s is None
        ):
            self.others_count += 1
            return
        times = self._of(span.dpid)
        if times is None:
            return
        taken_s = span.begun_s + waits.loop_s
        points_s = (span.begun_s, taken_s, taken_s + waits.core_s, taken_s + waits.controller_s, span.ended_s)
        points_ns = [_ns(at_s - span.begun_s) for at_s in points_s]
        for name, begun_ns, ended_ns in zip(JOIN_SEGMENTS, points_ns, points_ns[1:], strict=False):
            times.segments[name].count(max(0, ended_ns - begun_ns))
        times.join.count(points_ns[-1])

    def document(self) -> list[dict[str, Any]]:
        """Return the figures of each switch, in the order of their datapath ids, as JSON has them."""
        return [
            {
                "dpid": dpid,
                "echo": _told(times.echo),
                "unanswered_echoes": times.unanswered,
                "barrier": _told(times.barrier),
                "join": _told(times.join),
                "segments": {name: _told(times.segments[name]) for name in JOIN_SEGMENTS},
                "way": _way(times),
            }
            for dpid, times in sorted(self._switches.items())
        ]


def _way(times: _SwitchTimes) -> dict[str, float] | None:
    """Return the means of `JOIN_WAY` in milliseconds, and of the `whole`, to which they add up; None without both."""
    echo_ms, join_ms = times.echo.mean_ms(), times.join.mean_ms()
    if echo_ms is None or join_ms is None:
        return None
    means = {name: bins.mean_ms() or 0.0 for name, bins in times.segments.items()}
    barrier_ms = means.pop(BARRIER)
    means = {PACKET_IN: echo_ms / 2, **means, ECHO: min(echo_ms, barrier_ms), SWITCH: max(0.0, barrier_ms - echo_ms)}
    return {**{name: round(means[name], 6) for name in JOIN_WAY}, "whole": round(sum(means.values()), 6)}


def _ns(seconds: float) -> int:
    return max(0, round(seconds * 1e9))


def _told(bins: TimeBins) -> dict[str, Any] | None:
    """Return a time's figures, None of none."""
    mean_ms = bins.mean_ms()
    return None if mean_ms is None else {"count": bins.time_count, "mean_ms": round(mean_ms, 6), **bins.document()}
