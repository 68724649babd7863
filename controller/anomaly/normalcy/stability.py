"""The stabilochart: where the level of a series has changed, and what is stable since."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.series import Floats, Series
from controller.anomaly.normalcy.settings import Settings

STEPS_PER_WINDOW = 8


class Stabilochart(NamedTuple):
    """Positions int64[k] in the series, their relative change float64[k], and whether they are unstable bool[k]."""

    positions: NDArray[np.int64]
    change: Floats
    unstable: NDArray[np.bool_]


def relative_change(left: Floats, right: Floats) -> Floats:
    """Return s_m = abs(median(left) - median(right)) / iqr(both) per row of float64[k, n]; 0 where nothing changes.

    Source: formula -34, whose picture is lost; confidence low. The other reading compares the two interquartile
    ranges.
    """
    apart = np.abs(np.median(left, axis=1) - np.median(right, axis=1))
    first, third = np.quantile(np.concatenate([left, right], axis=1), (0.25, 0.75), axis=1)
    spread = third - first
    with np.errstate(divide="ignore", invalid="ignore"):
        changes: Floats = np.where(apart == 0, 0.0, apart / spread)
    return changes


def window_points(series: Series, period_s: float, settings: Settings) -> int:
    """Return n, the points on each side: those of a time unit or more, max(20, N / 10) or more, unless it is set, and
    whole periods of periodic data.

    Source: formula -25 is lost and n unknown. A window that holds part of a cycle would take the cycle for a change;
    where two windows do not fit nothing is told.
    """
    per_s = len(series) / series.length_s if series.length_s > 0 else 0.0
    count = settings.stability_points or max(20, len(series) // 10, round(per_s * settings.time_unit_s))
    if period_s > 0 and per_s > 0:
        per_period = per_s * period_s
        count = round(int(np.ceil(count / per_period)) * per_period)
    return count


def stabilochart(values: Floats, points: int, sensitivity_pct: float) -> Stabilochart:
    """Return the chart over positions an eighth of the window apart; empty where two windows do not fit."""
    if points < 1 or len(values) < 2 * points:
        return Stabilochart(np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))
    step = max(1, points // STEPS_PER_WINDOW)
    positions = np.arange(points, len(values) - points + 1, step)
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * points)[positions - points]
    change = relative_change(windows[:, :points], windows[:, points:])
    return Stabilochart(positions, change, change >= sensitivity_pct / 100)


def latest_stable(series: Series, period_s: float, settings: Settings) -> tuple[Series, Stabilochart]:
    """Return what follows the latest change of level, the whole series where there is none.

    Around a change many positions are unstable; the change itself is where the last run of them is greatest.
    """
    chart = stabilochart(series.values, window_points(series, period_s, settings), settings.stability_pct)
    where = np.flatnonzero(chart.unstable)
    if not len(where):
        return series, chart
    first = where[-1]
    while first > 0 and chart.unstable[first - 1]:
        first -= 1
    run = slice(first, where[-1] + 1)
    change = np.nan_to_num(chart.change[run], posinf=np.finfo(np.float64).max)
    start = int(chart.positions[run][len(change) - 1 - int(np.argmax(change[::-1]))])
    return series.part(slice(start, None)), chart
