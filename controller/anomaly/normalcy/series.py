"""A series in order: finite points, one per time, and what was wrong with the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controller.anomaly.normalcy.settings import Settings
from controller.anomaly.series import in_order

Floats = NDArray[np.float64]


class InputCounts(NamedTuple):
    """Points of the input that are not in the series as they came, by what was wrong with them."""

    not_a_number: int = 0
    infinite: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    too_old: int = 0

    def text(self) -> str:
        """Return what was found in words, empty where the input was clean."""
        words = [f"{count} {name.replace('_', ' ')}" for name, count in zip(self._fields, self, strict=True) if count]
        return ", ".join(words)


NOTHING_LEFT_OUT = InputCounts()


@dataclass(frozen=True, slots=True)
class Series:
    """Finite values at strictly increasing times (epoch seconds), float64[n] each."""

    at_s: Floats
    values: Floats
    interval_s: float
    counts: InputCounts = NOTHING_LEFT_OUT

    def __len__(self) -> int:
        return len(self.values)

    @property
    def length_s(self) -> float:
        """Time from the first point to the end of the last one's interval; 0 without points."""
        return float(self.at_s[-1] - self.at_s[0]) + self.interval_s if len(self) else 0.0

    def part(self, keep: NDArray[np.bool_] | slice) -> Series:
        """Return the points that `keep` selects, with the same monitoring interval."""
        return Series(self.at_s[keep], self.values[keep], self.interval_s, self.counts)

    def with_values(self, values: Floats) -> Series:
        """Return other values at the same times."""
        return Series(self.at_s, values, self.interval_s, self.counts)


def make_series(at_s: ArrayLike, values: ArrayLike, settings: Settings | None = None) -> Series:
    """Order points by time and put aside what is none, as `in_order` does, and what is older than the history.

    Each is counted.

    Parameters
    ----------
    at_s, values
        float64[n]: epoch seconds, and any unit.
    settings
        `monitoring_interval_s`, `history_s` and `history_points` are read.

    Returns
    -------
    Series
        Its `counts` say what was put aside.

    Raises
    ------
    ValueError
        Where the two differ in length.
    """
    settings = settings or Settings()
    times, points = np.asarray(at_s, np.float64).ravel(), np.asarray(values, np.float64).ravel()
    if len(times) != len(points):
        raise ValueError(f"{len(times)} times for {len(points)} values")
    times, points, found = in_order(times, points)
    recent = times >= times[-1] - settings.history_s if len(times) else np.ones(0, np.bool_)
    recent[: -settings.history_points] = False
    counts = InputCounts(
        found.missing, found.infinite, found.duplicated, found.unordered, int(len(recent) - recent.sum())
    )
    times, points = times[recent], points[recent]
    return Series(times, points, settings.monitoring_interval_s or monitoring_interval_s(times), counts)


def monitoring_interval_s(at_s: Floats) -> float:
    """Return the time between points that a monitor keeps to: the tenth percentile of what is found.

    Sparse series leave out most points, so that the median would be too long. Source: the article's "estimated
    monitoring time", whose estimator is not told; confidence low.
    """
    return float(np.quantile(np.diff(at_s), 0.1)) if len(at_s) > 1 else 0.0


def iqr(values: Floats) -> float:
    """Return the interquartile range, 0 without values."""
    if not len(values):
        return 0.0
    first, third = np.quantile(values, (0.25, 0.75))
    return float(third - first)


def smooth(values: Floats, points: int) -> Floats:
    """Return the moving average over an odd or even number of points, shorter at the ends."""
    points = min(points, len(values))
    if points <= 1:
        return values
    sums = np.concatenate(([0.0], np.cumsum(values)))
    centre = np.arange(len(values))
    first = np.maximum(0, centre - (points - 1) // 2)
    last = np.minimum(len(values), centre + points // 2 + 1)
    averages: Floats = (sums[last] - sums[first]) / (last - first)
    return averages
