"""Which links trees are to do without, so that they leave the switches that an operator drains."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from controller.trees.hashing import stable_hash
from controller.trees.tree import Change, Key
from topology.graph import Graph, Link, NodeId, cable_order


def avoided_links(graph: Graph, drained: Collection[NodeId]) -> set[frozenset[tuple[NodeId, int | None]]]:
    """Return the cables, by their `Link.ends`, that no tree is to use while some switches are drained.

    A drained switch keeps one link to each part that the rest of the fabric falls into without it: its own hosts
    stay reachable, and a tree passes it only where nothing else joins its terminals. Fast links are kept before slow
    ones and those to switches in use before those among drained ones; a hash decides the rest, so that the answer
    depends on the graph and on `drained` alone.
    """
    if not drained:
        return set()
    root: dict[NodeId, NodeId] = {}

    def find(node: NodeId) -> NodeId:
        while (above := root.get(node, node)) != node:
            root[node] = root.get(above, above)
            node = above
        return node

    concerned: list[Link] = []
    for link in graph.links():
        if link.u in drained or link.v in drained:
            concerned.append(link)
        elif (one := find(link.u)) != (other := find(link.v)):
            root[one] = other
    avoided = set()
    for link in sorted(concerned, key=lambda link: _order(link, drained)):
        one, other = find(link.u), find(link.v)
        if one == other:
            avoided.add(link.ends)
        else:
            root[one] = other
    return avoided


def merged(changes: Iterable[Change]) -> list[Change]:
    """Return one change per tree that amounts to all of its changes in turn, in the order of the first ones."""
    found: dict[Key, Change] = {}
    for change in changes:
        before = found.get(change.key)
        found[change.key] = change if before is None else before.then(change)
    return list(found.values())


def _order(link: Link, drained: Collection[NodeId]) -> tuple[bool, float, int, str, tuple[float, int, int]]:
    pair = f"{link.u}-{link.v}"
    is_between = link.u in drained and link.v in drained
    return (is_between, -link.capacity_bps, stable_hash(pair), pair, cable_order(link))
