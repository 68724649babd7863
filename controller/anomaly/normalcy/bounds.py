"""Bounds of normal values: per slot of a period, around a trend, projected to any time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.cyclochart import CycleColumns
from controller.anomaly.normalcy.series import Floats, iqr


@dataclass(frozen=True, slots=True)
class Trend:
    """A line over time: slope * u + level, u = t - start_s in seconds, or its natural logarithm."""

    slope: float
    level: float
    start_s: float
    logarithmic: bool = False

    def at(self, at_s: Floats) -> Floats:
        """Return the line at times, float64[n]."""
        passed = at_s - self.start_s
        if self.logarithmic:
            passed = np.log(np.maximum(passed, 1.0))
        line: Floats = self.slope * passed + self.level
        return line


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds per slot of a cycle, repeated for ever, around a trend where there is one.

    `intervals` float64[slots, modes, 2] holds the lower and upper end of every normal interval of a slot, NaN where a
    slot has fewer. Slot 0 starts at `origin_s`. `members` holds the only normal values of each slot where values are
    counted and not measured, else it is empty.
    """

    origin_s: float
    slot_s: float
    intervals: Floats
    trend: Trend | None = None
    members: tuple[tuple[float, ...], ...] = ()

    def slots(self, at_s: Floats) -> NDArray[np.int64]:
        """Return the slot of each time."""
        number = np.floor((np.asarray(at_s, np.float64) - self.origin_s) / self.slot_s).astype(np.int64)
        found: NDArray[np.int64] = number % len(self.intervals)
        return found

    def at(self, at_s: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and highest normal value at times (epoch seconds), float64[n] each."""
        found = self.intervals[self.slots(at_s)]
        lower, upper = np.fmin.reduce(found[..., 0], axis=-1), np.fmax.reduce(found[..., 1], axis=-1)
        if self.trend is not None:
            line = self.trend.at(np.asarray(at_s, np.float64))
            lower, upper = lower + line, upper + line
        return lower, upper

    def normal(self, at_s: float) -> list[float] | list[list[float]]:
        """Return all that is normal at a time: the values of a counted set, or intervals [lower, upper] in order."""
        at = np.array([at_s])
        slot = int(self.slots(at)[0])
        if self.members:
            return list(self.members[slot])
        line = float(self.trend.at(at)[0]) if self.trend is not None else 0.0
        intervals = self.intervals[slot] + line
        there: list[list[float]] = intervals[~np.isnan(intervals[:, 0])].tolist()
        return there

    def outside(self, at_s: Floats, values: Floats) -> Floats:
        """Return how far values are from the nearest normal one, float64[n]; negative below it, 0 where normal."""
        at_s, values = np.asarray(at_s, np.float64), np.asarray(values, np.float64)
        slots = self.slots(at_s)
        if self.members:
            return _from_members(self.members, slots, values)
        level = values if self.trend is None else values - self.trend.at(at_s)
        found = self.intervals[slots]
        over = np.maximum(level[:, None] - found[..., 1], 0.0)
        under = np.maximum(found[..., 0] - level[:, None], 0.0)
        apart = np.where(np.isnan(found[..., 0]), np.inf, over - under)
        nearest = np.abs(apart).argmin(axis=1)
        chosen: Floats = apart[np.arange(len(apart)), nearest]
        return np.where(np.isinf(chosen), 0.0, chosen)


def _from_members(members: tuple[tuple[float, ...], ...], slots: NDArray[np.int64], values: Floats) -> Floats:
    apart = np.zeros(len(values))
    for slot in np.unique(slots):
        normal, inside = np.array(members[slot]), slots == slot
        if len(normal):
            differences = values[inside, None] - normal[None, :]
            nearest = np.abs(differences).argmin(axis=1)
            apart[inside] = differences[np.arange(len(nearest)), nearest]
    return apart


def whisker_bounds(values: Floats, factor: float = 1.5) -> tuple[float, float]:
    """Return [q1 - factor * iqr, q3 + factor * iqr], no wider than the values' range; at least one value.

    Source: the article names the "whisker's method" (Tukey's, factor 1.5); confidence high.
    """
    first, third = np.quantile(values, (0.25, 0.75))
    reach = factor * iqr(values)
    return float(max(first - reach, values.min())), float(min(third + reach, values.max()))


def constant_bounds(origin_s: float, slot_s: float, lower: float, upper: float) -> Bounds:
    """Return the same bounds at all times."""
    return Bounds(origin_s, slot_s, np.array([[[lower, upper]]]))


def group_extremes(found: CycleColumns, kept: NDArray[np.bool_], low: Floats, high: Floats) -> Floats:
    """Return the least and greatest value over the kept columns of each group, float64[cycle, 2]; NaN without any."""
    held = np.minimum(found.columns, len(low) - 1)
    lower = np.fmin.reduce(np.where(kept, low[held], np.nan), axis=1)
    upper = np.fmax.reduce(np.where(kept, high[held], np.nan), axis=1)
    return np.stack([lower, upper], axis=-1)


def filled(intervals: Floats, default: Floats) -> Floats:
    """Return intervals float64[slots, modes, 2] with `default` float64[modes, 2] in slots that have none."""
    empty = np.isnan(intervals).all(axis=(1, 2))
    result = intervals.copy()
    result[empty] = default
    return result
