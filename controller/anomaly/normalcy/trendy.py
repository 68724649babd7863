"""Trendy data: a linear, log-linear or other trend, and bounds around it."""

from __future__ import annotations

import numpy as np

from controller.anomaly.normalcy.bounds import Bounds, Trend, constant_bounds, whisker_bounds
from controller.anomaly.normalcy.regular import Detected, detect_cycle
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Floats, Series, smooth
from controller.anomaly.normalcy.settings import Settings
from controller.anomaly.normalcy.trend_line import fit_line, is_change_of_level, trend_pct

UNITS_FOR_THEIR_MEANS = 28
LEAST_AVERAGES = 10
"""A trend over fewer averages is chance too often."""


def objective(inside: float, area_share: float, a: float) -> float:
    """Return g = (e^(aP) - 1) / (e^a - 1) * (1 - S / S_max).

    `inside` is P, the share of the points between the lines, 0 to 1; `area_share` is S / S_max, at least 0, S_max = h
    (t_max - t_min) with h the range of the detrended data. Source: formula -30, whose picture is lost; confidence
    medium to low. The parameter a sets how wide the bounds get: 5 to 15 picks two sigma for normal noise, 20 to 40
    three.
    """
    gained = np.exp(a * (inside - 1.0)) * -np.expm1(-a * inside) / -np.expm1(-a)
    return float(gained) * (1.0 - area_share)


def width_of(residuals: Floats, settings: Settings) -> float:
    """Return z sigma of the lines around residuals (mean 0) at which the objective is greatest."""
    sigma, extent = float(residuals.std()), float(np.ptp(residuals))
    if sigma == 0 or extent == 0:
        return 0.0
    apart = np.abs(residuals)
    widths = [z * sigma for z in settings.trend_widths]
    gains = [objective(float((apart <= w).mean()), 2 * w / extent, settings.trend_a) for w in widths]
    return widths[int(np.argmax(gains))]


def smoothed_for_trend(series: Series, settings: Settings) -> Floats:
    """Return averages that a cycle does not hide the trend in: of time units where enough have points, else of slots.

    The article smooths without telling how; confidence low.
    """
    averaged = smooth(series.values, settings.smoothing_points)
    means = _means(series.at_s, averaged, settings.time_unit_s)
    if len(means) >= UNITS_FOR_THEIR_MEANS:
        return means
    return _means(series.at_s, averaged, settings.time_unit_s / settings.time_unit_parts)


def _means(at_s: Floats, values: Floats, window_s: float) -> Floats:
    _, number = np.unique(np.floor((at_s - at_s[0]) / window_s), return_inverse=True)
    means: Floats = np.bincount(number, weights=values) / np.bincount(number)
    return means


def detect_trendy(series: Series, settings: Settings) -> SeriesNormalcy | None:
    """Return bounds around the trend of trendy data, None where the series has no trend or its level changed once."""
    averages = smoothed_for_trend(series, settings)
    share = trend_pct(averages)
    if share <= settings.trend_pct or len(averages) < LEAST_AVERAGES:
        return None
    if is_change_of_level(averages, settings.trend_fit):
        return None
    for kind, logarithmic in (("linear", False), ("log-linear", True)):
        trend, fit = fit_line(series.at_s, series.values, logarithmic=logarithmic, interval_s=series.interval_s)
        if fit > settings.trend_fit:
            flat = series.with_values(series.values - trend.at(series.at_s))
            found = detect_cycle(flat, settings)
            bounds = lines_around(flat, found, trend, settings)
            reason = f"{kind} trend, Mann-Kendall {share:.0f} %, goodness of fit {fit:.2f}"
            return SeriesNormalcy("trendy", reason, bounds, found.period_s, kind, cycle=found.cycle)
    count = max(min(settings.min_points, len(series)), int(settings.trend_recent_share * len(series)))
    latest = series.part(slice(len(series) - count, None))
    slot_s = settings.time_unit_s / settings.time_unit_parts
    origin_s = float(np.floor(series.at_s[0] / slot_s) * slot_s)
    bounds = constant_bounds(origin_s, slot_s, *whisker_bounds(latest.values, settings.whisker))
    reason = f"non-linear trend, Mann-Kendall {share:.0f} %; bounds of the latest {count} points"
    return SeriesNormalcy("trendy", reason, bounds, kind="non-linear", since_s=float(latest.at_s[0]))


def lines_around(flat: Series, found: Detected, trend: Trend, settings: Settings) -> Bounds:
    """Return the lines that enclose detrended data, for each slot of the period where there is one.

    The article sets the lines of a slot z sigma around the trend; here they are around the slot's mean over the
    trend, without which a slot that is always high would be outside.
    """
    frame = found.columns.frame
    slots = found.cycle.units * frame.parts or 1
    number = frame.columns_of(flat.at_s) % slots
    overall = width_of(flat.values - flat.values.mean(), settings)
    intervals = np.empty((slots, 1, 2))
    intervals[:, 0] = flat.values.mean() - overall, flat.values.mean() + overall
    order = np.argsort(number, kind="stable")
    for values in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        mean = float(flat.values[values].mean())
        width = width_of(flat.values[values] - mean, settings)
        intervals[number[values[0]], 0] = mean - width, mean + width
    return Bounds(frame.origin_s, frame.column_s, intervals, trend)
