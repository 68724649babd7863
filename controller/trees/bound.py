"""How low the utilisation of the busiest link can be, whatever the trees.

A tree with members on both sides of a cut has a link across. So the links of a cut carry at least the rates of the
groups with members on both sides, and the busiest of them at least that sum over their capacity. Each cut is a bound:

- in a recognised fabric the cuts around each ToR and each pod are tried;
- in a graph without a cycle every link is a cut, and the bound is what the only trees there are come to;
- elsewhere the cuts around each switch, and those between the first k switches and the rest of an order, for every k.
  The orders are breadth-first searches (balls around a switch) and the low eigenvectors of the Laplacian weighted
  with capacities (M. Fiedler, Czechoslovak Mathematical Journal 23, 1973), which part a graph where it is thin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import Numbers
from controller.trees.bulk.groups import Groups
from controller.trees.bulk.unique import Ancestry
from controller.trees.fabric import Hierarchy, LayeredFabric, recognise
from topology.graph import Graph, NodeId

SEARCHES = 64
"""Breadth-first orders that are tried."""

EIGENVECTORS = 8
"""Eigenvectors that are tried."""

SPECTRAL_NODES = 2000
"""Switches beyond which eigenvectors take too long."""


CHUNK = 1 << 14
"""Groups whose members are looked at together, so that they fit a cache."""


class Bound(NamedTuple):
    """A lower bound on the utilisation of the busiest cable, and the cut that gives it.

    Attributes
    ----------
    utilisation
        Rate over capacity, 1.0 = all cables of the cut are full. `percent` is a hundred times that.
    side
        The switches on one side of the cut.
    rate_bps
        Sum of the rates of the groups with members on both sides.
    capacity_bps
        Sum of the capacities of the cables across.
    """

    utilisation: float
    side: frozenset[NodeId]
    rate_bps: int
    capacity_bps: float

    @property
    def percent(self) -> float:
        """The bound in percent of capacity."""
        return 100 * self.utilisation


NO_BOUND = Bound(0.0, frozenset(), 0, 0.0)
"""Where no group has members on two switches."""


def lower_bound(graph: Graph, nodes: Sequence[NodeId], groups: Groups) -> Bound:
    """Return a lower bound on the maximum utilisation of the trees of `groups`, each cable counted once.

    Of a group whose members are in several components of the graph only those count that are in the one with most of
    them; the group does not count where there is no such one.

    Parameters
    ----------
    graph
        The switches, living links only.
    nodes
        The switch of every number in ``groups.tors`` (`BulkFabric.tors` for a recognised fabric).

    Raises
    ------
    KeyError
        For a node that is not in the graph.
    """
    cuts = _Cuts(graph, nodes, groups)
    shape = recognise(graph)
    if isinstance(shape, Hierarchy):
        return cuts.of_links(shape)
    best = cuts.around(np.arange(len(cuts.switches)))
    if isinstance(shape, LayeredFabric):
        pods = {**shape.pod, **shape.aggregation_pod}
        names = {name: len(cuts.switches) + i for i, name in enumerate(dict.fromkeys(pods.values()))}
        labels = [names[pods[node]] if node in pods else i for i, node in enumerate(cuts.switches)]
        return max(best, cuts.around(np.array(labels)), key=_utilisation)
    for order in cuts.orders():
        best = max(best, cuts.sweep(order), key=_utilisation)
    return best


def _utilisation(bound: Bound) -> float:
    return bound.utilisation


class _Cuts:
    """Cuts of a graph, and what crosses them."""

    def __init__(self, graph: Graph, nodes: Sequence[NodeId], groups: Groups) -> None:
        self._graph = graph
        self.switches = graph.nodes()
        number = {node: i for i, node in enumerate(self.switches)}
        cables = list(graph.links())
        self._u = np.array([number[cable.u] for cable in cables], dtype=np.int64)
        self._v = np.array([number[cable.v] for cable in cables], dtype=np.int64)
        self._capacity_bps = np.array([cable.capacity_bps for cable in cables], dtype=np.float64)
        switch_of = np.array([number[node] for node in nodes], dtype=np.int64)
        self._groups = self._reached(groups, switch_of)

    def _reached(self, groups: Groups, switch_of: Numbers) -> Groups:
        """Return the groups with at least two switches, by their numbers here, within one component each."""
        component = _components(len(self.switches), self._u, self._v)
        switch, sizes = switch_of[groups.tors], groups.sizes
        if not component.any() and (sizes > 1).all():
            return Groups(groups.offsets, switch, groups.rates_bps)
        owner = np.repeat(np.arange(groups.count), sizes)
        parts = int(component.max(initial=0)) + 1
        keys, members = np.unique(owner * parts + component[switch], return_counts=True)
        most = np.zeros(groups.count, dtype=np.int64)
        np.maximum.at(most, keys // parts, members)
        largest = keys[members == most[keys // parts]]
        names, times = np.unique(largest // parts, return_counts=True)
        home = np.full(groups.count, -1)
        home[largest // parts] = largest % parts
        home[names[times > 1]] = -1
        kept = (component[switch] == home[owner]) & (most > 1)[owner]
        sizes = np.bincount(owner[kept], minlength=groups.count)
        several = sizes > 0
        return Groups(np.append(0, np.cumsum(sizes[several])), switch[kept], groups.rates_bps[several])

    def around(self, labels: Numbers) -> Bound:
        """Return the best of the cuts between the switches of one label and all others."""
        groups, count = self._groups, int(labels.max(initial=0)) + 1
        rate_bps = np.zeros(count)
        for start in range(0, groups.count, CHUNK):
            offsets = groups.offsets[start : start + CHUNK + 1]
            rates = groups.rates_bps[start : start + CHUNK]
            owner = np.repeat(np.arange(len(rates)), np.diff(offsets))
            keys = owner * count + labels[groups.tors[offsets[0] : offsets[-1]]]
            if (keys[1:] < keys[:-1]).any():
                keys.sort()
            keys = keys[np.append(True, keys[1:] != keys[:-1])]
            owner, label = np.divmod(keys, count)
            crosses = np.bincount(owner, minlength=len(rates))[owner] > 1
            rate_bps += _sums(label[crosses], rates[owner[crosses]], count)
        apart = labels[self._u] != labels[self._v]
        ends = np.append(labels[self._u[apart]], labels[self._v[apart]])
        capacity_bps = _sums(ends, np.tile(self._capacity_bps[apart], 2), count)
        best = _best(rate_bps, capacity_bps)
        return self._bound(rate_bps[best], capacity_bps[best], np.flatnonzero(labels == best))

    def sweep(self, order: Numbers) -> Bound:
        """Return the best of the cuts between the first switches of `order` and the rest."""
        groups = self._groups
        if not groups.count:
            return NO_BOUND
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        at, starts = place[groups.tors], groups.offsets[:-1]
        rate_bps = _spans(
            np.minimum.reduceat(at, starts), np.maximum.reduceat(at, starts), groups.rates_bps, len(order)
        )
        low, high = np.sort([place[self._u], place[self._v]], axis=0)
        capacity_bps = _spans(low, high, self._capacity_bps, len(order))
        best = _best(rate_bps, capacity_bps)
        return self._bound(rate_bps[best], capacity_bps[best], order[: best + 1])

    def orders(self) -> Iterator[Numbers]:
        """Yield the orders to sweep."""
        count = len(self.switches)
        number = {node: i for i, node in enumerate(self.switches)}
        for start in range(0, count, max(1, count // SEARCHES)):
            found = {start: None}
            queue = deque([start])
            while queue:
                for neighbour in self._graph.neighbours(self.switches[queue.popleft()]):
                    if number[neighbour] not in found:
                        found[number[neighbour]] = None
                        queue.append(number[neighbour])
            found.update(dict.fromkeys(range(count)))
            yield np.array(list(found), dtype=np.int64)
        if count <= SPECTRAL_NODES and len(self._capacity_bps):
            laplacian = np.zeros((count, count))
            weights = self._capacity_bps / self._capacity_bps.max()
            np.add.at(laplacian, (self._u, self._v), -weights)
            laplacian += laplacian.T
            np.fill_diagonal(laplacian, -laplacian.sum(axis=0))
            vectors = np.linalg.eigh(laplacian)[1]
            for column in vectors.T[: 1 + EIGENVECTORS]:
                yield np.argsort(column, kind="stable")

    def of_links(self, shape: Hierarchy) -> Bound:
        """Return the busiest link of the trees in a graph without a cycle."""
        ancestry = Ancestry.of(shape, self.switches, [(link.u, link.v) for link in self._graph.links()])
        owners, nodes, _ = ancestry.used(self._groups, np.zeros(self._groups.count, dtype=bool))
        rate_bps = _sums(ancestry.cable[nodes], self._groups.rates_bps[owners], len(self._capacity_bps))
        best = _best(rate_bps, self._capacity_bps)
        below = np.flatnonzero(ancestry.cable == best)
        side = set(below.tolist())
        for node in np.argsort(ancestry.depth, kind="stable").tolist():
            if int(ancestry.above[node]) in side:
                side.add(node)
        return self._bound(rate_bps[best], self._capacity_bps[best], np.array(sorted(side)))

    def _bound(self, rate_bps: float, capacity_bps: float, side: Numbers) -> Bound:
        if not rate_bps:
            return NO_BOUND
        names = frozenset(self.switches[i] for i in side.tolist())
        return Bound(float(rate_bps / capacity_bps), names, int(rate_bps), float(capacity_bps))


def _best(rate_bps: npt.NDArray[np.float64], capacity_bps: npt.NDArray[np.float64]) -> int:
    if not len(rate_bps):
        return 0
    return int(np.divide(rate_bps, capacity_bps, out=np.zeros(len(rate_bps)), where=capacity_bps > 0).argmax())


def _spans(first: Numbers, last: Numbers, amounts: npt.NDArray[Any], count: int) -> npt.NDArray[np.float64]:
    """Return for each place in an order the sum of the amounts that reach from it or before to beyond it."""
    return np.cumsum(_sums(first, amounts, count) - _sums(last, amounts, count))


def _sums(index: Numbers, amounts: npt.NDArray[Any], count: int) -> npt.NDArray[np.float64]:
    """Return the sum of the amounts at each index, exact for whole ones below 2^53."""
    return np.bincount(index, weights=amounts, minlength=count).astype(np.float64)


def _components(count: int, u: Numbers, v: Numbers) -> Numbers:
    """Return the number of the connected component of each node, from 0."""
    label = np.arange(count)
    while True:
        lower = np.minimum(label[u], label[v])
        before = label.copy()
        np.minimum.at(label, u, lower)
        np.minimum.at(label, v, lower)
        label = label[label]
        if (label == before).all():
            return np.unique(label, return_inverse=True)[1]
