"""How much groups wait and how full their trees are, of many groups at a time: samples in columns, a row for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, chain, pairwise
from math import inf
from operator import getitem
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.multicast.alias_measures import PACKET_BITS, SAMPLES, ClassTotals
from controller.service_classes.measures import MAX_QUEUE
from controller.trees import flows
from controller.trees.tree import Tree, TreeUses
from topology.loads import LinkLoads

Rows: TypeAlias = NDArray[np.intp]
Column: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

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
    its load, `capacity_bps` what it can carry, `lost` the part of its load beyond that, 0 to 1 (`is_any_full`: not 0
    everywhere), and `seconds_per_bit` what a bit takes.
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
        self.is_any_full = bool(self.lost.any())
        self.capacity_bps, self.spare_bps = most, most - bps


class GroupNotes:
    """What is taken note of together, group by group, for `GroupColumns.take`.

    `rows` are those of the groups; for each of them `rates_bps` has what its senders send together, 0 where it is
    silent, and `own_bps` what each of its links carries where all carry the same. `tree_counts` says how many trees
    those have that have several. Which links these are is said, where they are others than before, by `alike`, and
    of groups whose links carry different loads, each time, by `spread`, their one tree, or by `added_up`, what each
    link carries.
    """

    __slots__ = ("added_up", "alike", "own_bps", "rates_bps", "rows", "spread", "tree_counts")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.rates_bps: list[float] = []
        self.own_bps: list[int] = []
        self.tree_counts: dict[int, int] = {}
        self.alike: dict[int, Set[int]] = {}
        self.spread: dict[int, Tree] = {}
        self.added_up: dict[int, Mapping[int, int]] = {}

    def add(self, row: int, rate_bps: float, own_bps: int, tree_count: int) -> None:
        """Note what a group sends, and how many trees it has."""
        self.rows.append(row)
        self.rates_bps.append(rate_bps)
        self.own_bps.append(own_bps)
        if tree_count > 1:
            self.tree_counts[row] = tree_count


class _TreeLinks(NamedTuple):
    """The links of a tree to which several nodes send, as long as it has the same `uses`.

    `up` are the numbers of the links to each node's parent, `is_up` and `is_down` whether either direction has
    receivers beyond it.
    """

    uses: TreeUses | None
    up: Rows
    is_up: Flags
    is_down: Flags


def _links_of(trees: Sequence[Tree], loads: LinkLoads) -> Iterator[_TreeLinks]:
    """Yield the links of trees to which nodes send."""
    counts = [len(tree.parent) for tree in trees]
    numbers: list[Iterable[int]] = []
    receivers: list[Iterable[int]] = []
    all_receivers = []
    for tree in trees:
        index, parent, receivers_below = flows.index_of(tree, loads), tree.parent, tree.receivers_below
        assert tree.root is not None and receivers_below is not None
        numbers.append(map(getitem, map(index.__getitem__, parent), parent.values()))
        receivers.append(map(receivers_below.__getitem__, parent))
        all_receivers.append(receivers_below[tree.root])
    up = np.fromiter(chain.from_iterable(numbers), np.intp, sum(counts))
    below = np.fromiter(chain.from_iterable(receivers), np.intp, len(up))
    is_up, is_down = below < np.repeat(all_receivers, counts), below > 0
    for tree, (begin, end) in zip(trees, pairwise((0, *accumulate(counts))), strict=True):
        yield _TreeLinks(tree.uses, up[begin:end], is_up[begin:end], is_down[begin:end])


def _carried(trees: Collection[Tree], links: Sequence[_TreeLinks]) -> tuple[Rows, Column, list[int]]:
    """Return the directed links of trees to which nodes send, tree by tree, their loads, and where each tree begins.

    It is `flows.carried` for many trees, the end of the last one included.
    """
    rates: list[Iterable[int]] = []
    all_rates = []
    for tree in trees:
        rate_below = tree.rate_below
        assert tree.root is not None and rate_below is not None
        rates.append(map(rate_below.__getitem__, tree.parent))
        all_rates.append(float(rate_below[tree.root]))
    counts = [len(each.up) for each in links]
    up = np.concatenate([each.up for each in links])
    below_bps = np.fromiter(chain.from_iterable(rates), np.float64, len(up))
    own_bps = np.zeros((len(up), 2))
    own_bps[:, 0] = below_bps * np.concatenate([each.is_up for each in links])
    own_bps[:, 1] = (np.repeat(all_rates, counts) - below_bps) * np.concatenate([each.is_down for each in links])
    is_used = own_bps > 0
    used_until = np.concatenate(([0], np.cumsum(is_used.sum(axis=1))))
    begins = used_until[[0, *accumulate(counts)]].tolist()
    return np.stack((up, up ^ 1), axis=1)[is_used], own_bps[is_used], begins


class _Block:
    """Rows that are looked at together: their links, one row after the other, and what each of these carries.

    `own_bps` are the loads of rows whose links carry different ones, by the row's place in the block.
    """

    __slots__ = ("_counts", "_loads_bps", "_numbers", "has_other_links", "is_other", "own_bps")

    def __init__(self) -> None:
        self.own_bps: dict[int, Column] = {}
        self.is_other = self.has_other_links = False
        self._numbers, self._loads_bps = _NOWHERE, _NOTHING
        self._counts: Rows = np.zeros(BLOCK, np.intp)

    def follow(self, numbers: Sequence[Rows], own_bps: Column) -> None:
        """Take the links of all rows, and what each carries of rows where all carry the same, where they changed."""
        if self.has_other_links:
            self._counts = np.fromiter(map(len, numbers), np.intp, BLOCK)
            self._numbers = np.concatenate(numbers)
        if self.is_other:
            self._loads_bps = np.repeat(own_bps, self._counts)
            ends = np.cumsum(self._counts)
            for place, each in self.own_bps.items():
                self._loads_bps[ends[place] - len(each) : ends[place]] = each
        self.is_other = self.has_other_links = False

    def figures(self, rates_bps: Column, links: LinkColumns, is_whole: bool) -> Column:
        """Return the figures of all groups, a line for each figure; without `is_whole` the last three are 0."""
        found = np.zeros((FIGURES, BLOCK))
        found[RATE] = rates_bps
        is_sent = rates_bps > 0
        some = np.flatnonzero(is_sent & (self._counts > 0))
        if not len(some):
            return found
        numbers, loads_bps = self._numbers, self._loads_bps
        if len(some) < np.count_nonzero(self._counts):
            # Links of groups that are silent would count with those of the group before them.
            is_counted = np.repeat(is_sent, self._counts)
            numbers, loads_bps = numbers[is_counted], loads_bps[is_counted]
        counts = self._counts[some]
        starts = np.cumsum(counts) - counts
        found[QUEUE, some] = np.add.reduceat(loads_bps * links.waiting_per_bps[numbers], starts)
        left_bps = links.spare_bps[numbers] + loads_bps
        is_left = left_bps > 0
        if not is_left.all():  # as in `group_utilisation`
            left_bps = np.where(is_left, left_bps, links.capacity_bps[numbers])
        with np.errstate(divide="ignore", invalid="ignore"):
            full = np.where(left_bps > 0, loads_bps / left_bps, np.where(loads_bps > 0, inf, 0.0))
        found[UTILISATION, some] = np.maximum.reduceat(full, starts)
        if is_whole:
            found[ARRIVALS, some] = np.add.reduceat(loads_bps, starts) / PACKET_BITS
            found[SENDING, some] = np.add.reduceat(loads_bps * links.seconds_per_bit[numbers], starts)
            if links.is_any_full:
                found[LOSS, some] = np.maximum.reduceat(np.where(loads_bps > 0, links.lost[numbers], 0.0), starts)
        return found


class GroupColumns:
    """The last samples of groups, and how many trees each has; a group has a row from `add` to `remove`."""

    def __init__(self) -> None:
        self.addresses: list[bytes | None] = []
        self._trees: Rows = np.zeros(0, np.intp)
        self._rates_bps: Column = np.zeros(0)
        self._own_bps: Column = np.zeros(0)
        self._numbers: list[Rows] = []
        self._blocks: list[_Block] = []
        self._spread: set[int] = set()
        self._tree_links: dict[int, _TreeLinks] = {}
        self._free: list[int] = []
        self._line = 0
        self._times_s: Column = np.full(SAMPLES, -inf)
        self._is_used: Flags = np.zeros(0, np.bool_)
        self._taken: Flags = np.zeros((SAMPLES, 0), np.bool_)
        self._figures: Column = np.zeros((SAMPLES, FIGURES, 0))
        self._means: dict[tuple[int, float], Column] = {}
        self._recent: dict[float, Flags] = {}

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
        self._rates_bps[row] = self._own_bps[row] = 0.0
        self._put_alike([row], [_NOWHERE])
        self._free.append(row)

    def _grow(self) -> None:
        size = len(self.addresses)
        self._blocks.append(_Block())
        self.addresses += [None] * BLOCK
        self._numbers += [_NOWHERE] * BLOCK
        self._trees = np.concatenate((self._trees, np.zeros(BLOCK, np.intp)))
        self._rates_bps = np.concatenate((self._rates_bps, np.zeros(BLOCK)))
        self._own_bps = np.concatenate((self._own_bps, np.zeros(BLOCK)))
        self._is_used = np.concatenate((self._is_used, np.zeros(BLOCK, np.bool_)))
        self._taken = np.concatenate((self._taken, np.zeros((SAMPLES, BLOCK), np.bool_)), axis=1)
        self._figures = np.concatenate((self._figures, np.zeros((SAMPLES, FIGURES, BLOCK))), axis=2)
        self._free += range(size + BLOCK - 1, size - 1, -1)

    def take(self, notes: GroupNotes, loads: LinkLoads) -> None:
        """Take what is known of groups now."""
        rows = np.array(notes.rows, np.intp)
        self._rates_bps[rows], self._own_bps[rows], self._trees[rows] = notes.rates_bps, notes.own_bps, 1
        for row, tree_count in notes.tree_counts.items():
            self._trees[row] = tree_count
        for number in np.unique(rows // BLOCK).tolist():
            self._blocks[number].is_other = True
        if notes.alike:
            found = notes.alike.values()
            ends = list(accumulate(map(len, found)))
            numbers = np.fromiter(chain.from_iterable(found), np.intp, ends[-1])
            self._put_alike(notes.alike, [numbers[begin:end] for begin, end in pairwise((0, *ends))])
        if notes.spread:
            known, spread = self._tree_links, notes.spread
            others = [row for row, tree in spread.items() if row not in known or known[row].uses is not tree.uses]
            known.update(zip(others, _links_of([spread[row] for row in others], loads), strict=True))
            numbers, own_bps, begins = _carried(spread.values(), [known[row] for row in spread])
            for row, (begin, end) in zip(spread, pairwise(begins), strict=True):
                self._put_spread(row, numbers[begin:end], own_bps[begin:end])
        for row, links in notes.added_up.items():
            self._put_spread(row, np.fromiter(links, np.intp), np.fromiter(links.values(), np.float64))

    def _put_alike(self, rows: Collection[int], numbers: Iterable[Rows]) -> None:
        """Take the links of groups all of whose links carry the same."""
        for row in self._spread.intersection(rows):
            del self._blocks[row // BLOCK].own_bps[row % BLOCK]
            self._tree_links.pop(row, None)
        self._spread.difference_update(rows)
        for row, found in zip(rows, numbers, strict=True):
            self._numbers[row] = found
        for number in {row // BLOCK for row in rows}:
            self._blocks[number].is_other = self._blocks[number].has_other_links = True

    def _put_spread(self, row: int, numbers: Rows, own_bps: Column) -> None:
        """Take the links of a group, and what each carries."""
        block = self._blocks[row // BLOCK]
        self._numbers[row], block.own_bps[row % BLOCK] = numbers, own_bps
        block.is_other = block.has_other_links = True
        self._spread.add(row)

    # Looks

    def begin(self, now_s: float) -> int:
        """Begin a look at all groups, whose samples are of `now_s`, later than those before; return the blocks."""
        self._line = (self._line + 1) % SAMPLES
        self._times_s[self._line], self._taken[self._line] = now_s, False
        self._means.clear()
        self._recent.clear()
        return len(self._blocks)

    def look(self, block: int, links: LinkColumns, is_whole: bool) -> None:
        """Take a sample of each group of a block; without `is_whole` of queue, utilisation and rate alone."""
        rows, looked_at = slice(block * BLOCK, (block + 1) * BLOCK), self._blocks[block]
        looked_at.follow(self._numbers[rows], self._own_bps[rows])
        self._figures[self._line][:, rows] = looked_at.figures(self._rates_bps[rows], links, is_whole)
        self._taken[self._line, rows] = self._is_used[rows]

    # What was seen

    def means(self, figure: int, window_s: float) -> Column:
        """Return the means of a figure over a time until each group's last sample, 0 s for that one alone.

        They are kept until the next look begins.
        """
        found = self._means.get((figure, window_s))
        if found is None:
            if window_s not in self._recent:
                self._recent[window_s] = self._recent_of(window_s, slice(None))
            found = self._means[figure, window_s] = _mean(self._figures[:, figure], self._recent[window_s])
        return found

    def _recent_of(self, window_s: float, rows: Rows | slice) -> Flags:
        """Tell which samples of some groups count in their means over a time."""
        taken, times_s = self._taken[:, rows], self._times_s[:, np.newaxis]
        last_s = np.where(taken, times_s, -inf).max(axis=0)
        found: Flags = taken & ((times_s > last_s - window_s) | (times_s == last_s))
        return found

    def waits(self, rows: Sequence[int], window_s: float) -> list[tuple[float, float]]:
        """Return the mean queue and utilisation of some groups."""
        at = np.array(rows, np.intp)
        recent, samples = self._recent_of(window_s, at), self._figures[:, :, at]
        queues, utilisations = (_mean(samples[:, figure], recent).tolist() for figure in (QUEUE, UTILISATION))
        return list(zip(queues, utilisations, strict=True))

    def waiting(self, window_s: float, above: float, most: int) -> list[bytes]:
        """Return the groups whose mean queue is above some packets, those that wait most first, at most so many."""
        queues = self.means(QUEUE, window_s)
        rows = np.flatnonzero((queues > above) & self._is_used)
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
        counting: Rows = rows[(self._trees[rows] > 1) | (self.means(QUEUE, window_s)[rows] > 0)]
        return counting

    def totals(self, rows: Rows, window_s: float) -> ClassTotals:
        """Return what some groups come to together."""
        queue, rates_bps, arrivals, sending, loss = (
            self.means(figure, window_s)[rows] for figure in (QUEUE, RATE, ARRIVALS, SENDING, LOSS)
        )
        passed_bps = float((rates_bps * (1 - loss)).sum())
        return ClassTotals(
            float(queue.sum()), float(sending.sum()), float(arrivals.sum()), float(rates_bps.sum()), passed_bps
        )

    def most_delayed(self, rows: Rows, window_s: float, most: int) -> list[bytes]:
        """Return so many groups that wait most (ties: fewer trees), and all that are like the last of them."""
        queues = self.means(QUEUE, window_s)[rows]
        if len(rows) > most:
            rows = rows[queues >= np.partition(queues, -most)[-most]]
            queues, trees = self.means(QUEUE, window_s)[rows], self._trees[rows]
            last = np.lexsort((trees, -queues))[most - 1]
            rows = rows[(queues > queues[last]) | (trees <= trees[last])]
        return self._named(rows)

    def _named(self, rows: Rows) -> list[bytes]:
        return [address for row in rows.tolist() if (address := self.addresses[row]) is not None]


def _mean(samples: Column, is_counted: Flags) -> Column:
    """Return the means of those samples of each group that count, of which it has a column; 0 where none does."""
    found: Column = np.where(is_counted, samples, 0.0).sum(axis=0) / np.maximum(1, is_counted.sum(axis=0))
    return found
