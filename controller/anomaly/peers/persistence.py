"""From anomalous windows to faulty members, and to the list of those that stay anomalous."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HOUR_S = 3600


class MemberFault(NamedTuple):
    """A member that was faulty, from the end of the first window that was anomalous to that of the last."""

    member: int
    first_s: float
    last_s: float


class Hour(NamedTuple):
    """The members with the highest accumulators at the end of an hour: (value, member), highest first."""

    hour_s: float
    ranking: list[tuple[int, int]]


def confirmed(anomalous: Flags, k: int) -> Flags:
    """Return where at least `k` of the past 2k - 1 windows are anomalous, (windows, members) as given.

    Source: Kasick et al., 4.2 "Windowing and Anomaly Filtering", k = 3.
    """
    counts = np.cumsum(anomalous, axis=0, dtype=np.int64)
    before = np.zeros_like(counts)
    before[2 * k - 1 :] = counts[: -(2 * k - 1)]
    return np.asarray(counts - before >= k)


def faults(anomalous: Flags, ends_s: Floats, k: int) -> list[MemberFault]:
    """Return the times in which members are faulty, by member and time.

    Parameters
    ----------
    anomalous : NDArray[np.bool_]
        (windows, members).
    ends_s : NDArray[np.float64]
        (windows,): the end of each window.
    k : int
        See `confirmed`.
    """
    found = []
    faulty = confirmed(anomalous, k)
    for member in range(anomalous.shape[1]):
        edges = np.diff(faulty[:, member].astype(np.int8), prepend=0, append=0)
        for start, stop in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
            first = max(0, int(start) - (2 * k - 2))
            inside = np.flatnonzero(anomalous[first:stop, member]) + first
            found.append(MemberFault(member, float(ends_s[inside[0]]), float(ends_s[inside[-1]])))
    return found


def accumulators(anomalous: Flags) -> NDArray[np.int64]:
    """Return each member's accumulator after each window: +1 where anomalous, else -1 down to 0.

    Source: Kasick et al., 4.3 "Algorithm". (windows, members) as given.
    """
    steps = np.where(anomalous, 1, -1).astype(np.int64)
    walk = np.cumsum(steps, axis=0)
    return np.asarray(walk - np.minimum(np.minimum.accumulate(walk, axis=0), 0))


def hourly(values: NDArray[np.int64], ends_s: Floats, columns: int) -> list[Hour]:
    """Return the list of Kasick et al., Figure 5: per hour the members with the highest accumulators above 0.

    Parameters
    ----------
    values : NDArray[np.int64]
        (windows, members), as `accumulators` gives them.
    ends_s : NDArray[np.float64]
        (windows,), increasing.
    columns : int
        How many members an hour lists at most.
    """
    hours = []
    of_hour = np.ceil(ends_s / HOUR_S) - 1
    last = np.flatnonzero(np.diff(of_hour, append=np.inf) > 0)
    for row in last:
        order = np.argsort(-values[row], kind="stable")[:columns]
        ranking = [(int(values[row, member]), int(member)) for member in order if values[row, member] > 0]
        hours.append(Hour(float(of_hour[row] * HOUR_S), ranking))
    return hours
