"""What links would carry without some switches, by the trees that would be built then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from controller.kernel.drains import avoided_links
from controller.maintenance.groups import redundancy_groups
from controller.trees.flows import link_load
from controller.trees.forest import Forest
from controller.trees.tree import Tree
from topology.graph import Graph, NodeId

TREES_AT_ONCE = 100
"""Trees that are built between two looks, so that the loop is soon free again."""

FRESH_S = 10.0
"""For how long what was found counts; members, senders and rates change meanwhile."""

_Way = tuple[NodeId, NodeId]


class DrainForecast:
    """How busy the busiest link would be while some switches are drained.

    Trees through them are built anew beside the real ones. What is measured besides on their links, packets to hosts,
    goes evenly over the links from the same neighbour to the switches that stand in. Cables between the same switches
    count together. `make_forest` returns a forest like the real one over another graph.
    """

    def __init__(self, forest: Forest, fabric: Graph, make_forest: Callable[[Graph], Forest]) -> None:
        self._forest = forest
        self._make_forest = make_forest
        self._fabric = fabric
        self._out: frozenset[int] | None = None
        self._busiest_pct = 0.0
        self._found_s: float | None = None
        self._steps: Iterator[None] = iter(())

    def busiest_pct(self, out: frozenset[int], now: float) -> float | None:
        """Return the utilisation in percent with `out` drained; None while that is not found out yet."""
        is_old = self._found_s is not None and now > self._found_s + FRESH_S
        if out != self._out or is_old:
            self._out, self._found_s = out, None
            self._steps = self._find(out)
        if self._found_s is None:
            if next(self._steps, self) is None:
                return None
            self._found_s = now
        return self._busiest_pct

    def _find(self, out: frozenset[int]) -> Iterator[None]:
        forest = self._forest
        avoided = avoided_links(self._fabric, out)
        graph = Graph()
        for node in forest.graph.nodes():
            graph.add_node(node, forest.graph.kind(node))
        for link in self._fabric.links():
            if link.ends not in avoided and link.u in graph and link.v in graph:
                graph.add_link(*link)
        beside = self._make_forest(graph)
        carried = self._carried(out)
        for number, tree in enumerate(self._concerned(out, graph), start=1):
            _add_tree(carried, tree, -1)
            beside.set_group_rate(tree.key, tree.idle_bps)
            for node, role in tree.terminals.items():
                beside.join(tree.key, node, role)
            for node, rate_bps in tree.rates.items():
                beside.set_rate(tree.key, node, rate_bps)
            if (built := beside.tree(tree.key)) is not None:
                _add_tree(carried, built, 1)
            if number % TREES_AT_ONCE == 0:
                yield
        ways = [(way, bps) for way, bps in carried.items() if graph.has_link(*way)]
        self._busiest_pct = max((100.0 * bps / _capacity(graph, way) for way, bps in ways), default=0.0)

    def _concerned(self, out: Collection[int], graph: Graph) -> list[Tree]:
        """Return the trees with a link that is not in a graph without `out`, in an order of their own."""
        forest = self._forest
        links = {(u, v) for u in out if u in forest.graph for v in forest.graph.neighbours(u)}
        keys = {key for u, v in links if not graph.has_link(u, v) for key in forest.groups_on(u, v)}
        trees = (forest.tree(key) for key in keys)
        return sorted((tree for tree in trees if tree is not None), key=lambda tree: (tree.salt, str(tree.key)))

    def _carried(self, out: Collection[int]) -> dict[_Way, float]:
        """Return what links carry, with the background of those of `out` moved to those that stand in."""
        loads, carried = self._forest.loads, dict[_Way, float]()
        background: dict[_Way, float] = {}
        for u, row in loads.index.items():
            for v in row:
                numbers = loads.cables(u, v)
                carried[u, v] = float(sum(loads.bps[number] for number in numbers))
                background[u, v] = float(sum(loads.background_bps[number] for number in numbers))
        groups = redundancy_groups(self._fabric)
        for (u, v), bps in background.items():
            if bps and v in out and v in groups:
                others = [n for n in self._fabric.neighbours(u) if n not in out and groups[n] == groups[v]]
                for other in others:
                    for way, share in (((u, other), bps), ((other, u), background.get((v, u), 0.0))):
                        carried[way] = carried.get(way, 0.0) + share / len(others)
        return carried


def _add_tree(carried: dict[_Way, float], tree: Tree, sign: int) -> None:
    for node, above in tree.parent.items():
        up_bps, down_bps = link_load(tree, node)
        carried[node, above] = carried.get((node, above), 0.0) + sign * up_bps
        carried[above, node] = carried.get((above, node), 0.0) + sign * down_bps


def _capacity(graph: Graph, way: _Way) -> float:
    return sum(link.capacity_bps for link in graph.cables(*way))
