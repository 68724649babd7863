"""Fabrics for a number of servers in racks, as the VSRT article's simulator makes them (section 5.2)."""

from __future__ import annotations

from itertools import pairwise

from topology.generators.draft import pods
from topology.generators.parameters import MAX_HOSTS, Parameter, capacity
from topology.graph import Graph

SERVERS = Parameter("servers", 11520, 1, MAX_HOSTS, "servers of the data centre")
PER_RACK = Parameter("per_rack", 40, 1, 200, "servers of a rack, which has one ToR")
CAPACITY = capacity()

RACKS_PER_AGGREGATION = 12
"""The article's 288 racks have 24 aggregations, on the tree as on the fat tree."""

AGGREGATIONS_PER_POD = 4
CORES = 8
"""Of a fat tree; a tree has one."""


def servers_tree(servers: int = 11520, per_rack: int = 40, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return a tree: a ToR in each rack, an aggregation over 12 racks or fewer, one core over the aggregations.

    Racks are divided among aggregations as evenly as they can be. What there is one of has nothing above it. Raises
    ValueError for parameters out of bounds.
    """
    racks = _racks(servers, per_rack, capacity_bps)
    hosts = _evenly(racks, -(-len(racks) // RACKS_PER_AGGREGATION))
    cores = 1 if len(hosts) > 1 else 0
    return pods(hosts, 1 if len(racks) > 1 else 0, cores, lambda _: range(cores), capacity_bps)


def servers_fattree(servers: int = 11520, per_rack: int = 40, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return a fat tree: a ToR in each rack, pods of 48 racks or fewer with 4 aggregations, 8 cores.

    Racks are divided among pods as evenly as they can be. The aggregation at position j of each pod is linked to the
    cores 2j and 2j + 1; one pod has no cores above it, one rack no aggregations. Raises ValueError for parameters out
    of bounds.
    """
    racks = _racks(servers, per_rack, capacity_bps)
    hosts = _evenly(racks, -(-len(racks) // (RACKS_PER_AGGREGATION * AGGREGATIONS_PER_POD)))
    cores = CORES if len(hosts) > 1 else 0
    each = cores // AGGREGATIONS_PER_POD
    aggregations = AGGREGATIONS_PER_POD if len(racks) > 1 else 0
    return pods(hosts, aggregations, cores, lambda j: range(each * j, each * (j + 1)), capacity_bps)


def _racks(servers: int, per_rack: int, capacity_bps: float) -> list[int]:
    """Return the number of servers of each rack: all are full but the last."""
    SERVERS.check(servers)
    PER_RACK.check(per_rack)
    CAPACITY.check(capacity_bps)
    full, rest = divmod(servers, per_rack)
    return [per_rack] * full + [rest] * (rest > 0)


def _evenly(racks: list[int], count: int) -> list[list[int]]:
    """Divide racks into as many parts, of which none has more than one rack more than another."""
    bounds = [len(racks) * part // count for part in range(count + 1)]
    return [racks[start:end] for start, end in pairwise(bounds)]
