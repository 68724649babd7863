"""Spread the trees of a fabric anew, moving as few of them as will do.

All movable trees are placed from nothing, largest rate first, each where it keeps its busiest link least busy; while
links stay overloaded, other orders and single moves are tried as well. The placement with least load beyond
capacity, then the most even one, counts. Where it is better by enough, every tree then goes back to where it was if
that makes nothing worse, smallest rate first; the trees that remain are the ones to move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from controller.trees import cables, flows
from controller.trees.builders.vsrt import Vsrt
from controller.trees.network import MASK
from controller.trees.tree import Index, Tree, TreePlan
from topology.loads import LinkLoads

PASSES = 3
"""Rounds in which trees may go back, or move alone; each may make room for others."""

PLACEMENTS = 1024
"""Trees that are placed in all while links stay overloaded: few trees are tried in many orders, many in one."""

_GOLDEN = 0x9E3779B97F4A7C15


class _Placed(NamedTuple):
    """A tree, what it becomes in a placement, and the plan for that."""

    tree: Tree
    shadow: Tree
    plan: TreePlan

    @property
    def is_elsewhere(self) -> bool:
        """Whether the tree is to have other links, or other cables."""
        tree, shadow = self.tree, self.shadow
        if tree.size != shadow.size or not all(shadow.has_link(u, v) for u, v in tree.links()):
            return True
        return tree.cables != shadow.cables


def rebalanced(algorithm: Vsrt, trees: Sequence[Tree], improvement: float) -> list[tuple[Tree, TreePlan]]:
    """Return the trees to move and what to make of them; the loads are left as they were.

    Parameters
    ----------
    trees
        The trees that may move, in the order in which to place them.
    improvement
        Least fraction by which the load beyond capacity, the sum of squared utilisations or the maximum utilisation
        must fall, while none of the three rises.
    """
    return _Search(algorithm).run(trees, improvement)


def respread(tree: Tree, loads: LinkLoads, improvement: float) -> Index | None:
    """Return the cables that a tree is to have, whose links stay; None where those that it has will do.

    A link goes to another cable of its bundle that is less busy by at least the fraction `improvement`, where the
    busier of both is less busy then.
    """
    moved: Index | None = None
    own = tree.cables or {}
    for node, above in tree.links():
        bundle = loads.bundles[node].get(above) if node in loads.bundles else None
        if bundle is None:
            continue
        up, down = flows.link_load(tree, node)
        mine = own[node][above]
        other = min(bundle, key=lambda number: _use(loads, number, up, down) if number != mine else inf)
        before = _use(loads, mine, 0, 0)
        after = max(_use(loads, mine, -up, -down), _use(loads, other, up, down))
        if after < before and _use(loads, other, 0, 0) < before * (1 - improvement):
            if moved is None:
                moved = {at: dict(row) for at, row in own.items()}
            moved[node][above], moved[above][node] = other, other ^ 1
    return moved


def _use(loads: LinkLoads, number: int, up_bps: int, down_bps: int) -> float:
    """Return the utilisation of the busier direction of a cable with so much more load."""
    return max(loads.bps[number] + up_bps, loads.bps[number ^ 1] + down_bps) / loads.capacity_bps[number]


class Cost(NamedTuple):
    """How bad loads are: bps beyond capacity, the sum of squared utilisations, and the maximum utilisation."""

    excess_bps: float
    squares: float
    maximum: float

    def improves(self, other: Cost, fraction: float) -> bool:
        """Tell whether one of these is less than in `other` by that fraction, and none is more."""
        pairs = list(zip(self, other, strict=True))
        return all(mine <= its for mine, its in pairs) and any(mine < its * (1 - fraction) for mine, its in pairs)


class _Search:
    """Placements of trees; between calls the loads of exactly one placement, or of the trees, are accounted."""

    def __init__(self, algorithm: Vsrt) -> None:
        self._algorithm = algorithm
        self._loads = algorithm.network.loads

    def run(self, trees: Sequence[Tree], improvement: float) -> list[tuple[Tree, TreePlan]]:
        now = self._cost()
        for tree in trees:
            flows.discharge(tree, self._loads)
        best = self._place(trees)
        least = self._cost()
        attempts = PLACEMENTS // max(1, len(trees))
        for attempt in range(1, attempts):
            if not least.excess_bps:
                break
            self._clear(best)
            other = self._place(sorted(trees, key=lambda tree: -_shaken_rate(tree, attempt)))
            cost = self._cost()
            if cost < least:
                best, least = other, cost
            else:
                self._clear(other)
                for placed in best:
                    flows.charge(placed.shadow, self._loads)
        moved = [placed for placed in best if placed.is_elsewhere]
        moved = self._send_back(moved, least.maximum) if least.improves(now, improvement) else self._undo(moved)
        for placed in moved:
            self._swap(placed.shadow, placed.tree)
        return [(placed.tree, placed.plan._replace(cables=placed.shadow.cables)) for placed in moved]

    def _cost(self) -> Cost:
        loads = self._loads
        return _cost(loads, range(len(loads.bps)))

    def _undo(self, moved: Sequence[_Placed]) -> list[_Placed]:
        for placed in moved:
            self._swap(placed.shadow, placed.tree)
        return []

    def _clear(self, placement: Sequence[_Placed]) -> None:
        for placed in placement:
            flows.discharge(placed.shadow, self._loads)

    def _swap(self, charged: Tree, instead: Tree) -> None:
        flows.discharge(charged, self._loads)
        flows.charge(instead, self._loads)

    def _place(self, trees: Sequence[Tree]) -> list[_Placed]:
        """Place trees in order, then let those on overloaded links move alone."""
        placement = [self._choose(tree) for tree in trees]
        for _ in range(PASSES):
            if not self._relieve(placement):
                break
        return placement

    def _choose(self, tree: Tree) -> _Placed:
        terminals = [node for node in tree.terminals if node in tree]
        plan = self._algorithm.choose(tree, terminals, {}) or tree.plan()
        shadow = Tree(tree.key, tree.seed, tree.idle_bps)
        shadow.terminals, shadow.rates, shadow.rate_bps = tree.terminals, tree.rates, tree.rate_bps
        shadow.install(plan)
        if self._loads.bundles:
            cables.took(shadow, tuple(shadow.links()), self._loads)
        flows.charge(shadow, self._loads)
        return _Placed(tree, shadow, plan)

    def _relieve(self, placement: list[_Placed]) -> bool:
        """Move single trees off overloaded links where that helps; tell whether any moved."""
        loads = self._loads
        helped = False
        for position, placed in enumerate(placement):
            numbers = _directions(loads, placed.shadow)
            if not _cost(loads, numbers).excess_bps:
                continue
            flows.discharge(placed.shadow, loads)
            other = self._choose(placed.tree)
            numbers |= _directions(loads, other.shadow)
            after = _cost(loads, numbers).excess_bps
            self._swap(other.shadow, placed.shadow)
            if after < _cost(loads, numbers).excess_bps:
                self._swap(placed.shadow, other.shadow)
                placement[position] = other
                helped = True
        return helped

    def _send_back(self, moved: list[_Placed], limit: float) -> list[_Placed]:
        for _ in range(PASSES):
            stay = [placed for placed in reversed(moved) if self._goes_back(placed, limit)]
            if not stay:
                break
            moved = [placed for placed in moved if placed not in stay]
        return moved

    def _goes_back(self, placed: _Placed, limit: float) -> bool:
        """Put the load of the shadow back to its tree unless that makes things worse; tell whether it was done."""
        loads = self._loads
        numbers = _directions(loads, placed.tree) | _directions(loads, placed.shadow)
        before = _cost(loads, numbers)
        self._swap(placed.shadow, placed.tree)
        after = _cost(loads, numbers)
        if after.maximum <= limit and after.excess_bps <= before.excess_bps and after.squares <= before.squares:
            return True
        self._swap(placed.tree, placed.shadow)
        return False


def _directions(loads: LinkLoads, tree: Tree) -> set[int]:
    index = flows.index_of(tree, loads)
    numbers = {index[u][v] for u, v in tree.links()}
    return numbers | {number ^ 1 for number in numbers}


def _cost(loads: LinkLoads, numbers: Iterable[int]) -> Cost:
    excess_bps = squares = maximum = 0.0
    for number in numbers:
        bps, capacity_bps = loads.bps[number], loads.capacity_bps[number]
        if bps:
            utilisation = bps / capacity_bps
            squares += utilisation * utilisation
            if utilisation > maximum:
                maximum = utilisation
            if bps > capacity_bps:
                excess_bps += bps - capacity_bps
    return Cost(excess_bps, squares, maximum)


def _shaken_rate(tree: Tree, attempt: int) -> float:
    """Return the tree's rate times a factor of 1 to 2 that a hash of tree and attempt decides."""
    return (tree.rate_bps or tree.idle_bps or 1) * (1 + (tree.salt * _GOLDEN * (2 * attempt + 1) & MASK) / MASK)
