"""Next hops towards a switch, kept up to date link by link, and which of several equal ones a label takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import log
from typing import NamedTuple, TypeAlias

from controller.unicast.weights import IDLE, weight

_MASK = (1 << 64) - 1

Near: TypeAlias = Mapping[int, Mapping[int, tuple[int, ...]]]
"""For each switch its neighbours, each with the ports of the switch that lead there, one for each cable.

The ports of both ends of a cable stand at the same place."""

Pair: TypeAlias = tuple[int, int]
"""Two switches with a link between them, or without one any more."""


class NextHop(NamedTuple):
    """A neighbour one hop nearer to the destination, and the port that leads to it."""

    dpid: int
    port_no: int


class Paths:
    """All shortest paths to one switch: the distance of each switch that reaches it, and its next hops."""

    def __init__(self, near: Near, root: int) -> None:
        self.root = root
        self.distance: dict[int, int] = {}
        self.next_hops: dict[int, tuple[NextHop, ...]] = {}
        self.begin(near)

    def begin(self, near: Near) -> set[int]:
        """Find all paths anew; return the switches whose next hops or reachability are not as before."""
        former_distance, former_hops = self.distance, self.next_hops
        distance = {self.root: 0} if self.root in near else {}
        ring = list(distance)
        hops_count = 0
        while ring:
            hops_count += 1
            outer = []
            for nearer in ring:
                for dpid in near[nearer]:
                    if dpid not in distance:
                        distance[dpid] = hops_count
                        outer.append(dpid)
            ring = outer
        self.distance = distance
        self.next_hops = {dpid: self._hops(near, dpid) for dpid in distance if dpid != self.root}
        known = former_distance.keys() | distance.keys()
        return {
            dpid
            for dpid in known
            if former_hops.get(dpid) != self.next_hops.get(dpid) or (dpid in former_distance) != (dpid in distance)
        }

    def update(self, near: Near, pairs: Collection[Pair]) -> set[int]:
        """Follow changes of the links between `pairs`; return the switches whose next hops or reachability changed.

        Only switches whose distance changes, and their neighbours, are looked at: those that lose their last next hop
        are found from the destination outwards, then distances are settled by Dijkstra's algorithm among them and
        those that a new link brings nearer (Ramalingam and Reps, doi:10.1006/jagm.1996.0046).

        Parameters
        ----------
        near : mapping
            The links as they are now.
        pairs : collection of (int, int)
            Every pair whose link, or port, may be another than at the last call.
        """
        distance, next_hops = self.distance, self.next_hops
        if self.root not in distance or self.root not in near:
            return self.begin(near)
        stale = {dpid for pair in pairs for dpid in pair}
        orphans = self._orphans(near, stale)
        candidates = [(self._offered(near, dpid, orphans), dpid) for dpid in orphans | stale]
        settled: set[int] = set()
        for dpid in orphans:
            del distance[dpid]
        queue = [(hops, dpid) for hops, dpid in candidates if hops is not None]
        heapify(queue)
        while queue:
            hops, dpid = heappop(queue)
            if distance.get(dpid, hops + 1) <= hops:
                continue
            distance[dpid] = hops
            settled.add(dpid)
            for further in near[dpid]:
                if distance.get(further, hops + 2) > hops + 1:
                    heappush(queue, (hops + 1, further))
        moved = orphans | settled
        changed: set[int] = set()
        for dpid in stale.union(moved, *(near.get(dpid, ()) for dpid in moved)):
            former = next_hops.get(dpid)
            if dpid in distance and dpid != self.root:
                hops_now = self._hops(near, dpid)
                if hops_now != former:
                    next_hops[dpid] = hops_now
                    changed.add(dpid)
            elif former is not None:
                del next_hops[dpid]
                changed.add(dpid)
        return changed

    def _orphans(self, near: Near, stale: Iterable[int]) -> set[int]:
        """Return the switches without a next hop at their distance, now that some links may have gone."""
        distance = self.distance
        orphans: set[int] = set()
        queue = [(distance[dpid], dpid) for dpid in stale if dpid in distance and dpid != self.root]
        heapify(queue)
        while queue:
            hops, dpid = heappop(queue)
            links = near.get(dpid, {})
            if dpid in orphans or any(distance.get(to) == hops - 1 and to not in orphans for to in links):
                continue
            orphans.add(dpid)
            for further in links:
                if distance.get(further) == hops + 1:
                    heappush(queue, (hops + 1, further))
        return orphans

    def _offered(self, near: Near, dpid: int, orphans: set[int]) -> int | None:
        """Return the distance that a switch has by neighbours that are no orphans, None where there is none."""
        distance = self.distance
        offers = [distance[to] + 1 for to in near.get(dpid, ()) if to in distance and to not in orphans]
        return min(offers, default=None)

    def _hops(self, near: Near, dpid: int) -> tuple[NextHop, ...]:
        nearer = self.distance[dpid] - 1
        links, distance = near[dpid], self.distance
        return tuple([NextHop(to, port) for to in sorted(links) if distance.get(to) == nearer for port in links[to]])


def mix(value: int) -> int:
    """Return 64 well-mixed bits of a 64-bit number: the finaliser of SplitMix64 (doi:10.1145/2660193.2660195)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK
    return value ^ value >> 31


def choose(
    seed: int, dpid: int, next_hops: Sequence[NextHop], count: int, levels: Mapping[int, int] = IDLE
) -> list[NextHop]:
    """Return the next hops that the labels of a destination take at a switch: those with the highest random weights.

    Labels take different neighbours where there are as many, else the last ones take the last neighbour, by
    different cables where there are as many. Where the set of next hops changes, labels move whose next hop went, or
    before whose one a new one or another label's comes (rendezvous hashing, doi:10.1109/90.663936).

    Parameters
    ----------
    seed : int
        `mix` of what stands for the destination.
    dpid : int
        The switch that forwards.
    next_hops : sequence of NextHop
        At least one (IndexError otherwise).
    count : int
        How many labels the destination has.
    levels : mapping
        How busy the switch's ports are (`PortLevels.of`). Over many destinations a port is taken as often as its
        weight says, and where all are alike by the same labels as without: weighted rendezvous hashing
        (doi:10.1007/978-3-031-40923-3_7, 2), in which a label beyond the first keeps to the first one's choice where
        that has more room than its own, the more often the more.
    """
    if len(next_hops) == 1:
        return [next_hops[0]] * count
    here = seed ^ _salt(dpid)
    if levels:
        return _weighed(here, next_hops, count, levels)
    if len({hop.dpid for hop in next_hops}) == len(next_hops):
        first = sorted(next_hops, key=lambda hop: (mix(here ^ _salt(~hop.dpid & _MASK)), hop), reverse=True)
        return [first[min(index, len(first) - 1)] for index in range(count)]
    cables: dict[int, list[NextHop]] = {}
    for hop in next_hops:
        cables.setdefault(hop.dpid, []).append(hop)
    ranked = sorted(cables, key=lambda far: (mix(here ^ _salt(~far & _MASK)), far), reverse=True)
    chosen: list[NextHop] = []
    for index in range(count):
        place = min(index, len(ranked) - 1)
        to_same = cables[ranked[place]]
        if len(to_same) > 1:
            there = here ^ _salt(~ranked[place] & _MASK)
            to_same = sorted(to_same, key=lambda hop: (mix(there ^ _salt(hop.port_no)), hop), reverse=True)
        chosen.append(to_same[min(index - place, len(to_same) - 1)])
    return chosen


def _weighed(here: int, next_hops: Sequence[NextHop], count: int, levels: Mapping[int, int]) -> list[NextHop]:
    """Choose as `choose` does, by neighbours first and then by cables, each with its weight."""
    weights: dict[int, dict[int, float]] = {}
    for hop in next_hops:
        weights.setdefault(hop.dpid, {})[hop.port_no] = float(weight(levels.get(hop.port_no, 0)))
    of_neighbour = {far: sum(of_cable.values()) / len(of_cable) for far, of_cable in weights.items()}
    ranked = _ranked(here, of_neighbour, ~0)
    chosen: list[NextHop] = []
    taken: dict[int, int] = {}
    for index in range(count):
        far = ranked[min(index, len(ranked) - 1)]
        if _unit(mix(here ^ _salt(index))) >= of_neighbour[far] / of_neighbour[ranked[0]]:
            far = ranked[0]
        cables = _ranked(here ^ _salt(~far & _MASK), weights[far], 0)
        place = taken.get(far, 0)
        taken[far] = place + 1
        chosen.append(NextHop(far, cables[min(place, len(cables) - 1)]))
    return chosen


def _ranked(here: int, weights: Mapping[int, float], flip: int) -> list[int]:
    """Return numbers by weighted random order, those that are likeliest with the most weight first."""

    def score(number: int) -> tuple[float, int]:
        return log(_unit(mix(here ^ _salt((number ^ flip) & _MASK)))) / weights[number], number

    return sorted(weights, key=score, reverse=True)


def _unit(value: int) -> float:
    """Return 64 random bits as a number above 0 and up to 1."""
    return (value + 1) / (_MASK + 1)


@lru_cache(maxsize=1 << 16)
def _salt(dpid: int) -> int:
    return mix(dpid)
