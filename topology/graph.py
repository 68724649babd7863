"""The fabric as an undirected graph of hosts and switches with ports, capacities and levels."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

NodeId: TypeAlias = Hashable
"""A datapath id (int) in a live fabric; a name (str) or number in a file or generator."""

DEFAULT_CAPACITY_BPS = 1e9


class NodeKind(StrEnum):
    """What a node is. ``SWITCH`` is a switch whose tier is not known or not meaningful."""

    HOST = "host"
    TOR = "tor"
    AGGREGATION = "aggregation"
    CORE = "core"
    SWITCH = "switch"


def tier_of(level: int, has_tors: bool) -> NodeKind:
    """Return the tier of switches of a level (`Graph.level`); SWITCH in a fabric without ToRs, which has no tiers.

    Examples
    --------
    >>> [tier_of(level, True).value for level in (1, 2, 3, 4)]
    ['tor', 'aggregation', 'core', 'core']
    """
    if not has_tors:
        return NodeKind.SWITCH
    return (NodeKind.TOR, NodeKind.AGGREGATION)[level - 1] if level < 3 else NodeKind.CORE


class Link(NamedTuple):
    """A cable between nodes `u` and `v`; `u_port` is the port number at `u` (None where unknown).

    Cables between the same nodes are a bundle; their ports tell them apart.
    """

    u: NodeId
    v: NodeId
    u_port: int | None = None
    v_port: int | None = None
    capacity_bps: float = DEFAULT_CAPACITY_BPS
    weight: float = 1.0

    def reversed(self) -> Link:
        """Return the same cable seen from `v`."""
        return Link(self.v, self.u, self.v_port, self.u_port, self.capacity_bps, self.weight)

    @property
    def ends(self) -> frozenset[tuple[NodeId, int | None]]:
        """Both ends, each with its port: what names a cable, from whichever end it is seen."""
        return frozenset(((self.u, self.u_port), (self.v, self.v_port)))

    @property
    def ports(self) -> tuple[int | None, int | None]:
        """The ports at both ends."""
        return self.u_port, self.v_port


def order_key(node: NodeId) -> tuple[str, Any]:
    """Sort key that orders nodes of mixed types deterministically."""
    return (type(node).__name__, node)


def cable_order(link: Link) -> tuple[float, int, int]:
    """Sort key of the cables of a bundle: the fastest first, then those with the lowest ports at the lower node."""
    low = link if order_key(link.u) < order_key(link.v) else link.reversed()
    u_port, v_port = (-1 if port is None else port for port in low.ports)
    return -link.capacity_bps, u_port, v_port


def holds_cycle(links: Iterable[frozenset[NodeId]]) -> bool:
    """Tell whether a set of undirected links, each a pair of nodes, holds a cycle."""
    above: dict[NodeId, NodeId] = {}
    for u, v in links:
        root_u, root_v = _root(above, u), _root(above, v)
        if root_u == root_v:
            return True
        above[root_u] = root_v
    return False


def component_roots(links: Iterable[frozenset[NodeId]]) -> dict[NodeId, NodeId]:
    """Return one node, the same for all, of the component that each node on some undirected links belongs to."""
    above: dict[NodeId, NodeId] = {}
    for u, v in links:
        root_u, root_v = _root(above, u), _root(above, v)
        above[root_u] = above.setdefault(root_v, root_v)
    return {node: _root(above, node) for node in above}


def _root(above: Mapping[NodeId, NodeId], node: NodeId) -> NodeId:
    while above.get(node, node) != node:
        node = above[node]
    return node


class Graph:
    """Undirected graph of a fabric; neighbours iterate in a fixed order whatever the insertion order.

    A node is a host or a switch (`NodeKind`); a link carries port numbers, capacity and weight. Several cables may
    join two nodes, which are neighbours once; what asks for the link of two nodes gets the first of them by
    `cable_order`. `version` grows by one with every change, so that derived data can tell whether it is stale.
    """

    def __init__(self) -> None:
        self.version = 0
        self._kind: dict[NodeId, NodeKind] = {}
        self._attributes: dict[NodeId, dict[str, Any]] = {}
        self._links: dict[NodeId, dict[NodeId, Link]] = {}
        self._bundles: dict[NodeId, dict[NodeId, tuple[Link, ...]]] = {}
        self._neighbours: dict[NodeId, tuple[NodeId, ...]] = {}
        self._levels: dict[NodeId, int] = {}
        self._levels_version = -1
        self._weighted_count = 0

    @property
    def is_weighted(self) -> bool:
        """Whether some link's weight is not 1."""
        return self._weighted_count > 0

    def __contains__(self, node: NodeId) -> bool:
        return node in self._kind

    def __len__(self) -> int:
        return len(self._kind)

    def node_view(self) -> KeysView[NodeId]:
        """Return the nodes as they are at any time, in no order; it tells fastest whether one is there."""
        return self._kind.keys()

    def add_node(self, node: NodeId, kind: NodeKind = NodeKind.SWITCH, **attributes: Any) -> None:
        """Add `node`, or change its kind and attributes where it is there already."""
        if self._kind.get(node) is kind and not attributes:
            return
        self._kind[node] = kind
        self._attributes.setdefault(node, {}).update(attributes)
        self._links.setdefault(node, {})
        self.version += 1

    def remove_node(self, node: NodeId) -> tuple[Link, ...]:
        """Remove `node` (KeyError where absent) and return the links that went with it."""
        gone: list[Link] = []
        for neighbour in list(self._links[node]):
            gone += self.cables(node, neighbour)
            self.remove_link(node, neighbour)
        del self._links[node], self._kind[node], self._attributes[node]
        self._neighbours.pop(node, None)
        self.version += 1
        return tuple(gone)

    def add_link(
        self,
        u: NodeId,
        v: NodeId,
        u_port: int | None = None,
        v_port: int | None = None,
        capacity_bps: float = DEFAULT_CAPACITY_BPS,
        weight: float = 1.0,
    ) -> Link:
        """Join two known nodes (KeyError otherwise) by a cable, replacing the one at the same ports.

        Raises ValueError for a self-loop, a capacity that is not positive, or a negative weight.
        """
        if u == v:
            raise ValueError(f"self-loop at {u!r}")
        if not capacity_bps > 0:
            raise ValueError(f"link {u!r} - {v!r}: capacity_bps {capacity_bps} is not positive")
        if not weight >= 0:
            raise ValueError(f"link {u!r} - {v!r}: weight {weight} is negative")
        link = Link(u, v, u_port, v_port, capacity_bps, weight)
        links_u, links_v = self._links[u], self._links[v]
        if v in links_u:
            others = [cable for cable in self.cables(u, v) if cable.ports != link.ports]
            self._weighted_count -= sum(c.weight != 1 for c in self.cables(u, v)) - sum(c.weight != 1 for c in others)
            self._set_cables(u, v, [*others, link])
        else:
            links_u[v] = link
            links_v[u] = link.reversed()
            self._neighbours.pop(u, None)
            self._neighbours.pop(v, None)
        self._weighted_count += weight != 1
        self.version += 1
        return link

    def remove_link(self, u: NodeId, v: NodeId, u_port: int | None = None) -> Link:
        """Remove the cable at a port of `u`, or all that join `u` and `v` where no port is named; return it, or one.

        Raises KeyError where there is none.
        """
        cables = self.cables(u, v)
        gone = [cable for cable in cables if u_port is None or cable.u_port == u_port]
        if not gone:
            raise KeyError((u, v, u_port))
        self._weighted_count -= sum(cable.weight != 1 for cable in gone)
        if len(gone) < len(cables):
            self._set_cables(u, v, [cable for cable in cables if cable.u_port != u_port])
        else:
            self._drop_bundle(u, v)
            del self._links[u][v], self._links[v][u]
            self._neighbours.pop(u, None)
            self._neighbours.pop(v, None)
        self.version += 1
        return gone[0]

    def _set_cables(self, u: NodeId, v: NodeId, cables: list[Link]) -> None:
        cables.sort(key=cable_order)
        if len(cables) > 1:
            self._bundles.setdefault(u, {})[v] = tuple(cables)
            self._bundles.setdefault(v, {})[u] = tuple([cable.reversed() for cable in cables])
        else:
            self._drop_bundle(u, v)
        self._links[u][v] = cables[0]
        self._links[v][u] = cables[0].reversed()

    def _drop_bundle(self, u: NodeId, v: NodeId) -> None:
        for node, other in ((u, v), (v, u)):
            row = self._bundles.get(node, {})
            if row.pop(other, None) is not None and not row:
                del self._bundles[node]

    @property
    def has_bundles(self) -> bool:
        """Whether several cables join some two nodes."""
        return bool(self._bundles)

    def cables(self, u: NodeId, v: NodeId) -> tuple[Link, ...]:
        """Return all cables between `u` and `v` as seen from `u`, by `cable_order` (KeyError where there is none)."""
        bundle = self._bundles[u].get(v) if u in self._bundles else None
        return (self._links[u][v],) if bundle is None else bundle

    def cable(self, u: NodeId, v: NodeId, u_port: int | None) -> Link | None:
        """Return the cable between `u` and `v` at a port of `u`, None where there is none."""
        if not self.has_link(u, v):
            return None
        return next((cable for cable in self.cables(u, v) if cable.u_port == u_port), None)

    def has_link(self, u: NodeId, v: NodeId) -> bool:
        """Tell whether a link joins `u` and `v`."""
        return u in self._links and v in self._links[u]

    def link(self, u: NodeId, v: NodeId) -> Link:
        """Return the first cable between `u` and `v` as seen from `u` (KeyError where there is none)."""
        return self._links[u][v]

    def links(self) -> Iterator[Link]:
        """Yield each cable once, in a fixed order, with `u` before `v`."""
        for u in self.nodes():
            for v in self.neighbours(u):
                if order_key(u) < order_key(v):
                    yield from self.cables(u, v)

    def port(self, u: NodeId, v: NodeId) -> int:
        """Return the port number at `u` of the first cable to `v` (KeyError where no link or port is known)."""
        port = self._links[u][v].u_port
        if port is None:
            raise KeyError((u, v))
        return port

    def neighbours(self, node: NodeId) -> tuple[NodeId, ...]:
        """Return the nodes next to `node`, in a fixed order."""
        found = self._neighbours.get(node)
        if found is None:
            found = self._neighbours[node] = tuple(sorted(self._links[node], key=order_key))
        return found

    def nodes(self, *kinds: NodeKind) -> list[NodeId]:
        """Return the nodes (of the given kinds, or all) in a fixed order."""
        wanted = set(kinds or NodeKind)
        return sorted((n for n, kind in self._kind.items() if kind in wanted), key=order_key)

    def switches(self) -> list[NodeId]:
        """Return all nodes that are not hosts, in a fixed order."""
        return self.nodes(NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE, NodeKind.SWITCH)

    def hosts(self) -> list[NodeId]:
        """Return the hosts, in a fixed order."""
        return self.nodes(NodeKind.HOST)

    def kind(self, node: NodeId) -> NodeKind:
        """Return the kind of `node` (KeyError where absent)."""
        return self._kind[node]

    def attributes(self, node: NodeId) -> dict[str, Any]:
        """Return the attributes of `node`, such as ``pod`` (KeyError where absent)."""
        return self._attributes[node]

    def level(self, node: NodeId) -> int:
        """Return the hops from `node` to the nearest server: 0 for a host, 1 for its ToR (section 4.1 of VSRT).

        Where the graph holds no host, ToRs are level 1; where it holds neither, every switch is.
        Nodes that no server reaches are one level above the highest that is reached.
        """
        if self._levels_version != self.version:
            self._levels = self._compute_levels()
            self._levels_version = self.version
        return self._levels[node]

    def max_level(self) -> int:
        """Return the highest level of any node, 0 for an empty graph."""
        return max((self.level(node) for node in self._kind), default=0)

    def _compute_levels(self) -> dict[NodeId, int]:
        levels: dict[NodeId, int] = dict.fromkeys(self.hosts(), 0)
        levels.update((node, 1) for node in self.nodes(NodeKind.TOR))
        if not levels:
            return dict.fromkeys(self._kind, 1)
        queue = deque(sorted(levels, key=lambda node: levels[node]))
        while queue:
            node = queue.popleft()
            for neighbour in self._links[node]:
                if neighbour not in levels:
                    levels[neighbour] = levels[node] + 1
                    queue.append(neighbour)
        beyond = max(levels.values()) + 1
        return {node: levels.get(node, beyond) for node in self._kind}

    def subgraph(self, nodes: Iterable[NodeId]) -> Graph:
        """Return a copy that holds only `nodes` and the links among them."""
        keep = set(nodes)
        copy = Graph()
        for node in self._kind:
            if node in keep:
                copy.add_node(node, self._kind[node], **self._attributes[node])
        for link in self.links():
            if link.u in keep and link.v in keep:
                copy.add_link(*link)
        return copy

    def copy(self) -> Graph:
        """Return an independent copy."""
        return self.subgraph(self._kind)
