"""Which links are to be done without, so that packets leave the switches that an operator drains."""

from __future__ import annotations

from collections.abc import Collection

from controller.kernel.hashing import stable_hash
from topology.graph import Graph, Link, NodeId, cable_order


def avoided_links(graph: Graph, drained: Collection[NodeId]) -> set[frozenset[tuple[NodeId, int | None]]]:
    """Return the cables, by their `Link.ends`, that nothing is to use while some switches are drained.

    A drained switch keeps one link to each part that the rest of the fabric falls into without it: its own hosts
    stay reachable, and what is for others passes it only where nothing else joins them. Fast links are kept before
    slow ones and those to switches in use before those among drained ones; a hash decides the rest, so that the
    answer depends on the graph and on `drained` alone.
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


def _order(link: Link, drained: Collection[NodeId]) -> tuple[bool, float, int, str, tuple[float, int, int]]:
    pair = f"{link.u}-{link.v}"
    is_between = link.u in drained and link.v in drained
    return (is_between, -link.capacity_bps, stable_hash(pair), pair, cable_order(link))
