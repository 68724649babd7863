"""Who joins what when in a storm: normally distributed, cut at three standard deviations, uniform, or all at once."""

from __future__ import annotations

from enum import StrEnum
from math import erf, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.simulation.churn import STORM_SIGMAS, normal_times_s


class StormShape(StrEnum):
    """How joins are spread over a storm."""

    NORMAL = "normal"
    UNIFORM = "uniform"
    BURST = "burst"


class StormOrder(NamedTuple):
    """A storm: how many hosts join, and how.

    `sigma_s` is the standard deviation of the normal shape; the storm lasts six of them, the uniform one too.
    `off_pct` of the ports are down until their first host joins.
    """

    joins: int
    sigma_s: float
    shape: StormShape = StormShape.NORMAL
    off_pct: float = 0.0


class PlannedJoin(NamedTuple):
    """A join: when, since the storm began, by the host of which number, to the group of which number.

    `is_off`: its port has to come up first.
    """

    at_s: float
    host: int
    group: int
    is_off: bool


def peak_per_s(order: StormOrder) -> float:
    """Return the highest rate of joins that a storm is expected to have; infinite for one that comes all at once.

    Of the normal shape it is 1 / (sqrt(2 pi) erf(3 / sqrt 2)) = 0.40002 of the joins per standard deviation.

    Examples
    --------
    >>> round(peak_per_s(StormOrder(1000, 10.0)), 3)
    40.002
    """
    match order.shape:
        case StormShape.NORMAL:
            return order.joins / (order.sigma_s * sqrt(2 * pi) * erf(STORM_SIGMAS / sqrt(2)))
        case StormShape.UNIFORM:
            return order.joins / (2 * STORM_SIGMAS * order.sigma_s)
        case StormShape.BURST:
            return float("inf")


def plan_storm(order: StormOrder, hosts: int, groups: int, seed: int = 1) -> list[PlannedJoin]:
    """Return the joins of a storm in the order of their times; no host joins a group twice.

    Raises
    ------
    ValueError
        There are more joins than hosts times groups.
    """
    if order.joins > hosts * groups:
        raise ValueError(f"{hosts} hosts and {groups} groups have {hosts * groups} joins, not {order.joins}")
    generator = np.random.default_rng(seed)
    times_s = _times_s(order, generator).tolist()
    turns = generator.permutation(hosts).tolist()
    firsts = generator.integers(0, groups, hosts).tolist()
    off = set(turns[: round(hosts * order.off_pct / 100)])
    generator.shuffle(turns)
    planned = []
    for number, at_s in enumerate(times_s):
        host = turns[number % hosts]
        again = number // hosts
        planned.append(PlannedJoin(at_s, host, (firsts[host] + again) % groups, host in off and not again))
    return planned


def _times_s(order: StormOrder, generator: np.random.Generator) -> NDArray[np.float64]:
    match order.shape:
        case StormShape.NORMAL:
            return normal_times_s(order.joins, order.sigma_s, generator)
        case StormShape.UNIFORM:
            return np.sort(generator.uniform(0.0, 2 * STORM_SIGMAS * order.sigma_s, order.joins))
        case StormShape.BURST:
            return np.zeros(order.joins)
