"""Points at which scripts can look: what apps take and ask for, by the type of the record."""

from __future__ import annotations

from collections.abc import Iterable
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
    """All points of the apps of a process, or of a recording."""

    def __init__(self, points: Iterable[ProbePoint]) -> None:
        self._points = {point.name: point for point in points}

    def find(self, pattern: str) -> list[ProbePoint]:
        """Return the points whose names a pattern matches, with ``*`` and ``?`` as in file names."""
        exact = self._points.get(pattern)
        if exact is not None:
            return [exact]
        return [point for name, point in sorted(self._points.items()) if fnmatchcase(name, pattern)]

    def near(self, pattern: str) -> str:
        """Return the name that is most like one that matches nothing, '' where none is."""
        found = get_close_matches(pattern, self._points, 1, 0.6)
        return found[0] if found else ""
