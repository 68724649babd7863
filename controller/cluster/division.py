"""Which monitor is to poll which switch: what stands is kept, orphans go to the least loaded, few others move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import partial

IMBALANCE = 0.05
"""How much more or less than the mean a monitor may have to do before a switch moves that has an owner."""

GAIN = 1e-6
"""The part of what its owner does that a move spares at least: sums of other orders differ by their last bits."""


def divide(
    loads: Mapping[str, Mapping[int, float]], owners: Mapping[int, str], reserve: Set[str] = frozenset()
) -> dict[int, str]:
    """Return the owner of each switch that a monitor is connected to.

    Parameters
    ----------
    loads
        By monitor, what each switch that it is connected to would have it do, in ports polled per second.
    owners
        Who has which switch.
    reserve
        Monitors that get only those switches which no other is connected to.
    """
    weights: dict[int, float] = {}
    connected: dict[int, list[str]] = {}
    for monitor in sorted(loads):
        for dpid, load in loads[monitor].items():
            weights[dpid] = max(load, weights.get(dpid, 0.0))
            connected.setdefault(dpid, []).append(monitor)
    for dpid, monitors in connected.items():
        connected[dpid] = [monitor for monitor in monitors if monitor not in reserve] or monitors
    division = {dpid: owners[dpid] for dpid in connected if owners.get(dpid) in connected[dpid]}
    totals = dict.fromkeys(loads, 0.0)
    for dpid, owner in division.items():
        totals[owner] += weights[dpid]
    for dpid in sorted(connected.keys() - division.keys(), key=lambda dpid: (-weights[dpid], dpid)):
        owner = min(connected[dpid], key=lambda name: (totals[name], name))
        division[dpid] = owner
        totals[owner] += weights[dpid]
    _balance(division, connected, weights, totals, reserve)
    return division


def _balance(
    division: dict[int, str],
    connected: Mapping[int, list[str]],
    weights: Mapping[int, float],
    totals: dict[str, float],
    reserve: Set[str],
) -> None:
    """Move switches from monitors that have too much to do, and to those that have too little."""
    active = [name for name in totals if name not in reserve]
    if not active:
        return
    mean = sum(totals[name] for name in active) / len(active)
    owned: dict[str, set[int]] = {name: set() for name in totals}
    for dpid, owner in division.items():
        owned[owner].add(dpid)

    def move(sources: Iterable[str], targets: Set[str]) -> bool:
        """Move the switch that leaves the least to the busier one of both monitors, and less than before."""
        for source in sources:
            best: tuple[float, int, str] | None = None
            for dpid in owned[source]:
                able = [name for name in connected[dpid] if name in targets and name != source]
                target = min(able, key=lambda name: (totals[name], name), default=source)
                after = max(totals[source] - weights[dpid], totals[target] + weights[dpid])
                if (
                    target != source
                    and after < (1 - GAIN) * totals[source]
                    and (best is None or (after, dpid) < best[:2])
                ):
                    best = after, dpid, target
            if best is not None:
                _, dpid, target = best
                division[dpid] = target
                owned[source].discard(dpid)
                owned[target].add(dpid)
                totals[source] -= weights[dpid]
                totals[target] += weights[dpid]
                return True
        return False

    busiest_first = partial(sorted, key=lambda name: (-totals[name], name))
    while move(busiest_first(name for name in active if totals[name] > (1 + IMBALANCE) * mean), set(active)):
        pass
    idle = {name for name in active if totals[name] < (1 - IMBALANCE) * mean}
    while move(busiest_first(name for name in active if totals[name] > mean), idle):
        idle = {name for name in idle if totals[name] < (1 - IMBALANCE) * mean}
