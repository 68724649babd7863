"""Rates summed up over seconds, minutes and hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import SampleRates
from controller.performance.counters import COUNTER_COUNT
from controller.performance.ports import longer

STEPS_S = (1, 60, 3600)
LONGEST_SAMPLE_STEPS = 1.5
"""A sample over a longer time is no part of a roll-up: the roll-up would be the sample again."""

_EMPTY = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class RollUps:
    """Roll-ups of one length, one entry for each port and period.

    Attributes
    ----------
    step_s
        The length of the period.
    rows
        int32[n], rows of `PortRows`.
    start_s
        float64[n], when the period began, a multiple of `step_s`.
    minimum, mean, maximum
        float64[n, 12], rates per second; the mean is weighted by time. NaN where no rate was known.
    total
        float64[n, 12], what was counted in the known time.
    count
        uint32[n], samples received in the period.
    covered_s
        float64[n], the time that these samples tell about; below `step_s` where there were gaps.
    """

    step_s: int
    rows: NDArray[np.int32]
    start_s: NDArray[np.float64]
    minimum: NDArray[np.float64]
    mean: NDArray[np.float64]
    maximum: NDArray[np.float64]
    total: NDArray[np.float64]
    count: NDArray[np.uint32]
    covered_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


class RollUpTable:
    """The periods under way of every row.

    A sample belongs, with all its time, to the period in which it was received. Memory is taken with the first sample
    that fits into a period.
    """

    def __init__(self, step_s: int) -> None:
        if step_s < 1:
            raise ValueError("a roll-up is over at least one second")
        self.step_s = step_s
        self._period = np.empty(0, np.int64)
        self._count = np.empty(0, np.uint16)
        self._minimum = np.empty((0, COUNTER_COUNT), np.float32)
        self._maximum = np.empty((0, COUNTER_COUNT), np.float32)
        self._total = np.empty((0, COUNTER_COUNT))
        self._known_s = np.empty((0, COUNTER_COUNT), np.float32)

    def update(self, rates: SampleRates, capacity: int) -> RollUps | None:
        """Take in rates of different rows (below `capacity`); return the periods that they end."""
        fits = rates.interval_s <= self.step_s * LONGEST_SAMPLE_STEPS
        if not fits.all():
            if not fits.any():
                return None
            rates = rates.take(fits)
        self._fit(capacity)
        rows = rates.rows
        period = np.floor_divide(rates.at_s, self.step_s).astype(np.int64)
        former = self._period[rows]
        begins = former != period
        closed = None
        if begins.any():
            ended = rows[begins & (former != _EMPTY)]
            closed = self._close(ended) if ended.size else None
            begun = rows[begins]
            self._period[begun] = period[begins]
            self._count[begun] = 0
            self._minimum[begun] = np.nan
            self._maximum[begun] = np.nan
            self._total[begun] = 0.0
            self._known_s[begun] = 0.0
        per_s = rates.per_s.astype(np.float32)
        self._minimum[rows] = np.fmin(self._minimum[rows], per_s)
        self._maximum[rows] = np.fmax(self._maximum[rows], per_s)
        counted = rates.per_s * rates.interval_s[:, None]
        known_s = np.broadcast_to(rates.interval_s.astype(np.float32)[:, None], counted.shape)
        unknown = np.isnan(counted)
        if unknown.any():
            counted = np.where(unknown, 0.0, counted)
            known_s = np.where(unknown, np.float32(0), known_s)
        self._total[rows] += counted
        self._known_s[rows] += known_s
        self._count[rows] += np.uint16(1)
        return closed

    def forget(self, row: int) -> None:
        """Drop the period of a row: it belongs to another port now."""
        if row < len(self._period):
            self._period[row] = _EMPTY

    def flush(self, now: float) -> RollUps | None:
        """Close the periods that are over though no sample came since."""
        over = (self._period != _EMPTY) & (self._period < now // self.step_s)
        rows = np.flatnonzero(over).astype(np.int32)
        if not rows.size:
            return None
        closed = self._close(rows)
        self._period[rows] = _EMPTY
        return closed

    def _close(self, rows: NDArray[np.int32]) -> RollUps:
        total: NDArray[np.float64] = self._total[rows]
        mean: NDArray[np.float64] = np.full_like(total, np.nan)
        known_s = self._known_s[rows].astype(np.float64)
        np.divide(total, known_s, out=mean, where=known_s > 0)
        return RollUps(
            self.step_s,
            rows,
            self._period[rows].astype(np.float64) * self.step_s,
            self._minimum[rows].astype(np.float64),
            mean,
            self._maximum[rows].astype(np.float64),
            total,
            self._count[rows].astype(np.uint32),
            known_s.max(axis=1),
        )

    def _fit(self, capacity: int) -> None:
        former = len(self._period)
        if former < capacity:
            self._period, self._count = longer(self._period, capacity), longer(self._count, capacity)
            self._period[former:] = _EMPTY
            self._minimum, self._maximum = longer(self._minimum, capacity), longer(self._maximum, capacity)
            self._total, self._known_s = longer(self._total, capacity), longer(self._known_s, capacity)
