"""The trees of `controller.trees.builders.pim` for many groups at once: all groups take their next hops together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.simulation.data_centre import DataCentre, Ints
from controller.simulation.groups import SimulatedGroups
from controller.simulation.trees import TreeLinks, salts
from controller.trees.builders.pim import RoutedTree
from controller.trees.network import MASK

MAX_KNOWN_HOPS = 1_000_000
"""Pairs of switch and root whose next hops are remembered."""


class RoutedLinks:
    """Finds the links of routed trees: the algorithm says which hops there are, the group's hash draws one."""

    def __init__(self, centre: DataCentre, algorithm: RoutedTree, seed: int) -> None:
        self._centre = centre
        self._algorithm = algorithm
        self._network = algorithm.network
        self._seed = seed
        self._hash = np.array([self._network.hash_of(n) & MASK for n in centre.switches], dtype=np.uint64)
        self._count = len(centre.switches)
        pairs = [(centre.number[u], centre.number[v]) for u, v in centre.cables]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        codes = np.concatenate((ends @ (self._count, 1), ends @ (1, self._count)))
        order = np.argsort(codes)
        self._codes, self._cable = codes[order], order % max(1, len(ends))
        self._known: dict[int, list[int]] = {}
        self._depth: dict[int, Ints] = {}

    def links(self, groups: SimulatedGroups, first: int) -> TreeLinks:
        """Return the links of all trees, groups numbered from 0.

        The terminals of each group are connected; the first of `groups` has the number `first` among all.
        """
        salt = salts(self._seed, first, first + len(groups))
        root = self._roots(groups, salt)
        group, node = groups.group_of_terminal(), groups.terminals
        depth = self._depths(root[group], node)
        found: list[tuple[Ints, Ints]] = []
        waiting = {int(d): (group[depth == d], node[depth == d]) for d in np.unique(depth)}
        for d in range(int(depth.max(initial=0)), 0, -1):
            if d not in waiting:
                continue
            group, node = waiting.pop(d)
            node, cable = self._step(node, root[group], salt[group])
            found.append((group, cable))
            others, other_nodes = waiting.get(d - 1, (group[:0], node[:0]))
            keys = np.concatenate((others * self._count + other_nodes, group * self._count + node))
            merged = np.unique(keys)
            waiting[d - 1] = (merged // self._count, merged % self._count)
        if not found:
            return TreeLinks(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        return TreeLinks(np.concatenate([g for g, _ in found]), np.concatenate([c for _, c in found]))

    def _roots(self, groups: SimulatedGroups, salt: NDArray[np.uint64]) -> Ints:
        """Return the number of the root of every group; 0 for one without terminals."""
        members = np.flatnonzero(np.diff(groups.offsets))
        first = groups.terminals[groups.offsets[members]]
        roots = np.zeros(len(groups), dtype=np.int64)
        component = self._network.components()
        of_switch = np.array([component[n] for n in self._centre.switches], dtype=np.int64)
        for number in np.unique(of_switch[first]):
            inside = of_switch[first] == number
            candidates = self._algorithm.roots(int(number))
            if candidates:
                numbers = np.array([self._centre.number[n] for n in candidates], dtype=np.int64)
                rows = np.broadcast_to(numbers, (int(inside.sum()), len(numbers)))
                roots[members[inside]] = self._drawn(rows, salt[members[inside]])
            else:
                roots[members[inside]] = first[inside]
        return roots

    def _drawn(self, candidates: Ints, salt: NDArray[np.uint64]) -> Ints:
        """Return of each row the candidate that `Network.draw` chooses; -1 fills rows up."""
        if candidates.shape[1] == 1:
            return candidates[:, 0]
        # An odd factor makes no product of 0, which the hashes are not: so what fills up never wins.
        weight = salt[:, None] * np.where(candidates < 0, np.uint64(0), self._hash[candidates])
        chosen: Ints = candidates[np.arange(len(candidates)), weight.argmax(axis=1)]
        return chosen

    def _step(self, node: Ints, root: Ints, salt: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """Return the next hop of every node towards its root, and the cable to it."""
        pairs, place = np.unique(root * self._count + node, return_inverse=True)
        hops = [self._hops(int(pair)) for pair in pairs]
        candidates = np.full((len(hops), max(map(len, hops))), -1, dtype=np.int64)
        for row, numbers in enumerate(hops):
            candidates[row, : len(numbers)] = numbers
        beyond = self._drawn(candidates[place], salt)
        return beyond, self._cable[np.searchsorted(self._codes, node * self._count + beyond)]

    def _hops(self, pair: int) -> list[int]:
        found = self._known.get(pair)
        if found is None:
            if len(self._known) >= MAX_KNOWN_HOPS:
                self._known.clear()
            switches, number = self._centre.switches, self._centre.number
            root, node = divmod(pair, self._count)
            found = self._known[pair] = [number[n] for n in self._algorithm.hops(switches[node], switches[root])]
        return found

    def _depths(self, root: Ints, node: Ints) -> Ints:
        """Return the links between every node and its root."""
        roots, place = np.unique(root, return_inverse=True)
        table = np.zeros((len(roots), self._count), dtype=np.int64)
        for row, number in enumerate(roots):
            table[row] = self._depth_of(int(number))
        depths: Ints = table[place, node]
        return depths

    def _depth_of(self, root: int) -> Ints:
        found = self._depth.get(root)
        if found is None:
            distances = self._network.distances(self._centre.switches[root])
            hops = [distances[n][1] if n in distances else 0 for n in self._centre.switches]
            found = self._depth[root] = np.array(hops, dtype=np.int64)
        return found
