"""Loads per direction of trees that were placed in bulk, where it is known who sends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import NONE, BulkFabric, Numbers
from controller.trees.bulk.groups import Integers
from controller.trees.bulk.placement import Placement
from controller.trees.bulk.unique import ancestry_of
from topology.graph import NodeId


def directed_load_bps(placement: Placement, sent_bps: Integers, receives: npt.NDArray[np.bool_]) -> Numbers:
    """Return what each direction of each cable carries.

    A direction carries the rates of the group's senders behind it where a receiver is ahead of it; both directions of
    a tree's links carry the group's rate where it has no sender (`controller.trees.flows`).

    Parameters
    ----------
    sent_bps
        Integers[M]: what the group's members behind each entry of ``groups.tors`` send.
    receives
        bool[M]: whether one of them receives.

    Returns
    -------
    int64[L, 2]
        Of cable i = (u, v) the load from u to v, and from v to u.
    """
    fabric, groups = placement.fabric, placement.groups
    owner = np.repeat(np.arange(groups.count), groups.sizes)
    carried = np.stack([sent_bps, receives], axis=1).astype(np.int64)
    total = np.zeros((groups.count, 2), dtype=np.int64)
    for group, cables in placement.searched.items():
        part = slice(groups.offsets[group], groups.offsets[group + 1])
        on_tree = {node for cable in cables.tolist() for node in fabric.links[cable]}
        carried[part][[fabric.tors[t] not in on_tree for t in groups.tors[part].tolist()]] = 0
    np.add.at(total, owner, carried)
    uses = [_below(placement, owner, carried), *(_searched(placement, g, carried) for g in placement.searched)]
    users, cables, below = (np.concatenate(parts) for parts in zip(*uses, strict=True))
    above = total[users] - below
    idle = (total[users, 0] == 0) * groups.rates_bps[users]
    upwards = np.where(above[:, 1] > 0, below[:, 0], 0) + idle
    downwards = np.where(below[:, 1] > 0, above[:, 0], 0) + idle
    loads = np.zeros((len(fabric.links), 2), dtype=np.int64)
    turned = _turned(fabric)[cables]
    np.add.at(loads, (cables, turned), upwards)
    np.add.at(loads, (cables, 1 - turned), downwards)
    return loads


Uses = tuple[Numbers, Numbers, Numbers]
"""Groups, the cables of their trees, and what is sent and how many receive below each: int64[N], [N] and [N, 2]."""


def _below(placement: Placement, owner: Numbers, carried: Numbers) -> Uses:
    fabric, groups, wiring = placement.fabric, placement.groups, placement.fabric.wiring
    left_out = np.zeros(groups.count, dtype=bool)
    left_out[list(placement.searched)] = True
    if wiring is None:
        ancestry = ancestry_of(fabric)
        owners, nodes, below = ancestry.used(groups, left_out, carried)
        return owners, ancestry.cable[nodes], below
    on_tree = (placement.picks != NONE) & ~left_out[owner]
    owner, tors, picks, carried = owner[on_tree], groups.tors[on_tree], placement.picks[on_tree], carried[on_tree]
    low = (owner, wiring.lower[tors, picks], carried)
    core = placement.core[owner]
    through = core != NONE
    owner, core, picks, pods = owner[through], core[through], picks[through], wiring.tor_pod[tors[through]]
    keys, first, inverse = np.unique(owner * len(wiring.upper) + pods, return_index=True, return_inverse=True)
    sums = np.zeros((len(keys), 2), dtype=np.int64)
    np.add.at(sums, inverse, carried[through])
    high = (owner[first], wiring.upper[pods[first], picks[first], core[first]], sums)
    return tuple(np.concatenate(parts) for parts in zip(low, high, strict=True))  # type: ignore[return-value]


def _searched(placement: Placement, group: int, carried: Numbers) -> Uses:
    """Sum up what is below each link of one tree, whose links are turned as `_turned` says."""
    fabric, cables = placement.fabric, placement.searched[group].tolist()
    begin, end = placement.groups.offsets[group : group + 2].tolist()
    at: dict[NodeId, Numbers] = {}
    for i in range(begin, end):
        at[fabric.tors[int(placement.groups.tors[i])]] = carried[i]
    turned = _turned(fabric)
    below = np.zeros((len(cables), 2), dtype=np.int64)
    for i, cable in enumerate(cables):
        lower = fabric.links[cable][turned[cable]]
        reached, todo = {lower}, [lower]
        while todo:
            node = todo.pop()
            below[i] += at.get(node, 0)
            for other in cables:
                u, v = fabric.links[other]
                if other != cable and node in (u, v):
                    beyond = v if node == u else u
                    if beyond not in reached:
                        reached.add(beyond)
                        todo.append(beyond)
    return np.full(len(cables), group), np.array(cables, dtype=np.int64), below


def _turned(fabric: BulkFabric) -> Numbers:
    """Return 0 for a cable whose first end is the lower one, 1 for one whose second is."""
    if fabric.wiring is None:
        ancestry = ancestry_of(fabric)
        lower = {int(cable): fabric.tors[node] for node, cable in enumerate(ancestry.cable) if cable != NONE}
        return np.array([int(lower[i] != u) for i, (u, _) in enumerate(fabric.links)], dtype=np.int64)
    tors, cores = set(fabric.tors), set(fabric.cores)
    return np.array([int(not (u in tors or v in cores)) for u, v in fabric.links], dtype=np.int64)
