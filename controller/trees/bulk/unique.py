"""Trees of many groups in a graph without a cycle, where there is one tree per group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import NONE, BulkFabric, Numbers, cable_numbers
from controller.trees.bulk.groups import Groups
from controller.trees.fabric import Hierarchy
from topology.graph import NodeId


class Ancestry(NamedTuple):
    """What is above every node: int64[N] each, -1 above a root; `component` numbers the parts of the graph."""

    above: Numbers
    cable: Numbers
    depth: Numbers
    component: Numbers

    @classmethod
    def of(cls, shape: Hierarchy, nodes: list[NodeId], links: list[tuple[NodeId, NodeId]]) -> Ancestry:
        """Return the ancestry of all the switches of a graph without a cycle, numbered in the order of `nodes`."""
        number = {node: i for i, node in enumerate(nodes)}
        cables = cable_numbers(links)
        above, cable = np.full(len(nodes), NONE), np.full(len(nodes), NONE)
        component = np.arange(len(nodes))
        depth = np.array([shape.depth[node] for node in nodes], dtype=np.int64)
        for i in np.argsort(depth, kind="stable").tolist():
            parent = shape.above[nodes[i]]
            if parent is not None:
                above[i], cable[i] = number[parent], cables[nodes[i], parent]
                component[i] = component[above[i]]
        return cls(above, cable, depth, component)

    def scattered(self, groups: Groups) -> npt.NDArray[np.bool_]:
        """Tell of each group whether its members are in several components, bool[G]."""
        where = self.component[groups.tors]
        owner = np.repeat(np.arange(groups.count), groups.sizes)
        apart = np.zeros(groups.count, dtype=bool)
        apart[owner[1:][(where[1:] != where[:-1]) & (owner[1:] == owner[:-1])]] = True
        return apart

    def used(
        self, groups: Groups, left_out: npt.NDArray[np.bool_], carried: Numbers | None = None
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Return every use of a cable by a group's tree.

        A tree has the cable above a node where some of its members are below it, and some are not.

        Parameters
        ----------
        left_out
            bool[G]: groups to leave out.
        carried
            int64[M, N]: numbers of each entry of ``groups.tors`` that are to be summed up.

        Returns
        -------
        groups, nodes, below
            Of each use the group, the node below the cable, and the sums of `carried` over the members below it.
        """
        sizes = groups.sizes
        owner = np.repeat(np.arange(groups.count), sizes)
        kept = ~left_out[owner]
        owner, node = owner[kept], groups.tors.astype(np.int64)[kept]
        columns = 0 if carried is None else carried.shape[1]
        below = np.ones((len(owner), 1 + columns), dtype=np.int64)
        if carried is not None:
            below[:, 1:] = carried[kept]
        found = [(owner[:0], node[:0], below[:0, 1:])]
        for depth in range(int(self.depth.max(initial=0)), 0, -1):
            keys, inverse = np.unique(owner * len(self.above) + node, return_inverse=True)
            sums = np.zeros((len(keys), 1 + columns), dtype=np.int64)
            np.add.at(sums, inverse, below)
            below = sums
            owner, node = np.divmod(keys, len(self.above))
            here = (self.depth[node] == depth) & (below[:, 0] < sizes[owner])
            found.append((owner[here], node[here], below[here, 1:]))
            node = np.where(here, self.above[node], node)
        owners, nodes, carried_below = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return owners, nodes, carried_below


def ancestry_of(fabric: BulkFabric) -> Ancestry:
    """Return the ancestry of the switches of a fabric without a cycle (TypeError for another)."""
    if not isinstance(fabric.shape, Hierarchy):
        raise TypeError("the fabric has cycles")
    return Ancestry.of(fabric.shape, fabric.tors, fabric.links)


class UniqueTrees:
    """Trees in a connected graph without a cycle that grow and shrink by one switch at a time.

    A tree has the cable above a node where some of the group's switches are below it, and some are not.

    Attributes
    ----------
    load_bps
        Of every cable.
    """

    def __init__(self, fabric: BulkFabric, rates_bps: Sequence[int]) -> None:
        ancestry = ancestry_of(fabric)
        if (ancestry.component != ancestry.component[:1]).any():
            raise ValueError("the graph falls apart")
        self.load_bps = [0] * len(fabric.links)
        self._rates = rates_bps
        self._above: list[int] = ancestry.above.tolist()
        self._cable: list[int] = ancestry.cable.tolist()
        self._children: list[list[int]] = [[] for _ in self._above]
        for node, above in enumerate(self._above):
            if above != NONE:
                self._children[above].append(node)
        self._below: dict[int, int] = {}
        """By group and node: the group's switches below the node, itself included."""
        self._size = [0] * len(rates_bps)
        self._links = [0] * len(rates_bps)
        self._top = [NONE] * len(rates_bps)

    def sizes(self) -> Numbers:
        """Return the links of each tree."""
        return np.array(self._links, dtype=np.int64)

    def cables(self, group: int, tors: Sequence[int]) -> Numbers:
        """Return the cables of a group's tree, whose switches are `tors`, ascending."""
        found = set()
        for node in tors:
            while node != self._top[group]:
                found.add(self._cable[node])
                node = self._above[node]
        return np.array(sorted(found), dtype=np.int64)

    def enter(self, group: int, tor: int) -> bool:
        """Add a switch: the way from it, and from the top of the tree, to where they meet."""
        size, base, below = self._size[group], group * len(self._above), self._below
        way, node = set(), tor
        while node != NONE:
            count = below.get(base + node, 0)
            below[base + node] = count + 1
            if not count and size:
                self._use(group, node, 1)
            way.add(node)
            node = self._above[node]
        top = self._top[group] if size else tor
        while top not in way:
            self._use(group, top, 1)
            top = self._above[top]
        self._top[group] = top
        self._size[group] = size + 1
        return True

    def leave(self, group: int, tor: int) -> bool:
        """Take a switch away, and what only led to it."""
        size, base, below = self._size[group] - 1, group * len(self._above), self._below
        self._size[group] = size
        node = tor
        while node != NONE:
            count = below.pop(base + node) - 1
            if count:
                below[base + node] = count
            elif size:
                self._use(group, node, -1)
            node = self._above[node]
        if size:
            down: int | None = self._top[group]
            while down is not None:
                self._top[group] = down
                down = next((child for child in self._children[down] if below.get(base + child) == size), None)
                if down is not None:
                    self._use(group, down, -1)
        return True

    def renew(self, group: int, before: Sequence[int], tors: Sequence[int]) -> None:
        """Do nothing: there is no other tree."""

    def _use(self, group: int, node: int, step: int) -> None:
        self.load_bps[self._cable[node]] += step * self._rates[group]
        self._links[group] += step
