"""How the rates of each counter are distributed, per switch and over all of them.

Buckets are log-linear: eight to each power of two, so that a rate is known to a sixteenth; their counts are exact. A
bucket's number is the top of the float32 that the rate is (exponent and three bits of the fraction).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import SampleRates
from controller.performance.counters import COUNTER_COUNT, Counter
from controller.performance.ports import longer
from controller.performance.reports import HistogramReport

PERCENTS = (50.0, 90.0, 99.0, 99.9, 100.0)
_SHIFT = 20
LOWEST_POWER, HIGHEST_POWER = -12, 41
"""Rates below 2**-12 (one in 68 minutes) and from 2**41 a second on are in the outermost buckets."""

_BASE = (127 + LOWEST_POWER) << 3
BUCKETS = (HIGHEST_POWER - LOWEST_POWER) << 3
_EDGES = (np.arange(_BASE, _BASE + BUCKETS + 1, dtype=np.uint32) << _SHIFT).view(np.float32).astype(np.float64)


class Histograms:
    """Counts of rates by switch, counter and bucket.

    Memory is bounded: buckets of a switch and counter are made with the first rate above 0, 1.7 KB for each.
    """

    def __init__(self) -> None:
        self._zeros = np.zeros((0, COUNTER_COUNT), np.uint64)
        self._slots = np.zeros((0, COUNTER_COUNT), np.int32)
        self._counts = np.zeros((1, BUCKETS), np.uint32)
        self._used = 1
        self._free: list[int] = []
        self._gone_zeros = np.zeros(COUNTER_COUNT, np.uint64)
        self._gone = np.zeros((COUNTER_COUNT, BUCKETS), np.uint64)

    def update(self, rates: SampleRates, nodes: NDArray[np.int32], node_count: int) -> None:
        """Count rates; `nodes` int32[n] are the dense numbers of their switches, below `node_count`."""
        if len(self._zeros) < node_count:
            self._zeros, self._slots = longer(self._zeros, node_count), longer(self._slots, node_count)
        values = rates.per_s.astype(np.float32).ravel()
        which = (nodes[:, None] * COUNTER_COUNT + np.arange(COUNTER_COUNT, dtype=np.int32)).ravel()
        positive = values > 0
        np.add.at(self._zeros.reshape(-1), which[values == 0], np.uint64(1))
        values, which = values[positive], which[positive]
        buckets = (values.view(np.uint32) >> _SHIFT).astype(np.int32) - _BASE
        np.clip(buckets, 0, BUCKETS - 1, out=buckets)
        slots = self._slots.reshape(-1)[which]
        if not slots.all():
            self._make(np.unique(which[slots == 0]))
            slots = self._slots.reshape(-1)[which]
        np.add.at(self._counts.reshape(-1), slots * np.int64(BUCKETS) + buckets, np.uint32(1))

    def forget(self, node: int) -> None:
        """Keep the counts of a switch for the sum over all of them only."""
        if node >= len(self._zeros):
            return
        self._gone_zeros += self._zeros[node]
        self._zeros[node] = 0
        for column, slot in enumerate(self._slots[node].tolist()):
            if slot:
                self._gone[column] += self._counts[slot]
                self._counts[slot] = 0
                self._free.append(slot)
        self._slots[node] = 0

    def report(self, counter: Counter, node: int | None = None) -> HistogramReport:
        """Return the distribution of a counter at a switch, or over all where `node` is None."""
        column = counter.column
        counts = np.zeros(BUCKETS, np.uint64)
        zeros = 0
        if node is None:
            slots = self._slots[:, column]
            counts += self._counts[slots[slots > 0]].sum(axis=0, dtype=np.uint64) + self._gone[column]
            zeros = int(self._zeros[:, column].sum() + self._gone_zeros[column])
        elif node < len(self._zeros):
            counts += self._counts[self._slots[node, column]]
            zeros = int(self._zeros[node, column])
        return _report(counts, zeros)

    def _make(self, wanted: NDArray[np.int32]) -> None:
        for place in wanted.tolist():
            if self._free:
                slot = self._free.pop()
            else:
                slot = self._used
                self._used += 1
                if slot == len(self._counts):
                    self._counts = longer(self._counts, slot + slot // 4 + 16)
            self._slots.reshape(-1)[place] = slot


def _report(counts: NDArray[np.uint64], zeros: int) -> HistogramReport:
    """Return counts as a report; percentiles are nearest ranks, told as the middle of their bucket."""
    full = np.flatnonzero(counts)
    buckets = tuple((float(_EDGES[i]), float(_EDGES[i + 1]), int(counts[i])) for i in full.tolist())
    samples = zeros + sum(count for _, _, count in buckets)
    percentiles: dict[float, float] = {}
    if samples:
        upto = zeros + np.cumsum(counts[full])
        for percent in PERCENTS:
            rank = max(1, int(np.ceil(samples * percent / 100)))
            place = int(np.searchsorted(upto, rank))
            percentiles[percent] = 0.0 if rank <= zeros else (buckets[place][0] + buckets[place][1]) / 2
    return HistogramReport(samples, zeros, buckets, percentiles)
