"""Fabrics that no link joins: a group has a tree in each of them where it has terminals.

A forest builds one tree of a group, in the part of the fabric that is worth most, and keeps the terminals elsewhere
as detached. `Islands` gives these trees of their own, as groups of the forest under names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from controller.trees.cables import told_apart
from controller.trees.forest import Forest
from controller.trees.tree import Change, Key, Tree, TreeRole
from topology.graph import Link, NodeId


class IslandKey(NamedTuple):
    """Names the tree of a group in another part of the fabric than that of its main tree."""

    group: Key
    number: int


class AliasKey(NamedTuple):
    """Names a further tree of a group, beside its own; `what` tells it from the key of an island."""

    group: Key
    number: int
    what: str = "alias"


def main_key(key: Key) -> Key:
    """Return the key of the main tree of a group or alias, where a tree is one in another part of the fabric."""
    return key.group if isinstance(key, IslandKey) else key


def group_of(key: Key) -> Key:
    """Return the group of a forest's tree, whichever of its trees it is."""
    key = main_key(key)
    return key.group if isinstance(key, AliasKey) else key


class Islands:
    """The trees of groups beside their main ones, kept in step by `sync` after each change of a main tree.

    A group in one part of the fabric alone, as nearly all are, has none and costs nothing.
    """

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._keys: dict[Key, list[IslandKey]] = {}
        self._components_version = -1

    def __len__(self) -> int:
        """Return how many trees of islands there are."""
        return sum(len(keys) for keys in self._keys.values())

    def __contains__(self, group: Key) -> bool:
        return group in self._keys

    def trees(self, group: Key) -> Iterator[Tree]:
        """Yield all trees of a group, its main tree first."""
        main = self._forest.tree(group)
        if main is None:
            return
        yield main
        for key in self._keys.get(group, ()):
            tree = self._forest.tree(key)
            if tree is not None:
                yield tree

    def cut_off(self, group: Key) -> set[NodeId]:
        """Return the terminals of a group that no tree has: their switches are not there."""
        trees = list(self.trees(group))
        if not trees:
            return set()
        served = {node for tree in trees[1:] for node in tree.terminals}
        return {node for node in trees[0].detached if node not in served}

    def followed(self, group: Key, changes: Sequence[Change | None]) -> Sequence[Change | None]:
        """Return changes of a group's trees with what they lead to: links lost are built around, islands follow."""
        forest = self._forest
        if forest.is_broken and not (mended := forest.mend(group)).empty:
            changes = (mended, *changes)
        main = forest.tree(group)
        if group in self._keys or (main is not None and main.detached):
            changes = (*changes, *self.sync(group))
        return changes

    def adopt(
        self,
        group: Key,
        links: Iterable[tuple[NodeId, NodeId]],
        ports: Mapping[tuple[NodeId, NodeId], tuple[int, int]],
    ) -> None:
        """Give a group's trees the links that its switches hold already, as far as that is still right.

        `ports` are those of the cables of links that had several.
        """
        links = tuple(links)
        self._forest.adopt(group, links, ports)
        self.sync(group)
        for key in self._keys.get(group, ()):
            self._forest.adopt(key, links, ports)

    def moved_to(self, others: Islands) -> Iterator[Change]:
        """Give all groups their terminals in another forest without trees, and yield what that changes."""
        for old in list(self._forest):
            if isinstance(old.key, IslandKey):
                continue
            group, forest = old.key, others._forest
            for node, role in old.terminals.items():
                forest.join(group, node, role)
            others.sync(group)
            for tree in self.trees(group):
                for node, rate_bps in tree.rates.items():
                    forest.set_rate(group, node, rate_bps)
                    others.set_rate(group, node, rate_bps)
            had, has = self._links(group), others._links(group)
            removed = tuple(link for ends, link in had.items() if ends not in has)
            added = tuple(link for ends, link in has.items() if ends not in had)
            keep = {cable.ends for cable in others._told_apart(group)}
            left = tuple(cable for cable in self._told_apart(group) if cable.ends not in keep)
            yield Change(group, added, removed, left=left)

    def _told_apart(self, group: Key) -> list[Link]:
        """Return the cables that a group's trees have of those that have others beside them."""
        loads = self._forest.loads
        return [cable for tree in self.trees(group) for cable in told_apart(tree, loads).values()]

    def _links(self, group: Key) -> dict[frozenset[NodeId], tuple[NodeId, NodeId]]:
        return {frozenset(link): link for tree in self.trees(group) for link in tree.links()}

    def sync(self, group: Key) -> list[Change]:
        """Bring the trees of a group's islands in step with its main tree; return what changed of them."""
        main = self._forest.tree(group)
        keys = self._keys.get(group, [])
        if not keys and (main is None or not main.detached):
            return []
        components = self._forest.components()
        wanted: dict[int, dict[NodeId, TreeRole]] = {}
        if main is not None:
            for node, role in main.terminals.items():
                if node in main.detached and node in components:
                    wanted.setdefault(components[node], {})[node] = role
        changes: list[Change] = []
        kept: list[IslandKey] = []
        for key in keys:
            tree = self._forest.tree(key)
            number = self._component_of(tree, components)
            terminals = wanted.pop(number, {}) if number is not None else {}
            changes += self._brought(key, terminals)
            if terminals:
                kept.append(key)
        for terminals in wanted.values():
            key = IslandKey(group, self._free_number(kept))
            kept.append(key)
            changes += self._brought(key, terminals)
        if kept:
            self._keys[group] = kept
        else:
            self._keys.pop(group, None)
        return [change for change in changes if not change.empty]

    def review(self) -> Iterator[Change]:
        """Yield what changes of trees in islands that were joined or parted since the last time.

        Nothing else tells of links between two islands that a main tree is in neither of.
        """
        version = self._forest.graph.version
        if not self._keys or version == self._components_version:
            return
        self._components_version = version
        for group in list(self._keys):
            yield from self.sync(group)

    def set_rate(self, group: Key, node: NodeId, rate_bps: float) -> None:
        """Account the measured rate of the senders at `node` to the tree that it is on beside the main one."""
        for key in self._keys.get(group, ()):
            self._forest.set_rate(key, node, rate_bps)

    def _brought(self, key: IslandKey, terminals: dict[NodeId, TreeRole]) -> Iterator[Change]:
        """Give a tree its terminals, and yield what changes: the new ones come before others go."""
        tree = self._forest.tree(key)
        had = dict(tree.terminals) if tree is not None else {}
        for node, role in terminals.items():
            yield self._forest.join(key, node, role)
        for node, role in had.items():
            left = role & ~terminals.get(node, TreeRole(0))
            if left:
                yield self._forest.leave(key, node, left)

    @staticmethod
    def _component_of(tree: Tree | None, components: dict[NodeId, int]) -> int | None:
        """Return the part of the fabric that most terminals of a tree are in."""
        counts: dict[int, int] = {}
        for node in tree.terminals if tree is not None else ():
            if node in components:
                counts[components[node]] = counts.get(components[node], 0) + 1
        return max(counts, key=lambda number: counts[number], default=None)

    @staticmethod
    def _free_number(keys: list[IslandKey]) -> int:
        taken = {key.number for key in keys}
        return next(number for number in range(len(taken) + 1) if number not in taken)
