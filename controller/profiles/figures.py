"""What the spans of an operation show: how long they took, when, how that is distributed, how many went on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

QUANTILES = (50, 95, 99)
TIME_BINS, CONCURRENCY_BINS = 60, 120
BINS_PER_DECADE = 5
LEAST_MS = 0.01
"""What takes less is in the first bin of a histogram."""

FEW = 20
"""Of fewer spans the 95th percentile is one span's: two such profiles are not judged by it."""

Floats = NDArray[np.float64]


class Times(NamedTuple):
    """How long spans took, in milliseconds; None where there are none."""

    spans: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return _counted(self._asdict())


class TimeBin(NamedTuple):
    """Spans that began within some seconds, `at_s` after the first of the profile: their median and their longest."""

    at_s: float
    spans: int
    p50_ms: float
    max_ms: float


class HistogramBin(NamedTuple):
    """How many spans took from `low_ms` to below `high_ms`."""

    low_ms: float
    high_ms: float
    spans: int


class Concurrency(NamedTuple):
    """How many spans went on at a time at most, within the time that begins `at_s` after the profile did."""

    at_s: float
    most: int


class OperationFigures(NamedTuple):
    """All that is told of an operation.

    `times` and the plots are of what was done; `outcomes` counts all. `waits_ms` has the mean of each kind of wait
    that is known, over the spans of which it is.
    """

    operation: str
    times: Times
    outcomes: Mapping[str, int]
    waits_ms: Mapping[str, float]
    over_time: tuple[TimeBin, ...]
    histogram: tuple[HistogramBin, ...]
    concurrency: tuple[Concurrency, ...]

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "operation": self.operation,
            **self.times.document(),
            "outcomes": dict(self.outcomes),
            "mean_waits_ms": dict(self.waits_ms),
            "over_time": [_counted(each._asdict()) for each in self.over_time],
            "histogram": [_counted(each._asdict()) for each in self.histogram],
            "concurrency": [each._asdict() for each in self.concurrency],
        }


def figures_of(
    operation: str,
    start_s: Floats,
    took_s: Floats,
    waits_s: Mapping[str, Floats],
    outcomes: Mapping[str, int],
    length_s: float,
) -> OperationFigures:
    """Return what spans that are done show.

    Parameters
    ----------
    operation
        Its name.
    start_s, took_s
        float64[n]: when each began, in seconds since the profile did, and how long it took.
    waits_s
        float64[n] by the name of the wait, NaN where it is not known.
    outcomes
        How many spans ended how, those that are not done among them.
    length_s
        How long the profile is, at least as long as spans go on.
    """
    took_ms = 1000 * took_s
    waits_ms = {
        name: round(1000 * float(np.nanmean(values)), 3)
        for name, values in waits_s.items()
        if np.isfinite(values).any()
    }
    return OperationFigures(
        operation,
        times_of(took_ms),
        outcomes,
        waits_ms,
        _over_time(start_s, took_ms, length_s),
        _histogram(took_ms),
        _concurrency(start_s, took_s, length_s),
    )


def times_of(took_ms: Floats) -> Times:
    """Return how long spans of these milliseconds took."""
    if not len(took_ms):
        return Times(0, None, None, None, None, None)
    quantiles = np.percentile(took_ms, QUANTILES).tolist()
    told = (round(each, 3) for each in (float(took_ms.mean()), *quantiles, float(took_ms.max())))
    return Times(len(took_ms), *told)


def _over_time(start_s: Floats, took_ms: Floats, length_s: float) -> tuple[TimeBin, ...]:
    width_s = max(length_s, 1e-3) / TIME_BINS
    bins = np.clip((start_s / width_s).astype(np.int64), 0, TIME_BINS - 1)
    found = []
    for number in np.unique(bins).tolist():
        within = took_ms[bins == number]
        at_s = round(number * width_s, 3)
        found.append(TimeBin(at_s, len(within), round(float(np.median(within)), 3), round(float(within.max()), 3)))
    return tuple(found)


def _histogram(took_ms: Floats) -> tuple[HistogramBin, ...]:
    if not len(took_ms):
        return ()
    numbers = np.floor(BINS_PER_DECADE * np.log10(np.maximum(took_ms, LEAST_MS) / LEAST_MS)).astype(np.int64)
    counts = np.bincount(numbers - numbers.min())
    first = int(numbers.min())
    return tuple(
        HistogramBin(_edge(first + number), _edge(first + number + 1), int(count))
        for number, count in enumerate(counts)
    )


def _edge(number: int) -> float:
    return float(f"{LEAST_MS * 10 ** (number / BINS_PER_DECADE):.4g}")


def _concurrency(start_s: Floats, took_s: Floats, length_s: float) -> tuple[Concurrency, ...]:
    if not len(start_s):
        return ()
    at_s = np.concatenate([start_s, start_s + took_s])
    change = np.concatenate([np.ones(len(start_s)), -np.ones(len(start_s))])
    order = np.lexsort((-change, at_s))
    at_s, level = at_s[order], np.cumsum(change[order])
    width_s = max(length_s, float(at_s[-1]), 1e-3) / CONCURRENCY_BINS
    bins = np.clip((at_s / width_s).astype(np.int64), 0, CONCURRENCY_BINS - 1)
    most = np.zeros(CONCURRENCY_BINS)
    np.maximum.at(most, bins, level)
    last = np.searchsorted(bins, np.arange(CONCURRENCY_BINS), side="left") - 1
    before = np.where(last >= 0, level[np.maximum(last, 0)], 0)
    return tuple(
        Concurrency(round(number * width_s, 3), int(max(most[number], before[number])))
        for number in range(CONCURRENCY_BINS)
    )


def _counted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as JSON has them: the number of spans is a count there, which is a tuple's own word."""
    return {"count" if name == "spans" else name: value for name, value in fields.items()}


class OperationChange(NamedTuple):
    """How an operation compares with another profile: `change_pct` is that of the 95th percentile.

    `verdict` is ``slower`` or ``faster`` by more than what is tolerated, ``alike``, or ``too-few`` where one of both
    has too few spans to tell.
    """

    operation: str
    before: Times
    after: Times
    change_pct: float | None
    verdict: str


def compared(operation: str, before: Times, after: Times, tolerance_pct: float) -> OperationChange:
    """Return how an operation changed; what is within so many percent is alike."""
    if min(before.spans, after.spans) < FEW or not before.p95_ms or after.p95_ms is None:
        return OperationChange(operation, before, after, None, "too-few")
    change_pct = round(100 * (after.p95_ms / before.p95_ms - 1), 1)
    if change_pct > tolerance_pct:
        verdict = "slower"
    else:
        is_faster = after.p95_ms * (1 + tolerance_pct / 100) < before.p95_ms
        verdict = "faster" if is_faster else "alike"
    return OperationChange(operation, before, after, change_pct, verdict)
