"""Loads of the directed links of a fabric, exact: whole bits per second, added and taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topology.graph import Link, NodeId, cable_order

BACKGROUND_STEPS = 100
"""Background load counts in hundredths of the capacity, so that noise decides nothing."""


class LinkLoads:
    """Load and capacity of each direction of each cable.

    The load of a direction is what is accounted by `add` plus its background: the traffic of others, as `measured`
    has it.

    A direction has a dense number: ``index[u][v]`` for u -> v, and that number with its lowest bit
    flipped for v -> u. `bps` and `capacity_bps` are lists by that number, open to code for which a call
    per link would cost too much; ``index[u][v] >> 1`` numbers the cable, and `links` has it as its sending end sees
    it. Numbers of removed links are used again.

    Where several cables join u and v, ``bundles[u][v]`` has the numbers of all, and ``index[u][v]`` that of the one
    whose busier direction is least busy, then the sum of both, then the first by `cable_order`. Whoever changes the
    loads of a bundle calls `point`.
    """

    def __init__(self, links: Iterable[Link] = ()) -> None:
        self.index: dict[NodeId, dict[NodeId, int]] = {}
        self.bundles: dict[NodeId, dict[NodeId, list[int]]] = {}
        self.links: list[Link] = []
        self.bps: list[int] = []
        self.capacity_bps: list[float] = []
        self.background_bps: list[int] = []
        self._accounted_bps: list[int] = []
        self._free: list[int] = []
        for link in links:
            self.add_link(link)

    def __contains__(self, link: tuple[NodeId, NodeId]) -> bool:
        return link[1] in self.index.get(link[0], ())

    def add_link(self, link: Link) -> int:
        """Track both directions of `link`, or change its capacity; return the number of u -> v."""
        u, v = link.u, link.v
        number = self.number(u, v, link.u_port, link.v_port)
        is_new = number is None
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self.bps)
                self.bps += (0, 0)
                self.capacity_bps += (0.0, 0.0)
                self.background_bps += (0, 0)
                self._accounted_bps += (0, 0)
                self.links += (link, link)
        self.links[number], self.links[number ^ 1] = link, link.reversed()
        self.capacity_bps[number] = self.capacity_bps[number ^ 1] = link.capacity_bps
        if is_new:
            self._set_cables(u, v, [*self.cables(u, v), number])
        elif u in self.bundles and v in self.bundles[u]:
            self._set_cables(u, v, self.bundles[u][v])
        return number

    def remove_link(self, u: NodeId, v: NodeId, u_port: int | None = None) -> None:
        """Forget both directions of the cable at a port of `u`, or of all between `u` and `v` where none is named.

        Raises KeyError where there is none, and ValueError where one still carries accounted load.
        """
        cables = self.cables(u, v)
        gone = [number for number in cables if u_port is None or self.links[number].u_port == u_port]
        if not gone:
            raise KeyError((u, v, u_port))
        for number in gone:
            if any(self.bps[way] != self.background_bps[way] for way in (number, number ^ 1)):
                raise ValueError(f"link {u!r} - {v!r} still carries load")
        for number in gone:
            for way in (number, number ^ 1):
                self.bps[way] = self.background_bps[way] = self._accounted_bps[way] = 0
            self._free.append(number & ~1)
        self._set_cables(u, v, [number for number in cables if number not in gone])

    def _set_cables(self, u: NodeId, v: NodeId, numbers: list[int]) -> None:
        """Have these cables, and no others, join two nodes."""
        for node, other, flip in ((u, v, 0), (v, u, 1)):
            row = self.bundles.get(node, {})
            if row.pop(other, None) is not None and not row:
                del self.bundles[node]
            if not numbers:
                del self.index[node][other]
                continue
            self.index.setdefault(node, {})[other] = numbers[0] ^ flip
            if len(numbers) > 1:
                ordered = sorted(numbers, key=lambda number: cable_order(self.links[number]))
                self.bundles.setdefault(node, {})[other] = [number ^ flip for number in ordered]
        self.point(u, v)

    def cables(self, u: NodeId, v: NodeId) -> list[int]:
        """Return the numbers of u -> v of all cables between two nodes, by `cable_order`."""
        bundle = self.bundles[u].get(v) if u in self.bundles else None
        if bundle is not None:
            return bundle
        number = self.index.get(u, {}).get(v)
        return [] if number is None else [number]

    def number(self, u: NodeId, v: NodeId, u_port: int | None, v_port: int | None) -> int | None:
        """Return the number of u -> v of the cable at some ports, None where there is none."""
        for number in self.cables(u, v):
            if self.links[number].ports == (u_port, v_port):
                return number
        return None

    def point(self, u: NodeId, v: NodeId) -> None:
        """Have `index` name the least busy cable between two nodes, where there are several."""
        bundle = self.bundles[u].get(v) if u in self.bundles else None
        if bundle is not None:
            number = min(bundle, key=self._busyness)
            self.index[u][v] = number
            self.index[v][u] = number ^ 1

    def _busyness(self, number: int) -> tuple[float, int]:
        there, back = self.bps[number], self.bps[number ^ 1]
        return (there if there > back else back) / self.capacity_bps[number], there + back

    def add(self, u: NodeId, v: NodeId, bps: int) -> None:
        """Add `bps` (negative to take away) to the direction u -> v (KeyError where unknown)."""
        self.bps[self.index[u][v]] += bps
        self.point(u, v)

    def measured(self, seen: Iterable[tuple[NodeId, int | None, NodeId, float]]) -> bool:
        """Take the mean load seen on cables since the last call; tell whether the background of any changed.

        The background is what was seen beyond what was accounted at both ends of that time, rounded down to
        hundredths of the capacity. What is accounted from here on comes on top.

        Parameters
        ----------
        seen
            The sending node, its port, the node at the other end and the load in bit/s. Unknown cables are left out.
        """
        changed = False
        for u, u_port, v, bps in seen:
            for number in self.cables(u, v):
                if self.links[number].u_port == u_port and self._measured(number, bps):
                    changed = True
                    self.point(u, v)
        return changed

    def _measured(self, number: int, bps: float) -> bool:
        before = self.background_bps[number]
        accounted = self.bps[number] - before
        beyond = bps - min(accounted, self._accounted_bps[number])
        step_bps = self.capacity_bps[number] / BACKGROUND_STEPS
        background = max(0, int(int(beyond / step_bps) * step_bps))
        self._accounted_bps[number] = accounted
        self.bps[number] = accounted + background
        self.background_bps[number] = background
        return background != before

    def load_bps(self, u: NodeId, v: NodeId) -> int:
        """Return the load of u -> v, of several cables that of the least busy one (KeyError where unknown)."""
        return self.bps[self.index[u][v]]

    def utilisation(self, u: NodeId, v: NodeId) -> float:
        """Return load over capacity of u -> v as above, 1.0 where it is full (KeyError where unknown)."""
        number = self.index[u][v]
        return self.bps[number] / self.capacity_bps[number]

    def max_utilisation(self) -> float:
        """Return load over capacity of the busiest direction, 0.0 where there is no link."""
        return max(
            (bps / capacity for bps, capacity in zip(self.bps, self.capacity_bps, strict=True) if capacity),
            default=0.0,
        )

    def directions(self) -> Iterator[tuple[NodeId, NodeId, int]]:
        """Yield ``(u, v, bps)`` for every direction of every cable."""
        for u, row in self.index.items():
            for v in row:
                for number in self.cables(u, v):
                    yield u, v, self.bps[number]
