"""Where packets of link-scope groups go: over a spanning tree towards their members, kept member by member."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from topology.graph import Graph

Tree = Mapping[int, AbstractSet[int]]
"""The neighbours of each switch on a spanning forest."""


class LinkScopeWays:
    """The members of link-scope groups, and the ports of each switch that lead to them.

    A switch sends on to each neighbour on the tree beyond which there are members. So one more at a switch changes
    what the switches between it and the root do, and what those do above which there were no others: as many as the
    tree is high, but for the first and the last member of a part of the fabric, which concern all of it.
    """

    def __init__(self) -> None:
        self.members: dict[bytes, dict[int, set[int]]] = {}
        """The ports with members, by group and switch."""
        self._tree: Tree = {}
        self._ports: dict[tuple[int, int], int] = {}
        self._parent: dict[int, int | None] = {}
        self._root: dict[int, int] = {}
        self._below: dict[bytes, dict[int, int]] = {}

    def use(self, tree: Tree, graph: Graph) -> None:
        """Go by another spanning forest of a graph, or other ports, from now on."""
        self._tree = tree
        self._ports = {(node, near): graph.port(node, near) for node, beside in tree.items() for near in beside}
        self._parent.clear()
        self._root.clear()
        for root in tree:
            if root in self._root:
                continue
            self._parent[root], self._root[root] = None, root
            queue = [root]
            for node in queue:
                for near in tree[node]:
                    if near not in self._root:
                        self._parent[near], self._root[near] = node, root
                        queue.append(near)
        self._below.clear()
        for group, switches in self.members.items():
            below = self._below[group] = {}
            for dpid in switches:
                for node in self._way_up(dpid):
                    below[node] = below.get(node, 0) + 1

    def add(self, group: bytes, dpid: int, port_no: int) -> AbstractSet[int] | None:
        """Take a member; return the switches that may do otherwise than before, None for all."""
        is_new = group not in self.members
        ports = self.members.setdefault(group, {}).setdefault(dpid, set())
        ports.add(port_no)
        if len(ports) > 1:
            return {dpid}
        concerned = self._count(group, dpid, 1)
        return None if is_new else concerned

    def discard(self, group: bytes, dpid: int, port_no: int) -> AbstractSet[int] | None:
        """Let a member go (KeyError where there is none); return what `add` returns."""
        switches = self.members[group]
        switches[dpid].remove(port_no)
        if switches[dpid]:
            return {dpid}
        del switches[dpid]
        concerned = self._count(group, dpid, -1)
        if not switches:
            del self.members[group]
            self._below.pop(group, None)
            return None
        return concerned

    def outputs(self, group: bytes, dpid: int) -> tuple[int, ...]:
        """Return the ports that a switch sends packets of a group to: those to switches, then those to hosts."""
        beside = self._tree.get(dpid)
        if beside is None:
            return ()
        below = self._below.get(group, {})
        above = below.get(self._root[dpid], 0) - below.get(dpid, 0)
        trunks = [
            self._ports[dpid, near] for near in beside if (below.get(near) if self._parent[near] == dpid else above)
        ]
        return (*sorted(trunks), *sorted(self.members.get(group, {}).get(dpid, ())))

    def _count(self, group: bytes, dpid: int, step: int) -> AbstractSet[int] | None:
        """Count a switch with members more or less on its way to the root."""
        if dpid not in self._root:
            return {dpid}
        below, root = self._below.setdefault(group, {}), self._root[dpid]
        before = below.get(root, 0)
        concerned = {*self._above_all(below, root)}
        for node in self._way_up(dpid):
            concerned.add(node)
            below[node] = below.get(node, 0) + step
            if not below[node]:
                del below[node]
        concerned.update(self._above_all(below, root))
        return concerned if before and root in below else None

    def _above_all(self, below: Mapping[int, int], root: int) -> Iterator[int]:
        """Yield the switches below which all members of a part of the fabric are: they send nothing up."""
        count, node = below.get(root, 0), root
        while count:
            yield node
            further = [near for near in self._tree[node] if self._parent[near] == node and below.get(near) == count]
            if not further:
                return
            (node,) = further

    def _way_up(self, dpid: int) -> Iterable[int]:
        node = dpid if dpid in self._parent else None
        while node is not None:
            yield node
            node = self._parent[node]
