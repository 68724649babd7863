"""How unlike a stretch of a series is everything that came before it."""

from __future__ import annotations

import math

import numpy as np

from controller.anomaly.normalcy.series import Floats
from controller.anomaly.normalcy.settings import Settings

LEAST_STRETCH = 3
"""Points of a stretch at least: two say nothing of an order."""
MOST_STRETCH = 240
"""Points of a stretch at most, whatever the interval."""
LEAST_DISTANCES = 50
"""Distances that tell what is usual, at least."""
MOST_RANGES = 1e5
"""A value further from the median than so many times the range (0.5 % to 99.5 %) counts as one that far, lest sums of
squares keep nothing of the others."""


class Discords:
    """Follows how far the stretch that ends at each point is from the nearest one of those before it.

    A stretch is the points of `discord_s`, at the interval of the first points; its distance to another is the root
    of the mean squared difference of their values, in order. A stretch further from all others than those before it
    were is a discord: values seen before, in an order that was not. Stretches that overlap it do not count. The
    newest `discord_points` points are held, and half as many more at most; a point takes time in proportion.

    Source: E. Keogh, J. Lin, A. Fu, "HOT SAX: Efficiently Finding the Most Unusual Time Series Subsequence", ICDM
    2005 (discords); C.-C. M. Yeh et al., "Matrix Profile I", ICDM 2016 (distances along diagonals). There stretches
    are normalised, so that a level or height that was never seen is no discord; here they are not.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._length = 0
        self._count = 0
        self._given: Floats = np.empty(0)
        self._values: Floats = np.empty(0)
        """Those given, no further out than `_between`."""
        self._between = (-math.inf, math.inf)
        self._sums: Floats = np.empty(0)
        """Squared differences of the newest stretch and of that so many points before it, summed."""
        self._distances: Floats = np.empty(0)
        self._limit = math.inf

    def begin(self, interval_s: float) -> None:
        """Fix the points of a stretch, once, from the usual time between two points."""
        wanted = round(self._settings.discord_s / interval_s) if interval_s > 0 else LEAST_STRETCH
        self._length = min(max(wanted, LEAST_STRETCH), MOST_STRETCH, self._settings.discord_points // 2)
        room = self._settings.discord_points + self._settings.discord_points // 2
        self._given, self._values, self._sums = np.zeros(room), np.zeros(room), np.zeros(room)
        self._distances = np.full(room, np.nan)

    @property
    def has_begun(self) -> bool:
        """Whether the points of a stretch are known."""
        return self._length > 0

    def extend(self, values: Floats) -> Floats:
        """Take in further points; return how much further than is usual each stretch is from all others, 0 within.

        Parameters
        ----------
        values : NDArray[np.float64]
            Finite, in their order.

        Returns
        -------
        NDArray[np.float64]
            (values,), as Euclidean distances in the unit of the values: a single value so much beyond all others
            makes its stretches as much further.
        """
        found = np.array([self._add(value) for value in values.tolist()])
        return np.where(found > self._limit, math.sqrt(self._length) * (found - self._limit), 0.0)

    def learn(self) -> None:
        """Determine anew what is usual: the quantile `discord_quantile` of the distances held."""
        known = self._distances[: self._count]
        known = known[~np.isnan(known)]
        if len(known) >= LEAST_DISTANCES:
            self._limit = float(np.quantile(known, self._settings.discord_quantile))
        if self._count:
            low, middle, high = np.quantile(self._given[: self._count], (0.005, 0.5, 0.995)).tolist()
            reach = MOST_RANGES * max(high - low, 1e-9)
            self._between = middle - reach, middle + reach
            np.clip(self._given[: self._count], *self._between, out=self._values[: self._count])
            self._sum_anew()

    def _add(self, value: float) -> float:
        """Return the distance of the stretch that ends with a value, NaN where there is none to compare it with."""
        if self._count == len(self._values):
            self._let_go()
        newest, length, values = self._count, self._length, self._values
        self._given[newest] = value
        value = values[newest] = min(max(value, self._between[0]), self._between[1])
        self._count += 1
        if newest < length:
            return math.nan
        sums = self._sums[length : newest + 1]
        came = value - values[newest - length :: -1]
        sums += came * came
        if newest < 2 * length - 1:
            return math.nan
        if newest >= 2 * length:
            went = values[newest - length] - values[newest - 2 * length :: -1]
            sums[: len(went)] -= went * went
        distance = math.sqrt(max(float(sums[: newest - 2 * length + 2].min()), 0.0) / length)
        self._distances[newest] = distance
        return distance

    def _sum_anew(self) -> None:
        newest, length = self._count - 1, self._length
        self._sums[:] = 0.0
        for back in range(min(length, max(0, newest - length + 1))):
            at = newest - back
            apart = self._values[at] - self._values[at - length :: -1]
            self._sums[length : at + 1] += apart * apart

    def _let_go(self) -> None:
        """Let go of the oldest points, down to `discord_points`."""
        kept = self._settings.discord_points
        for held in (self._given, self._values, self._distances):
            held[:kept] = held[self._count - kept : self._count].copy()
        self._distances[kept:] = np.nan
        self._count = kept
        self._sum_anew()
