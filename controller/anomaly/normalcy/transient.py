"""Transient data: two or more modes, in each of which points stay for a while, at times that follow no plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.bounds import Bounds, filled, group_extremes, whisker_bounds
from controller.anomaly.normalcy.cyclochart import find_cycle, kept_columns
from controller.anomaly.normalcy.footprint import footprint, plain_frame
from controller.anomaly.normalcy.presence import presence
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Floats, Series
from controller.anomaly.normalcy.settings import Settings

Bools = NDArray[np.bool_]


def staying(stays: float, starts: float) -> float:
    """Return the probability to stay in a region, 0 where no point with a successor is in it.

    Source: formula -18, p_AA = N_AA / N_A, starts counted where a successor exists; confidence high.
    """
    return stays / starts if starts else 0.0


def region_between(values: Floats, within: Bools, settings: Settings) -> tuple[float, float] | None:
    """Return the ends of a region of sparse values between two inertial ones, None where there is none.

    A = [least, a), B = [a, b), C = [b, greatest]. B starts as wide as the grid allows and moves from the highest
    position to the lowest; where none fits it gets one part narrower.

    Parameters
    ----------
    values
        float64[n] in order of time.
    within
        bool[n]: the points that are looked at; only steps between two of them are counted.
    settings
        `transient_*`.
    """
    seen = values[within]
    low, high = float(seen.min()), float(seen.max())
    if not low < high or not np.isfinite(high - low):
        return None
    parts = settings.transient_parts
    grid = low + (high - low) * np.arange(parts + 1) / parts
    cells = np.clip(np.searchsorted(grid[1:-1], values, side="right"), 0, parts - 1)
    both = within[:-1] & within[1:]
    steps = np.bincount(cells[:-1][both] * parts + cells[1:][both], minlength=parts * parts).reshape(parts, parts)
    block = np.zeros((parts + 1, parts + 1))
    block[1:, 1:] = steps.cumsum(axis=0).cumsum(axis=1)
    upto = np.concatenate(([0], np.bincount(cells[within], minlength=parts).cumsum()))
    least = max(settings.min_points, settings.transient_min_share * len(seen))

    def stay(first: int, last: int) -> float:
        stays = block[last, last] - block[first, last] - block[last, first] + block[first, first]
        return staying(float(stays), float(block[last, parts] - block[first, parts]))

    narrowest = max(1, int(np.ceil(settings.transient_min_between * parts)))
    for width in range(parts - 2, narrowest - 1, -1):
        for start in range(parts - width - 1, 0, -1):
            end = start + width
            below, between, above = upto[start], upto[end] - upto[start], upto[parts] - upto[end]
            if min(below, above) < least:
                continue
            if between > settings.transient_between_density * len(seen) * width / parts:
                continue
            if (
                stay(0, start) > settings.transient_stay
                and stay(end, parts) > settings.transient_stay
                and stay(start, end) < settings.transient_between
            ):
                return float(grid[start]), float(grid[end])
    return None


def find_modes(values: Floats, settings: Settings) -> list[Bools]:
    """Return the points of every inertial mode from the lowest up, each bool[n]; one where there is no second.

    The few points in the region between two modes count with the nearer one.
    """
    modes = [np.ones(len(values), np.bool_)]
    place = 0
    while place < len(modes) and len(modes) < settings.transient_max_modes:
        region = region_between(values, modes[place], settings)
        if region is None:
            place += 1
            continue
        middle = (region[0] + region[1]) / 2
        below, above = modes[place] & (values < middle), modes[place] & (values >= middle)
        modes[place : place + 1] = [below, above]
    return modes


def detect_transient(series: Series, settings: Settings) -> SeriesNormalcy | None:
    """Return the bounds of every mode of transient data, None where the series is none.

    Of a mode the other modes' time is a hole: it is inertial and comes and goes where holes take more than P percent
    of its time and both changes happen with a probability above epsilon. Two modes must do so.
    """
    modes = find_modes(series.values, settings)
    if len(modes) < 2:
        return None
    coming_and_going = 0
    for mode in modes:
        found = presence(series.at_s[mode], series.interval_s, settings.hole_factor)
        changes = min(found.p10, found.p01) > settings.transient_epsilon
        coming_and_going += changes and found.gap_pct > settings.transient_hole_pct
    if coming_and_going < 2:
        return None
    borders = [float(series.values[mode].max()) for mode in modes[:-1]]
    frame = plain_frame(series, settings, np.nextafter(np.array(borders), np.inf))
    columns = footprint(series, frame)
    cycle = find_cycle(columns, settings)
    overall = np.array([whisker_bounds(series.values[mode], settings.whisker) for mode in modes])
    intervals = overall[None, :, :]
    if cycle.grouped is not None:
        kept = kept_columns(cycle.grouped, columns.present)
        end_s = float(series.at_s[-1])
        parts = [footprint(series.part(mode), frame, end_s) for mode in modes]
        extremes = [group_extremes(cycle.grouped, kept, part.low, part.high) for part in parts]
        intervals = filled(np.stack(extremes, axis=1), overall)
    texts = " and ".join(f"{low:g} to {high:g}" for low, high in overall)
    return SeriesNormalcy(
        "transient",
        f"{len(modes)} modes that points stay in: {texts}",
        Bounds(frame.origin_s, frame.column_s, intervals),
        cycle.units * frame.parts * frame.column_s,
        cycle=cycle,
    )
