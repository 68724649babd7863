"""How often durations fell into which bucket: cheap to count, and read as it stands."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

DURATION_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets, each inclusive; what is longer than the last has a bucket of its own."""


class HistogramReading(NamedTuple):
    """A histogram at a moment: `counts` by bucket, one more than there are `bounds`, not cumulated."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


class Histogram:
    """Durations by bucket."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...] = DURATION_BOUNDS_S) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def observe_each(self, values: Iterable[float]) -> None:
        """Count several."""
        bounds, counts = self._bounds, self._counts
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            self._sum += value

    def reading(self) -> HistogramReading:
        """Return what was counted so far."""
        return HistogramReading(self._bounds, tuple(self._counts), self._sum)
