"""Groups drawn at random: virtual machines on servers, members of groups among them, rates."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import DataCentre, Ints
from controller.simulation.groups import SimulatedGroups, attach, starts_of
from controller.simulation.placements import PLACEMENTS, PlacedVms
from controller.simulation.rates import RateDistribution
from controller.simulation.sizes import SIZES

MAX_VMS = 10_000_000
MAX_GROUPS = 10_000_000
MAX_MEMBERS = 200_000_000
MAX_RATE_BPS = 1e12
UNIFORM_RATES = RateDistribution()


class WorkloadError(ValueError):
    """A workload that cannot be drawn; `field` names what is at fault."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}")


class Workload(NamedTuple):
    """What to draw; the defaults are the article's first simulation (section 5.2).

    Attributes
    ----------
    vms
        Virtual machines in all.
    groups
        Groups.
    group_size
        Least and greatest number of members of a group, for sizes ``uniform``.
    sizes, placement
        Names in `SIZES` and `PLACEMENTS`.
    rate_bps
        Least and greatest rate of a group, all between equally likely; of other distributions their mean counts.
    rates
        How rates are distributed.
    """

    vms: int = 100_000
    groups: int = 1000
    group_size: tuple[int, int] = (3, 20)
    sizes: str = "uniform"
    placement: str = "uniform"
    rate_bps: tuple[float, float] = (1e5, 1e7)
    rates: RateDistribution = UNIFORM_RATES

    def check(self) -> None:
        """Raise WorkloadError for the first field that cannot be."""
        _bounded("vms", self.vms, 1, MAX_VMS)
        _bounded("groups", self.groups, 1, MAX_GROUPS)
        lowest, highest = self.group_size
        if lowest < 1:
            raise WorkloadError("group_size", f"{lowest} is below 1")
        if lowest > highest:
            raise WorkloadError("group_size", f"{lowest} is above {highest}")
        if self.sizes == "uniform" and highest > self.vms:
            raise WorkloadError("group_size", f"{highest} members are more than the {self.vms} virtual machines")
        for name, value, known in (("sizes", self.sizes, SIZES), ("placement", self.placement, PLACEMENTS)):
            if value not in known:
                raise WorkloadError(name, f"{value!r} is none of {', '.join(known)}")
        for rate in self.rate_bps:
            if not (math.isfinite(rate) and 0 <= rate <= MAX_RATE_BPS):
                raise WorkloadError("rate_bps", f"{rate:g} is not a number from 0 to {MAX_RATE_BPS:g}")
        if self.rate_bps[0] > self.rate_bps[1]:
            raise WorkloadError("rate_bps", f"{self.rate_bps[0]:g} is above {self.rate_bps[1]:g}")


def _bounded(field: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise WorkloadError(field, f"{value} is not a whole number from {lowest} to {highest}")


def generate(centre: DataCentre, workload: Workload, seed: int) -> SimulatedGroups:
    """Return groups drawn by `seed`, the same for the same fabric, workload and seed.

    Members of a group are different virtual machines of one tenant, which is drawn with a probability in proportion
    to its machines; with placement ``uniform`` there is only one. A group has no more members than its tenant has
    machines.

    Raises
    ------
    WorkloadError
        For a workload out of its bounds, and for a fabric with no host or with a host at no switch.
    """
    workload.check()
    if not centre.hosts:
        raise WorkloadError("hosts", "the fabric has none, so that virtual machines have nowhere to run")
    isolated = centre.isolated_hosts()
    if isolated:
        raise WorkloadError("hosts", f"{_names(isolated)}: no link to a switch")
    placing, sizing, choosing, rating = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(4))
    sizes = SIZES[workload.sizes](sizing, workload.groups, *workload.group_size)
    if sizes.sum() > MAX_MEMBERS:
        raise WorkloadError("groups", f"{sizes.sum():,} members in all groups are more than {MAX_MEMBERS:,}")
    vms = PLACEMENTS[workload.placement](centre, workload.vms, placing)
    members, sizes = _members(vms, sizes, choosing)
    least_bps = float(centre.capacity_bps.min(initial=math.inf))
    rates = workload.rates.draw(rating, workload.rate_bps, workload.groups, least_bps)
    return attach(rates, starts_of(sizes), centre.home[vms.host[members]], len(centre.switches))


def _names(nodes: list[object], shown: int = 5) -> str:
    more = f" and {len(nodes) - shown} more" if len(nodes) > shown else ""
    return ", ".join(str(node) for node in nodes[:shown]) + more


def _members(vms: PlacedVms, sizes: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the machines of all groups, one group after the other, and how many each has."""
    tenant = np.searchsorted(vms.first, generator.integers(0, vms.first[-1], size=len(sizes)), side="right") - 1
    available = np.diff(vms.first)[tenant]
    sizes = np.minimum(sizes, available)
    drawn = np.empty(int(sizes.sum()), dtype=np.int64)
    group = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    dense = 2 * sizes > available
    starts = starts_of(sizes)
    for number in np.flatnonzero(dense):
        drawn[starts[number] : starts[number + 1]] = generator.permutation(available[number])[: sizes[number]]
    open_positions = np.flatnonzero(~dense[group])
    redrawn = open_positions
    span = int(available.max())
    while len(redrawn):
        drawn[redrawn] = (generator.random(len(redrawn)) * available[group[redrawn]]).astype(np.int64)
        touched = np.zeros(len(sizes), dtype=bool)
        touched[group[redrawn]] = True
        open_positions = open_positions[touched[group[open_positions]]]
        keys = group[open_positions] * span + drawn[open_positions]
        order = np.argsort(keys, kind="stable")
        repeated = np.flatnonzero(np.diff(keys[order]) == 0) + 1
        redrawn = open_positions[np.sort(order[repeated])]
    return drawn + vms.first[tenant][group], sizes
