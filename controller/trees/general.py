"""Trees on graphs of any shape: attachment at the nearest node of the tree, and reconnection of its pieces."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from controller.trees.network import MASK, Network
from controller.trees.tree import Adjacency, Tree, prune_leaves, rooted
from topology.graph import NodeId, order_key

MEMBER_ORDERS = 8
"""Member orders that a steady-state rebuild tries."""


def nearest(network: Network, salt: int, sources: Iterable[NodeId], goal: Container[NodeId]) -> list[NodeId] | None:
    """Return a shortest path from `sources` to the nearest node of `goal`, None where there is none.

    Of equally short paths the one whose busiest link is least busy (either direction), then by hash of group
    and node. The search from all sources at once stops at the first node of `goal`.
    """
    before: dict[NodeId, NodeId] = {}
    search = _by_weight if network.weighted else _by_hops
    found = search(network, salt, sources, goal, before)
    if found is None:
        return None
    path = [found]
    while path[-1] in before:
        path.append(before[path[-1]])
    return path[::-1]


def _by_hops(
    network: Network, salt: int, sources: Iterable[NodeId], goal: Container[NodeId], before: dict[NodeId, NodeId]
) -> NodeId | None:
    """Search tier by tier, the nodes of each in the order of `nearest`; `before` gets the node before each."""
    index, bps, capacity = network.loads.index, network.loads.bps, network.loads.capacity_bps
    hash_of = network.hash_of
    reach: dict[NodeId, float] = dict.fromkeys(sources, 0.0)
    seen: set[NodeId] = set()
    order = list(reach)
    while order:
        for node in order:
            if node in goal:
                return node
        seen.update(order)
        nearer, reach = reach, {}
        for node in order:
            busiest = nearer[node]
            for neighbour, number in index.get(node, {}).items():
                if neighbour in seen:
                    continue
                there, back = bps[number], bps[number ^ 1]
                load = (there if there > back else back) / capacity[number]
                if load < busiest:
                    load = busiest
                if neighbour not in reach or load < reach[neighbour]:
                    reach[neighbour] = load
                    before[neighbour] = node
        order = sorted(reach, key=lambda node: (reach[node], salt * hash_of(node) & MASK))
    return None


def _by_weight(
    network: Network, salt: int, sources: Iterable[NodeId], goal: Container[NodeId], before: dict[NodeId, NodeId]
) -> NodeId | None:
    graph, index = network.graph, network.loads.index
    bps, capacity, hash_of = network.loads.bps, network.loads.capacity_bps, network.hash_of
    best: dict[NodeId, tuple[float, float, int]] = dict.fromkeys(sources, (0.0, 0.0, 0))
    heap: list[tuple[float, float, int, int, NodeId]] = [(0.0, 0.0, 0, i, node) for i, node in enumerate(best)]
    serial = len(heap)
    done: set[NodeId] = set()
    while heap:
        weight, busiest, _, _, node = heappop(heap)
        if node in done:
            continue
        done.add(node)
        if node in goal:
            return node
        row = index.get(node, {})
        for neighbour in graph.neighbours(node):
            if neighbour in done:
                continue
            away = weight + graph.link(node, neighbour).weight
            known = best.get(neighbour)
            if known is not None and known[0] < away:
                continue
            number = row[neighbour]
            load = max(bps[number], bps[number ^ 1]) / capacity[number]
            if load < busiest:
                load = busiest
            if known is None or (away, load) < known[:2]:
                reach = (away, load, salt * hash_of(neighbour) & MASK)
                best[neighbour] = reach
                before[neighbour] = node
                serial += 1
                heappush(heap, (*reach, serial, neighbour))
    return None


def join_in_order(network: Network, salt: int, terminals: Sequence[NodeId]) -> dict[NodeId, NodeId]:
    """Return the tree, rooted at the first of `terminals`, that comes of attaching them one after the other."""
    adjacent: dict[NodeId, set[NodeId]] = {terminals[0]: set()}
    for terminal in terminals[1:]:
        if terminal not in adjacent:
            path = nearest(network, salt, (terminal,), adjacent)
            if path is not None:
                _add_path(adjacent, path)
    return rooted(terminals[0], adjacent)


def join_nearest_first(network: Network, salt: int, terminals: Sequence[NodeId]) -> dict[NodeId, NodeId]:
    """Return the tree that comes of starting at the first of `terminals` and attaching the nearest next.

    References
    ----------
    H. Takahashi and A. Matsuyama, "An approximate solution for the Steiner problem in graphs", Mathematica
    Japonica 24, 1980.
    """
    return reconnect(network, salt, terminals, {})


def reconnect(network: Network, salt: int, terminals: Sequence[NodeId], old: Adjacency) -> dict[NodeId, NodeId]:
    """Return a tree over `terminals` that keeps the living links of `old` which still lead to terminals.

    The piece with most terminals stays; the others are joined to it, nearest first, each as a whole.
    """
    ends = set(terminals)
    pieces = _pieces(network, terminals, old, ends)
    first = max(range(len(pieces)), key=lambda i: (len(ends & pieces[i].keys()), -i))
    tree = pieces.pop(first)
    where = {node: piece for piece in pieces for node in piece}
    while where:
        path = nearest(network, salt, tree, where)
        if path is None:
            break
        piece = where[path[-1]]
        _add_path(tree, path)
        for node, neighbours in piece.items():
            tree.setdefault(node, set()).update(neighbours)
            del where[node]
    prune_leaves(tree, ends)
    root = next(node for node in terminals if node in tree)
    return rooted(root, tree)


def _pieces(
    network: Network, terminals: Sequence[NodeId], old: Adjacency, ends: set[NodeId]
) -> list[dict[NodeId, set[NodeId]]]:
    graph = network.graph
    alive = {node: {n for n in near if graph.has_link(node, n)} for node, near in old.items() if node in graph}
    pieces: list[dict[NodeId, set[NodeId]]] = []
    placed: set[NodeId] = set()
    for terminal in terminals:
        if terminal in placed:
            continue
        inside = [terminal, *rooted(terminal, alive)] if terminal in alive else [terminal]
        piece = {node: set(alive.get(node, ())) for node in inside}
        prune_leaves(piece, ends)
        placed |= piece.keys()
        pieces.append(piece)
    return pieces


def _add_path(adjacent: dict[NodeId, set[NodeId]], path: Sequence[NodeId]) -> None:
    for node, beyond in pairwise(path):
        adjacent.setdefault(node, set()).add(beyond)
        adjacent.setdefault(beyond, set()).add(node)


def shortened(network: Network, parent: Mapping[NodeId, NodeId], terminals: Sequence[NodeId]) -> dict[NodeId, NodeId]:
    """Return the lightest tree over the nodes of a tree, without the leaves that are no terminals."""
    graph = network.graph
    nodes: set[NodeId] = {*parent, *parent.values(), *terminals}
    root = terminals[0]
    adjacent: dict[NodeId, set[NodeId]] = {root: set()}
    heap: list[tuple[float, bool, int, NodeId, NodeId]] = []
    serial = 0
    node = root
    while True:
        for neighbour in graph.neighbours(node):
            if neighbour in nodes and neighbour not in adjacent:
                serial += 1
                kept = parent.get(node) == neighbour or parent.get(neighbour) == node
                heappush(heap, (network.weight(node, neighbour), not kept, serial, node, neighbour))
        while heap and heap[0][4] in adjacent:
            heappop(heap)
        if not heap:
            break
        *_, above, node = heappop(heap)
        adjacent[above].add(node)
        adjacent[node] = {above}
    prune_leaves(adjacent, set(terminals))
    return rooted(root, adjacent)


def member_orders(tree: Tree, terminals: Collection[NodeId], network: Network) -> list[list[NodeId]]:
    """Return up to `MEMBER_ORDERS` orders of `terminals`: as given, and others by hash of the group."""
    orders = [list(terminals)]
    for turn in range(1, MEMBER_ORDERS):
        orders.append(
            sorted(
                terminals,
                key=lambda node: ((tree.salt + 2 * turn) * network.hash_of(node) >> 16 & MASK, order_key(node)),
            )
        )
    return orders
