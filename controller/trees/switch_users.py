"""Which groups have a terminal or a part of their tree at which switch, and links that trees take and leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from controller.trees.flows import index_of
from controller.trees.tree import Key, Links, Route, Tree, TreeRole
from topology.graph import NodeId
from topology.loads import LinkLoads

NO_KEYS: Final[frozenset[Key]] = frozenset()
_RECEIVER: Final = TreeRole.RECEIVER


class SwitchUsers:
    """The groups at each switch; those on a link are found among them.

    Parameters
    ----------
    trees
        All trees, by group.
    loads
        The loads of the links, which `attach` and `prune` keep for trees that nobody sends to.
    """

    def __init__(self, trees: Mapping[Key, Tree], loads: LinkLoads) -> None:
        self._trees = trees
        self._loads = loads
        self._keys: defaultdict[NodeId, set[Key]] = defaultdict(set)
        self._numbers = loads.index
        self._bps = loads.bps

    def at(self, node: NodeId) -> set[Key]:
        """Return the groups with a terminal at a switch, or a tree that has a cable there which is not lost."""
        found = self.homed(node)
        near = {other: self._loads.cables(node, other) for other in self._loads.index.get(node, ())}
        for key in self._keys.get(node, NO_KEYS) - found:
            tree = self._trees[key]
            index = index_of(tree, self._loads)
            if any(other in near and index[node][other] in near[other] for other in tree.neighbours(node)):
                found.add(key)
        return found

    def homed(self, node: NodeId) -> set[Key]:
        """Return the groups with a terminal at a switch."""
        return {key for key in self._keys.get(node, NO_KEYS) if node in self._trees[key].terminals}

    def of(self, u: NodeId, v: NodeId, u_port: int | None = None) -> frozenset[Key]:
        """Return the groups whose trees use the cable at a port of `u` to `v`, or any to `v` where none is named."""
        loads, trees = self._loads, self._trees
        cables = {n for n in loads.cables(u, v) if u_port is None or loads.links[n].u_port == u_port}
        if not cables:
            return NO_KEYS
        keys = min(self._keys.get(u, NO_KEYS), self._keys.get(v, NO_KEYS), key=len)
        linked = [tree for tree in map(trees.__getitem__, keys) if tree.has_link(u, v)]
        return frozenset(tree.key for tree in linked if index_of(tree, loads)[u][v] in cables)

    def add(self, key: Key, nodes: Iterable[NodeId]) -> None:
        """Note that a group is at switches."""
        for node in nodes:
            self._keys[node].add(key)

    def discard(self, tree: Tree, nodes: Iterable[NodeId]) -> None:
        """Note that a group is no more at those of some switches where it has neither a terminal nor its tree."""
        for node in nodes:
            if node not in tree.terminals and node not in tree and (keys := self._keys.get(node)):
                keys.discard(tree.key)
                if not keys:
                    del self._keys[node]

    def plant(self, tree: Tree, node: NodeId) -> None:
        """Make a switch the only one, and only receiver, of a tree that had none."""
        tree.terminals[node] = _RECEIVER
        tree.root = node
        self._keys[node].add(tree.key)

    def attach(self, tree: Tree, path: Route) -> Links:
        """Hang `path` (from the new terminal to a node on the tree) below its last node, and return its links.

        On an empty tree the last node becomes the root. No node of `path` but the last may be on the tree. While
        nobody sends to the tree both directions of each link, by its least busy cable, carry its `idle_bps` more.
        """
        parent, children, key, rates, users = tree.parent, tree.children, tree.key, tree.rate_below, self._keys
        index, load_bps = self._numbers, self._bps
        if len(path) == 2 and rates is None:
            node, above = path
            parent[node] = above
            if above in children:
                children[above].append(node)
            else:
                children[above] = [node]
            users[node].add(key)
            number = index[node][above]
            bps = tree.idle_bps
            load_bps[number] = load_bps[number] + bps
            load_bps[number ^ 1] = load_bps[number ^ 1] + bps
            return ((node, above),)
        bps = tree.idle_bps if rates is None else 0
        place = len(path) - 1
        above = path[place]
        if tree.root is None:
            tree.root = above
            users[above].add(key)
        links: list[tuple[NodeId, NodeId]] = []
        while place:
            place -= 1
            node = path[place]
            parent[node] = above
            if above in children:
                children[above].append(node)
            else:
                children[above] = [node]
            users[node].add(key)
            if bps:
                number = index[node][above]
                load_bps[number] = load_bps[number] + bps
                load_bps[number ^ 1] = load_bps[number ^ 1] + bps
            links.append((node, above))
            above = node
        if rates is not None and tree.receivers_below is not None:
            for node in path[:-1]:
                rates[node] = tree.receivers_below[node] = 0
        links.reverse()
        return tuple(links)

    def prune(self, tree: Tree, node: NodeId) -> Links:
        """Take off `node` and what only led to it, up to a terminal, a branch or the pinned root; return its links.

        While nobody sends to the tree both directions of each of them carry its `idle_bps` less.
        """
        parent, children, terminals, key, users = tree.parent, tree.children, tree.terminals, tree.key, self._keys
        index, load_bps = index_of(tree, self._loads), self._loads.bps
        rates, receivers = tree.rate_below, tree.receivers_below
        bps = tree.idle_bps if rates is None else 0
        removed: list[tuple[NodeId, NodeId]] = []
        while node not in terminals and node != tree.pinned:
            if node in children:
                if node != tree.root or len(children[node]) > 1:
                    break
                (beyond,) = children.pop(node)
                del parent[beyond]
                tree.root = beyond
                removed.append((beyond, node))
            elif node == tree.root:
                tree.root = beyond = None
            else:
                beyond = parent.pop(node)
                beside = children[beyond]
                if len(beside) > 1:
                    beside.remove(node)
                else:
                    del children[beyond]
                removed.append((node, beyond))
            keys = users[node]
            keys.discard(key)
            if not keys:
                del users[node]
            if rates is not None and receivers is not None:
                del rates[node], receivers[node]
            if beyond is None:
                break
            if bps:
                number = index[node][beyond]
                load_bps[number] = load_bps[number] - bps
                load_bps[number ^ 1] = load_bps[number ^ 1] - bps
            node = beyond
        return tuple(removed)
