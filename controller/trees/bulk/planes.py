"""The kernel's choice where each core names the aggregation of every pod, over rows of integers.

In such a fabric (portland, k-ary fat trees, leaf-spine) the aggregations under a core are one plane. With one
capacity per tier, `max` over whole rows gives the busiest link of each candidate; only equals are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import NONE, BulkFabric, Numbers, TierWiring
from controller.trees.bulk.groups import RATES_BPS, Groups
from controller.trees.bulk.kernel import MASK, UNREACHED

DEAD = RATES_BPS
"""Load in bps of a link that is missing: more than any living one carries."""

CHUNK = 1 << 14
"""Groups that are Python objects at one time."""

Row = tuple[int, int, list[int], list[int]]
"""Rate and salt of a group, its ToRs and its pods."""


class Tiers(NamedTuple):
    """Capacity of every link of the lower and of the upper tier."""

    lower_bps: float
    upper_bps: float


def tiers_of(fabric: BulkFabric) -> Tiers | None:
    """Return the capacity of each tier, None where `Planes` does not apply to the fabric."""
    wiring = fabric.wiring
    if wiring is None or wiring.planes is None:
        return None
    found = []
    for cables in (wiring.lower, wiring.upper):
        capacity_bps = fabric.capacity_bps[cables[cables != NONE]]
        if len(capacity_bps) and (capacity_bps != capacity_bps[0]).any():
            return None
        found.append(float(capacity_bps[0]) if len(capacity_bps) else 1.0)
    return Tiers(*found)


class Planes:
    """Loads of a fabric of planes: ``low[k][tor]`` and ``high[pod][core]`` in bps, `DEAD` where there is no link."""

    def __init__(self, wiring: TierWiring, tiers: Tiers) -> None:
        assert wiring.planes is not None
        self._wiring = wiring
        self._tiers = tiers
        self._plane: list[int] = wiring.planes.tolist()
        self._core_hash: list[int] = wiring.core_hash.tolist()
        self._hashes: list[list[int]] = wiring.aggregation_hash.tolist()
        self._headless: list[list[bool]] = wiring.headless.tolist()
        self._low: list[list[int]] = np.where(wiring.lower.T == NONE, DEAD, 0).tolist()
        joined = wiring.upper.max(axis=1, initial=NONE)
        self._high: list[list[int]] = np.where(joined == NONE, DEAD, 0).tolist()
        exists = np.array([[a is not None for a in row] for row in wiring.aggregations], dtype=bool)
        gaps = ((wiring.lower == NONE) & exists[wiring.tor_pod]).any()
        self._peak = DEAD if gaps else 0
        """Load of the busiest lower link, `DEAD` where some are missing."""

    def place(self, rows: Iterator[Row]) -> tuple[list[int], list[int], list[int]]:
        """Choose and account the trees of groups on two ToRs or more, in order.

        Returns
        -------
        cores, positions, links
            Of each group the core (-1 within one pod, `UNREACHED` where no tree of optimal size is alive), the
            position of its aggregations (-1 where there is none), and the links of its tree.
        """
        low, high, plane = self._low, self._high, self._plane
        lower_bps, upper_bps = self._tiers
        peak = self._peak
        cores: list[int] = []
        positions: list[int] = []
        links: list[int] = []
        for rate, salt, tors, pods in rows:
            if len(pods) == 1:
                core, k = -1, self._aggregation(rate, salt, tors, pods[0])
                if k < 0:
                    core = UNREACHED
            else:
                highs = list(map(max, *[high[p] for p in pods]))
                least = min(highs, default=DEAD)
                if least >= DEAD:
                    core = UNREACHED
                elif (peak + rate) / lower_bps > (least + rate) / upper_bps:
                    core = self._core_by_both_tiers(rate, salt, tors, pods, highs)
                elif highs.count(least) == 1:
                    core = highs.index(least)
                else:
                    equals = [c for c, load in enumerate(highs) if load == least]
                    core = self._least_sum(rate, salt, tors, pods, equals)
                k = plane[core] if core >= 0 else -1
                if core >= 0:
                    for p in pods:
                        high[p][core] += rate
            if k >= 0:
                row = low[k]
                for tor in tors:
                    load = row[tor] + rate
                    row[tor] = load
                    if load > peak:
                        peak = load
                self._peak = peak
            cores.append(core)
            positions.append(k)
            links.append(len(tors) + len(pods) if core >= 0 else len(tors))
        return cores, positions, links

    def account(self, load_bps: Numbers) -> None:
        """Add the loads to those of the cables."""
        lower, upper = self._wiring.lower, self._wiring.upper
        there = lower != NONE
        load_bps[lower[there]] += np.array(self._low, dtype=np.int64).T[there]
        pods, positions, cores = np.nonzero(upper != NONE)
        if len(cores):
            load_bps[upper[pods, positions, cores]] += np.array(self._high, dtype=np.int64)[pods, cores]

    def _aggregation(self, rate: int, salt: int, tors: list[int], pod: int) -> int:
        """Return the position of the best aggregation over ToRs of one pod, -1 where none is over all of them."""
        low, headless, capacity = self._low, self._headless[pod], self._tiers.lower_bps
        busiest = itemgetter(*tors)
        best: list[int] = []
        least = (True, DEAD)
        for k, row in enumerate(low):
            use = (headless[k], max(busiest(row)))
            if use[1] >= DEAD or use > least:
                continue
            if use < least:
                best.clear()
                least = use
            best.append(k)
        if len(best) <= 1:
            return best[0] if best else -1

        def score(k: int) -> tuple[float, int]:
            return _sum(low[k], tors, rate, capacity), salt * self._hashes[pod][k] & MASK

        return min(best, key=score)

    def _core_by_both_tiers(
        self, rate: int, salt: int, tors: list[int], pods: list[int], highs: Sequence[int]
    ) -> int:
        lower_bps, upper_bps = self._tiers
        busiest = itemgetter(*tors)
        lows = [max(busiest(row)) for row in self._low]
        least, equals = inf, [UNREACHED]
        for core, (k, high) in enumerate(zip(self._plane, highs, strict=True)):
            if lows[k] >= DEAD or high >= DEAD:
                continue
            use = max((lows[k] + rate) / lower_bps, (high + rate) / upper_bps)
            if use < least:
                least, equals = use, [core]
            elif use == least:
                equals.append(core)
        return equals[0] if len(equals) == 1 else self._least_sum(rate, salt, tors, pods, equals)

    def _least_sum(self, rate: int, salt: int, tors: list[int], pods: list[int], cores: Sequence[int]) -> int:
        tor_pod = self._wiring.tor_pod
        parts: dict[int, list[int]] = {p: [] for p in pods}
        for tor in tors:
            parts[int(tor_pod[tor])].append(tor)
        lower_bps, upper_bps = self._tiers
        sums: dict[int, list[float]] = {}
        best = (inf, 0, UNREACHED)
        for core in cores:
            k = self._plane[core]
            if k not in sums:
                sums[k] = [_sum(self._low[k], part, rate, lower_bps) for part in parts.values()]
            whole = 0.0
            for p, below in zip(pods, sums[k], strict=True):
                whole += below + (self._high[p][core] + rate) / upper_bps
            best = min(best, (whole, salt * self._core_hash[core] & MASK, core))
        return best[2]


def _sum(row: list[int], tors: list[int], rate: int, capacity_bps: float) -> float:
    total = 0.0
    for tor in tors:
        total += (row[tor] + rate) / capacity_bps
    return total


def rows_of(groups: Groups, tor_pod: Numbers, salts: npt.NDArray[np.uint64], order: Numbers) -> Iterator[Row]:
    """Yield rate, salt, ToRs and pods of the groups in `order`."""
    for start in range(0, len(order), CHUNK):
        numbers = order[start : start + CHUNK]
        begins, sizes = groups.offsets[numbers], groups.offsets[numbers + 1] - groups.offsets[numbers]
        ends = np.cumsum(sizes)
        first = ends - sizes
        tors = groups.tors[np.repeat(begins - first, sizes) + np.arange(ends[-1])]
        pods = tor_pod[tors]
        new = np.ones(len(pods), dtype=bool)
        np.not_equal(pods[1:], pods[:-1], out=new[1:])
        new[first] = True
        seen = np.append(0, np.cumsum(new))
        tor_list, pod_list = tors.tolist(), pods[new].tolist()
        for rate, salt, a, b, c, d in zip(
            groups.rates_bps[numbers].tolist(),
            salts[numbers].tolist(),
            first.tolist(),
            ends.tolist(),
            seen[first].tolist(),
            seen[ends].tolist(),
            strict=True,
        ):
            yield rate, salt, tor_list[a:b], pod_list[c:d]
