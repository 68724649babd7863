"""The chain of detectors: quality, parametric category, density, stability, variability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controller.anomaly.normalcy.bounds import constant_bounds
from controller.anomaly.normalcy.categories import CATEGORIES, Detector, chosen
from controller.anomaly.normalcy.density import CORRUPTED as GAPS
from controller.anomaly.normalcy.density import SPARSE, detect_density
from controller.anomaly.normalcy.regular import detect_cycle, regular_bounds
from controller.anomaly.normalcy.result import CORRUPTED, SeriesNormalcy
from controller.anomaly.normalcy.series import Series
from controller.anomaly.normalcy.settings import DAY_S, Settings
from controller.anomaly.normalcy.stability import latest_stable
from controller.anomaly.normalcy.variability import variability_pct

LOW, HIGH = "low-variability", "high-variability"


def fit(
    series: Series, settings: Settings | None = None, categories: Mapping[str, Detector] = CATEGORIES
) -> SeriesNormalcy:
    """Return category, period and bounds of a series.

    Parameters
    ----------
    series
        As `series.make_series` returns it; any number of points.
    settings
        Parameters and the order of the parametric categories.
    categories
        The parametric categories by name.

    Returns
    -------
    SeriesNormalcy
        `category` is one of the parametric ones, sparse, low-variability, high-variability or corrupted. Series
        shorter than `min_length_s` go the same way, in start-up mode: `start_up` is set and the reason says so.
        Fewer points than `min_points` are corrupted, and have the range of what is there as bounds.

    Raises
    ------
    SettingError
        For an unknown category in the settings.

    References
    ----------
    M. A. Marvasti et al., "Statistical Normalcy Determination Based on Data Categorization", sections 2 and 4 to 7.
    """
    settings = settings or Settings()
    detectors = chosen(settings, categories)
    found = _fit(series, settings, detectors)
    words = [found.reason]
    if found.start_up and len(series):
        short = series.length_s < settings.min_length_s
        days = f", {series.length_s / DAY_S:.3g} of {settings.min_length_s / DAY_S:g} days" if short else ""
        words.insert(0, f"start-up mode{days}")
    if series.counts.text():
        words.append(f"left out of the input: {series.counts.text()}")
    return replace(found, reason="; ".join(words), counts=series.counts)


def _fit(series: Series, settings: Settings, detectors: list[Detector]) -> SeriesNormalcy:
    if not len(series):
        return SeriesNormalcy(CORRUPTED, "no points", start_up=True)
    start_up = series.length_s < settings.min_length_s
    if len(series) < settings.min_points:
        slot_s = settings.time_unit_s / settings.time_unit_parts
        origin_s = float(series.at_s[0] // slot_s * slot_s)
        bounds = constant_bounds(origin_s, slot_s, float(series.values.min()), float(series.values.max()))
        reason = f"{len(series)} points are fewer than {settings.min_points}; bounds are their range"
        return SeriesNormalcy(CORRUPTED, reason, bounds, start_up=True)
    for detector in detectors:
        found = detector(series, settings)
        if found is not None:
            return replace(found, start_up=start_up)
    return replace(_regular(series, 0.0 if start_up else settings.min_length_s, settings), start_up=start_up)


def _regular(series: Series, least_s: float, settings: Settings) -> SeriesNormalcy:
    """Return the normalcy of data without a parametric model."""
    density = detect_density(series, least_s, settings)
    if density.kind == GAPS:
        return SeriesNormalcy(CORRUPTED, density.reason)
    detected = detect_cycle(density.series, settings)
    if density.kind == SPARSE:
        bounds = regular_bounds(density.series, detected, settings.whisker)
        return SeriesNormalcy(
            SPARSE,
            density.reason,
            bounds,
            detected.period_s,
            longest_gap_s=density.longest_gap_s,
            cycle=detected.cycle,
        )
    stable, _ = latest_stable(density.series, detected.period_s, settings)
    if len(stable) < settings.min_points or stable.length_s < least_s:
        return SeriesNormalcy(CORRUPTED, f"{density.reason}; the level changed and too little is stable since")
    reason = density.reason
    if len(stable) < len(density.series):
        detected = detect_cycle(stable, settings)
        reason += f"; the level changed, the latest {stable.length_s / DAY_S:.3g} days are stable"
    share = variability_pct(stable.values)
    category, whisker = (
        (LOW, settings.whisker) if share <= settings.variability_pct else (HIGH, settings.whisker_high_variability)
    )
    return SeriesNormalcy(
        category,
        f"{reason}; variability {share:.1f} %",
        regular_bounds(stable, detected, whisker),
        detected.period_s,
        since_s=float(stable.at_s[0]),
        cycle=detected.cycle,
    )
