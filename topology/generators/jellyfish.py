"""Jellyfish: switches joined at random."""

from __future__ import annotations

from collections import deque

from topology.generators.draft import Draft
from topology.generators.parameters import MAX_HOSTS, Parameter, capacity
from topology.graph import Graph, NodeKind

SWITCHES = Parameter("switches", 20, 3, 4096, "switches in all")
DEGREE = Parameter("degree", 4, 2, 64, "links of each switch to other switches, fewer than there are switches")
HOSTS = Parameter("hosts_per_switch", 2, 0, 200, "hosts of each switch")
SEED = Parameter("seed", 0, 0, 2**64 - 1, "what the links are drawn from")
CAPACITY = capacity()

MASK = (1 << 64) - 1
GUESSES = 16
"""Draws of a pair or a link before all are looked through."""


class Draws:
    """Random numbers from a seed, the same everywhere.

    SplitMix64: Steele, Lea, Flood, OOPSLA 2014, doi 10.1145/2660193.2660195.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & MASK

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to `bound` - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return (mixed ^ (mixed >> 31)) * bound >> 64


class RandomWiring:
    """Links among switches 0 to `switches` - 1, drawn until no switch has room for another."""

    def __init__(self, switches: int, degree: int, draws: Draws) -> None:
        self.links: list[tuple[int, int]] = []
        self._degree = degree
        self._draws = draws
        self._next: list[set[int]] = [set() for _ in range(switches)]
        self._free = list(range(switches))
        while self._join() or self._split():
            pass
        self._connect()

    def _add(self, u: int, v: int) -> None:
        self.links.append((u, v))
        for here, there in ((u, v), (v, u)):
            self._next[here].add(there)
            if len(self._next[here]) == self._degree:
                self._free.remove(here)

    def _cut(self, position: int) -> None:
        u, v = self.links[position]
        self.links[position] = self.links[-1]
        self.links.pop()
        for here, there in ((u, v), (v, u)):
            if len(self._next[here]) == self._degree:
                self._free.append(here)
            self._next[here].remove(there)

    def _join(self) -> bool:
        """Link two switches that have a free port each."""
        free, draws = self._free, self._draws
        for _ in range(GUESSES if len(free) > 1 else 0):
            u, v = free[draws.below(len(free))], free[draws.below(len(free))]
            if u != v and v not in self._next[u]:
                self._add(u, v)
                return True
        pairs = [(u, v) for u in free for v in free if u < v and v not in self._next[u]]
        if pairs:
            self._add(*pairs[draws.below(len(pairs))])
        return bool(pairs)

    def _split(self) -> bool:
        """Put two free ports, of one switch or of two that are linked already, into the middle of a link.

        As the degree is below the number of switches there always is such a link: a switch x that the first is not
        linked to has more neighbours than the second could share with it.
        """
        ports = [node for node in self._free for _ in range(self._degree - len(self._next[node]))]
        if len(ports) < 2:
            return False
        u, v = ports[:2]
        ends = 2 * len(self.links)
        step = self._draws.below(ends)
        while True:
            step = (step + 1) % ends
            position, turned = divmod(step, 2)
            x, y = self.links[position][::-1] if turned else self.links[position]
            if {u, v}.isdisjoint((x, y)) and x not in self._next[u] and y not in self._next[v]:
                self._cut(position)
                self._add(u, x)
                self._add(v, y)
                return True

    def _connect(self) -> None:
        """Make the whole connected by crossing a link that lies on a cycle with one of another component."""
        while True:
            seen, tree = {0}, set()
            queue = deque((0,))
            while queue:
                here = queue.popleft()
                for there in sorted(self._next[here]):
                    if there not in seen:
                        seen.add(there)
                        tree.add((min(here, there), max(here, there)))
                        queue.append(there)
            if len(seen) == len(self._next):
                return
            spare = [p for p, (u, v) in enumerate(self.links) if u in seen and (min(u, v), max(u, v)) not in tree]
            other = [p for p, (u, _) in enumerate(self.links) if u not in seen]
            first, second = spare[self._draws.below(len(spare))], other[self._draws.below(len(other))]
            (a, b), (c, d) = self.links[first], self.links[second]
            for position in sorted((first, second), reverse=True):
                self._cut(position)
            self._add(a, c)
            self._add(b, d)


def jellyfish(
    switches: int = 20,
    degree: int = 4,
    hosts_per_switch: int = 2,
    seed: int = 0,
    capacity_bps: float = CAPACITY.default,
) -> Graph:
    """Return `switches` ToRs joined into a connected random graph in which each has `degree` links to others.

    Where switches x degree is odd one port stays free. The same seed gives the same graph (Singla, Hong, Popa,
    Godfrey, NSDI 2012, "Jellyfish: Networking Data Centers Randomly"). Raises ValueError for parameters out of
    bounds, among them a degree that is not below the number of switches.
    """
    for parameter, value in (
        (SWITCHES, switches),
        (DEGREE, degree),
        (HOSTS, hosts_per_switch),
        (SEED, seed),
        (CAPACITY, capacity_bps),
    ):
        parameter.check(value)
    if degree >= switches:
        raise ValueError(f"degree: {degree} is not below the {switches} switches")
    if switches * hosts_per_switch > MAX_HOSTS:
        raise ValueError(f"hosts_per_switch: {hosts_per_switch} gives more than {MAX_HOSTS} hosts")
    draft = Draft(capacity_bps)
    names = [draft.switch(NodeKind.TOR) for _ in range(switches)]
    for name in names:
        draft.hosts(name, hosts_per_switch)
    for u, v in sorted((min(link), max(link)) for link in RandomWiring(switches, degree, Draws(seed)).links):
        draft.link(names[u], names[v])
    return draft.graph
