"""Trees of the few groups in a fabric with dead links for which no tree of optimal size is alive."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from controller.trees.bulk.fabric import BulkFabric, Numbers, cable_numbers
from controller.trees.bulk.groups import Groups
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import NodeId


def search(
    fabric: BulkFabric, groups: Groups, numbers: Iterable[int], load_bps: Numbers, seed: int
) -> tuple[dict[int, Numbers], dict[int, tuple[NodeId, ...]]]:
    """Let a `Forest` find the trees of the groups in `numbers`, one after the other, and add their loads.

    Returns
    -------
    searched, detached
        By group the cables of its tree, ascending, and the switches with members that it does not reach.
    """
    searched: dict[int, Numbers] = {}
    detached: dict[int, tuple[NodeId, ...]] = {}
    forest: Forest | None = None
    cable = cable_numbers(fabric.links)
    for group in numbers:
        if forest is None:
            forest = Forest(fabric.graph.copy(), seed=seed)
            forest.loads.bps[:] = np.repeat(load_bps, 2).tolist()
        tors = [fabric.tors[t] for t in groups.tors[groups.offsets[group] : groups.offsets[group + 1]]]
        forest.set_group_rate(group, float(groups.rates_bps[group]))
        for tor in tors:
            forest.join(group, tor, TreeRole.RECEIVER)
        tree = forest.tree(group)
        assert tree is not None
        cables = np.array(sorted(cable[link] for link in tree.links()), dtype=np.int64)
        searched[group] = cables
        if tree.detached:
            detached[group] = tuple(tor for tor in tors if tor in tree.detached)
        load_bps[cables] += groups.rates_bps[group]
    return searched, detached
