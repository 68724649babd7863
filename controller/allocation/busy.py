"""Samples of ports or CPUs to percent busy and its averages: nine values for each, in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from controller.allocation.families import TICKS_PER_S, cpu_percent_busy, port_percent_busy
from controller.allocation.metric import metric_value

NOT_KNOWN = -1
"""Stands in the columns of counters and times for what is not known."""

Rows = NDArray[np.intp]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

KEYS = {
    "avgPercentBusy": "average_pct",
    "emaPercentBusy": "history_pct",
    "idleTicksValue": "idle_ticks",
    "cumTicksValue": "all_ticks",
    "kbytesValue": "kbytes",
    "iopsValue": "ios",
    "lastSampleTime": "last_ms",
    "avgStartTime": "start_ms",
    "avgCount": "count",
}
"""The stored keys under their published names, and the column of each."""

MISPRINTED = {"avgPercnetBusy": "avgPercentBusy"}
_MOST = (1 << 63) - 1


class SampleOutcome(IntEnum):
    """What a sample gave."""

    MEASURED = 0
    FIRST = 1
    """There is none before it to compare it with."""
    TIME_BACKWARDS = 2
    """It is not later than the one before."""
    TOO_SOON = 3
    """Less than one polling interval after the one before."""
    RESET = 4
    """A counter fell."""
    NO_SPEED = 5
    """The port's speed is 0 or not known."""
    NOT_REPORTED = 6
    """The device tells no value."""

    @property
    def label(self) -> str:
        """The word for it in files and messages, such as ``time-backwards``."""
        return self.name.lower().replace("_", "-")


class BusyTable:
    """Running average and EMA of percent busy, one row for each port or CPU.

    Parameters
    ----------
    poll_interval_s
        Samples that come sooner after the one before are no measurement; 0 where the interval is not known.

    Attributes
    ----------
    average_pct, history_pct
        float64[rows], running average and EMA; NaN where there is none yet.
    idle_ticks, all_ticks, kbytes, ios
        int64[rows], the last counters; `NOT_KNOWN` before the first.
    last_ms, start_ms
        int64[rows], times of the last sample and of the average's start, in milliseconds since 1970.
    count
        int64[rows], values in the running average.

    Notes
    -----
    Metrics based port selection, "Computing the Averages and PortMetric": A <- A n/(n+1) + x/(n+1); when more than
    the period has passed, E <- k A + (1 - k) E and n <- 0, once for each period. E starts as the first period's
    average.
    """

    def __init__(self, poll_interval_s: float = 0.0) -> None:
        self._poll_interval_ms = poll_interval_s * 1000
        self.average_pct, self.history_pct = np.empty(0), np.empty(0)
        self.idle_ticks, self.all_ticks, self.kbytes, self.ios, self.last_ms, self.start_ms, self.count = (
            np.empty(0, np.int64) for _ in range(7)
        )
        self._period_ms, self._weight = np.empty(0), np.empty(0)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, period_s: float, weight: float) -> int:
        """Return a new row with its averaging period and the weight k of the latest average."""
        row = self._rows
        if row == len(self.count):
            self._grow(max(64, 2 * row))
        self._rows = row + 1
        self._period_ms[row], self._weight[row] = period_s * 1000, weight
        return row

    def configure(self, row: int, period_s: float, weight: float) -> None:
        """Change period and weight of a row; what was measured stays."""
        self._period_ms[row], self._weight[row] = period_s * 1000, weight

    def observe_kbytes(
        self, rows: Rows, at_ms: Integers, kbytes: Integers, speed_gbps: Floats, ios: Integers | None = None
    ) -> NDArray[np.uint8]:
        """Take in cumulative kilobytes; a row may occur more than once, in the order of its samples."""

        def take(some: Rows, which: Rows) -> NDArray[np.uint8]:
            outcome, seconds = self._interval(some, at_ms[which])
            moved = kbytes[which] - self.kbytes[some]
            outcome[(outcome == 0) & (self.kbytes[some] == NOT_KNOWN)] = SampleOutcome.FIRST
            outcome[(outcome == 0) & (moved < 0)] = SampleOutcome.RESET
            speed = speed_gbps[which]
            outcome[(outcome == 0) & ~(speed > 0)] = SampleOutcome.NO_SPEED
            self.kbytes[some] = kbytes[which]
            if ios is not None:
                self.ios[some] = ios[which]
            self._average(some, at_ms[which], port_percent_busy(moved, seconds, speed), outcome)
            return outcome

        return self._in_order(rows, take)

    def observe_ticks(
        self, rows: Rows, at_ms: Integers, idle_ticks: Integers, all_ticks: Integers | None = None
    ) -> NDArray[np.uint8]:
        """Take in idle ticks, with all ticks where the device counts them; else ticks of 100 ms of sample time."""

        def take(some: Rows, which: Rows) -> NDArray[np.uint8]:
            outcome, seconds = self._interval(some, at_ms[which])
            idle = idle_ticks[which] - self.idle_ticks[some]
            outcome[(outcome == 0) & (self.idle_ticks[some] == NOT_KNOWN)] = SampleOutcome.FIRST
            passed = seconds * TICKS_PER_S
            if all_ticks is not None:
                outcome[(outcome == 0) & (self.all_ticks[some] == NOT_KNOWN)] = SampleOutcome.FIRST
                passed = (all_ticks[which] - self.all_ticks[some]).astype(np.float64)
                self.all_ticks[some] = all_ticks[which]
            outcome[(outcome == 0) & ((idle < 0) | (passed < 0))] = SampleOutcome.RESET
            outcome[(outcome == 0) & (passed == 0)] = SampleOutcome.NOT_REPORTED
            self.idle_ticks[some] = idle_ticks[which]
            self._average(some, at_ms[which], cpu_percent_busy(idle, passed), outcome)
            return outcome

        return self._in_order(rows, take)

    def observe_percent(self, rows: Rows, at_ms: Integers, percent: Floats) -> NDArray[np.uint8]:
        """Take in percent busy as the device or the performance core tells it; NaN is no value."""

        def take(some: Rows, which: Rows) -> NDArray[np.uint8]:
            outcome, _ = self._interval(some, at_ms[which])
            outcome[outcome == SampleOutcome.FIRST] = SampleOutcome.MEASURED
            value = np.clip(percent[which], 0.0, 100.0)
            outcome[(outcome == 0) & np.isnan(value)] = SampleOutcome.NOT_REPORTED
            self._average(some, at_ms[which], value, outcome)
            return outcome

        return self._in_order(rows, take)

    def values(self, rows: Rows, now_ms: int, stale_ms: float, provisional_ms: Floats) -> Floats:
        """Return the metric values of rows: NaN where the last sample is stale, and before the first period ended.

        In that period the running average stands for it `provisional_ms[rows]` after its first sample.
        """
        value = metric_value(self.average_pct[rows], self.history_pct[rows], self._weight[rows])
        early = np.isnan(self.history_pct[rows]) & (now_ms - self.start_ms[rows] >= provisional_ms)
        value[early] = self.average_pct[rows][early]
        value[now_ms - self.last_ms[rows] > stale_ms] = np.nan
        return value

    def state(self, row: int) -> dict[str, float | int | None]:
        """Return the nine stored values of a row; None for what is not known."""
        found: dict[str, float | int | None] = {}
        for key, column in KEYS.items():
            value = getattr(self, column)[row].item()
            found[key] = None if value == NOT_KNOWN or value != value else value
        return found

    def restore(self, row: int, values: Mapping[str, object]) -> None:
        """Set a row from `state`; ValueError names the key that is missing, unknown or out of range."""
        given = {MISPRINTED.get(key, key): value for key, value in values.items()}
        for key in given:
            if key not in KEYS:
                raise ValueError(f"{key}: unknown key")
        for key, column in KEYS.items():
            if key not in given:
                raise ValueError(f"{key}: missing")
            value, target = given[key], getattr(self, column)
            percent = target.dtype == np.float64
            if value is None:
                value = np.nan if percent else NOT_KNOWN if column != "count" else 0
            elif isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{key}: expected a number, found {value!r}")
            elif not 0 <= value <= (100 if percent else _MOST) or (not percent and value != int(value)):
                raise ValueError(f"{key}: {value!r} is out of range")
            target[row] = value

    def _interval(self, rows: Rows, at_ms: Integers) -> tuple[NDArray[np.uint8], Floats]:
        """Return what the times alone say, and the seconds since the last sample."""
        last = self.last_ms[rows]
        passed = at_ms - last
        outcome = np.zeros(len(rows), np.uint8)
        outcome[passed < self._poll_interval_ms] = SampleOutcome.TOO_SOON
        outcome[passed <= 0] = SampleOutcome.TIME_BACKWARDS
        outcome[last == NOT_KNOWN] = SampleOutcome.FIRST
        return outcome, np.where(outcome == 0, passed / 1000.0, np.nan)

    def _average(self, rows: Rows, at_ms: Integers, value: Floats, outcome: NDArray[np.uint8]) -> None:
        start = self.start_ms[rows]
        start = np.where((start == NOT_KNOWN) | (at_ms < start), at_ms, start)
        measured = outcome == SampleOutcome.MEASURED
        count = self.count[rows]
        old = np.where(count > 0, self.average_pct[rows], 0.0)
        # In this form the average of equal values is that value to the last bit, so that a full port counts as full.
        average = np.where(measured, old + (value - old) / (count + 1), self.average_pct[rows])
        count = count + measured
        period = self._period_ms[rows]
        periods = np.maximum(0, np.ceil((at_ms - start) / period) - 1)
        over = (periods > 0) & (count > 0)
        if over.any():
            history = self.history_pct[rows]
            faded = (1 - self._weight[rows]) ** periods
            updated = np.where(np.isnan(history), average, average + faded * (history - average))
            self.history_pct[rows] = np.where(over, updated, history)
            count = np.where(over, 0, count)
        self.average_pct[rows] = average
        self.count[rows] = count
        self.start_ms[rows] = start + (periods * period).astype(np.int64)
        self.last_ms[rows] = at_ms

    def _in_order(self, rows: Rows, take: Callable[[Rows, Rows], NDArray[np.uint8]]) -> NDArray[np.uint8]:
        if len(rows) and (rows.min() < 0 or rows.max() >= self._rows):
            raise IndexError("a sample's row is not in the table")
        outcome = np.empty(len(rows), np.uint8)
        for which in _rounds(rows):
            outcome[which] = take(rows[which], which)
        return outcome

    def _grow(self, capacity: int) -> None:
        for name in (*KEYS.values(), "_period_ms", "_weight"):
            column = getattr(self, name)
            longer = np.full(capacity, np.nan if column.dtype == np.float64 else NOT_KNOWN, column.dtype)
            longer[: len(column)] = column
            setattr(self, name, longer)
        self.count[self._rows :] = 0


def _rounds(rows: Rows) -> Iterator[Rows]:
    """Yield positions in `rows` so that no row occurs twice in one round and each row's order is kept."""
    n = len(rows)
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    fresh = np.ones(n, np.bool_)
    fresh[1:] = sorted_rows[1:] != sorted_rows[:-1]
    if fresh.all():
        yield np.arange(n)
        return
    starts = np.flatnonzero(fresh)
    occurrence = np.arange(n) - starts[np.cumsum(fresh) - 1]
    by_round = np.argsort(occurrence, kind="stable")
    yield from np.split(order[by_round], np.cumsum(np.bincount(occurrence))[:-1])
