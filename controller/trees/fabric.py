"""Recognise fabrics in which an optimal tree is known without search, from levels and links alone.

In a graph whose links all join neighbouring tiers (ToR 1, aggregation 2, core 3), let the pods be the connected
components of tiers 1 and 2. Any tree over a set S of ToRs in p pods crosses the cut around each ToR by a
ToR-aggregation link of its own and, where p > 1, the cut around each pod by an aggregation-core link of its
own: no tree is smaller than |S| links (p = 1) or |S| + p (p > 1). A tree through one aggregation per pod and
one core has just that size. The article's appendix builds it with fixed designated nodes (Avalanche/AvRA,
doi 10.1109/COMSNETS.2014.6734903, has the same construction).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from topology.graph import Graph, NodeId, NodeKind, order_key

TIERS = {NodeKind.TOR: 1, NodeKind.AGGREGATION: 2, NodeKind.CORE: 3}


class LayeredFabric(NamedTuple):
    """A layered fabric: fat trees, leaf-spine fabrics (no core) and trees of three tiers, links missing or not.

    Attributes
    ----------
    pod, aggregation_pod
        Pod number of every ToR, pod by pod, and of every aggregation; numbers hold for one version of the graph.
    order
        Place of every ToR in `pod`.
    up
        Aggregations of every ToR, and cores of every aggregation, by living link.
    down
        Aggregations under every core, by pod number.
    cores
        Cores over every pod.
    uplinks
        Aggregation and core of every link from a pod to the cores.
    """

    pod: dict[NodeId, int]
    order: dict[NodeId, int]
    aggregation_pod: dict[NodeId, int]
    up: dict[NodeId, tuple[NodeId, ...]]
    down: dict[NodeId, dict[int, tuple[NodeId, ...]]]
    cores: dict[int, tuple[NodeId, ...]]
    uplinks: dict[int, list[tuple[NodeId, NodeId]]]

    def optimum(self, tors: Iterable[NodeId]) -> int:
        """Return the number of links of a smallest tree over `tors` in the complete fabric (KeyError: no ToR)."""
        nodes = set(tors)
        pods = {self.pod[node] for node in nodes}
        if len(nodes) <= 1:
            return 0
        return len(nodes) if len(pods) == 1 else len(nodes) + len(pods)


class Hierarchy(NamedTuple):
    """A graph without a cycle: one path between any two nodes. `above` and `depth` hang it from its roots."""

    above: dict[NodeId, NodeId | None]
    depth: dict[NodeId, int]


def recognise(graph: Graph) -> LayeredFabric | Hierarchy | None:
    """Return what is known of `graph` (without hosts), or None where trees take a search.

    Examples
    --------
    >>> leaf_spine = Graph()
    >>> for name in "abst":
    ...     leaf_spine.add_node(name, NodeKind.TOR if name in "ab" else NodeKind.AGGREGATION)
    >>> for pair in ("as", "at", "bs", "bt"):
    ...     _ = leaf_spine.add_link(*pair)
    >>> recognise(leaf_spine).optimum(["a", "b"])
    2
    """
    return _hierarchy(graph) or _fabric(graph)


def without_link(fabric: LayeredFabric, graph: Graph, u: NodeId, v: NodeId) -> LayeredFabric | None:
    """Return what `recognise` finds after a link between `u` and `v` was taken from `graph`, which was `fabric`.

    Only what is next to the link is looked at. None where that does not tell: a tier or a pod may be another, or the
    graph may hold no cycle any more.
    """
    lower, upper = (u, v) if v in fabric.down or u in fabric.pod else (v, u)
    up = fabric.up | {lower: tuple(node for node in fabric.up.get(lower, ()) if node != upper)}
    if sum(map(len, up.values())) < len(graph):
        return None
    if lower in fabric.pod and upper in fabric.aggregation_pod:
        has_lower = any(node in fabric.pod for node in graph.neighbours(upper))
        return fabric._replace(up=up) if has_lower and _are_one_pod(fabric, graph, lower, upper) else None
    if lower not in fabric.aggregation_pod or upper not in fabric.down:
        return None
    under: dict[int, tuple[NodeId, ...]] = {}
    for aggregation in graph.neighbours(upper):
        number = fabric.aggregation_pod.get(aggregation)
        if number is not None:
            under[number] = (*under.get(number, ()), aggregation)
    pod = fabric.aggregation_pod[lower]
    over = {**fabric.cores, pod: tuple(core for core in fabric.cores[pod] if core != upper or pod in under)}
    if not over[pod]:
        return None
    uplinks = {**fabric.uplinks, pod: [link for link in fabric.uplinks[pod] if link != (lower, upper)]}
    down = {**fabric.down, upper: under}
    if not under:
        if graph.neighbours(upper) or graph.kind(upper) in TIERS or not any(down.values()):
            return None
        del down[upper]  # a switch without a link is of no tier
    return fabric._replace(up=up, down=down, cores=over, uplinks=uplinks)


def with_node(fabric: LayeredFabric, graph: Graph, node: NodeId) -> LayeredFabric | None:
    """Return what `recognise` finds after a switch without a link was added to `graph`, which was `fabric`.

    Numbers of pods may be others. None where a look at all of the graph has to tell.
    """
    is_known = node in fabric.up or bool(graph.neighbours(node))
    if is_known or graph.kind(node) in TIERS or not any(fabric.down.values()):
        return None
    return fabric._replace(up={**fabric.up, node: ()})


def without_node(fabric: LayeredFabric, graph: Graph, node: NodeId) -> LayeredFabric | None:
    """Return what `recognise` finds after a switch that had no link was taken from `graph`, which was `fabric`.

    Numbers of pods may be others. None where a look at all of the graph has to tell.
    """
    if node in fabric.pod or node in fabric.aggregation_pod or node in fabric.down:
        return None
    up = {other: above for other, above in fabric.up.items() if other != node}
    return fabric._replace(up=up) if sum(map(len, up.values())) >= len(graph) else None


def with_link(fabric: LayeredFabric, graph: Graph, u: NodeId, v: NodeId) -> LayeredFabric | None:
    """Return what `recognise` finds after a link between `u` and `v` was added to `graph`, which was `fabric`.

    Only what is next to the link is looked at. Numbers of pods may be others. None where that does not tell: pods may
    have become one, or a tier may be another.
    """
    for node, other in ((u, v), (v, u)):
        if node not in fabric.pod and node not in fabric.aggregation_pod and node not in fabric.down:
            placed = _placed(fabric, graph, node, other)
            return None if placed is None else _linked(placed, graph, [(node, n) for n in graph.neighbours(node)])
    return _linked(fabric, graph, [(u, v)])


def _placed(fabric: LayeredFabric, graph: Graph, node: NodeId, other: NodeId) -> LayeredFabric | None:
    """Give a switch of no tier the one that its new link to `other` tells; None where that is not told so.

    A switch whose links all lead to cores is of no tier yet: it may be an aggregation that is found link by link.
    """
    beyond = [neighbour for neighbour in graph.neighbours(node) if neighbour != other]
    if graph.kind(node) in TIERS or not all(neighbour in fabric.down for neighbour in beyond):
        return None
    if other in fabric.pod:
        pods = {**fabric.aggregation_pod, node: fabric.pod[other]}
        up = {**fabric.up, **{core: tuple(n for n in fabric.up[core] if n != node) for core in beyond}}
        return fabric._replace(aggregation_pod=pods, up=up)
    if other in fabric.aggregation_pod and not beyond and any(fabric.down.values()):
        return fabric._replace(down=dict(sorted([*fabric.down.items(), (node, {})], key=_by_order)))
    return fabric if fabric.down.get(other) else None


def _linked(fabric: LayeredFabric, graph: Graph, links: Iterable[tuple[NodeId, NodeId]]) -> LayeredFabric | None:
    """Bring what is known of the ends of links up to date; None where they do not join neighbouring tiers."""
    tors, aggregations = fabric.pod, fabric.aggregation_pod
    up, down, cores, uplinks = dict(fabric.up), dict(fabric.down), dict(fabric.cores), dict(fabric.uplinks)
    for u, v in links:
        lower, upper = (u, v) if u in tors or (u in aggregations and v not in tors) else (v, u)
        if lower in tors:
            if aggregations.get(upper) != tors[lower]:
                return None
            up[lower] = tuple(node for node in graph.neighbours(lower) if node in aggregations)
        elif lower in aggregations:
            if upper not in down:
                return None
            number = aggregations[lower]
            up[lower] = tuple(node for node in graph.neighbours(lower) if node in down)
            below = [node for node in graph.neighbours(upper) if aggregations.get(node) == number]
            down[upper] = {**down[upper], number: tuple(below)}
            cores[number] = tuple(sorted({*cores.get(number, ()), upper}, key=order_key))
            beside = sorted((node for node, own in aggregations.items() if own == number), key=order_key)
            uplinks[number] = [(node, core) for node in beside for core in up.get(node, ())]
        else:
            core, above = (u, v) if u in down else (v, u)
            if core not in down or above in down:
                return None
            up[core] = tuple(sorted({*up[core], above}, key=order_key))
        up.setdefault(u, ())
        up.setdefault(v, ())
    return fabric._replace(up=up, down=down, cores=cores, uplinks=uplinks)


def _by_order(item: tuple[NodeId, object]) -> tuple[str, object]:
    return order_key(item[0])


def merged_pod(before: object, now: object, u: NodeId, v: NodeId) -> list[NodeId]:
    """Return the ToRs of the pod that a new link made of several, none where it did not.

    `before` and `now` are what the graph was and is recognised as.
    """
    if not isinstance(before, LayeredFabric) or not isinstance(now, LayeredFabric):
        return []
    half = next((node for node in (u, v) if node in before.pod), None)
    if half is None:
        return []
    together = [node for node, number in now.pod.items() if number == now.pod.get(half)]
    return together if len({before.pod[node] for node in together if node in before.pod}) > 1 else []


def are_joined(fabric: LayeredFabric, u: NodeId, v: NodeId) -> bool:
    """Tell whether an aggregation and a core, or two nodes of a pod, are seen to be in one component nearby."""
    core, other = (u, v) if u in fabric.down else (v, u)
    if core not in fabric.down:
        return all(node in fabric.pod or node in fabric.aggregation_pod for node in (u, v))
    pod, under = fabric.aggregation_pod[other], fabric.down[core].keys()
    return pod in under or any(under & fabric.down[further].keys() for further in fabric.cores[pod])


def _are_one_pod(fabric: LayeredFabric, graph: Graph, u: NodeId, v: NodeId) -> bool:
    """Tell whether a path through tiers 1 and 2 joins two nodes."""
    known, queue = {u}, deque([u])
    while queue:
        for neighbour in graph.neighbours(queue.popleft()):
            if neighbour == v:
                return True
            if neighbour not in known and neighbour not in fabric.down:
                known.add(neighbour)
                queue.append(neighbour)
    return False


def _hierarchy(graph: Graph) -> Hierarchy | None:
    above: dict[NodeId, NodeId | None] = {}
    depth: dict[NodeId, int] = {}
    top_down = sorted(graph.nodes(), key=lambda node: -graph.level(node))
    for start in top_down:
        if start in above:
            continue
        above[start], depth[start] = None, 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for neighbour in graph.neighbours(node):
                if neighbour == above[node]:
                    continue
                if neighbour in above:
                    return None
                above[neighbour], depth[neighbour] = node, depth[node] + 1
                queue.append(neighbour)
    return Hierarchy(above, depth)


def _fabric(graph: Graph) -> LayeredFabric | None:
    tier = {node: TIERS.get(graph.kind(node)) or graph.level(node) for node in graph.nodes()}
    up: dict[NodeId, tuple[NodeId, ...]] = {}
    for node, own in tier.items():
        if any(abs(tier[neighbour] - own) != 1 for neighbour in graph.neighbours(node)):
            return None
        up[node] = tuple(n for n in graph.neighbours(node) if tier[n] == own + 1)
    pod = _pods(graph, tier)
    down: dict[NodeId, dict[int, tuple[NodeId, ...]]] = {}
    cores: dict[int, list[NodeId]] = {}
    for core in sorted((node for node, own in tier.items() if own == 3), key=order_key):
        under: dict[int, tuple[NodeId, ...]] = {}
        for aggregation in graph.neighbours(core):
            if tier[aggregation] == 2:
                number = pod[aggregation]
                under[number] = (*under.get(number, ()), aggregation)
        down[core] = under
        for number in under:
            cores.setdefault(number, []).append(core)
    tors = {node: pod[node] for node in sorted((n for n, own in tier.items() if own == 1), key=pod.__getitem__)}
    aggregations = {node: pod[node] for node, own in tier.items() if own == 2}
    uplinks: dict[int, list[tuple[NodeId, NodeId]]] = {}
    for node, number in aggregations.items():
        uplinks.setdefault(number, []).extend((node, core) for core in up[node])
    order = {node: place for place, node in enumerate(tors)}
    over = {number: tuple(nodes) for number, nodes in cores.items()}
    return LayeredFabric(tors, order, aggregations, up, down, over, uplinks)


def _pods(graph: Graph, tier: dict[NodeId, int]) -> dict[NodeId, int]:
    pod: dict[NodeId, int] = {}
    for number, start in enumerate(graph.nodes()):
        if start in pod or tier[start] > 2:
            continue
        pod[start] = number
        queue = deque([start])
        while queue:
            for neighbour in graph.neighbours(queue.popleft()):
                if neighbour not in pod and tier[neighbour] <= 2:
                    pod[neighbour] = number
                    queue.append(neighbour)
    return pod
