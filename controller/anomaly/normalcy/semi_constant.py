"""Semi-constant data: half of the points or more are one value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from controller.anomaly.normalcy.bounds import Bounds, constant_bounds, filled, group_extremes, whisker_bounds
from controller.anomaly.normalcy.cyclochart import Cycle, find_cycle, kept_columns
from controller.anomaly.normalcy.footprint import Footprint, Frame, footprint, plain_frame, similar_columns
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Series, iqr
from controller.anomaly.normalcy.settings import Settings


def semi_constant_part(series: Series, settings: Settings) -> Series | None:
    """Return the series, or its longest latest part that is long enough, where the interquartile range is 0.

    Source: formula -24, iqr(x) = 0; confidence high. How long is long enough is not told:
    `semi_constant_recent_share` of the points, and no fewer than `min_points`.
    """
    if iqr(series.values) == 0:
        return series
    least = max(settings.min_points, int(np.ceil(settings.semi_constant_recent_share * len(series))))
    if least > len(series):
        return None
    for count in np.unique(np.linspace(len(series), least, 16).astype(int))[::-1]:
        latest = series.part(slice(len(series) - int(count), None))
        if iqr(latest.values) == 0:
            return latest
    return None


def detect_semi_constant(series: Series, settings: Settings) -> SeriesNormalcy | None:
    """Return the bounds of semi-constant data, None where the series is none.

    Points other than the median are outliers. Where they are more than p percent, a period is sought among them
    alone.
    """
    part = semi_constant_part(series, settings)
    if part is None:
        return None
    middle = float(np.median(part.values))
    odd = part.values != middle
    outliers_pct = 100.0 * float(odd.mean())
    lower, upper = whisker_bounds(part.values, settings.whisker)
    frame = plain_frame(part, settings, np.empty(0))
    bounds, period_s, cycle = constant_bounds(frame.origin_s, frame.column_s, lower, upper), 0.0, None
    if outliers_pct > settings.semi_constant_outlier_pct:
        cycle = _cycle_of_outliers(part.with_values(odd.astype(np.float64)), frame, settings)
        if cycle.grouped is not None:
            period_s = cycle.units * frame.parts * frame.column_s
            bounds = _periodic_bounds(footprint(part, frame), cycle, (lower, upper))
    since = "" if part is series else ", of the latest part alone"
    return SeriesNormalcy(
        "semi-constant",
        f"half of the points or more are {middle:g}, {outliers_pct:.1f} % are others{since}",
        bounds,
        period_s,
        since_s=float(part.at_s[0]),
        cycle=cycle,
    )


def _cycle_of_outliers(odd: Series, frame: Frame, settings: Settings) -> Cycle:
    """Return the cycle in which outliers (1, else 0) come: slots are alike in their share of them.

    Slots that hold the median alone are missing, so that they do not speak for a period.
    """
    columns = footprint(odd, replace(frame, edges=np.array([0.5])))
    there = columns.counts[:, 1] > 0
    similar = similar_columns(columns, settings.closeness) & there[:, None] & there[None, :]
    return find_cycle(columns, settings, similar)


def _periodic_bounds(columns: Footprint, cycle: Cycle, constant: tuple[float, float]) -> Bounds:
    """Return the extremes where outliers recur, and the constant elsewhere."""
    assert cycle.grouped is not None
    kept = kept_columns(cycle.grouped, columns.present)
    extremes = group_extremes(cycle.grouped, kept, columns.low, columns.high)
    extremes[~cycle.grouped.periodic] = constant
    intervals = filled(extremes[:, None, :], np.array([constant]))
    return Bounds(columns.frame.origin_s, columns.frame.column_s, intervals)
