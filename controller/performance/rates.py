"""Counters to rates: the last sample of every port, and what the next one says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.compare import Before, Compared, compare
from controller.performance.counters import BITS, BYTE_COLUMNS, COUNTER_COUNT, UNSUPPORTED
from controller.performance.ports import PortRows, longer

CHUNK = 4096
"""Samples compared at once, so that they stay in the processor's cache."""

LONGEST_DURATION_S = 4294967295.0
"""Longer ones mean that the switch does not tell."""

BITS_PERCENT = 8 * 100.0
_RX_BYTES, _TX_BYTES = BYTE_COLUMNS
_IGNORED = np.zeros(256, np.bool_)
_IGNORED[[code for code in Discontinuity if code.ignored]] = True


class RateTable:
    """The last sample of every row of a port table.

    Parameters
    ----------
    ports
        Tells capacity and generation of each row; the caller keeps it.
    sticky_bits
        32 where counters stay at 2**32 - 1 once they are there, else 0.

    Attributes
    ----------
    at_s
        float64[capacity], when the last sample was received; NaN before the first.
    counters
        uint64[capacity, 12], the last counters.
    reset_s
        float64[capacity], when a reset or a new creation was last seen; NaN where never.
    totals
        uint64[capacity, 12], counted since `forget` or `zero`, wraps and resets put right.
    expected_s
        float64[capacity], time between two polls; 0 where unknown.
    """

    def __init__(self, ports: PortRows, sticky_bits: int = 0) -> None:
        self.sticky_bits = sticky_bits
        self._ports = ports
        self.at_s = np.empty(0)
        self.reset_s = np.empty(0)
        self.counters = np.empty((0, COUNTER_COUNT), np.uint64)
        self.totals = np.empty((0, COUNTER_COUNT), np.uint64)
        self.expected_s = np.empty(0)
        self._duration_s = np.empty(0)
        self._generation = np.empty(0, np.uint32)
        self._known = np.empty(0, np.bool_)
        self._late = np.empty(0, np.uint8)
        self._narrow = np.empty(0, np.uint16)
        self._place = np.empty(0, np.int32)

    def fit(self) -> None:
        """Make room for all rows of the port table."""
        former, capacity = len(self.at_s), self._ports.capacity
        if former < capacity:
            self.at_s, self.reset_s, self._duration_s = (
                longer(column, capacity) for column in (self.at_s, self.reset_s, self._duration_s)
            )
            self.at_s[former:] = self.reset_s[former:] = self._duration_s[former:] = np.nan
            self.counters, self.totals = longer(self.counters, capacity), longer(self.totals, capacity)
            self.expected_s = longer(self.expected_s, capacity)
            self._generation = longer(self._generation, capacity)
            self._known, self._late = longer(self._known, capacity), longer(self._late, capacity)
            self._narrow, self._place = longer(self._narrow, capacity), longer(self._place, capacity)

    def forget(self, row: int) -> None:
        """Forget a row: it belongs to another port now."""
        self.fit()
        self._known[row] = False
        self._late[row] = self._narrow[row] = 0
        self.at_s[row] = self.reset_s[row] = np.nan
        self.totals[row] = 0

    def zero(self, rows: NDArray[np.int32]) -> None:
        """Let the totals begin anew; the next rate is known all the same."""
        self.totals[rows] = 0

    def update(self, samples: Samples) -> SampleRates:
        """Return what the samples say, and remember them.

        Parameters
        ----------
        samples
            Counters of any ports, in the order in which they were received; a row may occur more than once.

        Returns
        -------
        SampleRates
            One entry for each sample, in the same order.

        Raises
        ------
        IndexError
            A row is not in the port table.
        """
        self.fit()
        n = len(samples)
        if n and (samples.rows.min() < 0 or samples.rows.max() >= len(self._ports)):
            raise IndexError("a sample's row is not in the port table")
        if n <= CHUNK:
            return self._update_some(samples)
        return SampleRates.concatenate(
            [self._update_some(samples.take(slice(start, start + CHUNK))) for start in range(0, n, CHUNK)]
        )

    def repeats(self, rows: NDArray[np.int32]) -> bool:
        """Return whether a row occurs twice, in linear time."""
        self.fit()
        order = np.arange(len(rows), dtype=np.int32)
        self._place[rows] = order
        return not np.array_equal(self._place[rows], order)

    def _update_some(self, samples: Samples) -> SampleRates:
        rows, at_s, counters = samples.rows, samples.at_s, samples.counters
        duration_s = samples.duration_s
        told = (duration_s >= 0) & (duration_s < LONGEST_DURATION_S)
        if not told.all():
            duration_s = np.where(told, duration_s, np.nan)
        samples = Samples(rows, at_s, duration_s, counters)
        if self.repeats(rows):
            return self._update_repeated(samples)
        found = self._compare(self._before(rows), samples)
        ignored = _IGNORED[found.code]
        if ignored.any():
            self._remember(samples, found, ~ignored)
        else:
            self._remember(samples, found, None)
        return self._rates(samples, found)

    def _before(self, rows: NDArray[np.int32]) -> Before:
        return Before(
            self._known[rows],
            self._generation[rows] != self._ports.generation[rows],
            self._late[rows],
            self._narrow[rows],
            self.at_s[rows],
            self._duration_s[rows],
            self.counters[rows],
        )

    def _compare(self, before: Before, samples: Samples) -> Compared:
        rows = samples.rows
        return compare(
            before,
            samples.at_s,
            samples.duration_s,
            samples.counters,
            self._ports.speed_bps[rows],
            self.expected_s[rows],
            self.sticky_bits,
        )

    def _remember(self, samples: Samples, found: Compared, keep: NDArray[np.bool_] | None) -> None:
        """Keep the last sample of each port; `keep` marks those that are not put aside, None for all."""
        rows, code, counted, narrow = samples.rows, found.code, found.counted, found.narrow
        if keep is not None:
            late = rows[~keep & (code == Discontinuity.LATE)]
            self._late[late] += np.uint8(1)
            samples, code, counted, narrow = samples.take(keep), code[keep], counted[keep], narrow[keep]
            rows = samples.rows
        self.at_s[rows] = samples.at_s
        self._duration_s[rows] = samples.duration_s
        self.counters[rows] = samples.counters
        self._known[rows] = True
        self._generation[rows] = self._ports.generation[rows]
        self._late[rows] = 0
        self._narrow[rows] = narrow
        self._add(rows, counted)
        anew = (code == Discontinuity.RESET) | (code == Discontinuity.RECREATED)
        if anew.any():
            self.reset_s[rows[anew]] = samples.at_s[anew]

    def _add(self, rows: NDArray[np.int32], counted: NDArray[np.float64]) -> None:
        unknown = np.isnan(counted)
        if unknown.any():
            counted = np.where(unknown, 0.0, counted)
        amounts = counted.astype(np.uint64)
        if self.repeats(rows):
            np.add.at(self.totals, rows, amounts)
        else:
            self.totals[rows] += amounts

    def _rates(self, samples: Samples, found: Compared) -> SampleRates:
        rows = samples.rows
        per_s = found.counted / found.interval_s[:, None]
        speed_bps = self._ports.speed_bps[rows]
        scale = np.divide(BITS_PERCENT, speed_bps, out=np.full(len(rows), np.nan), where=speed_bps > 0)
        utilisation_pct = per_s[:, _RX_BYTES : _TX_BYTES + 1] * scale[:, None]
        return SampleRates(
            rows,
            samples.at_s,
            found.interval_s,
            per_s,
            utilisation_pct,
            found.code,
            found.unsupported,
            found.wrapped,
        )

    def _update_repeated(self, samples: Samples) -> SampleRates:
        """Take in samples of which some are of the same port: each is compared with the one before it.

        A sample that is put aside changes what the next one is compared with, so what follows it is compared anew.
        """
        n = len(samples)
        order = np.argsort(samples.rows, kind="stable")
        samples = samples.take(order)
        again = _same_time(samples)
        found = Compared(
            np.full(n, np.nan),
            np.full((n, COUNTER_COUNT), np.nan),
            np.full(n, Discontinuity.DUPLICATE, np.uint8),
            (samples.counters == np.uint64(UNSUPPORTED)) @ BITS,
            np.zeros(n, np.uint16),
            np.zeros(n, np.uint16),
        )
        left = np.flatnonzero(~again)
        while left.size:
            some = samples.take(left)
            part = self._compare(self._before_each(some), some)
            ignored = _IGNORED[part.code]
            settled = _none_before(some.rows, ignored)
            done = part.take(settled)
            found.put(left[settled], done)
            self._remember(some.take(settled), done, ~ignored[settled])
            left = left[~settled]
        back = np.empty(n, np.intp)
        back[order] = np.arange(n)
        return self._rates(samples, found).take(back)

    def _before_each(self, samples: Samples) -> Before:
        """Return the sample before each of samples that are sorted by row."""
        before = self._before(samples.rows)
        follows = np.flatnonzero(samples.rows[1:] == samples.rows[:-1])
        before.known[follows + 1] = True
        before.recreated[follows + 1] = False
        before.late[follows + 1] = 0
        before.narrow[follows + 1] = before.narrow[follows]
        before.at_s[follows + 1] = samples.at_s[follows]
        before.duration_s[follows + 1] = samples.duration_s[follows]
        before.counters[follows + 1] = samples.counters[follows]
        return before


def _same_time(samples: Samples) -> NDArray[np.bool_]:
    """Return which of samples sorted by row are of the same time as the one before, and so are put aside."""
    same = np.zeros(len(samples), np.bool_)
    same[1:] = (
        (samples.rows[1:] == samples.rows[:-1])
        & (samples.at_s[1:] == samples.at_s[:-1])
        & ((samples.duration_s[1:] == samples.duration_s[:-1]) | np.isnan(samples.duration_s[1:]))
    )
    return same


def _none_before(rows: NDArray[np.int32], marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of entries sorted by row have no marked one of the same row before them."""
    before: NDArray[np.intp] = np.cumsum(marked) - marked
    starts: NDArray[np.bool_] = np.append(True, rows[1:] != rows[:-1])
    at_start: NDArray[np.intp] = before[starts][np.cumsum(starts) - 1]
    none: NDArray[np.bool_] = before == at_start
    return none
