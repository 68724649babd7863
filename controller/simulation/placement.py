"""Trees of all groups by any algorithm: in arrays where there is such a form of it, else one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import DataCentre, Ints
from controller.simulation.groups import SimulatedGroups
from controller.simulation.routed import RoutedLinks
from controller.simulation.trees import PlacedTrees, TreeLinks
from controller.trees.algorithm import Algorithm
from controller.trees.algorithms import ALGORITHMS, DEFAULT_ALGORITHM
from controller.trees.builders.pim import RoutedTree
from controller.trees.bulk import BulkFabric, Groups, place
from controller.trees.tree import Tree, TreeRole
from topology.graph import NodeId

CHUNK = 10_000
"""Groups whose routes are found together."""

Progress = Callable[[int], None]


class CutOff(NamedTuple):
    """Members behind one switch that no link joins with most of their group."""

    group: int
    switch: NodeId
    members: int


def connected(centre: DataCentre, groups: SimulatedGroups) -> tuple[SimulatedGroups, list[CutOff]]:
    """Return `groups` with the members that can reach each other, and those left out.

    Where the fabric is in pieces, a group keeps the piece with most of its switches, of equal ones the first to join.
    """
    components = centre.network(0).components()
    piece = np.array([components[node] for node in centre.switches], dtype=np.int64)[groups.terminals]
    group = groups.group_of_terminal()
    if not len(piece) or (piece == piece[groups.offsets[group]]).all():
        return groups, []
    keys, first, counts = np.unique(group * (piece.max() + 1) + piece, return_index=True, return_counts=True)
    owner = keys // (piece.max() + 1)
    best = np.lexsort((first, -counts, owner))
    best = best[np.unique(owner[best], return_index=True)[1]]
    kept = np.full(len(groups), -1, dtype=np.int64)
    kept[owner[best]] = keys[best] % (piece.max() + 1)
    stays = piece == kept[group]
    left_out = [
        CutOff(int(group[i]), centre.switches[groups.terminals[i]], int(groups.members_at[i]))
        for i in np.flatnonzero(~stays)
    ]
    return groups.only(stays), left_out


def place_trees(
    centre: DataCentre,
    groups: SimulatedGroups,
    algorithm: str = DEFAULT_ALGORITHM,
    seed: int = 0,
    progress: Progress = lambda count: None,
    links: list[TreeLinks] | None = None,
) -> PlacedTrees:
    """Return the trees of groups whose members are connected.

    The default algorithm takes the groups with the largest rates first, the others in their order.

    Parameters
    ----------
    algorithm
        A name in `ALGORITHMS`.
    seed
        Decides ties, as in `controller.trees.forest.Forest`: the trees are those of groups called 0, 1, 2, ....
    progress
        Is told how many groups have their trees, now and then.
    links
        Takes the links of the trees where given, in parts that together hold every group.
    """
    if algorithm == DEFAULT_ALGORITHM:
        trees = _in_bulk(centre, groups, seed, links)
        if trees is not None:
            progress(len(groups))
            return trees
    builder = ALGORITHMS[algorithm](centre.network(seed))
    if isinstance(builder, RoutedTree):
        return _routed(centre, groups, builder, seed, progress, links)
    order = np.arange(len(groups), dtype=np.int64)
    if algorithm == DEFAULT_ALGORITHM:
        order = np.argsort(-groups.rates_bps, kind="stable")
    return _one_by_one(centre, groups, builder, seed, order, progress, links)


def _in_bulk(
    centre: DataCentre, groups: SimulatedGroups, seed: int, links: list[TreeLinks] | None
) -> PlacedTrees | None:
    fabric = BulkFabric.of(centre.graph)
    if fabric is None:
        return None
    number = np.full(len(centre.switches), -1, dtype=np.int64)
    for i, tor in enumerate(fabric.tors):
        number[centre.number[tor]] = i
    tors = number[groups.terminals]
    if (tors < 0).any():
        return None
    found = place(fabric, Groups.of(groups.offsets, tors, groups.rates_bps, len(fabric.tors)), seed=seed)
    if links is not None:
        links.append(TreeLinks(*found.uses()))
    return PlacedTrees(found.load_bps, found.tree_links.astype(np.int64))


def _routed(
    centre: DataCentre,
    groups: SimulatedGroups,
    builder: RoutedTree,
    seed: int,
    progress: Progress,
    links: list[TreeLinks] | None,
) -> PlacedTrees:
    finder = RoutedLinks(centre, builder, seed)
    load = np.zeros(len(centre.cables), dtype=np.int64)
    sizes = []
    for start in range(0, len(groups), CHUNK):
        stop = min(start + CHUNK, len(groups))
        part = groups.part(start, stop)
        found = finder.links(part, start)
        trees = found.placed(part, len(load))
        load += trees.load_bps
        sizes.append(trees.tree_links)
        if links is not None:
            links.append(TreeLinks(found.group + start, found.cable))
        progress(stop)
    return PlacedTrees(load, np.concatenate(sizes))


def _one_by_one(
    centre: DataCentre,
    groups: SimulatedGroups,
    builder: Algorithm,
    seed: int,
    order: Ints,
    progress: Progress,
    links: list[TreeLinks] | None,
) -> PlacedTrees:
    loads = builder.network.loads
    index, bps = loads.index, loads.bps
    owner, used = array("q"), array("q")
    terminals, offsets, rates = groups.terminals.tolist(), groups.offsets.tolist(), groups.rates_bps.tolist()
    for done, number in enumerate(order.tolist()):
        nodes = [centre.switches[i] for i in terminals[offsets[number] : offsets[number + 1]]]
        if not nodes:
            continue
        rate = rates[number]
        tree = Tree(number, seed, rate)
        tree.terminals = dict.fromkeys(nodes, TreeRole.RECEIVER)
        parent = builder.build(tree, nodes, {}).parent
        for node, above in parent.items():
            direction = index[node][above]
            bps[direction] += rate
            bps[direction ^ 1] += rate
            used.append(direction >> 1)
        owner.extend([number] * len(parent))
        if not done % 100:
            progress(done)
    progress(len(groups))
    found = TreeLinks(np.array(owner, dtype=np.int64), np.array(used, dtype=np.int64))
    if links is not None:
        links.append(found)
    return found.placed(groups, len(centre.cables))
