"""Loads of the directed links of a fabric, exact: whole bits per second, added and taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topology.graph import Link, NodeId

BACKGROUND_STEPS = 100
"""Background load counts in hundredths of the capacity, so that noise decides nothing."""


class LinkLoads:
    """Load and capacity of each direction of each link.

    The load of a direction is what is accounted by `add` plus its background: the traffic of others, as `measured`
    has it.

    A direction has a dense number: ``index[u][v]`` for u -> v, and that number with its lowest bit
    flipped for v -> u. `bps` and `capacity_bps` are lists by that number, open to code for which a call
    per link would cost too much; ``index[u][v] >> 1`` numbers the cable. Numbers of removed links are
    used again.
    """

    def __init__(self, links: Iterable[Link] = ()) -> None:
        self.index: dict[NodeId, dict[NodeId, int]] = {}
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
        number = self.index.get(link.u, {}).get(link.v)
        if number is None:
            if self._free:
                number = self._free.pop()
            else:
                number = len(self.bps)
                self.bps += (0, 0)
                self.capacity_bps += (0.0, 0.0)
                self.background_bps += (0, 0)
                self._accounted_bps += (0, 0)
            self.index.setdefault(link.u, {})[link.v] = number
            self.index.setdefault(link.v, {})[link.u] = number ^ 1
        self.capacity_bps[number] = self.capacity_bps[number ^ 1] = link.capacity_bps
        return number

    def remove_link(self, u: NodeId, v: NodeId) -> None:
        """Forget both directions (KeyError where unknown, ValueError where one still carries accounted load)."""
        number = self.index[u][v]
        if any(self.bps[way] != self.background_bps[way] for way in (number, number ^ 1)):
            raise ValueError(f"link {u!r} - {v!r} still carries load")
        for way in (number, number ^ 1):
            self.bps[way] = self.background_bps[way] = self._accounted_bps[way] = 0
        del self.index[u][v], self.index[v][u]
        self._free.append(number & ~1)

    def add(self, u: NodeId, v: NodeId, bps: int) -> None:
        """Add `bps` (negative to take away) to the direction u -> v (KeyError where unknown)."""
        self.bps[self.index[u][v]] += bps

    def measured(self, seen: Iterable[tuple[NodeId, NodeId, float]]) -> bool:
        """Take the mean load seen on links u -> v since the last call; tell whether the background of any changed.

        The background is what was seen beyond what was accounted at both ends of that time, rounded down to
        hundredths of the capacity. What is accounted from here on comes on top. Unknown links are left out.
        """
        changed = False
        for u, v, bps in seen:
            number = self.index.get(u, {}).get(v)
            if number is not None:
                changed |= self._measured(number, bps)
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
        """Return the load of the direction u -> v (KeyError where unknown)."""
        return self.bps[self.index[u][v]]

    def utilisation(self, u: NodeId, v: NodeId) -> float:
        """Return load over capacity of the direction u -> v, 1.0 where it is full (KeyError where unknown)."""
        number = self.index[u][v]
        return self.bps[number] / self.capacity_bps[number]

    def max_utilisation(self) -> float:
        """Return load over capacity of the busiest direction, 0.0 where there is no link."""
        return max(
            (bps / capacity for bps, capacity in zip(self.bps, self.capacity_bps, strict=True) if capacity),
            default=0.0,
        )

    def directions(self) -> Iterator[tuple[NodeId, NodeId, int]]:
        """Yield ``(u, v, bps)`` for every direction of every link."""
        for u, row in self.index.items():
            for v, number in row.items():
                yield u, v, self.bps[number]
