"""The footprint of a series: how its values are distributed in each slot of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.series import Floats, Series, smooth
from controller.anomaly.normalcy.settings import Settings

MAX_COLUMNS = 4_000
"""Longer histories get longer slots, and time units as many times longer: every two columns are compared."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The grid of a footprint: slots of `column_s` from `origin_s` on, cells between `edges` (sorted, inner ones).

    Points beyond `lowest` and `highest` are drawn in to them, then a moving average over `smoothing_points` is
    counted.
    """

    origin_s: float
    column_s: float
    parts: int
    edges: Floats
    lowest: float = -np.inf
    highest: float = np.inf
    smoothing_points: int = 1

    def columns_of(self, at_s: Floats) -> NDArray[np.int64]:
        """Return the number of each time's column; the first is 0."""
        return np.floor((at_s - self.origin_s) / self.column_s).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Counts uint32[columns, cells] of a series on a frame, with the least and greatest value float64[columns].

    The first column holds the series' first point. Columns without points have NaN as `low` and `high`.
    """

    frame: Frame
    counts: NDArray[np.uint32]
    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Tell the columns that hold points, bool[columns]."""
        return np.asarray(self.counts.any(axis=1))

    def cumulative(self) -> Floats:
        """Return the cumulative percentage of each column, float64[columns, cells]; 0 where it is empty."""
        sums = np.cumsum(self.counts, axis=1, dtype=np.float64)
        total = np.maximum(sums[:, -1:], 1.0)
        shares: Floats = 100.0 * sums / total
        return shares

    def extended(self, series: Series, until_s: float | None = None) -> Footprint:
        """Return the footprint with later points; columns that stand are not counted again."""
        if not len(series):
            return self
        first = int(self.frame.columns_of(series.at_s[:1])[0])
        new = _columns(self.frame, series, first, until_s)
        count = max(len(self), first + len(new[0]))
        counts = np.zeros((count, self.counts.shape[1]), np.uint32)
        low, high = np.full(count, np.nan), np.full(count, np.nan)
        counts[: len(self)], low[: len(self)], high[: len(self)] = self.counts, self.low, self.high
        added = slice(first, first + len(new[0]))
        counts[added] += new[0]
        low[added], high[added] = np.fmin(low[added], new[1]), np.fmax(high[added], new[2])
        return Footprint(self.frame, counts, low, high)

    def without_first(self, columns: int) -> Footprint:
        """Return the footprint without its oldest columns."""
        origin_s = self.frame.origin_s + columns * self.frame.column_s
        frame = replace(self.frame, origin_s=origin_s)
        return Footprint(frame, self.counts[columns:], self.low[columns:], self.high[columns:])


def parts_per_unit(series: Series, settings: Settings) -> int:
    """Return into how many slots a time unit is cut: the default, or a divisor of it that leaves each slot points."""
    parts = settings.time_unit_parts
    if series.interval_s > 0:
        wanted = settings.time_unit_s / (series.interval_s * settings.points_per_column)
        parts = max((p for p in range(1, parts + 1) if settings.time_unit_parts % p == 0 and p <= wanted), default=1)
    return parts


def frame_origin_s(series: Series, column_s: float) -> float:
    """Return where the first point's column starts; columns start at whole multiples since the epoch."""
    return float(np.floor(series.at_s[0] / column_s) * column_s)


def quantile_frame(series: Series, settings: Settings) -> Frame:
    """Return a frame whose cells end at the series' quantiles; the series has at least one point."""
    share = min(settings.outlier_quantile, 0.5)
    low, high = np.quantile(series.values, (share, 1 - share))
    frame = plain_frame(series, settings, np.empty(0))
    frame = replace(frame, lowest=float(low), highest=float(high), smoothing_points=settings.smoothing_points)
    edges = np.unique(np.quantile(_prepared(frame, series.values), settings.frame_quantiles))
    return replace(frame, edges=edges[1:-1] if len(edges) > 2 else edges[1:])


def plain_frame(series: Series, settings: Settings, edges: Floats) -> Frame:
    """Return a frame with given cells that takes points as they are; columns start at whole multiples since the
    epoch.
    """
    parts = parts_per_unit(series, settings)
    column_s = settings.time_unit_s / parts
    span_s = float(series.at_s[-1] - series.at_s[0])
    while span_s / column_s > MAX_COLUMNS:
        column_s *= 2
    return Frame(float(np.floor(series.at_s[0] / column_s) * column_s), column_s, parts, edges)


def footprint(series: Series, frame: Frame, until_s: float | None = None) -> Footprint:
    """Count a series (one point at least) on a frame, up to the column of `until_s` where that is later.

    Raises ValueError for a first point before the frame's origin.
    """
    if series.at_s[0] < frame.origin_s:
        raise ValueError("the series starts before the frame")
    return Footprint(frame, *_columns(frame, series, 0, until_s))


def _prepared(frame: Frame, values: Floats) -> Floats:
    return smooth(np.clip(values, frame.lowest, frame.highest), frame.smoothing_points)


def _columns(
    frame: Frame, series: Series, first: int, until_s: float | None
) -> tuple[NDArray[np.uint32], Floats, Floats]:
    """Return counts, least and greatest value of each column from the `first` on."""
    columns = frame.columns_of(series.at_s) - first
    last_s = float(series.at_s[-1]) if until_s is None else max(until_s, float(series.at_s[-1]))
    count = int(frame.columns_of(np.array([last_s]))[0]) - first + 1
    cells = len(frame.edges) + 1
    inside = np.searchsorted(frame.edges, _prepared(frame, series.values), side="right")
    counts = np.bincount(columns * cells + inside, minlength=count * cells).reshape(count, cells).astype(np.uint32)
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    drawn_in = np.clip(series.values, frame.lowest, frame.highest)
    low[columns[starts]] = np.minimum.reduceat(drawn_in, starts)
    high[columns[starts]] = np.maximum.reduceat(drawn_in, starts)
    return counts, low, high


def column_distances(cumulative: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the relative L2 distance of every two columns, float[columns, columns] of the type that is given.

    d(A, B) = norm2(A - B) / max(norm2(A), norm2(B)), 0 for two columns of zeros. Source: formula -6 of the article,
    whose picture is lost; confidence high for the form, medium for the denominator.
    """
    return np.concatenate(list(_distances(cumulative)))


DISTANCES_AT_ONCE = 1 << 16
"""So many stay within a processor's cache while they are worked on."""


def _distances(cumulative: NDArray[np.floating]) -> Iterator[NDArray[np.floating]]:
    """Yield the distances of a few columns to all, of the next few columns to all, and so on."""
    count, squares = len(cumulative), (cumulative**2).sum(axis=1)
    above_zero = np.maximum(squares, np.finfo(squares.dtype).tiny)
    at_once = max(1, DISTANCES_AT_ONCE // max(1, count))
    for first in range(0, max(1, count), at_once):
        some = slice(first, first + at_once)
        distances = cumulative[some] @ cumulative.T
        distances *= -2
        distances += squares[some, None]
        distances += squares
        np.maximum(distances, 0, out=distances)
        distances /= np.maximum(above_zero[some, None], squares)
        yield np.sqrt(distances, out=distances)


ROUNDING = 1e-3
"""What single precision adds to a distance of equal columns."""


def similar_columns(columns: Footprint, closeness: float) -> NDArray[np.bool_]:
    """Tell which columns are alike, bool[columns, columns]; an empty column is like none, not even itself."""
    present, cumulative = columns.present, columns.cumulative().astype(np.float32)
    found = np.concatenate([distances <= closeness + ROUNDING for distances in _distances(cumulative)])
    found &= present[:, None]
    found &= present
    return found
