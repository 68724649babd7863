"""Multinomial data: few integer values, some of them frequent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.bounds import Bounds
from controller.anomaly.normalcy.cyclochart import find_cycle, kept_columns
from controller.anomaly.normalcy.footprint import footprint, plain_frame
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Floats, Series
from controller.anomaly.normalcy.settings import Settings


def integer_shares(values: Floats) -> tuple[Floats, Floats]:
    """Return the integers among values, most frequent first, and their shares in percent of the integer-valued
    points.

    Source: formula -16, p_j = 100 count(x = n_j) / N; confidence high. Of equally frequent ones the smaller is first.
    """
    whole = values[values == np.floor(values)]
    if not len(whole):
        return np.empty(0), np.empty(0)
    found, counts = np.unique(whole, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return found[order], 100.0 * counts[order] / len(whole)


def is_multinomial(shares_pct: Floats, settings: Settings) -> bool:
    """Tell whether there are fewer than m values of which at least s are more frequent than H1."""
    frequent = int((shares_pct > settings.multinomial_h1_pct).sum())
    return len(shares_pct) < settings.multinomial_max_values and frequent >= settings.multinomial_min_frequent


def without_rare(shares_pct: Floats, h3_pct: float) -> int:
    """Return how many of the values, most frequent first, stay when the tail below H3 percent in sum is discarded.

    The tail sums are c_j = p_j + ... + p_m; the values from the first k with c_k < H3 on go.
    """
    tails = np.cumsum(shares_pct[::-1])[::-1]
    below = np.flatnonzero(tails < h3_pct)
    return int(below[0]) if len(below) else len(shares_pct)


def normal_set(values: Floats, h_pct: float) -> tuple[float, ...]:
    """Return the fewest values, most frequent first, whose shares sum up to H percent, in ascending order.

    The article prints tail sums here as well; the set of most probable values needs head sums p_1 + ... + p_k.
    """
    found, shares = integer_shares(values)
    if not len(found):
        return ()
    count = int(np.searchsorted(np.cumsum(shares), h_pct - 1e-9)) + 1
    return tuple(sorted(found[:count].tolist()))


def detect_multinomial(series: Series, settings: Settings) -> SeriesNormalcy | None:
    """Return the normalcy sets of multinomial data, None where the series is none.

    Where the series as it is does not pass, points that are no integers (fewer than H2 percent) and then rare values
    (less than H3 percent in sum) are discarded.
    """
    whole = series.values == np.floor(series.values)
    if 100.0 * (1 - whole.mean()) >= settings.multinomial_h2_pct and not whole.all():
        return None
    clean = series.part(whole)
    found, shares = integer_shares(clean.values)
    discarded = len(series) - len(clean)
    if not is_multinomial(shares, settings):
        found = found[: without_rare(shares, settings.multinomial_h3_pct)]
        clean = clean.part(np.isin(clean.values, found))
        discarded = len(series) - len(clean)
        found, shares = integer_shares(clean.values)
        if not is_multinomial(shares, settings):
            return None
    return _normalcy(clean, found, discarded, settings)


def _normalcy(series: Series, found: Floats, discarded: int, settings: Settings) -> SeriesNormalcy:
    order = np.argsort(found)
    ranks = order[np.searchsorted(found[order], series.values)].astype(np.float64)
    frame = plain_frame(series, settings, np.arange(0.5, len(found) - 1, dtype=np.float64))
    columns = footprint(series.with_values(ranks), frame)
    cycle = find_cycle(columns, settings)
    overall = normal_set(series.values, settings.multinomial_h_pct)
    members: list[tuple[float, ...]] = [overall]
    if cycle.grouped is not None:
        kept = kept_columns(cycle.grouped, columns.present)
        members = [
            _set_of_counts(found, columns.counts[cycle.grouped.columns[slot][kept[slot]]], settings) or overall
            for slot in range(len(kept))
        ]
    intervals = np.array([[[each[0], each[-1]]] for each in members])
    bounds = Bounds(frame.origin_s, frame.column_s, intervals, None, tuple(members))
    cleaned = f", {discarded} points of noise discarded" if discarded else ""
    return SeriesNormalcy(
        "multinomial",
        f"{len(found)} integer values{cleaned}; normal: {', '.join(f'{value:g}' for value in overall)}",
        bounds,
        cycle.units * frame.parts * frame.column_s,
        cycle=cycle,
    )


def _set_of_counts(found: Floats, counts: NDArray[np.uint32], settings: Settings) -> tuple[float, ...]:
    total = counts.sum(axis=0, dtype=np.int64)
    return normal_set(np.repeat(found, total), settings.multinomial_h_pct)
