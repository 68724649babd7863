"""The last hour of a port as a series, with the bounds of what was normal in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings
from controller.performance.history import PortHistory

Floats = NDArray[np.float64]


class HistoryPoint(NamedTuple):
    """One point: the mean from `time_s` on, and what was normal then; None where unknown."""

    time_s: float
    value: float | None
    lower: float | None
    upper: float | None


def _percent(octets: Floats, speed_bps: float) -> Floats:
    return 800.0 * octets / speed_bps if speed_bps > 0 else np.full(len(octets), np.nan)


METRICS: Mapping[str, Callable[[PortHistory, float], Floats]] = MappingProxyType(
    {
        "rx_bps": lambda history, _speed_bps: 8.0 * history.rx_bytes_per_s,
        "tx_bps": lambda history, _speed_bps: 8.0 * history.tx_bytes_per_s,
        "rx_utilisation_pct": lambda history, speed_bps: _percent(history.rx_bytes_per_s, speed_bps),
        "tx_utilisation_pct": lambda history, speed_bps: _percent(history.tx_bytes_per_s, speed_bps),
        "errors_pps": lambda history, _speed_bps: history.errors_per_s,
    }
)
"""What is remembered of a port, from its history and its capacity; errors are those of both directions together."""


def steps(history: PortHistory, metric: str, speed_bps: float, since_s: float, step_s: float) -> list[HistoryPoint]:
    """Return a metric of a port in steps.

    Parameters
    ----------
    history
        The port's last hour.
    metric
        A name in `METRICS`; KeyError for another.
    speed_bps
        The port's capacity, bit/s; 0 where unknown, and then its utilisation is not known either.
    since_s
        Only steps that begin at or after this time, seconds since 1970.
    step_s
        The length of a step in seconds, above 0.

    Returns
    -------
    list of HistoryPoint
        Oldest first. Bounds are those of `controller.anomaly.normalcy.fit` over the whole history.
    """
    at_s, values = history.start_s, METRICS[metric](history, speed_bps)
    known = ~np.isnan(values)
    starts = np.unique(np.floor(at_s / step_s) * step_s)
    starts = starts[starts >= since_s]
    if not len(starts):
        return []
    lower = upper = np.full(len(starts), np.nan)
    if known.any():
        bounds = fit(make_series(at_s[known], values[known], Settings()), Settings()).bounds
        if bounds is not None:
            lower, upper = (np.maximum(bound, 0.0) for bound in bounds.at(starts))
    columns = (_means(at_s[known], values[known], starts, step_s), lower, upper)
    rows = zip(starts.tolist(), *(column.tolist() for column in columns), strict=True)
    return [HistoryPoint(start_s, *map(_finite, row)) for start_s, *row in rows]


def _means(at_s: Floats, values: Floats, starts: Floats, step_s: float) -> Floats:
    """Return the mean value of each step, NaN where none is known."""
    step = np.floor(at_s / step_s) * step_s
    inside = step >= starts[0]
    index = np.searchsorted(starts, step[inside])
    sums = np.bincount(index, values[inside], len(starts))
    counts = np.bincount(index, minlength=len(starts))
    means: Floats = np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0)
    return means


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
