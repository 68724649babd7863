"""Points at which scripts can look: what apps take and ask for, times of a loop, and functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from controller.durations import HOUR_S, parse_duration
from controller.probes.functions import CALLS, LoadedFunctions

TIMER, PROFILE = "timer", "profile"
SHORTEST_S, LONGEST_S = 0.01, HOUR_S
"""Periods of timers."""

MOST_HZ = 150
"""How often in a second a loop is looked at."""

POINTS_BOUND = 512
"""Points that a script looks at."""


class TimerTick(NamedTuple):
    """A period is over; the loop comes to it so late."""

    late_us: int


class StackSample(NamedTuple):
    """What a loop was doing: functions, each called by the next one."""

    stack: tuple[str, ...]


class ProbePoint(NamedTuple):
    """A point: `what` is the kind that stands second in its name, `record` the type of what it gives.

    `said` is how a script writes the period of a timer, or how often in a second a profile looks; the name of a
    function; empty for events and effects, which are called as their records are.
    """

    app: str
    what: str
    record: type
    said: str = ""

    @property
    def name(self) -> str:
        """What scripts call it."""
        return f"{self.app}:{self.what}:{self.said or self.record.__name__}"

    @property
    def period_s(self) -> float:
        """The period of a timer or a profile; 0 where it has none, or none that may be."""
        if self.what == PROFILE:
            hz = int(self.said) if self.said.isascii() and self.said.isdecimal() and len(self.said) <= 3 else 0
            return 1 / hz if 1 <= hz <= MOST_HZ else 0.0
        period_s = parse_duration(self.said) or 0.0
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
        The apps that have timers and profiles, and on whose loops functions are looked at.
    functions
        The functions that there are.
    """

    def __init__(
        self,
        points: Iterable[ProbePoint],
        shared: str = "",
        sharers: Collection[str] = (),
        timed: Collection[str] = (),
        functions: LoadedFunctions | None = None,
    ) -> None:
        self.functions = LoadedFunctions() if functions is None else functions
        self._timed = sorted(timed)
        self._points = {point.name: point for point in points}
        self._shared, self._sharers = shared, frozenset(sharers)

    def find(self, pattern: str) -> list[ProbePoint]:
        """Return the points whose names a pattern matches, with ``*`` and ``?`` as in file names.

        Functions are found where their kind is written out, and at most `POINTS_BOUND` and one more.
        """
        exact = self._points.get(pattern)
        if exact is not None:
            return [exact]
        app, what, said = (*pattern.split(":"), "", "")[:3]
        if what in _TIMED:
            points = [ProbePoint(name, what, _TIMED[what], said) for name in self._timed_as(app)]
            return [point for point in points if point.period_s]
        if what in CALLS:
            return list(islice(self._calls(app, what, said), POINTS_BOUND + 1))
        found = [point for name, point in sorted(self._points.items()) if fnmatchcase(name, pattern)]
        _app, colon, rest = pattern.partition(":")
        return self.find(f"{self._shared}:{rest}") if not found and colon and app in self._sharers else found

    def why_none(self, pattern: str) -> str:
        """Return what is to be said of a pattern that nothing matches: why that is so, or what is most like it."""
        _app, what, said = (*pattern.split(":"), "", "")[:3]
        refusal = self.functions.refusal(said) if what in CALLS else ""
        near = "" if refusal else self._near(pattern)
        return refusal or f"there is no point {pattern}" + (f"; did you mean {near}?" if near else "")

    def _timed_as(self, pattern: str) -> list[str]:
        return [name for name in self._timed if fnmatchcase(name, pattern)]

    def _calls(self, app: str, what: str, said: str) -> Iterator[ProbePoint]:
        if "*" in said or "?" in said:
            names = [name for name in self.functions.names() if fnmatchcase(name, said)]
        else:
            names = [said] if self.functions.find(said) is not None else []
        for name in names:
            record = self.functions.record(what, name)
            yield from (ProbePoint(each, what, record, name) for each in self._timed_as(app))

    def _near(self, pattern: str) -> str:
        app, what, said = (*pattern.split(":"), "", "")[:3]
        if what in _TIMED and self._timed_as(app):
            return f"{app}:{what}:{_USUAL[what]}"
        if what in CALLS and self._timed_as(app):
            functions = get_close_matches(said, self.functions.names(), 1, 0.6)
            return f"{app}:{what}:{functions[0]}" if functions else ""
        found = get_close_matches(pattern, self._points, 1, 0.6)
        return found[0] if found else ""
