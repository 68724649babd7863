"""How busy each monitor of a pool was in an interval, as the monitors tell it one another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from controller.performance.poll_load import LATENESS_BOUNDS, PollLoadReading, filled_bins

RESOURCES = ("processor", "places for requests", "writer's backlog")
"""What a monitor may be short of, in the order of `MemberLoad.parts`."""

MOST_SKIPPED = 0.9
"""The part of all polls that counts as skipped at most where it is told how much work there was."""


class MemberLoad(NamedTuple):
    """How a monitor fared in an interval.

    Attributes
    ----------
    number
        Of the interval: seconds since 1970 over `interval_s`, rounded down.
    interval_s
        How long intervals are for this monitor.
    incarnation
        Which run of the monitor this was.
    is_whole
        Whether it measured the interval from its beginning on.
    pace
        How many times as long as the policy says it waited between two polls.
    cpu
        Processor time over the length of the interval; 1 is all that one loop can have.
    places
        The part of the places for requests that was taken, on average.
    backlog
        The part of the writer's backlog that was taken at the end.
    polls, skipped, given_up, latenesses
        As `PollLoadReading` has them; `latenesses` by bin.
    """

    number: int
    interval_s: int
    incarnation: str
    is_whole: bool
    pace: int
    cpu: float
    places: float
    backlog: float
    polls: int
    skipped: int
    given_up: int
    latenesses: Mapping[int, int]

    @property
    def parts(self) -> tuple[float, float, float]:
        """How much is taken of each of `RESOURCES`."""
        return self.cpu, self.places, self.backlog

    @property
    def usage(self) -> float:
        """How much is taken of the scarcest resource."""
        return max(self.parts)

    @property
    def load(self) -> float:
        """The work that came, in monitors that it keeps busy; what was skipped would have taken its part."""
        skipped = self.skipped / max(self.polls + self.skipped, 1)
        return self.usage / (1 - min(skipped, MOST_SKIPPED))

    def text(self) -> str:
        """Return this as a key's value."""
        bins = [[number, count] for number, count in sorted(self.latenesses.items())]
        return json.dumps(self._replace(latenesses=bins)._asdict(), separators=(",", ":"))  # type: ignore[arg-type]


def member_load(
    number: int,
    interval_s: int,
    incarnation: str,
    is_whole: bool,
    pace: int,
    polled: PollLoadReading,
    cpu_s: float,
    elapsed_s: float,
    places: int,
    backlog: float,
) -> MemberLoad:
    """Return how a monitor fared.

    Parameters
    ----------
    polled
        What was counted in the interval.
    cpu_s, elapsed_s
        Processor time of the monitor, and time that passed, above 0.
    places
        Requests that may wait for an answer at once.
    backlog
        The part of the writer's backlog that is taken.
    """
    cpu, taken = round(cpu_s / elapsed_s, 4), round(polled.busy_s / (places * elapsed_s), 4)
    counts = polled.polls, polled.skipped, polled.given_up
    bins = filled_bins(polled.latenesses)
    return MemberLoad(number, interval_s, incarnation, is_whole, pace, cpu, taken, round(backlog, 4), *counts, bins)


def read_member_load(text: str) -> MemberLoad | None:
    """Return what a text says; None where it makes no sense."""
    try:
        found = json.loads(text)
        bins = Counter({int(number): int(count) for number, count in found["latenesses"]})
        load = MemberLoad(
            *(int(found["number"]), int(found["interval_s"]), str(found["incarnation"]), bool(found["is_whole"])),
            *(int(found["pace"]), float(found["cpu"]), float(found["places"]), float(found["backlog"])),
            *(int(found["polls"]), int(found["skipped"]), int(found["given_up"]), bins),
        )
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    makes_sense = all(isfinite(part) and part >= 0 for part in load.parts) and min(load[8:11]) >= 0
    fits = all(0 <= number <= len(LATENESS_BOUNDS) and count >= 0 for number, count in bins.items())
    return load if makes_sense and fits and load.interval_s > 0 and load.pace > 0 else None
