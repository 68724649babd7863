"""Fabrics: the parts of a graph of switches that no link joins, kept up to date link by link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from topology.graph import Graph


class Fabric:
    """Switches that links join, directly or by others; `dpid` is the lowest of them."""

    def __init__(self, dpid: int) -> None:
        self.dpid = dpid
        self.switches: set[int] = {dpid}


class Fabrics:
    """Which switches of a graph are in one fabric; its owner tells of each change once the graph has it.

    A switch without links is a fabric of its own. Where two fabrics are joined the switches of the smaller one are
    entered anew, and where a link goes both its ends are searched side by side until they meet or one knows no
    further switch: what a change costs follows the smaller part. `version` counts joins and splits, and switches
    that came or went.
    """

    def __init__(self, graph: Graph) -> None:
        self.version = 0
        self._graph = graph
        self._of: dict[int, Fabric] = {}
        self._all: dict[int, Fabric] = {}

    def __len__(self) -> int:
        """Return how many fabrics there are."""
        return len(self._all)

    def __iter__(self) -> Iterator[Fabric]:
        """Yield all fabrics, by their lowest datapath ids."""
        for dpid in sorted(self._all):
            yield self._all[dpid]

    def of(self, dpid: int) -> Fabric | None:
        """Return the fabric that a switch is in, None where it is not known."""
        return self._of.get(dpid)

    def is_one(self, dpid: int, other: int) -> bool:
        """Tell whether two switches are the same or in one fabric."""
        if len(self._all) < 2 or dpid == other:
            return True
        fabric = self._of.get(dpid)
        return fabric is not None and other in fabric.switches

    def switch_added(self, dpid: int) -> None:
        """Enter a switch that has no links yet."""
        self.version += 1
        self._of[dpid] = self._all[dpid] = Fabric(dpid)

    def switch_removed(self, dpid: int, neighbours: Iterable[int]) -> None:
        """Take a switch out; `neighbours` are those that it had links to."""
        self.version += 1
        fabric = self._of.pop(dpid)
        fabric.switches.remove(dpid)
        del self._all[fabric.dpid]
        if not fabric.switches:
            return
        if fabric.dpid == dpid:
            fabric.dpid = min(fabric.switches)
        self._all[fabric.dpid] = fabric
        parts: list[int] = []
        for neighbour in sorted(neighbours):
            for other in parts:
                self.unlinked(other, neighbour)
            if not any(self._of[other] is self._of[neighbour] for other in parts):
                parts.append(neighbour)

    def linked(self, dpid: int, other: int) -> None:
        """Take in that a link joins two switches."""
        small, large = self._of[dpid], self._of[other]
        if small is large:
            return
        self.version += 1
        if len(small.switches) > len(large.switches):
            small, large = large, small
        del self._all[small.dpid], self._all[large.dpid]
        large.switches |= small.switches
        for moved in small.switches:
            self._of[moved] = large
        large.dpid = min(small.dpid, large.dpid)
        self._all[large.dpid] = large

    def unlinked(self, dpid: int, other: int) -> None:
        """Take in that two switches have a link less between them, or lost what joined them."""
        fabric = self._of[dpid]
        if self._of[other] is not fabric or self._graph.has_link(dpid, other):
            return
        cut_off = self._cut_off(dpid, other)
        if not cut_off:
            return
        self.version += 1
        del self._all[fabric.dpid]
        part = Fabric(min(cut_off))
        part.switches = cut_off
        for moved in cut_off:
            self._of[moved] = part
        fabric.switches -= cut_off
        if fabric.dpid in cut_off:
            fabric.dpid = min(fabric.switches)
        self._all[part.dpid], self._all[fabric.dpid] = part, fabric

    def _cut_off(self, dpid: int, other: int) -> set[int]:
        """Return the switches on the side of two that is exhausted first; none where the sides meet."""
        graph = self._graph
        seen: set[Any] = {dpid}
        met: set[Any] = {other}
        front: list[Any] = [dpid]
        opposite: list[Any] = [other]
        while front:
            reached: list[Any] = []
            for node in front:
                for neighbour in graph.neighbours(node):
                    if neighbour in met:
                        return set()
                    if neighbour not in seen:
                        seen.add(neighbour)
                        reached.append(neighbour)
            front = reached
            if front and len(seen) > len(met):
                seen, met, front, opposite = met, seen, opposite, front
        return seen
