"""Which arrays have enough usable ports, how loaded each is, and which pool is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNKNOWN_ARRAY_METRIC_PCT = 50.0
"""Metric of an array where none can be computed."""

USABLE_STATUS = ("OK", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class ArrayPort:
    """A port of an array. `usage_pct` is None without a valid metric; `components` are its entities by level."""

    name: str
    usage_pct: float | None = None
    registered: bool = True
    status: str = "OK"
    front_end: bool = True
    network: str | None = None
    disqualified: bool = False
    components: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_service(self) -> bool:
        """Whether it is a registered front-end port of good or unknown status in a network, whatever its load."""
        return self.registered and self.status in USABLE_STATUS and self.front_end and self.network is not None

    @property
    def usable(self) -> bool:
        """Whether it may be allocated: in service, and under all ceilings."""
        return self.in_service and not self.disqualified


class PoolMatch(NamedTuple):
    """Whether an array has ports for the paths asked for, and why."""

    matches: bool
    usable: int
    domains: int
    reason: str


def match_num_paths(ports: Sequence[ArrayPort], max_paths: int, levels: Sequence[str] = ()) -> PoolMatch:
    """Return whether an array can serve `max_paths` paths.

    Parameters
    ----------
    ports
        All ports of the array.
    max_paths
        From 1 on.
    levels
        Failure domains, the highest first; the highest at which any usable port has an entity counts.

    Returns
    -------
    PoolMatch
        It needs `max_paths` usable ports and, for two paths or more where failure domains are known, two of these.

    Notes
    -----
    Metrics based port selection, "Effect of Port Ceilings on NumPaths Matcher".
    """
    usable = [port for port in ports if port.usable]
    level = next((level for level in levels if any(port.components.get(level) for port in usable)), None)
    domains = 0 if level is None else len({port.components.get(level) for port in usable} - {None})
    if len(usable) < max_paths:
        return PoolMatch(False, len(usable), domains, f"{len(usable)} usable ports, {max_paths} needed")
    if max_paths >= 2 and level is not None and domains < 2:
        return PoolMatch(False, len(usable), domains, f"all usable ports are in one {level}")
    return PoolMatch(True, len(usable), domains, f"{len(usable)} usable ports")


def array_metric(ports: Sequence[ArrayPort]) -> float:
    """Return the mean usage of an array's ports in service, in percent; 50 where none has one.

    Ports over a ceiling count: they are what makes an array loaded. Metrics based port selection, "Using Array
    Metrics to Affect Pool Selection".
    """
    usages = [port.usage_pct for port in ports if port.in_service and port.usage_pct is not None]
    return math.fsum(usages) / len(usages) if usages else UNKNOWN_ARRAY_METRIC_PCT


class Pool(NamedTuple):
    """A pool of an array with what is free in it, in any unit."""

    name: str
    array: str
    free: float


class RankedPool(NamedTuple):
    """A pool and why it is, or is not, the one."""

    pool: Pool
    array_metric: float
    fits: bool
    reason: str


class PoolChoice(NamedTuple):
    """The pool taken, None where none fits, and all pools in the order in which they were looked at."""

    pool: Pool | None
    ranked: tuple[RankedPool, ...]


def choose_pool(
    pools: Sequence[Pool],
    metrics: Mapping[str, float],
    size: float,
    matches: Mapping[str, PoolMatch] | None = None,
    unit: str = "GB",
) -> PoolChoice:
    """Return the pool on the array with the lowest metric that has room.

    Parameters
    ----------
    pools
        Pools that have the attributes asked for.
    metrics
        Metric of each array in percent; 50 for one that is not there.
    size
        What is needed, in the unit in which pools tell what is free.
    matches
        What the NumPaths matcher says of each array; a pool of one that does not match is left out.
    unit
        What the unit is called.

    Returns
    -------
    PoolChoice
        Pools stand in descending order of free space; equal metrics keep that order.

    Notes
    -----
    Metrics based port selection, "Using Array Metrics to Affect Pool Selection".
    """
    ranked: list[RankedPool] = []
    best: RankedPool | None = None
    for pool in sorted(pools, key=lambda pool: -pool.free):
        metric = metrics.get(pool.array, UNKNOWN_ARRAY_METRIC_PCT)
        match = (matches or {}).get(pool.array)
        if pool.free < size:
            ranked.append(RankedPool(pool, metric, False, f"{pool.free:g} {unit} free, {size:g} needed"))
        elif match is not None and not match.matches:
            whose = "" if pool.array == pool.name else f"array {pool.array}: "
            ranked.append(RankedPool(pool, metric, False, whose + match.reason))
        else:
            entry = RankedPool(pool, metric, True, f"array metric {metric:g} %")
            ranked.append(entry)
            if best is None or metric < best.array_metric:
                best = entry
    return PoolChoice(None if best is None else best.pool, tuple(ranked))
