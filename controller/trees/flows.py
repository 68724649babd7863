"""Accounted load of trees: what each direction of each link carries.

The direction u -> v carries the rates of the senders on u's side where a receiver is on v's side. While no
sender is on the tree, both directions of every link are accounted with the tree's `idle_bps`.
Only terminals on the tree count.
"""

from __future__ import annotations

from controller.trees.tree import RECEIVES, Links, Tree
from topology.graph import NodeId
from topology.loads import LinkLoads


def charge(tree: Tree, loads: LinkLoads) -> None:
    """Add the load of the whole tree, and count receivers and rates below each node anew."""
    adjacent, parent = tree.adjacent, tree.parent
    active = [(node, rate) for node, rate in tree.rates.items() if node in adjacent]
    if not active:
        tree.rate_below = tree.receivers_below = None
    else:
        rates = dict.fromkeys(adjacent, 0)
        receivers = dict.fromkeys(adjacent, 0)
        rates.update(active)
        for node, role in tree.terminals.items():
            if int(role) & RECEIVES and node in receivers:
                receivers[node] = 1
        for node, above in reversed(parent.items()):
            rates[above] += rates[node]
            receivers[above] += receivers[node]
        tree.rate_below, tree.receivers_below = rates, receivers
    _account(tree, loads, 1)


def discharge(tree: Tree, loads: LinkLoads) -> None:
    """Take away the load of the whole tree."""
    _account(tree, loads, -1)


def _account(tree: Tree, loads: LinkLoads, sign: int) -> None:
    index, bps = loads.index, loads.bps
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        charge_links(loads, tuple(tree.parent.items()), sign * tree.idle_bps)
        return
    all_rates, all_receivers = rates[tree.root], receivers[tree.root]
    for node, above in tree.parent.items():
        number = index[node][above]
        if receivers[node] < all_receivers:
            bps[number] += sign * rates[node]
        if receivers[node]:
            bps[number ^ 1] += sign * (all_rates - rates[node])


def charge_links(loads: LinkLoads, links: Links, bps: int) -> None:
    """Add `bps` to both directions of `links`."""
    index, table = loads.index, loads.bps
    for u, v in links:
        number = index[u][v]
        table[number] += bps
        table[number ^ 1] += bps


def _way_up(tree: Tree, node: NodeId) -> list[NodeId]:
    way, parent, root = [], tree.parent, tree.root
    while node != root:
        way.append(node)
        node = parent[node]
    return way


def receiver_moved(tree: Tree, loads: LinkLoads, node: NodeId, step: int) -> None:
    """Account a terminal on the tree that starts (`step` 1) or stops (-1) receiving, while the tree has senders.

    `tree.terminals` holds the terminal with its receiving role in both cases.
    """
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return
    index, bps, parent, root = loads.index, loads.bps, tree.parent, tree.root
    others = receivers[root] - (step < 0)
    # What is sent below a node leaves it where a receiver is outside. This one makes the difference only where
    # all the others are inside, which means above any one of them; and everywhere where there are no others.
    if others:
        below = _other_receiver(tree, node)
        while below != root:
            if receivers[below] == others and rates[below] and below not in _way_up(tree, node):
                bps[index[below][parent[below]]] += step * rates[below]
            below = parent[below]
    else:
        seen = set(_way_up(tree, node))
        for sender in tree.rates:
            if sender in rates:
                for below in _way_up(tree, sender):
                    if below in seen:
                        break
                    seen.add(below)
                    bps[index[below][parent[below]]] += step * rates[below]
    all_rates, only = rates[root], step < 0
    below = node
    while below != root:
        above = parent[below]
        if receivers[below] == only:
            bps[index[above][below]] += step * (all_rates - rates[below])
        receivers[below] += step
        below = above
    receivers[root] += step


def _other_receiver(tree: Tree, node: NodeId) -> NodeId:
    for other, role in tree.terminals.items():
        if other != node and int(role) & RECEIVES and other in tree.adjacent:
            return other
    raise ValueError(f"{node!r} is the only receiver")


def rate_moved(tree: Tree, loads: LinkLoads, node: NodeId, by_bps: int) -> None:
    """Account a change of the rate of a sending terminal on a tree that keeps at least one sender."""
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return
    index, bps = loads.index, loads.bps
    way = _way_up(tree, node)
    all_receivers = receivers[tree.root]
    for below in way:
        if receivers[below] < all_receivers:
            bps[index[below][tree.parent[below]]] += by_bps
        rates[below] += by_bps
    rates[tree.root] += by_bps
    on_way = set(way)
    for below, above in tree.parent.items():
        if receivers[below] and below not in on_way:
            bps[index[above][below]] += by_bps
