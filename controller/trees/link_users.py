"""Which groups' trees use which links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from controller.trees.tree import NOBODY, Index, Key, Links, Tree
from topology.graph import NodeId
from topology.loads import LinkLoads


class LinkUsers:
    """The groups on each cable, by the cables' numbers in `loads`."""

    def __init__(self, loads: LinkLoads) -> None:
        self._loads = loads
        self._keys: defaultdict[int, set[Key]] = defaultdict(set)
        self._only: dict[NodeId, frozenset[NodeId]] = {}

    def of(self, u: NodeId, v: NodeId) -> frozenset[Key]:
        """Return the groups whose trees use a cable between two switches."""
        return frozenset().union(*(self._keys.get(number >> 1, ()) for number in self._loads.cables(u, v)))

    def on(self, number: int) -> frozenset[Key]:
        """Return the groups whose trees use a cable."""
        return frozenset(self._keys.get(number >> 1, ()))

    def take(self, number: int) -> set[Key]:
        """Return the groups whose trees use a cable, and forget them."""
        return self._keys.pop(number >> 1, set())

    def attach(self, tree: Tree, path: Sequence[NodeId], bps: int) -> Links:
        """Have a tree grow by a path, as `Tree.attach` has it, and `add` its links, in one go.

        The path begins at the new terminal and ends on the tree. Neither tree nor loads have links of several cables.
        """
        adjacent, parent, key, users, only = tree.adjacent, tree.parent, tree.key, self._keys, self._only
        index, load_bps = self._loads.index, self._loads.bps
        above = path[-1]
        if tree.root is None:
            tree.root = above
            adjacent[above] = NOBODY
        added: Links = ()
        for node in path[-2::-1]:
            beside = adjacent[above]
            if isinstance(beside, set):
                beside.add(node)
            else:
                adjacent[above] = {*beside, node}
            adjacent[node] = only.get(above) or only.setdefault(above, frozenset((above,)))
            parent[node] = above
            number = index[node][above]
            if bps:
                load_bps[number] += bps
                load_bps[number ^ 1] += bps
            users[number >> 1].add(key)
            link = (node, above)
            added = (link, *added) if added else (link,)
            above = node
        rates, receivers = tree.rate_below, tree.receivers_below
        if rates is not None and receivers is not None:
            for node, _ in added:
                rates[node] = receivers[node] = 0
        return added

    def add(self, key: Key, links: Links, index: Index, bps: int = 0) -> None:
        """Note that a tree uses links, by the cables that `index` names, and add `bps` to both directions of each."""
        load_bps, users = self._loads.bps, self._keys
        for u, v in links:
            number = index[u][v]
            if bps:
                load_bps[number] += bps
                load_bps[number ^ 1] += bps
            users[number >> 1].add(key)

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
