"""Points at which scripts can look: what apps take and ask for, by the type of the record."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple


class ProbePoint(NamedTuple):
    """A point: `what` is ``event`` or ``effect``, `record` the type of what it gives."""

    app: str
    what: str
    record: type

    @property
    def name(self) -> str:
        """What scripts call it."""
        return f"{self.app}:{self.what}:{self.record.__name__}"


class PointCatalogue:
    """All points of the apps of a process, or of a recording.

    Parameters
    ----------
    points
        The points.
    shared, sharers
        The name under which apps have points in common, and these apps: each point of the former is found under
        their names too.
    """

    def __init__(self, points: Iterable[ProbePoint], shared: str = "", sharers: Collection[str] = ()) -> None:
        self._points = {point.name: point for point in points}
        self._shared, self._sharers = shared, frozenset(sharers)

    def find(self, pattern: str) -> list[ProbePoint]:
        """Return the points whose names a pattern matches, with ``*`` and ``?`` as in file names."""
        exact = self._points.get(pattern)
        if exact is not None:
            return [exact]
        found = [point for name, point in sorted(self._points.items()) if fnmatchcase(name, pattern)]
        app, colon, rest = pattern.partition(":")
        return self.find(f"{self._shared}:{rest}") if not found and colon and app in self._sharers else found

    def near(self, pattern: str) -> str:
        """Return the name that is most like one that matches nothing, '' where none is."""
        found = get_close_matches(pattern, self._points, 1, 0.6)
        return found[0] if found else ""
