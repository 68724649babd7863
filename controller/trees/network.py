"""What every tree algorithm shares: the switches, their loads, and facts derived from them once per change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from math import fsum
from typing import Final, NamedTuple, TypeAlias

from controller.kernel.hashing import stable_hash
from controller.trees.fabric import (
    Hierarchy,
    LayeredFabric,
    are_joined,
    recognise,
    with_link,
    with_node,
    without_link,
    without_node,
)
from topology.graph import Graph, NodeId, NodeKind, order_key
from topology.loads import LinkLoads

MASK: Final = (1 << 64) - 1

Distance: TypeAlias = tuple[float, int]
"""Weight of a shortest path, and its links (which order paths over links without weight)."""


def switch_graph(graph: Graph) -> Graph:
    """Return the switches of `graph` without its hosts; a switch of no known tier that has hosts becomes a ToR."""
    switches = graph.subgraph(graph.switches())
    for host in graph.hosts():
        for node in graph.neighbours(host):
            if node in switches and switches.kind(node) is NodeKind.SWITCH:
                switches.add_node(node, NodeKind.TOR)
    return switches


class NodeHashes(dict[NodeId, int]):
    """An odd 64-bit hash of every node that was asked for."""

    def __missing__(self, node: NodeId) -> int:
        found = self[node] = stable_hash(node)
        return found


class PodUplinks(NamedTuple):
    """The links from a pod to the cores.

    Attributes
    ----------
    links
        Aggregation, core, and number in `LinkLoads` of the way up, of each.
    by_core
        Aggregation and that number of each, by core.
    up, down
        These numbers, and those of the ways down.
    capacities_bps, capacity_bps
        What each carries, and all together, in bit/s.
    """

    links: list[tuple[NodeId, NodeId, int]]
    by_core: dict[NodeId, list[tuple[NodeId, int]]]
    up: list[int]
    down: list[int]
    capacities_bps: list[float]
    capacity_bps: float


class Network:
    """Read-only view of the fabric for algorithms; derived facts follow `graph.version` (theirs is `version`)."""

    def __init__(self, graph: Graph, loads: LinkLoads, seed: int) -> None:
        self.graph = graph
        self.loads = loads
        self.seed = seed
        self.version = -1
        self.steps_left: int | None = None
        """What searches for smallest trees may still look at, while one change has them all follow."""
        self._shape: LayeredFabric | Hierarchy | None = None
        self.fabric: LayeredFabric | None = None
        """What the graph was at `version`, where that is a fabric."""
        self.pod: dict[NodeId, int] = {}
        self.up: dict[NodeId, tuple[NodeId, ...]] = {}
        self.down: dict[NodeId, dict[int, tuple[NodeId, ...]]] = {}
        """The same of `fabric`, for code for which a named tuple is too slow."""
        self._weighted = False
        self._components: dict[NodeId, int] | None = None
        self._distances: dict[NodeId, dict[NodeId, Distance]] = {}
        self._roots: dict[tuple[str, int], tuple[NodeId, ...]] = {}
        self._uplinks: dict[int, PodUplinks] = {}
        self._uplinks_version = -1
        self.hashes = NodeHashes()

    def refresh(self) -> None:
        """Drop what was derived from an older version of the graph."""
        if self.version == self.graph.version:
            return
        self.version = self.graph.version
        self._weighted = self.graph.is_weighted
        self._recognised(None if self._weighted else recognise(self.graph))
        self._components = None
        self._distances.clear()
        self._roots.clear()

    def link_lost(self, u: NodeId, v: NodeId) -> None:
        """Follow the loss of a link, which was the last change of the graph, as far as what is near it tells."""
        before = self._shape_before()
        found = None if before is None else without_link(before, self.graph, u, v)
        self._follow(found, found is not None and are_joined(found, u, v))

    def link_added(self, u: NodeId, v: NodeId) -> None:
        """Follow a link that was added or is another, the last change of the graph, as far as what is near tells."""
        before, components = self._shape_before(), self._components
        found = None if before is None else with_link(before, self.graph, u, v)
        self._follow(found, components is not None and components.get(u) == components.get(v))

    def cables_changed(self) -> None:
        """Follow a cable that was added or lost beside another, the last change of the graph."""
        if self.version == self.graph.version - 1 and not (self._weighted or self.graph.is_weighted):
            self.version = self.graph.version

    def node_added(self, node: NodeId) -> None:
        """Follow a switch that was added, the last change of the graph."""
        before = self._shape_before()
        self._follow(None if before is None else with_node(before, self.graph, node), False)

    def node_lost(self, node: NodeId) -> None:
        """Follow a switch that was taken away without a link, the last change of the graph."""
        before = self._shape_before()
        self._follow(None if before is None else without_node(before, self.graph, node), False)

    def _shape_before(self) -> LayeredFabric | None:
        """Return what the graph was before its last change, where that is known and a fabric."""
        if (
            self.version != self.graph.version - 1
            or self.graph.is_weighted
            or not isinstance(self._shape, LayeredFabric)
        ):
            return None
        return self._shape

    def _follow(self, shape: LayeredFabric | None, are_components_as_before: bool) -> None:
        """Take the graph as recognised, where it is."""
        if shape is None:
            return
        self.version = self.graph.version
        self._recognised(shape)
        if not are_components_as_before:
            self._components = None
        self._distances.clear()
        self._roots.clear()

    def _recognised(self, shape: LayeredFabric | Hierarchy | None) -> None:
        self._shape, self.fabric = shape, shape if isinstance(shape, LayeredFabric) else None
        if self.fabric is not None:
            self.pod, self.up, self.down = self.fabric.pod, self.fabric.up, self.fabric.down

    @contextmanager
    def searching(self, steps: int) -> Iterator[None]:
        """Let all searches until the end look at so many choices together."""
        self.steps_left = steps
        try:
            yield
        finally:
            self.steps_left = None

    def pod_uplinks(self, fabric: LayeredFabric, pod: int) -> PodUplinks:
        """Return the links from a pod to the cores, kept as long as the graph is as it is."""
        if self._uplinks_version != self.graph.version:
            self._uplinks_version = self.graph.version
            self._uplinks.clear()
        found = self._uplinks.get(pod)
        if found is None:
            loads, pairs = self.loads, fabric.uplinks.get(pod, ())
            links = [(u, v, loads.index[u][v]) for u, v in pairs]
            by_core: dict[NodeId, list[tuple[NodeId, int]]] = {}
            for aggregation, core, number in links:
                by_core.setdefault(core, []).append((aggregation, number))
            up = [number for _, _, number in links]
            down, capacities_bps = [number ^ 1 for number in up], [loads.capacity_bps[number] for number in up]
            found = PodUplinks(links, by_core, up, down, capacities_bps, fsum(capacities_bps))
            if not any(u in loads.bundles and v in loads.bundles[u] for u, v in pairs):
                self._uplinks[pod] = found  # of several cables the least busy is another one as loads change
        return found

    @property
    def shape(self) -> LayeredFabric | Hierarchy | None:
        """The structure that the graph was recognised as, None for a general graph."""
        if self.version != self.graph.version:
            self.refresh()
        return self._shape

    @property
    def weighted(self) -> bool:
        """Whether some link's weight is not 1."""
        if self.version != self.graph.version:
            self.refresh()
        return self._weighted

    def hash_of(self, node: NodeId) -> int:
        """Return an odd 64-bit hash of `node`."""
        return self.hashes[node]

    def draw(self, salt: int, nodes: tuple[NodeId, ...]) -> NodeId:
        """Choose one of `nodes` by hash; taking another node out of `nodes` does not change the choice."""
        hash_of = self.hash_of
        return max(nodes, key=lambda node: salt * hash_of(node) & MASK)

    def components(self) -> dict[NodeId, int]:
        """Return the number of the connected component of every node."""
        self.refresh()
        if self._components is None:
            self._components = {}
            for start in self.graph.nodes():
                if start in self._components:
                    continue
                number = len(self._components)
                self._components[start] = number
                queue = deque([start])
                while queue:
                    for neighbour in self.graph.neighbours(queue.popleft()):
                        if neighbour not in self._components:
                            self._components[neighbour] = number
                            queue.append(neighbour)
        return self._components

    def distances(self, source: NodeId) -> dict[NodeId, Distance]:
        """Return the distance to `source` of every node that reaches it."""
        self.refresh()
        found = self._distances.get(source)
        if found is None:
            found = self._distances[source] = self._search(source)
        return found

    def _search(self, source: NodeId) -> dict[NodeId, Distance]:
        graph, found = self.graph, {source: (0.0, 0)}
        if not self._weighted:
            queue = deque([source])
            while queue:
                node = queue.popleft()
                hops = found[node][1] + 1
                for neighbour in graph.neighbours(node):
                    if neighbour not in found:
                        found[neighbour] = (float(hops), hops)
                        queue.append(neighbour)
            return found
        heap = [(0.0, 0, order_key(source), source)]
        done = set()
        while heap:
            weight, hops, _, node = heappop(heap)
            if node in done:
                continue
            done.add(node)
            for neighbour in graph.neighbours(node):
                reach = (weight + graph.link(node, neighbour).weight, hops + 1)
                if neighbour not in found or reach < found[neighbour]:
                    found[neighbour] = reach
                    heappush(heap, (*reach, order_key(neighbour), neighbour))
        return found

    def closer(self, node: NodeId, target: NodeId) -> tuple[NodeId, ...]:
        """Return the neighbours of `node` on its shortest paths to `target` (KeyError where there is none)."""
        distances, graph = self.distances(target), self.graph
        weight, hops = distances[node]
        if not self._weighted:
            return tuple(n for n in graph.neighbours(node) if distances[n][1] == hops - 1)
        return tuple(
            n
            for n in graph.neighbours(node)
            if distances[n][1] == hops - 1 and distances[n][0] + graph.link(node, n).weight == weight
        )

    def tops(self, component: int) -> tuple[NodeId, ...]:
        """Return the cores of a component, or its highest switches where it has none, in a fixed order."""
        return self._chosen("top", component)

    def edges(self, component: int) -> tuple[NodeId, ...]:
        """Return the ToRs of a component, or its lowest switches where it has none, in a fixed order."""
        return self._chosen("edge", component)

    def _chosen(self, what: str, component: int) -> tuple[NodeId, ...]:
        found = self._roots.get((what, component))
        if found is None:
            graph = self.graph
            nodes = [node for node, number in self.components().items() if number == component]
            kind, extreme = (NodeKind.CORE, max) if what == "top" else (NodeKind.TOR, min)
            marked = [node for node in nodes if graph.kind(node) is kind]
            level = extreme(graph.level(node) for node in nodes)
            chosen = marked or [node for node in nodes if graph.level(node) == level]
            found = self._roots[(what, component)] = tuple(sorted(chosen, key=order_key))
        return found

    def weight(self, u: NodeId, v: NodeId) -> float:
        """Return the weight of a link."""
        return self.graph.link(u, v).weight if self._weighted else 1.0

    def cost(self, parent: dict[NodeId, NodeId]) -> float:
        """Return the sum of the weights of the links of a rooted tree."""
        if not self.weighted:
            return float(len(parent))
        return sum(self.graph.link(node, above).weight for node, above in parent.items())
