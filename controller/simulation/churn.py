"""Streams of events drawn at random: churn, join storms and failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from math import erf, isfinite, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from controller.simulation.dynamics import EventKind, GroupEvent
from controller.trees.tree import Key
from topology.graph import NodeId

MAX_JOINS = 10_000_000
"""Joins that churn is expected to hold, at most."""

STORM_PEAK = 0.4
"""Peak rate of a join storm of X joins over a window T, in units of X/T."""

STORM_SIGMAS = 3.0
"""Half the length of a join storm in standard deviations; no join is further from its middle."""


def storm_sigma_s(window_s: float) -> float:
    """Return the standard deviation of the times of a join storm whose rate peaks at 0.4 X/T.

    The density of a normal distribution cut off at c standard deviations peaks at
    1 / (sigma sqrt(2 pi) erf(c / sqrt 2)), and the rate of X joins at X times that. So
    sigma = T / (0.4 sqrt(2 pi) erf(c / sqrt 2)). For c = 3 that is 1.00006 T: the window is the standard deviation,
    and the storm lasts from 0 to 6.0003 T.

    Parameters
    ----------
    window_s
        The window T in seconds, positive.

    Raises
    ------
    ValueError
        For a window that is not positive.

    Examples
    --------
    >>> round(storm_sigma_s(10.0), 4)
    10.0006
    """
    _check("window_s", window_s, positive=True)
    return window_s / (STORM_PEAK * sqrt(2 * pi) * erf(STORM_SIGMAS / sqrt(2)))


def storm_times_s(count: int, window_s: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of `count` joins of a storm that begins at 0, in order; see `storm_sigma_s`."""
    return normal_times_s(count, storm_sigma_s(window_s), generator)


def normal_times_s(count: int, sigma_s: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return normally distributed times of this standard deviation, in order, from 0 to six of them."""
    deviations = generator.standard_normal(count)
    while True:
        outside = np.flatnonzero(np.abs(deviations) > STORM_SIGMAS)
        if not len(outside):
            return np.sort((deviations + STORM_SIGMAS) * sigma_s)
        deviations[outside] = generator.standard_normal(len(outside))


def join_storm(
    joins: Sequence[tuple[Key, NodeId]], window_s: float, generator: np.random.Generator
) -> Iterator[GroupEvent]:
    """Yield the given joins (group, member), all groups interleaved, at the times of a storm."""
    order = generator.permutation(len(joins))
    for time_s, number in zip(storm_times_s(len(joins), window_s, generator).tolist(), order.tolist(), strict=True):
        key, member = joins[number]
        yield GroupEvent(time_s, EventKind.JOIN, key, member)


def poisson_churn(
    groups: Sequence[Key],
    candidates: Sequence[NodeId],
    joins_per_s: float,
    holding_s: float,
    duration_s: float,
    generator: np.random.Generator,
    present: Iterable[tuple[Key, NodeId]] = (),
) -> Iterator[GroupEvent]:
    """Yield the joins and leaves of members that come independently of each other and stay for a while.

    Parameters
    ----------
    groups
        The groups, all equally likely to be joined.
    candidates
        Who may join, all equally likely; one that is named twice is twice as likely.
    joins_per_s
        Mean rate of the Poisson process of joins, all groups together.
    holding_s
        Mean of the exponential time that a member stays. In the long run there are `joins_per_s` times `holding_s`
        members, less those who were drawn while they were there already.
    duration_s
        Joins and leaves after this time are left out.
    present
        Members (group, member) at the beginning, who leave likewise.

    Raises
    ------
    ValueError
        For a rate or time that is negative or no number, for more than `MAX_JOINS`, and where there is no group or
        nobody to join.
    """
    for name, value in (("joins_per_s", joins_per_s), ("holding_s", holding_s), ("duration_s", duration_s)):
        _check(name, value, positive=name == "holding_s")
    if joins_per_s * duration_s > MAX_JOINS:
        raise ValueError(f"joins_per_s: {joins_per_s * duration_s:g} joins in all are more than {MAX_JOINS}")
    count = int(generator.poisson(joins_per_s * duration_s))
    if count and not (groups and candidates):
        raise ValueError("churn needs groups and hosts to join them")
    leaves = [
        GroupEvent(float(generator.exponential(holding_s)), EventKind.LEAVE, key, member) for key, member in present
    ]
    until_s = {(leave.group, leave.member): leave.time_s for leave in leaves}
    times_s = np.sort(generator.uniform(0, duration_s, count)).tolist()
    which = generator.integers(0, max(1, len(groups)), count).tolist()
    who = generator.integers(0, max(1, len(candidates)), count).tolist()
    stays_s = generator.exponential(holding_s, count).tolist()
    joins = []
    for time_s, group, member, stay_s in zip(times_s, which, who, stays_s, strict=True):
        one = groups[group], candidates[member]
        if until_s.get(one, -1.0) < time_s:
            until_s[one] = time_s + stay_s
            joins.append(GroupEvent(time_s, EventKind.JOIN, *one))
            leaves.append(GroupEvent(time_s + stay_s, EventKind.LEAVE, *one))
    leaves = sorted((leave for leave in leaves if leave.time_s <= duration_s), key=_time_s)
    return in_order(joins, leaves)


def link_failures(
    links: Sequence[tuple[NodeId, NodeId]],
    count: int,
    duration_s: float,
    repair_s: float,
    generator: np.random.Generator,
) -> list[GroupEvent]:
    """Return failures of `count` different links, evenly spread over the time, each repaired after a while.

    Parameters
    ----------
    links
        The links that may fail, all equally likely.
    count
        How many fail, each once.
    duration_s
        Failures come before this time; so do repairs, or not at all.
    repair_s
        Mean of the exponential time to repair.

    Raises
    ------
    ValueError
        Where there are fewer links than shall fail, and for a time that is negative or no number.
    """
    if not 0 <= count <= len(links):
        raise ValueError(f"{count} links shall fail, and there are {len(links)}")
    _check("duration_s", duration_s, positive=False)
    _check("repair_s", repair_s, positive=True)
    events = []
    chosen = generator.choice(len(links), size=count, replace=False).tolist() if count else []
    for number in chosen:
        u, v = links[number]
        fails_s = float(generator.uniform(0, duration_s))
        returns_s = fails_s + float(generator.exponential(repair_s))
        events.append(GroupEvent(fails_s, EventKind.LINK_DOWN, u=u, v=v))
        if returns_s <= duration_s:
            events.append(GroupEvent(returns_s, EventKind.LINK_UP, u=u, v=v))
    return sorted(events, key=_time_s)


def in_order(*streams: Iterable[GroupEvent]) -> Iterator[GroupEvent]:
    """Merge streams that are each in order of time; of equal times the event of the first stream comes first."""
    return merge(*streams, key=_time_s)


def _time_s(event: GroupEvent) -> float:
    return event.time_s


def _check(name: str, value: float, positive: bool) -> None:
    if not (isfinite(value) and (value > 0 if positive else value >= 0)):
        raise ValueError(f"{name}: {value:g} is not a {'positive' if positive else 'non-negative'} number")
