"""Next hops towards a switch, and which of several equal ones a destination takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from topology.graph import Graph

_MASK = (1 << 64) - 1


class NextHop(NamedTuple):
    """A neighbour one hop nearer to the destination, and the port that leads to it."""

    dpid: int
    port_no: int


class PathsTo(NamedTuple):
    """All shortest paths to one switch: the distance of each switch that reaches it, and its next hops."""

    distance: Mapping[int, int]
    next_hops: Mapping[int, tuple[NextHop, ...]]


Approaches: TypeAlias = Mapping[Any, Sequence[NextHop]]

NO_PATHS = PathsTo({}, {})


def approaches(graph: Graph) -> Approaches:
    """Return for each switch its neighbours, each with the port of it that leads to the switch."""
    return {
        dpid: [NextHop(near, graph.port(near, dpid)) for near in graph.neighbours(dpid) if isinstance(near, int)]
        for dpid in graph.nodes()
    }


def paths_to(towards: Approaches, root: int) -> PathsTo:
    """Return the shortest paths to `root` from all that reach it; `NO_PATHS` where it is not in the graph."""
    if root not in towards:
        return NO_PATHS
    distance: dict[int, int] = {root: 0}
    next_hops: dict[int, tuple[NextHop, ...]] = {}
    ring = [root]
    hops_count = 0
    while ring:
        hops_count += 1
        outer: dict[int, list[NextHop]] = {}
        for nearer in ring:
            for dpid, port_no in towards[nearer]:
                if dpid not in distance:
                    outer.setdefault(dpid, []).append(NextHop(nearer, port_no))
        for dpid, hops in outer.items():
            distance[dpid] = hops_count
            next_hops[dpid] = tuple(hops)
        ring = sorted(outer)
    return PathsTo(distance, next_hops)


def mix(value: int) -> int:
    """Return 64 well-mixed bits of a 64-bit number: the finaliser of SplitMix64 (doi:10.1145/2660193.2660195)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def choose(seed: int, dpid: int, next_hops: Sequence[NextHop]) -> NextHop:
    """Return the next hop that a destination takes at a switch: the one with the highest random weight.

    Where the set of next hops changes, only destinations move whose next hop went, or for which a new one wins
    (rendezvous hashing, doi:10.1109/90.663936).

    Parameters
    ----------
    seed : int
        `mix` of the destination's MAC address.
    dpid : int
        The switch that forwards.
    next_hops : sequence of NextHop
        At least one (ValueError otherwise).
    """
    if len(next_hops) == 1:
        return next_hops[0]
    here = seed ^ _salt(dpid)
    return max(next_hops, key=lambda hop: (mix(here ^ _salt(~hop.dpid & _MASK)), hop))


@lru_cache(maxsize=1 << 16)
def _salt(dpid: int) -> int:
    return mix(dpid)
