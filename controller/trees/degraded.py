"""Smallest trees on a fabric with links missing, where no tree of the closed form's size is alive.

Without weights the smallest tree is the one with fewest nodes beside its terminals. Pods meet at cores only, so once
the cores are given, the pods are independent of each other: each one takes some aggregations, and perhaps ToRs
without members that join these, and thereby joins some of the cores. The search goes through sets of cores, few
first, and finds the cheapest choice in all pods that joins everything. Cores with the same links stand for each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias, TypeVar

from controller.trees.fabric import LayeredFabric
from controller.trees.network import MASK, Network
from controller.trees.tree import Adjacency, rooted
from topology.graph import NodeId

MAX_STEPS = 100_000
"""Choices within pods and sets of cores that are looked at, at most; beyond, the search gives up.

Trees that follow one change of the fabric have them together (`Network.searching`): one that finds none left stays as
large as the searches without choices make it.
"""

Cost: TypeAlias = tuple[int, int, float]
"""Nodes beside the terminals, those of them that are not on the old tree, and the utilisation of their links."""

Blocks: TypeAlias = tuple[int, ...]
"""Of each core of a set the first one that it is joined with."""

Element = TypeVar("Element")


class _GaveUp(Exception):  # noqa: N818 - it names what happened
    """The search is too large."""


class _Option(NamedTuple):
    """What a pod may take: its nodes, and for each of the parts that it thereby has the cores next to it, as bits."""

    cost: Cost
    parts: tuple[int, ...]
    nodes: tuple[NodeId, ...]


def smallest(
    network: Network, fabric: LayeredFabric, terminals: Sequence[NodeId], size: int, salt: int, old: Adjacency
) -> dict[NodeId, NodeId] | None:
    """Return the links of a smallest tree over `terminals`, rooted at the first.

    Parameters
    ----------
    network, fabric
        The fabric, recognised; without weights.
    terminals
        At least two ToRs, connected with each other, for which no tree of the size `LayeredFabric.optimum` is alive.
    size
        Links of a tree that is known.
    salt
        Decides ties.
    old
        A tree whose nodes and links are preferred; beyond that, those whose links are less busy.

    Returns
    -------
    dict or None
        The parent of every node but the root. None where there is no tree with fewer than `size` links, and where the
        search would take more than `MAX_STEPS`.
    """
    if size <= fabric.optimum(terminals) + 1:
        return None
    search = _Search(network, fabric, terminals, salt, old)
    try:
        chosen = search.run(size - len(terminals))
    except _GaveUp:
        return None
    finally:
        if network.steps_left is not None:
            network.steps_left -= search.steps
    return None if chosen is None else _spanning(network, terminals, {*terminals, *chosen}, old)


class _Search:
    def __init__(
        self, network: Network, fabric: LayeredFabric, terminals: Sequence[NodeId], salt: int, old: Adjacency
    ) -> None:
        self._network, self._fabric, self._salt, self._old = network, fabric, salt, old
        self._most_steps = MAX_STEPS if network.steps_left is None else network.steps_left
        self.steps = 0
        self._members: dict[int, list[NodeId]] = {}
        for node in terminals:
            self._members.setdefault(fabric.pod[node], []).append(node)
        self._ends = set(terminals)
        self._cores = self._distinct_cores()
        bit = {core: 1 << i for i, core in enumerate(self._cores)}
        self._above = {
            aggregation: sum(bit.get(core, 0) for core in fabric.up[aggregation])
            for aggregation in fabric.aggregation_pod
        }
        self._aggregations: dict[int, list[NodeId]] = {}
        for aggregation, pod in fabric.aggregation_pod.items():
            self._aggregations.setdefault(pod, []).append(aggregation)
        self._others: dict[int, list[NodeId]] = {}
        for tor, pod in fabric.pod.items():
            if tor not in self._ends:
                self._others.setdefault(pod, []).append(tor)

    def run(self, most: int) -> tuple[NodeId, ...] | None:
        """Return the nodes beside the terminals of a smallest tree with at most `most` of them, None for no such."""
        if any(self._fabric.up[core] for core in self._fabric.down):
            return None
        least = {pod: self._least(pod, most) for pod in self._members}
        needed = sum(least.values())
        alone = len(self._members) == 1
        slack = most - needed - (not alone)
        if slack < 0:
            return None
        options = {pod: list(self._options(pod, count + slack)) for pod, count in least.items()}
        found: tuple[Cost, tuple[NodeId, ...]] | None = None
        if alone:
            ((_, choices),) = options.items()
            whole = [option for option in choices if len(option.parts) == 1]
            if whole:
                best = min(whole, key=lambda option: option.cost)
                found, most = (best.cost, best.nodes), best.cost[0] - 1
        between = {
            pod: [option for option in self._options(pod, slack - 1) if option.parts]
            for pod in self._aggregations
            if pod not in least and slack > 1
        }
        count = 1
        while count <= most - needed:
            for picked in combinations(range(len(self._cores)), count):
                self._step(sum(map(len, options.values())))
                better = self._joined(picked, options, between)
                if better is not None and better[0][0] <= most and (found is None or better[0] < found[0]):
                    found, most = better, better[0][0]
            count += 1
        return None if found is None else found[1]

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self._most_steps:
            self.steps = self._most_steps
            raise _GaveUp

    def _may_choose(self, pod: int, most: int) -> None:
        """Give up at once where the choices of up to `most` aggregations of a pod are more than will be looked at."""
        count = len(self._aggregations.get(pod, ()))
        if sum(comb(count, picked) for picked in range(1, min(count, most) + 1)) > self._most_steps - self.steps:
            raise _GaveUp

    def _distinct_cores(self) -> list[NodeId]:
        """Return one core for each set of aggregations that cores have links to."""
        chosen: dict[frozenset[NodeId], NodeId] = {}
        for core, below in self._fabric.down.items():
            near = frozenset(node for nodes in below.values() for node in nodes)
            if len(near) > 1 and (near not in chosen or self._price(core, near) < self._price(chosen[near], near)):
                chosen[near] = core
        return list(chosen.values())

    def _price(self, node: NodeId, near: Iterable[NodeId]) -> tuple[int, float, int]:
        """Return what tells equals apart: not on the old tree, utilisation of the busiest link, hash."""
        loads = self._network.loads
        numbers = [loads.index[node][other] for other in near]
        busiest = max((max(loads.bps[i], loads.bps[i ^ 1]) / loads.capacity_bps[i] for i in numbers), default=0.0)
        return int(node not in self._old), busiest, self._salt * self._network.hash_of(node) & MASK

    def _least(self, pod: int, most: int) -> int:
        """Return how many aggregations all members of a pod need; `most` + 1 where that is more."""
        aggregations, members = self._aggregations.get(pod, []), self._members[pod]
        # Members without an aggregation in common need one each.
        met: set[NodeId] = set()
        first = 0
        for above in (self._fabric.up[node] for node in members):
            if met.isdisjoint(above):
                met.update(above)
                first += 1
        self._may_choose(pod, min(first, most))
        for count in range(first, most + 1):
            for picked in combinations(aggregations, count):
                self._step()
                if all(not set(picked).isdisjoint(self._fabric.up[node]) for node in members):
                    return count
        return most + 1

    def _options(self, pod: int, most: int) -> Iterator[_Option]:
        """Yield the choices of at most `most` nodes in a pod that leave no member out, each part next to a core."""
        up, members = self._fabric.up, self._members.get(pod, [])
        self._may_choose(pod, most)
        for count in range(1, most + 1):
            for picked in combinations(self._aggregations.get(pod, []), count):
                self._step()
                inside = set(picked)
                if any(inside.isdisjoint(up[node]) for node in members):
                    continue
                parts = _joined_parts([{a} for a in picked], (inside.intersection(up[node]) for node in members))
                for nodes, merged in self._bridged(pod, inside, parts, most - count):
                    masks = tuple(self._mask(part) for part in merged)
                    if all(masks) or len(masks) == 1:
                        yield _Option(self._cost((*picked, *nodes)), masks, (*picked, *nodes))

    def _bridged(
        self, pod: int, inside: set[NodeId], parts: list[set[NodeId]], most: int
    ) -> Iterator[tuple[tuple[NodeId, ...], list[set[NodeId]]]]:
        """Yield the parts as they are, and joined by up to `most` ToRs without members."""
        yield (), parts
        bridges: dict[frozenset[int], NodeId] = {}
        if most and len(parts) > 1:
            for tor in self._others.get(pod, []):
                near = inside.intersection(self._fabric.up[tor])
                touched = frozenset(i for i, part in enumerate(parts) if not near.isdisjoint(part))
                if len(touched) > 1 and (touched not in bridges or tor in self._old):
                    bridges[touched] = tor
        for count in range(1, min(most, len(parts) - 1) + 1):
            for picked in combinations(bridges, count):
                self._step()
                joined = _joined_parts([{i} for i in range(len(parts))], map(set, picked))
                merged = [set().union(*(parts[i] for i in together)) for together in joined]
                yield tuple(bridges[touched] for touched in picked), merged

    def _mask(self, part: set[NodeId]) -> int:
        mask = 0
        for aggregation in part:
            mask |= self._above[aggregation]
        return mask

    def _cost(self, nodes: Sequence[NodeId]) -> Cost:
        near = self._network.graph.neighbours
        prices = [self._price(node, self._ends.intersection(near(node))) for node in nodes]
        return len(nodes), sum(new for new, _, _ in prices), sum(busiest for _, busiest, _ in prices)

    def _joined(
        self, picked: tuple[int, ...], options: dict[int, list[_Option]], between: dict[int, list[_Option]]
    ) -> tuple[Cost, tuple[NodeId, ...]] | None:
        """Return the cheapest choice in all pods that joins all of the picked cores, and its nodes with the cores."""
        cores = tuple(self._cores[i] for i in picked)
        new = sum(core not in self._old for core in cores)
        apart: Blocks = tuple(range(len(picked)))
        states: dict[Blocks, tuple[Cost, tuple[NodeId, ...]]] = {apart: ((len(cores), new, 0.0), cores)}
        for choices in options.values():
            states = _extended(states, _by_blocks(choices, picked), optional=False)
            if not states:
                return None
        if len(picked) > 1:
            for choices in between.values():
                states = _extended(states, _by_blocks(choices, picked), optional=True)
        return states.get((0,) * len(picked))


def _joined_parts(parts: list[set[Element]], ties: Iterable[set[Element]]) -> list[set[Element]]:
    """Return the parts after those that share an element with the same tie have become one."""
    for tie in ties:
        apart = [part for part in parts if part.isdisjoint(tie)]
        if len(apart) < len(parts) - 1:
            parts = [*apart, set().union(*(part for part in parts if not part.isdisjoint(tie)))]
    return parts


def _by_blocks(choices: Iterable[_Option], picked: tuple[int, ...]) -> dict[Blocks, _Option]:
    """Return the cheapest option for every way to join the picked cores, each part being next to one of them."""
    best: dict[Blocks, _Option] = {}
    for option in choices:
        blocks = tuple(range(len(picked)))
        for part in option.parts:
            near = [place for place, core in enumerate(picked) if part >> core & 1]
            if not near:
                break
            blocks = _merged(blocks, near)
        else:
            if blocks not in best or option.cost < best[blocks].cost:
                best[blocks] = option
    return best


def _merged(blocks: Blocks, near: Sequence[int]) -> Blocks:
    together = {blocks[place] for place in near}
    first = min(together)
    return tuple(first if block in together else block for block in blocks)


def _extended(
    states: dict[Blocks, tuple[Cost, tuple[NodeId, ...]]], options: dict[Blocks, _Option], optional: bool
) -> dict[Blocks, tuple[Cost, tuple[NodeId, ...]]]:
    result = dict(states) if optional else {}
    for blocks, (cost, nodes) in states.items():
        for ties, option in options.items():
            merged = blocks
            for first in set(ties):
                merged = _merged(merged, [place for place, block in enumerate(ties) if block == first])
            total = (cost[0] + option.cost[0], cost[1] + option.cost[1], cost[2] + option.cost[2])
            if merged not in result or total < result[merged][0]:
                result[merged] = (total, (*nodes, *option.nodes))
    return result


def _spanning(
    network: Network, terminals: Sequence[NodeId], nodes: set[NodeId], old: Adjacency
) -> dict[NodeId, NodeId]:
    """Return a tree over connected nodes, links of the old tree first, then less busy ones."""
    loads = network.loads
    adjacent: dict[NodeId, set[NodeId]] = {terminals[0]: set()}
    heap: list[tuple[bool, float, int, NodeId, NodeId]] = []
    node = terminals[0]
    while len(adjacent) < len(nodes):
        for other in network.graph.neighbours(node):
            if other in nodes and other not in adjacent:
                number = loads.index[node][other]
                busier = max(loads.bps[number], loads.bps[number ^ 1]) / loads.capacity_bps[number]
                heappush(heap, (other not in old.get(node, ()), busier, number, node, other))
        while heap[0][4] in adjacent:
            heappop(heap)
        *_, above, node = heappop(heap)
        adjacent[above].add(node)
        adjacent[node] = {above}
    return rooted(terminals[0], adjacent)
