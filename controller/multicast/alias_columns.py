"""How much groups wait and how full their trees are, of many groups at a time: samples in columns, a row for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.multicast.alias_measures import PACKET_BITS, SAMPLES, ClassTotals, uses_of
from controller.service_classes.measures import MAX_QUEUE
from controller.trees import flows
from controller.trees.tree import Tree, TreeUses
from topology.loads import LinkLoads

Rows: TypeAlias = NDArray[np.intp]
Column: TypeAlias = NDArray[np.float64]

QUEUE, UTILISATION, RATE, ARRIVALS, SENDING, LOSS = range(6)
"""The figures of a group, as `GroupSample` has them."""

FIGURES = 6

BLOCK = 1024
"""Rows that are looked at together, and come and go together."""

_NOWHERE: Rows = np.empty(0, np.intp)
_NOTHING: Column = np.empty(0)


class LinkColumns:
    """What all directed links carry at a moment, by their numbers in `LinkLoads`, for groups to be looked at.

    `waiting_per_bps` are the packets that wait for each bit/s of load, `spare_bps` what the link could carry beside
    its load, `lost` the part of its load beyond what it can, 0 to 1, and `seconds_per_bit` what a bit takes.
    `version` is that of the graph. A port of `dropping`, (node, port number), is as full as can be whatever its load.
    """

    def __init__(self, loads: LinkLoads, version: int, dropping: Set[tuple[int, int]] = frozenset()) -> None:
        self.version = version
        bps, most = np.array(loads.bps, np.float64), np.array(loads.capacity_bps, np.float64)
        is_full, is_used = bps >= most, bps > 0
        if dropping:
            is_full |= [(link.u, link.u_port) in dropping for link in loads.links]
        with np.errstate(divide="ignore", invalid="ignore"):
            busy = bps / most
            waiting = np.where(is_full, MAX_QUEUE, np.minimum(MAX_QUEUE, busy * busy / (1 - busy)))
            self.waiting_per_bps = np.where(is_used, waiting / bps, 0.0)
            self.lost = np.where(is_used & (bps > most), 1 - most / bps, 0.0)
            self.seconds_per_bit = np.where(most > 0, 1 / most, 0.0)
        self.spare_bps = most - bps


class GroupWay:
    """The directed links that a group's trees take, and what each carries of it: one figure where all do alike.

    Where the group has one tree they are found anew only when the tree says that they are others.
    """

    __slots__ = ("_carried", "_uses", "numbers", "own_bps", "tree_count")

    def __init__(self) -> None:
        self.tree_count = 0
        self.numbers = _NOWHERE
        self.own_bps: float | Column = 0.0
        self._uses: TreeUses | None = None
        self._carried: list[Rows] = []

    def follow(self, trees: Sequence[Tree], loads: LinkLoads) -> bool:
        """Bring all up to date; tell whether the links are others, or may be."""
        if len(trees) != 1:
            found = uses_of(trees, loads)
            self._uses, self.numbers = None, np.fromiter(found, np.intp, len(found))
            self.own_bps = np.fromiter(found.values(), np.float64, len(found))
            return True
        tree, before = trees[0], self._uses
        uses = tree.uses or flows.uses(tree, loads)
        if is_other := uses is not before:
            self._uses, self.numbers = uses, np.array(uses.numbers, np.intp)
            self._carried = [np.array(places, np.intp) for places in uses.carried]
        if not uses.senders:
            self.own_bps = float(flows.sent_bps(tree))
        else:
            self.own_bps = own_bps = np.zeros(len(self.numbers))
            for node, places in zip(uses.senders, self._carried, strict=True):
                own_bps[places] += tree.rates[node]
        return is_other


class _Block:
    """Rows that are looked at together: their ways, one after the other, and what each of their links carries."""

    __slots__ = ("_counts", "_numbers", "_own_bps", "has_other_ways", "is_other", "rates_bps", "ways")

    def __init__(self) -> None:
        self.ways: list[GroupWay | None] = [None] * BLOCK
        self.rates_bps = [0.0] * BLOCK
        self.is_other = self.has_other_ways = False
        self._numbers, self._own_bps = _NOWHERE, _NOTHING
        self._counts: Rows = np.zeros(BLOCK, np.intp)

    def _follow(self) -> None:
        if self.has_other_ways:
            numbers = [_NOWHERE if way is None else way.numbers for way in self.ways]
            self._numbers, self._counts = np.concatenate(numbers), np.array([len(each) for each in numbers], np.intp)
        if self.is_other:
            own_bps = [0.0 if way is None else way.own_bps for way in self.ways]
            alike = [each if isinstance(each, float) else 0.0 for each in own_bps]
            self._own_bps = np.repeat(np.array(alike), self._counts)
            ends = np.cumsum(self._counts).tolist()
            for end, each in zip(ends, own_bps, strict=True):
                if not isinstance(each, float):
                    self._own_bps[end - len(each) : end] = each
        self.is_other = self.has_other_ways = False

    def figures(self, links: LinkColumns, is_whole: bool) -> Column:
        """Return the figures of all groups, a line for each figure; without `is_whole` the last three are 0."""
        self._follow()
        found = np.zeros((FIGURES, BLOCK))
        found[RATE] = self.rates_bps
        is_sent = found[RATE] > 0
        some = np.flatnonzero(is_sent & (self._counts > 0))
        if not len(some):
            return found
        numbers, own_bps = self._numbers, self._own_bps
        if len(some) < np.count_nonzero(self._counts):
            # Links of groups that are silent would count with those of the group before them.
            is_counted = np.repeat(is_sent, self._counts)
            numbers, own_bps = numbers[is_counted], own_bps[is_counted]
        counts = self._counts[some]
        starts = np.cumsum(counts) - counts
        found[QUEUE, some] = np.add.reduceat(own_bps * links.waiting_per_bps[numbers], starts)
        left_bps = links.spare_bps[numbers] + own_bps
        with np.errstate(divide="ignore", invalid="ignore"):
            full = np.where(left_bps > 0, own_bps / left_bps, np.where(own_bps > 0, inf, 0.0))
        found[UTILISATION, some] = np.maximum.reduceat(full, starts)
        if is_whole:
            found[ARRIVALS, some] = np.add.reduceat(own_bps, starts) / PACKET_BITS
            found[SENDING, some] = np.add.reduceat(own_bps * links.seconds_per_bit[numbers], starts)
            found[LOSS, some] = np.maximum.reduceat(np.where(own_bps > 0, links.lost[numbers], 0.0), starts)
        return found


class GroupColumns:
    """The last samples of groups, and how many trees each has; a group has a row from `add` to `remove`."""

    def __init__(self) -> None:
        self.addresses: list[bytes | None] = []
        self._trees: Rows = np.zeros(0, np.intp)
        self._blocks: list[_Block] = []
        self._free: list[int] = []
        self._line = 0
        self._times_s: Column = np.full(SAMPLES, -inf)
        self._is_used: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._taken: NDArray[np.bool_] = np.zeros((SAMPLES, 0), np.bool_)
        self._figures: Column = np.zeros((SAMPLES, FIGURES, 0))

    # Groups

    def add(self, address: bytes) -> int:
        """Give a group a row."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.addresses[row], self._is_used[row], self._taken[:, row] = address, True, False
        return row

    def remove(self, row: int) -> None:
        """Forget a group's samples."""
        self.addresses[row], self._is_used[row], self._trees[row] = None, False, 0
        block, place = self._blocks[row // BLOCK], row % BLOCK
        block.ways[place], block.rates_bps[place] = None, 0.0
        block.is_other = block.has_other_ways = True
        self._free.append(row)

    def _grow(self) -> None:
        size = len(self.addresses)
        self._blocks.append(_Block())
        self.addresses += [None] * BLOCK
        self._trees = np.concatenate((self._trees, np.zeros(BLOCK, np.intp)))
        self._is_used = np.concatenate((self._is_used, np.zeros(BLOCK, np.bool_)))
        self._taken = np.concatenate((self._taken, np.zeros((SAMPLES, BLOCK), np.bool_)), axis=1)
        self._figures = np.concatenate((self._figures, np.zeros((SAMPLES, FIGURES, BLOCK))), axis=2)
        self._free += range(size + BLOCK - 1, size - 1, -1)

    def put(self, row: int, way: GroupWay, rate_bps: float, tree_count: int, is_other: bool) -> None:
        """Take what is known of a group now: its way, and whether that `is_other` than before or just of other loads.

        `rate_bps` is what its senders send together; where it is 0 the group is silent, and nothing else counts.
        """
        block, place = self._blocks[row // BLOCK], row % BLOCK
        block.rates_bps[place] = rate_bps
        block.is_other = True
        if is_other:
            block.ways[place] = way
            block.has_other_ways = True
        if tree_count != way.tree_count:
            self._trees[row] = way.tree_count = tree_count

    # Looks

    def begin(self, now_s: float) -> int:
        """Begin a look at all groups, whose samples are of `now_s`, later than those before; return the blocks."""
        self._line = (self._line + 1) % SAMPLES
        self._times_s[self._line], self._taken[self._line] = now_s, False
        return len(self._blocks)

    def look(self, block: int, links: LinkColumns, is_whole: bool) -> None:
        """Take a sample of each group of a block; without `is_whole` of queue, utilisation and rate alone."""
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        self._figures[self._line][:, rows] = self._blocks[block].figures(links, is_whole)
        self._taken[self._line, rows] = self._is_used[rows]

    # What was seen

    def means(self, figure: int, window_s: float, rows: Rows | slice = slice(None)) -> Column:
        """Return the means of a figure over a time until each group's last sample, 0 s for that one alone."""
        taken, times_s = self._taken[:, rows], self._times_s[:, np.newaxis]
        last_s = np.where(taken, times_s, -inf).max(axis=0)
        is_recent = taken & ((times_s > last_s - window_s) | (times_s == last_s))
        count = np.maximum(1, is_recent.sum(axis=0))
        means: Column = np.where(is_recent, self._figures[:, figure, rows], 0.0).sum(axis=0) / count
        return means

    def waits(self, rows: Sequence[int], window_s: float) -> list[tuple[float, float]]:
        """Return the mean queue and utilisation of some groups."""
        at = np.array(rows, np.intp)
        queues, utilisations = (self.means(figure, window_s, at).tolist() for figure in (QUEUE, UTILISATION))
        return list(zip(queues, utilisations, strict=True))

    def waiting(self, window_s: float, above: float, most: int) -> list[bytes]:
        """Return the groups whose mean queue is above some packets, those that wait most first, at most so many."""
        queues = self.means(QUEUE, window_s)
        rows = np.flatnonzero(queues > above)
        if len(rows) > most:
            rows = rows[queues[rows] >= np.partition(queues[rows], -most)[-most]]
        order = [(-queues[row], address) for row in rows.tolist() if (address := self.addresses[row]) is not None]
        return [address for _, address in sorted(order)[:most]]

    def with_several_trees(self) -> list[bytes]:
        """Return the groups that have several trees."""
        return self._named(np.flatnonzero(self._trees > 1))

    def counting(self, members: Iterable[int], window_s: float) -> Rows:
        """Return those of some rows whose groups have several trees, or packets that wait."""
        rows = np.fromiter(members, np.intp)
        counting: Rows = rows[(self._trees[rows] > 1) | (self.means(QUEUE, window_s, rows) > 0)]
        return counting

    def totals(self, rows: Rows, window_s: float) -> ClassTotals:
        """Return what some groups come to together."""
        queue, rates_bps, arrivals, sending, loss = (
            self.means(figure, window_s, rows) for figure in (QUEUE, RATE, ARRIVALS, SENDING, LOSS)
        )
        passed_bps = float((rates_bps * (1 - loss)).sum())
        return ClassTotals(
            float(queue.sum()), float(sending.sum()), float(arrivals.sum()), float(rates_bps.sum()), passed_bps
        )

    def most_delayed(self, rows: Rows, window_s: float, most: int) -> list[bytes]:
        """Return so many groups that wait most (ties: fewer trees), and all that are like the last of them."""
        queues, trees = self.means(QUEUE, window_s, rows), self._trees[rows]
        if len(rows) > most:
            last = np.lexsort((trees, -queues))[most - 1]
            rows = rows[(queues > queues[last]) | ((queues == queues[last]) & (trees <= trees[last]))]
        return self._named(rows)

    def _named(self, rows: Rows) -> list[bytes]:
        return [address for row in rows.tolist() if (address := self.addresses[row]) is not None]
