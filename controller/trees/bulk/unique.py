"""Trees of many groups in a graph without a cycle, where there is one tree per group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import NONE, Numbers, cable_numbers
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
        """Return the ancestry of `nodes`, numbered in their order."""
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

    def used(self, groups: Groups, left_out: npt.NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
        """Return every use of a cable by a group's tree, as arrays of group and cable.

        A tree has the cable above a node where some of its members are below it, and some are not.
        """
        sizes = groups.sizes
        owner = np.repeat(np.arange(groups.count), sizes)
        node = groups.tors.astype(np.int64)
        kept = ~left_out[owner]
        owner, node = owner[kept], node[kept]
        below = np.ones(len(node), dtype=np.int64)
        found = [(owner[:0], node[:0])]
        for depth in range(int(self.depth.max(initial=0)), 0, -1):
            keys, inverse = np.unique(owner * len(self.above) + node, return_inverse=True)
            below = np.bincount(inverse, weights=below, minlength=len(keys)).astype(np.int64)
            owner, node = np.divmod(keys, len(self.above))
            here = (self.depth[node] == depth) & (below < sizes[owner])
            found.append((owner[here], self.cable[node[here]]))
            node = np.where(here, self.above[node], node)
        owners, cables = zip(*found, strict=True)
        return np.concatenate(owners), np.concatenate(cables)
