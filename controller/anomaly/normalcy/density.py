"""How densely points lie in time: dense, sparse or corrupted data, and the clean-up of localised gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from controller.anomaly.normalcy.bounds import whisker_bounds
from controller.anomaly.normalcy.presence import presence
from controller.anomaly.normalcy.series import Series
from controller.anomaly.normalcy.settings import Settings

DENSE, SPARSE, CORRUPTED = "dense", "sparse", "corrupted"


class Density(NamedTuple):
    """The kind of data, the portion to go on with, and why."""

    kind: str
    series: Series
    reason: str
    longest_gap_s: float | None = None


def detect_density(series: Series, least_s: float, settings: Settings) -> Density:
    """Tell dense, sparse and corrupted data apart; of data with localised gaps the latest dense portion is taken.

    Gaps are spread evenly where both changes, data to gap and gap to data, happen with a probability above epsilon. A
    portion is long enough from `least_s` seconds and `min_points` points on. Source: section 5 of the article, which
    leaves its limits out; confidence of the procedure high, of the limits none.
    """
    found = presence(series.at_s, series.interval_s, settings.hole_factor)
    share = f"{found.gap_pct:.1f} % of the time is gaps"
    if found.gap_pct <= settings.dense_max_gap_pct:
        return Density(DENSE, series, share)
    if found.gap_pct > settings.corrupted_gap_pct:
        return Density(CORRUPTED, series, share)
    if min(found.p10, found.p01) > settings.density_epsilon:
        longest_s = whisker_bounds(found.holes_s, settings.whisker)[1]
        return Density(SPARSE, series, f"{share}, spread over all of it", longest_s)
    portion = latest_dense_portion(series, settings)
    if len(portion) >= settings.min_points and portion.length_s >= least_s:
        return Density(DENSE, portion, f"{share}; the portion after the gaps is taken")
    return Density(CORRUPTED, series, f"{share}, and too little is left after the latest")


def latest_dense_portion(series: Series, settings: Settings) -> Series:
    """Return what follows the latest of the longest gaps, of which as few as possible are cut off to leave dense
    data.
    """
    steps = np.diff(series.at_s)
    holes = np.flatnonzero(steps > settings.hole_factor * series.interval_s)
    start = 0
    for hole in holes[np.argsort(-steps[holes], kind="stable")].tolist():
        if hole < start:
            continue
        start = hole + 1
        portion = series.part(slice(start, None))
        left = presence(portion.at_s, series.interval_s, settings.hole_factor)
        if left.gap_pct <= settings.dense_max_gap_pct:
            return portion
    return series.part(slice(start, None))
