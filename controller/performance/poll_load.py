"""How heavy polling is for a monitor: how late answers are, what was not asked, how many places are taken."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

LATENESS_BOUNDS = tuple(0.001 * 2 ** (step / 4) for step in range(53))
"""Upper ends of the bins of lateness, in intervals between polls: from a thousandth to 8.2, four to each doubling."""


class PollLoadReading(NamedTuple):
    """What was counted so far; all of it only rises.

    Attributes
    ----------
    polls
        Polls of switches that were answered whole.
    skipped
        Polls that did not take place, for the one before was not answered yet, or nobody was there to ask.
    given_up
        Requests that were given up and whose switch answered after all.
    busy_s
        Time that each place for a request was taken, over all places.
    latenesses
        Answered polls by bin of how long after they were due their last answer came, in intervals.
    """

    polls: int = 0
    skipped: int = 0
    given_up: int = 0
    busy_s: float = 0.0
    latenesses: tuple[int, ...] = (0,) * (len(LATENESS_BOUNDS) + 1)

    def since(self, before: PollLoadReading) -> PollLoadReading:
        """Return what was counted since another reading."""
        bins = tuple(now - was for now, was in zip(self.latenesses, before.latenesses, strict=True))
        return PollLoadReading(
            self.polls - before.polls,
            self.skipped - before.skipped,
            self.given_up - before.given_up,
            self.busy_s - before.busy_s,
            bins,
        )


class PollLoad:
    """Counts for one monitor. A reading may be taken on another thread: it is then a moment old, and never torn."""

    def __init__(self) -> None:
        self.polls = self.skipped = self.given_up = 0
        self.busy_s = 0.0
        self._latenesses = [0] * (len(LATENESS_BOUNDS) + 1)

    def answered(self, lateness: float) -> None:
        """Count a poll that was answered so many intervals after it was due."""
        self.polls += 1
        self._latenesses[bisect_left(LATENESS_BOUNDS, lateness)] += 1

    def reading(self) -> PollLoadReading:
        """Return what was counted so far."""
        return PollLoadReading(self.polls, self.skipped, self.given_up, self.busy_s, tuple(self._latenesses))


def late_of_99(latenesses: Mapping[int, int]) -> float:
    """Return the lateness that 99 of 100 polls do not exceed, by their numbers in bins; 0 where there are none.

    It is the upper end of a bin, so up to a fifth too much; what is beyond all bins is told as twice the last end.
    """
    left = sum(latenesses.values()) // 100
    for number in sorted(latenesses, reverse=True):
        left -= latenesses[number]
        if left < 0:
            return LATENESS_BOUNDS[number] if number < len(LATENESS_BOUNDS) else 2 * LATENESS_BOUNDS[-1]
    return 0.0


def filled_bins(latenesses: tuple[int, ...]) -> Counter[int]:
    """Return the bins that something fell into."""
    return Counter({number: count for number, count in enumerate(latenesses) if count})
