"""Packets of groups at a table that is too small for all: what misses, by the choice of which groups are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class TraceResult(NamedTuple):
    """What became of the packets of a trace, counted after the warm-up.

    Attributes
    ----------
    packets, misses
        Packets in all, and those that found no entry.
    swaps_in, swaps_out
        Groups that got an entry, and that lost theirs.
    readings
        Times that the counters of the table were read.
    max_resident
        The most groups that had an entry at a time, or were getting one; the warm-up is counted too.
    """

    packets: int
    misses: int
    swaps_in: int
    swaps_out: int
    readings: int
    max_resident: int


class Trace(NamedTuple):
    """Packets in the order of their times: `groups[i]` is the group of the packet at `times_s[i]`, from 0 on."""

    times_s: Sequence[float]
    groups: Sequence[int]


class GroupTally:
    """What became of the packets of each group, counted after the warm-up, and which groups were in at the end."""

    def __init__(self) -> None:
        self.packets: Counter[int] = Counter()
        self.misses: Counter[int] = Counter()
        self.inside: set[int] = set()


class Choice(Protocol):
    """Chooses which groups are in a table; `position` is that of the packet concerned in the trace.

    One that `has_limits` is asked who leaves for a group though the table is not full.
    """

    readings: int
    has_limits: bool

    def hit(self, group: int, position: int) -> None:
        """Take in a packet of a group that is in."""

    def missed(self, group: int, position: int, now_s: float) -> bool:
        """Take in a packet of a group that is out, and return whether the group is to come in."""

    def victims(self, group: int, position: int, now_s: float) -> Sequence[int] | None:
        """Return which groups leave for one that is to come in, None where it stays out after all."""

    def came_in(self, group: int, position: int, now_s: float) -> None:
        """Take in that a group is in."""

    def went_out(self, group: int) -> None:
        """Take in that a group is out."""

    def due(self, now_s: float) -> Sequence[int]:
        """Return which groups leave now, whoever comes."""


def run_trace(
    trace: Trace,
    table: int,
    choice: Choice,
    *,
    latency_s: float = 0.01,
    warmup_s: float = 0.0,
    tally: GroupTally | None = None,
) -> TraceResult:
    """Return what becomes of a trace's packets at a table of so many entries, one for each group.

    A packet that misses is served by the controller; where its group comes in, all that follow within `latency_s`
    miss too. Groups that leave do so at once. What became of each group's packets is added to `tally`.
    """
    tally = tally or GroupTally()
    ready_s: dict[int, float] = {}
    packets = swaps_in = swaps_out = max_resident = 0
    readings_before = 0
    for position, (now_s, group) in enumerate(zip(trace.times_s, trace.groups, strict=True)):
        counts = now_s >= warmup_s
        if not counts:
            readings_before = choice.readings
        for left in choice.due(now_s):
            del ready_s[left]
            choice.went_out(left)
            swaps_out += counts
        packets += counts
        tally.packets[group] += counts
        since_s = ready_s.get(group)
        if since_s is not None:
            choice.hit(group, position)
            tally.misses[group] += counts and since_s > now_s
            continue
        tally.misses[group] += counts
        if not choice.missed(group, position, now_s):
            continue
        if len(ready_s) >= table or choice.has_limits:
            leaving = choice.victims(group, position, now_s)
            if leaving is None:
                continue
            for left in leaving:
                del ready_s[left]
                choice.went_out(left)
                swaps_out += counts
        ready_s[group] = now_s + latency_s
        choice.came_in(group, position, now_s)
        swaps_in += counts
        max_resident = max(max_resident, len(ready_s))
    tally.inside.update(ready_s)
    misses = tally.misses.total()
    return TraceResult(packets, misses, swaps_in, swaps_out, choice.readings - readings_before, max_resident)
