"""Where virtual machines run: on which server each is, and to which tenant it belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import DataCentre, Ints

TENANT_MIN, TENANT_MEAN, TENANT_MAX = 10, 178.77, 5000
"""Virtual machines of a tenant: exponentially distributed (Elmo, doi 10.1109/TNET.2020.3020869, section 5.1)."""

TENANT_PER_RACK = 12
"""Virtual machines of one tenant in a rack at most, while it has other racks to go to (the same source)."""


class PlacedVms(NamedTuple):
    """Virtual machines in the order of their tenants.

    Attributes
    ----------
    host
        Number of each machine's server.
    first
        Where each tenant's machines begin, and the end: shape (tenants + 1,).
    """

    host: Ints
    first: Ints


def anywhere(centre: DataCentre, count: int, generator: np.random.Generator) -> PlacedVms:
    """Return machines that are on all servers with the same probability, of one tenant together."""
    hosts = generator.integers(0, len(centre.hosts), size=count, dtype=np.int64)
    return PlacedVms(hosts, np.array([0, count], dtype=np.int64))


def by_tenant(centre: DataCentre, count: int, generator: np.random.Generator) -> PlacedVms:
    """Return machines of tenants that are each packed into few racks of few pods.

    A tenant takes a pod at random and there one rack after the other, at random, with up to `TENANT_PER_RACK` of its
    machines in each; where the pod is used up it goes on in another one.
    """
    sizes: list[int] = []
    left = count
    while left > 0:
        size = TENANT_MIN + generator.exponential(TENANT_MEAN - TENANT_MIN)
        sizes.append(min(left, TENANT_MAX, int(size)))
        left -= sizes[-1]
    hosts_of = _hosts_by_switch(centre)
    pods = _racks_by_pod(centre, hosts_of)
    placed = []
    for size in sizes:
        racks = _racks(pods, -(-size // TENANT_PER_RACK), generator)
        rack = np.repeat(racks, TENANT_PER_RACK)[:size]
        at = generator.random(size)
        for switch in np.unique(rack):
            here = rack == switch
            candidates = hosts_of[int(switch)]
            rack[here] = candidates[(at[here] * len(candidates)).astype(np.int64)]
        placed.append(rack)
    first = np.concatenate(([0], np.cumsum(sizes)))
    return PlacedVms(np.concatenate(placed), first.astype(np.int64))


def _hosts_by_switch(centre: DataCentre) -> dict[int, Ints]:
    return {int(switch): np.flatnonzero(centre.home == switch) for switch in np.unique(centre.home)}


def _racks_by_pod(centre: DataCentre, hosts_of: dict[int, Ints]) -> list[Ints]:
    pod_of = centre.pods()
    racks: dict[int, list[int]] = {}
    for switch in hosts_of:
        racks.setdefault(int(pod_of[switch]), []).append(switch)
    return [np.array(switches, dtype=np.int64) for switches in racks.values()]


def _racks(pods: list[Ints], wanted: int, generator: np.random.Generator) -> Ints:
    """Return `wanted` racks, whole pods at random one after the other, all over again where that is too few."""

    def in_turn() -> Iterator[Ints]:
        while True:
            for pod in generator.permutation(len(pods)):
                yield generator.permutation(pods[pod])

    chosen: list[Ints] = []
    for racks in in_turn():
        chosen.append(racks[:wanted])
        wanted -= len(chosen[-1])
        if not wanted:
            break
    return np.concatenate(chosen)


PLACEMENTS: dict[str, Callable[[DataCentre, int, np.random.Generator], PlacedVms]] = {
    "uniform": anywhere,
    "tenant": by_tenant,
}
"""Placements of virtual machines by name."""
