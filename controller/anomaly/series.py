"""Series of one metric of one member, as read and put in order: the one place that decides what a sample is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e100
"""Values further from 0 are taken as infinite: sums of their squares would be."""


class SeriesName(NamedTuple):
    """Whose series it is: a member of a peer group, and one of its metrics."""

    member: str
    peer_group: str
    metric: str


class RawSeries(NamedTuple):
    """The samples of one metric of one member as they were written down: any order, gaps, NaN and infinities."""

    name: SeriesName
    at_s: NDArray[np.float64]
    """Epoch seconds, (n,), all finite."""
    values: NDArray[np.float64]
    """One value per time, (n,)."""


class Irregularities(NamedTuple):
    """What `in_order` found, in samples."""

    missing: int
    """NaN: no value is known at that time, or no time."""
    infinite: int
    """Infinities, and values beyond `LARGEST`, which are taken as missing."""
    duplicated: int
    """Further samples of a time that was there already; the last one written is taken."""
    unordered: int
    """Samples earlier than one written before them."""


class OrderedSeries(NamedTuple):
    """Finite values at strictly increasing times."""

    at_s: NDArray[np.float64]
    values: NDArray[np.float64]
    irregularities: Irregularities


def ordered(series: RawSeries) -> OrderedSeries:
    """Return a series in the order of time, each time once, without what is no number; see `in_order`."""
    return in_order(series.at_s, series.values)


def in_order(at_s: NDArray[np.float64], values: NDArray[np.float64]) -> OrderedSeries:
    """Return samples in the order of time, each time once, without what is no number.

    Parameters
    ----------
    at_s, values : NDArray[np.float64]
        (n,) each, n >= 0, in the order in which they were written.

    Returns
    -------
    OrderedSeries
        m <= n samples: where a time was written more than once the last finite value; what was taken away is counted.
    """
    missing = np.isnan(values) | np.isnan(at_s)
    infinite = ~missing & ((np.abs(values) > LARGEST) | np.isinf(at_s))
    finite = ~(infinite | missing)
    if not finite.all():
        at_s, values = at_s[finite], values[finite]
    steps = np.diff(at_s)
    unordered = 0
    if np.any(steps < 0):
        unordered = int(np.count_nonzero(at_s < np.maximum.accumulate(at_s)))
        order = np.argsort(at_s, kind="stable")
        at_s, values = at_s[order], values[order]
        steps = np.diff(at_s)
    last = np.append(steps > 0, True)[: len(at_s)]
    duplicated = int(len(last) - np.count_nonzero(last))
    if duplicated:
        at_s, values = at_s[last], values[last]
    counted = Irregularities(int(np.count_nonzero(missing)), int(np.count_nonzero(infinite)), duplicated, unordered)
    return OrderedSeries(at_s, values, counted)


def usual_interval_s(at_s: NDArray[np.float64]) -> float:
    """Return the median of the seconds between increasing times, (n,); NaN for fewer than two."""
    return float(np.median(np.diff(at_s))) if len(at_s) > 1 else float("nan")
