"""Trees and unicast paths beside the traffic of others: placed unaware of it, by what was last seen, by port metrics.

The others' traffic differs from cable to cable, and goes up and down on each from minute to minute. Who places load
for hours and goes by the newest minute follows the noise; who goes by the port metric follows what stays.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np

from controller.allocation.busy import BusyTable
from controller.simulation.data_centre import DataCentre, Floats, Ints
from controller.simulation.groups import SimulatedGroups
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from controller.unicast.paths import NextHop, Paths, choose, mix
from controller.unicast.weights import FULL_LEVEL

SEEN_MINUTES = 240
"""What is seen before load is placed."""
PLACED_MINUTES = 60
"""How long it then stays where it is."""
SPREAD = 0.8
"""Standard deviation of the logarithm of what cables carry by nature."""
WANDER = 0.6
"""The same of how it goes up and down on each; it stays near itself for `STAYS_MINUTES`."""
STAYS_MINUTES = 5.0
BUSY = 0.8
PERIOD_S, WEIGHT = 3600.0, 0.6
"""Averaging period and weight of the latest average, the default ones of ports of switches."""


class LoadView(StrEnum):
    """What is known of the others' traffic where load is placed."""

    UNAWARE = "unaware"
    LAST = "last"
    METRIC = "metric"


class BesideOthers(NamedTuple):
    """What load meets in the hour after it was placed.

    Attributes
    ----------
    meets_pct
        Utilisation by others of the cables that it goes by, the mean over load and time.
    busy_pct
        Share of it that goes by cables of which more than `BUSY` is used, itself included.
    max_pct
        Utilisation of the busiest cable that it goes by, itself included, the mean over the hour.
    """

    meets_pct: float
    busy_pct: float
    max_pct: float


class Background:
    """The others' traffic on every cable, made by a seed.

    Parameters
    ----------
    centre
        The fabric.
    mean_pct
        Mean utilisation over cables and time, in percent, before what is beyond 100 % is cut off.
    seed
        Decides all of it.

    Attributes
    ----------
    percent
        float64[minutes, cables].
    """

    def __init__(self, centre: DataCentre, mean_pct: float, seed: int) -> None:
        generator = np.random.default_rng([seed, 1])
        count = len(centre.cables)
        minutes = SEEN_MINUTES + PLACED_MINUTES
        kept = np.exp(-1 / STAYS_MINUTES)
        steps = generator.normal(0, WANDER * np.sqrt(1 - kept**2), (minutes, count))
        level = generator.normal(0, WANDER, count)
        noise = np.empty((minutes, count))
        for minute in range(minutes):
            level = kept * level + steps[minute]
            noise[minute] = level
        of_cable = generator.normal(0, SPREAD, count)
        self.percent = np.minimum(mean_pct * np.exp(of_cable + noise - (SPREAD**2 + WANDER**2) / 2), 100.0)

    @property
    def after(self) -> Floats:
        """What follows once load is placed, (`PLACED_MINUTES`, cables)."""
        return self.percent[SEEN_MINUTES:]

    def seen(self, view: LoadView) -> Floats:
        """Return what is known of every cable when load is placed, in percent."""
        if view is LoadView.UNAWARE:
            return np.zeros(self.percent.shape[1])
        if view is LoadView.LAST:
            newest: Floats = self.percent[SEEN_MINUTES - 1]
            return newest
        table = BusyTable()
        rows = np.array([table.add(PERIOD_S, WEIGHT) for _ in range(self.percent.shape[1])], np.intp)
        for minute in range(SEEN_MINUTES):
            table.observe_percent(rows, np.full(len(rows), 60_000 * (minute + 1)), self.percent[minute])
        now_ms = 60_000 * SEEN_MINUTES
        return table.values(rows, now_ms, np.inf, np.zeros(len(rows)))


def trees_beside(
    centre: DataCentre, groups: SimulatedGroups, background: Background, view: LoadView, seed: int
) -> BesideOthers:
    """Return what cables carry where the live controller's trees are placed by a view, largest groups first."""
    forest = Forest(centre.graph.copy(), seed=seed)
    seen_bps = background.seen(view) / 100 * centre.capacity_bps
    forest.loads.measured(
        (*ends, bps)
        for (u, v), link, bps in zip(centre.cables, centre.graph.links(), seen_bps.tolist(), strict=True)
        for ends in ((u, link.u_port, v), (v, link.v_port, u))
    )
    number = {frozenset(ends): place for place, ends in enumerate(centre.cables)}
    load_bps = np.zeros(len(centre.cables))
    for group in np.argsort(-groups.rates_bps, kind="stable").tolist():
        key = str(group)
        forest.set_group_rate(key, float(groups.rates_bps[group]))
        for terminal in groups.terminals[groups.offsets[group] : groups.offsets[group + 1]].tolist():
            forest.join(key, centre.switches[terminal], TreeRole.RECEIVER)
        tree = forest.tree(key)
        for ends in () if tree is None else tree.links():
            load_bps[number[frozenset(ends)]] += groups.rates_bps[group]
    return _figures(centre, load_bps, background)


def paths_beside(centre: DataCentre, groups: SimulatedGroups, background: Background, view: LoadView) -> BesideOthers:
    """Return what cables carry where the first member of every group sends to each other one, as unicast has it.

    Paths are the shortest, of equal ones as `controller.unicast.paths.choose` takes them.
    """
    levels = np.round(background.seen(view) * FULL_LEVEL / 100).astype(np.int64)
    near: dict[int, dict[int, tuple[int, ...]]] = {place: {} for place in range(len(centre.switches))}
    of_switch: dict[int, dict[int, int]] = {place: {} for place in near}
    for cable, (u, v) in enumerate(centre.cables):
        one, other = centre.number[u], centre.number[v]
        near[one][other], near[other][one] = (cable,), (cable,)
        if levels[cable]:
            of_switch[one][cable] = of_switch[other][cable] = int(levels[cable])
    towards: dict[int, tuple[Paths, int]] = {}
    chosen: dict[tuple[int, int], list[NextHop]] = {}
    load_bps = np.zeros(len(centre.cables))
    for group, rate_bps in enumerate(groups.rates_bps.tolist()):
        terminals = groups.terminals[groups.offsets[group] : groups.offsets[group + 1]].tolist()
        for target in terminals[1:]:
            paths, target_seed = towards.setdefault(target, (Paths(near, target), mix(target)))
            here, label = terminals[0], mix(group) & 1
            while here != target and here in paths.next_hops:
                if (here, target) not in chosen:
                    hops = choose(target_seed, here, paths.next_hops[here], 2, of_switch[here])
                    chosen[here, target] = hops
                hop = chosen[here, target][label]
                load_bps[hop.port_no] += rate_bps
                here = hop.dpid
    return _figures(centre, load_bps, background)


def _figures(centre: DataCentre, load_bps: Floats | Ints, background: Background) -> BesideOthers:
    used = load_bps > 0
    if not used.any():
        return BesideOthers(0.0, 0.0, 0.0)
    load, others = load_bps[used], background.after[:, used]
    percent = others + 100 * load / centre.capacity_bps[used]
    return BesideOthers(
        float(np.average(others.mean(axis=0), weights=load)),
        float(100 * np.average((percent > 100 * BUSY).mean(axis=0), weights=load)),
        float(percent.mean(axis=0).max()),
    )
