"""Points at which scripts can look: what apps take and ask for, by the type of the record, and times of a loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from controller.durations import HOUR_S, parse_duration

TIMER, PROFILE = "timer", "profile"
SHORTEST_S, LONGEST_S = 0.01, HOUR_S
"""Periods of timers."""

MOST_HZ = 150
"""How often in a second a loop is looked at."""


class TimerTick(NamedTuple):
    """A period is over; the loop comes to it so late."""

    late_us: int


class StackSample(NamedTuple):
    """What a loop was doing: functions, each called by the next one."""

    stack: tuple[str, ...]


class ProbePoint(NamedTuple):
    """A point: `what` is ``event``, ``effect``, ``timer`` or ``profile``, `record` the type of what it gives.

    `rate` is how a script writes the period of a timer, or how often in a second a profile looks.
    """

    app: str
    what: str
    record: type
    rate: str = ""

    @property
    def name(self) -> str:
        """What scripts call it."""
        return f"{self.app}:{self.what}:{self.rate or self.record.__name__}"

    @property
    def period_s(self) -> float:
        """The period of a timer or a profile; 0 where it has none, or none that may be."""
        if self.what == PROFILE:
            hz = int(self.rate) if self.rate.isascii() and self.rate.isdecimal() and len(self.rate) <= 3 else 0
            return 1 / hz if 1 <= hz <= MOST_HZ else 0.0
        period_s = parse_duration(self.rate) or 0.0
        return period_s if SHORTEST_S <= period_s <= LONGEST_S else 0.0


_TIMED = {TIMER: TimerTick, PROFILE: StackSample}
_USUAL = {TIMER: "1s", PROFILE: "97"}


class PointCatalogue:
    """All points of the apps of a process, or of a recording.

    Parameters
    ----------
    points
        The points.
    shared, sharers
        The name under which apps have points in common, and these apps: each point of the former is found under
        their names too.
    timed
        The apps that have timers and profiles.
    """

    def __init__(
        self,
        points: Iterable[ProbePoint],
        shared: str = "",
        sharers: Collection[str] = (),
        timed: Collection[str] = (),
    ) -> None:
        self._timed = sorted(timed)
        self._points = {point.name: point for point in points}
        self._shared, self._sharers = shared, frozenset(sharers)

    def find(self, pattern: str) -> list[ProbePoint]:
        """Return the points whose names a pattern matches, with ``*`` and ``?`` as in file names."""
        exact = self._points.get(pattern)
        if exact is not None:
            return [exact]
        app, what, rate = (*pattern.split(":"), "", "")[:3]
        if what in _TIMED:
            points = [ProbePoint(name, what, _TIMED[what], rate) for name in self._timed if fnmatchcase(name, app)]
            return [point for point in points if point.period_s]
        found = [point for name, point in sorted(self._points.items()) if fnmatchcase(name, pattern)]
        _app, colon, rest = pattern.partition(":")
        return self.find(f"{self._shared}:{rest}") if not found and colon and app in self._sharers else found

    def near(self, pattern: str) -> str:
        """Return the name that is most like one that matches nothing, '' where none is."""
        app, what, _rate = (*pattern.split(":"), "", "")[:3]
        if what in _TIMED and any(fnmatchcase(name, app) for name in self._timed):
            return f"{app}:{what}:{_USUAL[what]}"
        found = get_close_matches(pattern, self._points, 1, 0.6)
        return found[0] if found else ""
