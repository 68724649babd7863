"""The last hour of every port in memory: octets in both directions and errors, two bytes for each rate.

A rate is kept as its logarithm, off by at most 0.04 %, on a grid of time. Everything else of the past is in files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import SampleRates
from controller.performance.counters import BYTE_COLUMNS, FIRST_ERROR_COLUMN
from controller.performance.ports import longer

SLOTS = 360
COLUMNS = 3
_STEPS_PER_NEPER = 1024 / np.log(2.0)
_UNKNOWN = np.uint16(0)


class PortHistory(NamedTuple):
    """The last hour of a port: `start_s` float64[m] of each step, rates 1/s, NaN where unknown; oldest first."""

    start_s: NDArray[np.float64]
    rx_bytes_per_s: NDArray[np.float64]
    tx_bytes_per_s: NDArray[np.float64]
    errors_per_s: NDArray[np.float64]


class RateHistory:
    """A ring of `SLOTS` steps for every row; `step_s` is the length of a step."""

    def __init__(self, step_s: float = 10.0) -> None:
        if not step_s > 0:
            raise ValueError("a step of the history lasts longer than 0 s")
        self.step_s = step_s
        self._codes = np.zeros((0, SLOTS, COLUMNS), np.uint16)
        self._slot = np.zeros(0, np.int64)

    def fit(self, capacity: int) -> None:
        """Make room for rows below `capacity`."""
        if len(self._slot) < capacity:
            self._codes, self._slot = longer(self._codes, capacity), longer(self._slot, capacity)

    def forget(self, row: int) -> None:
        """Empty a row: it belongs to another port now."""
        self._codes[row] = _UNKNOWN
        self._slot[row] = 0

    def update(self, rates: SampleRates) -> None:
        """Keep rates of different rows; steps since the last sample get the rate, which is that of all this time."""
        rows = rates.rows
        slots = np.floor_divide(rates.at_s, self.step_s).astype(np.int64)
        values = np.empty((len(rows), COLUMNS))
        values[:, :2] = rates.per_s[:, BYTE_COLUMNS[0] : BYTE_COLUMNS[1] + 1]
        # A counter that the switch has not adds nothing to the errors.
        errors = rates.per_s[:, FIRST_ERROR_COLUMN:]
        values[:, 2] = np.where(np.isnan(rates.interval_s), np.nan, np.nansum(errors, axis=1))
        codes = np.zeros(values.shape, np.uint16)
        known = ~np.isnan(values)
        codes[known] = np.minimum(np.rint(np.log1p(values[known]) * _STEPS_PER_NEPER), 65534).astype(np.uint16) + 1
        skipped = np.minimum(slots - self._slot[rows] - 1, SLOTS - 1)
        self._codes[rows, slots % SLOTS] = codes
        if (skipped > 0).any():
            gaps = np.flatnonzero(skipped > 0)
            lengths = skipped[gaps]
            entry = np.repeat(gaps, lengths)
            back = np.arange(len(entry)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
            filled = np.where((self._slot[rows[entry]] > 0)[:, None], codes[entry], _UNKNOWN)
            self._codes[rows[entry], (slots[entry] - back) % SLOTS] = filled
        self._slot[rows] = np.where(skipped >= -SLOTS, np.maximum(slots, self._slot[rows]), slots)

    def of(self, row: int) -> PortHistory:
        """Return the last hour of a row; empty before its first sample."""
        last = int(self._slot[row])
        if last == 0:
            return PortHistory(*(np.empty(0) for _ in range(1 + COLUMNS)))
        slots = np.arange(last - SLOTS + 1, last + 1)
        codes = self._codes[row, slots % SLOTS].astype(np.float64)
        rates: NDArray[np.float64] = np.where(codes > 0, np.expm1((codes - 1) / _STEPS_PER_NEPER), np.nan)
        first = int(np.argmax((codes > 0).any(axis=1))) if codes.any() else SLOTS - 1
        return PortHistory(
            slots[first:].astype(np.float64) * self.step_s, rates[first:, 0], rates[first:, 1], rates[first:, 2]
        )
