"""Which groups' trees use which links."""

from __future__ import annotations

from controller.trees.tree import Index, Key, Links
from topology.graph import NodeId
from topology.loads import LinkLoads


class LinkUsers:
    """The groups on each cable, by the cables' numbers in `loads`."""

    def __init__(self, loads: LinkLoads) -> None:
        self._loads = loads
        self._keys: dict[int, set[Key]] = {}

    def of(self, u: NodeId, v: NodeId) -> frozenset[Key]:
        """Return the groups whose trees use a cable between two switches."""
        return frozenset().union(*(self._keys.get(number >> 1, ()) for number in self._loads.cables(u, v)))

    def on(self, number: int) -> frozenset[Key]:
        """Return the groups whose trees use a cable."""
        return frozenset(self._keys.get(number >> 1, ()))

    def take(self, number: int) -> set[Key]:
        """Return the groups whose trees use a cable, and forget them."""
        return self._keys.pop(number >> 1, set())

    def add(self, key: Key, links: Links, index: Index, bps: int = 0) -> None:
        """Note that a tree uses links, by the cables that `index` names, and add `bps` to both directions of each."""
        load_bps, users = self._loads.bps, self._keys
        for u, v in links:
            number = index[u][v]
            if bps:
                load_bps[number] += bps
                load_bps[number ^ 1] += bps
            keys = users.get(number >> 1)
            if keys is None:
                users[number >> 1] = {key}
            else:
                keys.add(key)

    def discard(self, key: Key, links: Links, index: Index, bps: int = 0) -> None:
        """Note that a tree uses links no more, which may be gone, and take `bps` off both directions of each."""
        load_bps, users = self._loads.bps, self._keys
        for u, v in links:
            number = index.get(u, {}).get(v)
            if number is None:
                continue
            load_bps[number] -= bps
            load_bps[number ^ 1] -= bps
            keys = users.get(number >> 1)
            if keys is not None:
                keys.discard(key)
