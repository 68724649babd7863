"""Which groups' trees use which links."""

from __future__ import annotations

from controller.trees.tree import Key, Links
from topology.graph import NodeId
from topology.loads import LinkLoads


class LinkUsers:
    """The groups on each link, by the links' numbers in `loads`."""

    def __init__(self, loads: LinkLoads) -> None:
        self._loads = loads
        self._keys: dict[int, set[Key]] = {}

    def of(self, u: NodeId, v: NodeId) -> frozenset[Key]:
        """Return the groups whose trees use a link."""
        number = self._loads.index.get(u, {}).get(v)
        return frozenset() if number is None else frozenset(self._keys.get(number >> 1, ()))

    def take(self, u: NodeId, v: NodeId) -> set[Key]:
        """Return the groups whose trees use a link, and forget them (KeyError where there is no such link)."""
        return self._keys.pop(self._loads.index[u][v] >> 1, set())

    def add(self, key: Key, links: Links, bps: int = 0) -> None:
        """Note that a tree uses links, and add `bps` to both directions of each."""
        index, load_bps, users = self._loads.index, self._loads.bps, self._keys
        for u, v in links:
            number = index[u][v]
            load_bps[number] += bps
            load_bps[number ^ 1] += bps
            keys = users.get(number >> 1)
            if keys is None:
                users[number >> 1] = {key}
            else:
                keys.add(key)

    def discard(self, key: Key, links: Links, bps: int = 0) -> None:
        """Note that a tree uses links no more, which may be gone, and take `bps` off both directions of each."""
        index, load_bps, users = self._loads.index, self._loads.bps, self._keys
        for u, v in links:
            number = index.get(u, {}).get(v)
            if number is None:
                continue
            load_bps[number] -= bps
            load_bps[number ^ 1] -= bps
            keys = users.get(number >> 1)
            if keys is not None:
                keys.discard(key)
