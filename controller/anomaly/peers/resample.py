"""From samples at any times to means over the cells of one grid, and their moving average."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.peers.combination import counts_failures
from controller.anomaly.series import OrderedSeries, usual_interval_s

GAP_INTERVALS = 3.0
"""A longer step than this many usual ones is a gap: what happened in it is not known."""
RISES_OF_A_COUNTER = 3
ROUNDING = 8 * np.finfo(np.float64).eps
"""Values that differ by no more than this share of themselves are the same: they were scaled, and rounded again."""
HAIR = 1e-9
"""See `resolution`."""
EDGE_S = 1e-6
"""A sample that is taken so shortly after the end of a cell is taken at it: epoch seconds are hardly finer."""


class Grid(NamedTuple):
    """Cells of equal length: cell j spans from `start_s` + j `interval_s` for one interval."""

    start_s: float
    interval_s: float
    cells: int

    @property
    def ends_s(self) -> NDArray[np.float64]:
        """Epoch seconds at which each cell ends, (cells,)."""
        return np.asarray(self.start_s + self.interval_s * np.arange(1, self.cells + 1), np.float64)


def grid_over(first_s: float, last_s: float, interval_s: float) -> Grid:
    """Return the grid of whole multiples of the interval that covers what happened from `first_s` to `last_s`."""
    start = math.floor(first_s / interval_s)
    return Grid(start * interval_s, interval_s, max(1, math.ceil(last_s / interval_s) - start))


def known_before_s(series: OrderedSeries, otherwise_s: float) -> float:
    """Return for how many seconds before its time a sample stands where no other is near: the usual interval."""
    usual_s = usual_interval_s(series.at_s)
    return otherwise_s if math.isnan(usual_s) else usual_s


def resample(series: OrderedSeries, grid: Grid) -> NDArray[np.float64]:
    """Return the mean of a series over each cell, by sampling its cumulative sum.

    A sample stands for the time since the one before it, as sysstat's rates do; after a gap, for the usual interval.
    It counts as a whole in the cell in which it was taken, so that no cell with a sample of its own holds what was
    seen only after it ended: a fault would otherwise be seen before it began. A cell in which none was taken is a
    part of the time of the next one.

    Parameters
    ----------
    series : OrderedSeries
        n samples of a rate or of an average over time.
    grid : Grid
        m cells.

    Returns
    -------
    NDArray[np.float64]
        (m,), NaN where less than half of a cell is known.

    Notes
    -----
    Source: Kasick et al., 4.2 "Downsampling": no work done between samples is lost.
    """
    at_s, values = series.at_s, series.values
    if not len(at_s):
        return np.full(grid.cells, np.nan)
    usual_s = known_before_s(series, grid.interval_s)
    steps = np.diff(at_s, prepend=at_s[0] - usual_s)
    known_s = np.where(steps > GAP_INTERVALS * usual_s, usual_s, steps)
    times = np.stack([at_s - known_s, at_s], axis=1).ravel()
    covered = np.cumsum(np.stack([np.zeros(len(at_s)), known_s], axis=1).ravel())
    edges = grid.start_s + grid.interval_s * np.arange(grid.cells + 1)
    enough = np.diff(np.interp(edges, times, covered)) >= grid.interval_s / 2
    middle = float(np.median(values))
    before = np.searchsorted(at_s, edges + EDGE_S, side="right")
    taken = np.diff(before) > 0
    total, time_s = (
        np.diff(np.concatenate([[0.0], np.cumsum(each)])[before]) for each in ((values - middle) * known_s, known_s)
    )
    means = np.divide(total, time_s, out=np.zeros(grid.cells), where=taken) + middle
    following = values[np.minimum(before[1:], len(values) - 1)]
    return np.where(enough, np.where(taken, means, following), np.nan)


def is_counter(metric: str, group: Sequence[OrderedSeries]) -> bool:
    """Say whether the series of a metric count upwards: none ever falls, and they rise often enough to tell.

    What counts failures, by its name, may not rise for days: of that it is enough that it holds whole numbers.
    """
    rises = 0
    for series in group:
        steps = np.diff(series.values)
        if np.any(steps < 0):
            return False
        rises += int(np.count_nonzero(steps > 0))
    return rises >= RISES_OF_A_COUNTER or (counts_failures(metric) and is_whole(group))


def is_whole(group: Iterable[OrderedSeries]) -> bool:
    """Say whether the series of one metric hold whole numbers alone."""
    return all(bool(np.all(series.values == np.rint(series.values))) for series in group)


def resolution(group: Iterable[OrderedSeries]) -> float:
    """Return how far off the values of a metric may be for being rounded: half of the step from one to the next.

    The step is the least difference of two values of any member, so that it is the same in any unit; what was never
    seen to change has none, and 0 is returned. It is a hair more than half, so that what is as far off as that is
    not further off in another unit.
    """
    values = np.unique(np.concatenate([np.empty(0), *(series.values for series in group)]))
    steps = np.diff(values)
    steps = steps[steps > ROUNDING * np.maximum(np.abs(values[:-1]), np.abs(values[1:]))]
    return float(steps.min()) / 2 * (1 + HAIR) if len(steps) else 0.0


def rates(series: OrderedSeries) -> OrderedSeries:
    """Return the rates per second of a series of counts, n - 1 samples."""
    per_s = np.diff(series.values) / np.diff(series.at_s)
    return series._replace(at_s=series.at_s[1:], values=per_s)


def moving_average(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the mean of each value and the `width` - 1 before it, along the last axis.

    NaN counts as missing; NaN where less than half of the width is known. Source: Kasick et al., 4.2
    "Moving Average Filter".
    """
    if width == 1:
        return values
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    total, count = filled.copy(), known.astype(np.int16)
    for back in range(1, min(width, values.shape[-1])):
        total[..., back:] += filled[..., :-back]
        count[..., back:] += known[..., :-back]
    enough = count * 2 >= width
    return np.where(enough, total / np.maximum(count, 1), np.nan)
