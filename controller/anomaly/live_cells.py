"""Samples of many members as sums over the cells of one grid, of which the latest are kept."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from controller.performance.ports import longer

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

SPAN_CELLS = 8
"""A sample over a longer time says nothing of any cell."""
GAP_INTERVALS = 1.5
"""A sample stands for the time since the one before it, but for no more than so many times its own interval."""
LEAST_KNOWN = 0.5
"""A cell is known where so much of it is."""
LATE_CELLS = 2
"""A sample over more cells was polled late: when in that time it was counted is not known."""


class Cells:
    """A ring of the latest `depth` cells of `interval_s`, for every row the sums of some quantities in each.

    A sample stands for the time since the one before it, so that what is counted in several cells adds up to what was
    counted: the streaming form of sampling the cumulative sum (Kasick et al., 4.2 "Downsampling").

    Attributes
    ----------
    newest
        Number of the newest cell; cell j begins at j `interval_s`. None before the first sample.
    """

    def __init__(self, interval_s: float, depth: int, quantities: int) -> None:
        self.interval_s = interval_s
        self.depth = depth
        self.newest: int | None = None
        self._sums = np.zeros((depth, 0, quantities), np.float32)
        self._known = np.zeros((depth, 0), np.float32)
        self._is_within = np.zeros((depth, 0), np.bool_)
        self._last_s = np.empty(0)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row takes."""
        return self.depth * (4 * (self._sums.shape[2] + 1) + 1) + 8

    def fit(self, capacity: int) -> None:
        """Make room for rows."""
        former = len(self._last_s)
        if former < capacity:
            added = ((0, 0), (0, capacity - former))
            self._sums = np.pad(self._sums, (*added, (0, 0)))
            self._known = np.pad(self._known, added)
            self._is_within = np.pad(self._is_within, added)
            self._last_s = longer(self._last_s, capacity)
            self._last_s[former:] = np.nan

    def forget(self, rows: Rows) -> None:
        """Empty rows."""
        self._sums[:, rows] = 0
        self._known[:, rows] = 0
        self._is_within[:, rows] = False
        self._last_s[rows] = np.nan

    def clear(self) -> None:
        """Empty everything: the clock was set."""
        self.newest = None
        self._sums[:] = 0
        self._known[:] = 0
        self._is_within[:] = False
        self._last_s[:] = np.nan

    def advance(self, at_s: float) -> None:
        """Begin the cells up to the one that holds a time."""
        cell = math.floor(at_s / self.interval_s)
        if self.newest is None:
            self.newest = cell
        elif cell > self.newest:
            fresh = np.arange(max(self.newest + 1, cell - self.depth + 1), cell + 1) % self.depth
            self._sums[fresh] = 0
            self._known[fresh] = 0
            self._is_within[fresh] = False
            self.newest = cell

    def add(self, rows: Rows, at_s: Floats, interval_s: Floats, per_s: Floats) -> None:
        """Spread samples over the cells that they are about.

        Parameters
        ----------
        rows : NDArray[np.intp]
            (n,), each once.
        at_s, interval_s : NDArray[np.float64]
            (n,): end of the samples' time and its length; NaN where what was counted is not known.
        per_s : NDArray[np.float64]
            (n, quantities): rates or means; NaN where not known.
        """
        since_s = at_s - self._last_s[rows]
        self._last_s[rows] = at_s
        span_s = np.where((since_s > 0) & (since_s < GAP_INTERVALS * interval_s), since_s, interval_s)
        usable = np.isfinite(interval_s) & (interval_s > 0) & (span_s > 0) & (span_s <= SPAN_CELLS * self.interval_s)
        if not usable.any():
            return
        rows, end = rows[usable], at_s[usable] / self.interval_s
        span = span_s[usable] / self.interval_s
        amounts = per_s[usable] * interval_s[usable, None]
        self.advance(float(at_s[usable].max()))
        assert self.newest is not None
        oldest = self.newest - self.depth + 1
        last = np.ceil(end).astype(np.int64) - 1
        longest = int(np.ceil(span.max())) + 1
        cell = last - np.arange(longest)[:, None]
        overlap = np.minimum(end, cell + 1) - np.maximum(end - span, cell)
        # Each cell of a row is met once, so that nothing is added to the same place twice.
        back, sample = np.nonzero((overlap > 0) & (cell >= oldest))
        slot, row, overlap = cell[back, sample] % self.depth, rows[sample], overlap[back, sample]
        self._known[slot, row] += overlap
        self._sums[slot, row] += amounts[sample] * (overlap / span[sample])[:, None]
        goes_on = (span[sample] > LATE_CELLS) & (back > 0)
        self._is_within[slot[goes_on], row[goes_on]] = True

    def sums(self, rows: Rows, end: int, count: int) -> tuple[Floats, Floats]:
        """Return the `count` cells before cell `end`, of rows.

        Returns
        -------
        tuple[NDArray[np.float64], NDArray[np.float64]]
            (quantities, rows, count) sums, NaN where less than half of a cell is known, and (rows, count) which share
            of each cell is known.
        """
        slots = np.arange(end - count, end) % self.depth
        known = self._known[np.ix_(slots, rows)].T.astype(np.float64)
        sums = np.moveaxis(self._sums[np.ix_(slots, rows)], 2, 0).swapaxes(1, 2).astype(np.float64)
        return np.where(known >= LEAST_KNOWN, sums, np.nan), known

    def within_late(self, rows: Rows, end: int, count: int) -> NDArray[np.bool_]:
        """Return whether the ends of the `count` cells before cell `end`, of rows, are within late samples.

        So far it is not known what had been counted then. (rows, count).
        """
        slots = np.arange(end - count, end) % self.depth
        return self._is_within[np.ix_(slots, rows)].T
