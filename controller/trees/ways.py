"""The ways between two switches of different pods, over one aggregation in each and a core, that are least busy."""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from controller.trees.fabric import LayeredFabric
from controller.trees.network import MASK, Network
from controller.trees.tree import Tree
from topology.graph import NodeId
from topology.loads import LinkLoads

Demand: TypeAlias = tuple[int, int]
"""What a ToR or pod sends towards the core, and what it gets from there, in bps."""

Way: TypeAlias = tuple[NodeId, NodeId, NodeId]
"""Aggregation, core and aggregation."""


def ways(
    network: Network,
    fabric: LayeredFabric,
    node: NodeId,
    pod: int,
    here: Demand,
    first: NodeId,
    home: int,
    there: Demand,
) -> list[Way]:
    """Return aggregation, core and aggregation of each way between ToRs of two pods that is least busy.

    Of a link its busier direction counts, of a way its busiest link. `here` is what `node`, of `pod`, sends and
    gets, `there` the same of `first`, of `home`.
    """
    loads = network.loads
    bps, capacity = loads.bps, loads.capacity_bps
    from_node, from_first = loads.index.get(node, {}), loads.index.get(first, {})
    (node_up, node_down), (first_up, first_down) = here, there
    uplinks, falls = network.pod_uplinks(fabric, pod), network.pod_uplinks(fabric, home).by_core
    best: list[Way] = []
    # Links of an aggregation stand together, and cores are busier: the link to the ToR is looked at where the
    # one to a core may do, and then for all of them.
    last_a = last_b = None
    least = near = far = inf
    for a, core, number in uplinks.links:
        up = bps[number] + node_up if node_up else 0
        down = bps[number ^ 1] + node_down if node_down else 0
        busiest = (up if up > down else down) / capacity[number]
        if busiest > least or core not in falls:
            continue
        if a is not last_a:
            last_a, near = a, inf
            if a in from_node:
                number = from_node[a]
                up = bps[number] + node_up if node_up else 0
                down = bps[number ^ 1] + node_down if node_down else 0
                near = (up if up > down else down) / capacity[number]
        if near > busiest:
            if near > least or near == inf:
                continue
            busiest = near
        for b, number in falls[core]:
            up = bps[number] + first_up if first_up else 0
            down = bps[number ^ 1] + first_down if first_down else 0
            most = (up if up > down else down) / capacity[number]
            if most < busiest:
                most = busiest
            if most > least:
                continue
            if b is not last_b:
                last_b, far = b, inf
                if b in from_first:
                    number = from_first[b]
                    up = bps[number] + first_up if first_up else 0
                    down = bps[number ^ 1] + first_down if first_down else 0
                    far = (up if up > down else down) / capacity[number]
            if far > most:
                if far == inf:
                    continue
                most = far
            if most < least:
                least, best = most, [(a, core, b)]
            elif most == least:
                best.append((a, core, b))
    return best


def calmest(
    network: Network, found: list[Way], node: NodeId, here: Demand, first: NodeId, there: Demand, tree: Tree
) -> Way:
    """Return the way of `found` whose links are least busy in sum, both directions of each; `tree` decides ties.

    The other parameters are those of `ways`.
    """
    loads = network.loads
    index, bps, capacity = loads.index, loads.bps, loads.capacity_bps
    (node_up, node_down), (first_up, first_down) = here, there
    near: dict[NodeId, float] = {}
    far: dict[NodeId, float] = {}
    best, least = [found[0]], inf
    for way in found:
        a, core, b = way
        if a not in near:
            near[a] = _use(loads, index[node][a], node_up, node_down)
        if b not in far:
            far[b] = _use(loads, index[first][b], first_up, first_down)
        number = index[a][core]
        total = near[a]
        if node_up:
            total += (bps[number] + node_up) / capacity[number]
        if node_down:
            total += (bps[number ^ 1] + node_down) / capacity[number]
        total += far[b]
        number = index[b][core]
        if first_up:
            total += (bps[number] + first_up) / capacity[number]
        if first_down:
            total += (bps[number ^ 1] + first_down) / capacity[number]
        if total < least:
            best, least = [way], total
        elif total == least:
            best.append(way)
    if len(best) == 1:
        return best[0]
    salt, hashes = tree.salt, network.hashes
    return min(best, key=lambda way: salt * (hashes[way[0]] + hashes[way[1]] + hashes[way[2]]) & MASK)


def _use(loads: LinkLoads, number: int, up: int, down: int) -> float:
    """Return the sum of the utilisations of both directions of a link with so much more; one without more is free."""
    capacity = loads.capacity_bps[number]
    there = (loads.bps[number] + up) / capacity if up else 0.0
    return there + (loads.bps[number ^ 1] + down) / capacity if down else there
