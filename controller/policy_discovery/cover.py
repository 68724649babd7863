"""Policies that cover a table of changes: sets of properties on sets of rows that make the table shortest to write.

Each column has a code of its own for the cells that no policy covers, and each policy one for its cells. What a
policy saves is what its cells cost in their columns, less its own code and the bits that say which rows and columns
it has. Cells that are covered are free, so that policies may overlap. Policies are taken one by one, that which saves
most first, until none saves anything; then each is looked at again beside the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.policy_discovery.candidates import candidates
from controller.policy_discovery.code_length import cells_bits, name_bits

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

LEAST_SHARE = 0.6
"""Least part of a policy's properties that a member has."""

UNIVERSAL_SHARE = 0.9
"""Part of the rows on which a property is set that is a policy of all: beside such a column nothing is saved."""

CLIMBED = 200
"""Candidates of a search that are improved, those first that save most as they are."""

SPLIT_TRIED, SPLIT_FIRST = 24, 8
"""Parts of a policy that it may be split into, and how many of them are tried with each other one."""

SCORED_SHARE = 0.7
"""Least part of its properties that a row has which a candidate is scored with."""

SCORED_AT_ONCE = 256
LEAST_PROPERTIES = 2

LEAST_SET = 0.5
"""Least part of a policy's rows on which each of its properties is set.

Without it a column that is set where the policy is not would be cheaper to write with the policy's rows left out.
"""


class Block(NamedTuple):
    """Properties (columns, ascending) that are set together on rows (ascending), and how many bits that saves."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    bits: float


class _Found(NamedTuple):
    columns: Bools
    rows: Bools
    bits: float


class _Cover:
    """A table of which cells are covered one by one."""

    def __init__(self, indicator: Bools, applicable: Bools, least_rows: int) -> None:
        self.table = indicator
        self.applicable = applicable
        self.least_rows = least_rows
        self.ones = indicator.astype(np.float32)
        self.times = (~applicable).astype(np.int16)
        """How many policies cover each cell; one that cannot be set counts as covered."""
        self.open = self.times == 0
        self.open_ones = self.open & self.table
        self.cells = self.open.sum(0).astype(np.float64)
        self.set = self.open_ones.sum(0).astype(np.float64)
        self.columns_bits = cells_bits(self.cells, self.set)

    def cover(self, found: _Found, by: int = 1) -> None:
        """Cover the cells of a policy once more, or once less with -1."""
        within = found.columns
        cells = np.ix_(found.rows, within)
        self.times[cells] += by
        self.open[cells] = self.times[cells] == 0
        self.open_ones[cells] = self.open[cells] & self.table[cells]
        self.cells[within] = self.open[:, within].sum(0)
        self.set[within] = self.open_ones[:, within].sum(0)
        self.columns_bits = cells_bits(self.cells, self.set)

    def _name(self, members: int, properties: int) -> float:
        return name_bits(len(self.table), self.table.shape[1], members, properties)

    def best_rows(self, columns: Bools) -> _Found:
        """Return the rows with at least some number of these properties with which the policy saves most."""
        wanted = int(columns.sum())
        counts = self.table[:, columns].sum(1) * self.applicable[:, columns].all(1)
        least = max(1, int(np.ceil(LEAST_SHARE * wanted - 1e-9)))
        near = np.flatnonzero(counts >= least)
        best = _Found(columns, np.zeros(len(counts), np.bool_), -np.inf)
        if len(near) < self.least_rows:
            return best
        numbers = counts[near]
        cells, ones = np.zeros(wanted), np.zeros(wanted)
        size, chosen = 0, wanted
        saved = -np.inf
        for level in range(wanted, least - 1, -1):
            at = near[numbers == level]
            if not len(at):
                continue
            size += len(at)
            cells = cells + self.open[np.ix_(at, columns)].sum(0)
            ones = ones + self.open_ones[np.ix_(at, columns)].sum(0)
            bits = self._saved(columns, cells, ones, size)
            if size >= self.least_rows and bits > saved:
                saved, chosen = bits, level
        return _Found(columns, counts >= chosen, saved)

    def _saved(self, columns: Bools, cells: Floats, ones: Floats, size: int) -> float:
        left = cells_bits(self.cells[columns] - cells, self.set[columns] - ones)
        block = cells_bits(np.asarray(cells.sum()), np.asarray(ones.sum()))
        name = self._name(size, int(columns.sum()))
        return float((self.columns_bits[columns] - left).sum() - block - name)

    def best_flip(self, found: _Found) -> tuple[int, float]:
        """Return the property with which, added or dropped, the policy saves most on the rows that it has."""
        at = np.flatnonzero(found.rows)
        cells = self.open[at].sum(0).astype(np.float64)
        ones = self.open_ones[at].sum(0).astype(np.float64)
        saved = self.columns_bits - cells_bits(self.cells - cells, self.set - ones)
        sign = np.where(found.columns, -1.0, 1.0)
        within = found.columns
        size = int(within.sum())
        seldom = (self.table[at].mean(0) < LEAST_SET) | ~self.applicable[at].all(0)
        block = cells_bits(cells[within].sum() + sign * cells, ones[within].sum() + sign * ones)
        names = np.array([self._name(len(at), min(size + 1, len(within))), self._name(len(at), max(size - 1, 1))])
        bits = saved[within].sum() + sign * saved - block - np.where(within, names[1], names[0])
        if size <= LEAST_PROPERTIES:
            bits[within] = -np.inf
        bits[seldom & ~within] = -np.inf
        best = int(np.argmax(bits))
        return best, float(bits[best])

    def climb(self, columns: Bools) -> _Found:
        """Return a policy from these properties on, as far as adding or dropping one at a time saves more."""
        found = self.best_rows(columns)
        while np.isfinite(found.bits):
            column, bits = self.best_flip(found)
            if bits <= found.bits + 1e-9:
                break
            flipped = found.columns.copy()
            flipped[column] ^= True
            next_ = self.best_rows(flipped)
            if next_.bits <= found.bits + 1e-9:
                break
            found = next_
        return found

    def scores(self, sets: Bools) -> Floats:
        """Return what each of some sets of properties (S, K) saves with all rows that have enough of them."""
        found = np.full(len(sets), -np.inf)
        open_, open_ones = self.open.astype(np.float32), self.open_ones.astype(np.float32)
        for start in range(0, len(sets), SCORED_AT_ONCE):
            some = sets[start : start + SCORED_AT_ONCE]
            sizes = some.sum(1)
            counts = self.ones @ some.T.astype(np.float32)
            rows = (counts >= np.ceil(SCORED_SHARE * sizes - 1e-6)).astype(np.float32)
            members = rows.sum(0)
            cells = (open_.T @ rows).astype(np.float64)
            ones = (open_ones.T @ rows).astype(np.float64)
            left = cells_bits(self.cells[:, None] - cells, self.set[:, None] - ones)
            saved = ((self.columns_bits[:, None] - left) * some.T).sum(0)
            block = cells_bits((cells * some.T).sum(0), (ones * some.T).sum(0))
            names = np.array([self._name(int(m), int(c)) for m, c in zip(members, sizes, strict=True)])
            bits = np.where(members >= self.least_rows, saved - block - names, -np.inf)
            found[start : start + len(some)] = bits
        return found


def cover(indicator: Bools, applicable: Bools | None = None, least_rows: int = 4) -> list[Block]:
    """Return the policies of a table of changes, that which saves most first.

    Parameters
    ----------
    indicator
        (R, K): whether property k of resource r is not at its baseline.
    applicable
        (R, K): whether the resource has such a property at all; all have all where it is None.
    least_rows
        Resources that a policy must have, 1 or more.

    Returns
    -------
    Blocks of two properties or more. Nothing where nothing is set together more often than chance would have it.
    """
    rows, columns = indicator.shape
    if applicable is None:
        applicable = np.ones_like(indicator)
    if rows < least_rows or columns < LEAST_PROPERTIES:
        return []
    state = _Cover(indicator, applicable, least_rows)
    taken = _of_all(state, applicable)
    taken += _greedy(state)
    taken = _settled(state, taken)
    blocks = [
        Block(tuple(np.flatnonzero(one.columns).tolist()), tuple(np.flatnonzero(one.rows).tolist()), one.bits)
        for one in taken
    ]
    return sorted(blocks, key=lambda block: (-block.bits, block.columns))


def _of_all(state: _Cover, applicable: Bools) -> list[_Found]:
    """Take what is set on nearly all rows that can have it: one policy for each set of rows."""
    able = applicable.sum(0)
    often = (state.table.sum(0) >= UNIVERSAL_SHARE * able) & (able >= state.least_rows)
    kinds: dict[bytes, list[int]] = {}
    for column in np.flatnonzero(often):
        kinds.setdefault(applicable[:, column].tobytes(), []).append(int(column))
    found = []
    for alike in kinds.values():
        if len(alike) < LEAST_PROPERTIES:
            continue
        columns = np.zeros(state.table.shape[1], np.bool_)
        columns[alike] = True
        counts = state.table[:, columns].sum(1)
        one = _Found(columns, counts >= LEAST_SHARE * len(alike), 0.0)
        # What is saved beside unchanged resources, of which there are none here: a bit for each cell.
        one = one._replace(bits=float(state.table[np.ix_(one.rows, columns)].sum()))
        state.cover(one)
        found.append(one)
    return found


def _greedy(state: _Cover) -> list[_Found]:
    taken: list[_Found] = []
    while True:
        pool = _pool(state)
        before = len(taken)
        while pool:
            best = state.climb(max(pool, key=lambda found: found.bits).columns)
            if best.bits <= 0:
                break
            taken.append(best)
            state.cover(best)
            again = [state.best_rows(one.columns) if (one.columns & best.columns).any() else one for one in pool]
            pool = _distinct([one for one in again if one.bits > 0])
        if len(taken) == before:
            return taken


def _pool(state: _Cover) -> list[_Found]:
    """Return policies that save something, from candidates of what is not covered yet."""
    sets = candidates(state.open_ones)
    if not len(sets):
        return []
    scores = state.scores(sets)
    order = np.argsort(-scores, kind="stable")[:CLIMBED]
    return _distinct([found for found in (state.climb(sets[index]) for index in order) if found.bits > 0])


def _distinct(found: list[_Found]) -> list[_Found]:
    by_columns: dict[bytes, _Found] = {}
    for one in found:
        by_columns.setdefault(one.columns.tobytes(), one)
    return list(by_columns.values())


def _settled(state: _Cover, taken: list[_Found], passes: int = 3) -> list[_Found]:
    """Look at each policy again beside the others: improve, split, join or drop it, until nothing changes."""
    for _ in range(passes):
        kept: list[_Found] = []
        for one in taken:
            state.cover(one, -1)
            again = state.climb(one.columns)
            if again.bits > 0:
                kept += _split(state, again)
            elif _is_universal(state, one):
                kept.append(one)
                state.cover(one)
        kept = _joined(state, kept)
        is_settled = len(kept) == len(taken) and all(map(_same, kept, taken))
        taken = kept
        if is_settled:
            break
    return taken


def _split(state: _Cover, one: _Found) -> list[_Found]:
    """Cover a policy that is not covered, or in place of it two of its parts where these save more; return them."""
    rows, columns = np.flatnonzero(one.rows), np.flatnonzero(one.columns)
    parts = candidates(state.open_ones[np.ix_(rows, columns)])
    sets = np.zeros((len(parts), len(one.columns)), np.bool_)
    sets[:, columns] = parts
    order = np.argsort(-state.scores(sets), kind="stable")[:SPLIT_TRIED]
    pool = [found for found in (state.best_rows(sets[index]) for index in order) if found.bits > 0]
    best, saved = None, one.bits + 1e-9
    for first in pool[:SPLIT_FIRST]:
        state.cover(first)
        second = max((state.best_rows(found.columns) for found in pool), key=lambda found: found.bits)
        state.cover(first, -1)
        if second.bits > 0 and first.bits + second.bits > saved:
            best, saved = (first, second), first.bits + second.bits
    if best is not None:
        for part in best:
            state.cover(part)
        return list(best)
    state.cover(one)
    return [one]


def _is_universal(state: _Cover, one: _Found) -> bool:
    return bool((state.table[:, one.columns].mean(0) >= UNIVERSAL_SHARE).all())


def _same(one: _Found, other: _Found) -> bool:
    return bool((one.columns == other.columns).all() and (one.rows == other.rows).all())


def _joined(state: _Cover, taken: list[_Found]) -> list[_Found]:
    """Make one policy of two where that saves more than both."""
    number = 0
    while number < len(taken):
        for second in range(number + 1, len(taken)):
            one, other = taken[number], taken[second]
            if not ((one.rows & other.rows).any() or (one.columns & other.columns).any()):
                continue
            state.cover(one, -1)
            state.cover(other, -1)
            union = state.climb(one.columns | other.columns)
            alone = state.best_rows(one.columns)
            state.cover(alone if np.isfinite(alone.bits) else one)
            beside = state.best_rows(other.columns)
            state.cover(alone if np.isfinite(alone.bits) else one, -1)
            if union.bits > max(alone.bits, 0) + max(beside.bits, 0) + 1e-9:
                state.cover(union)
                taken = [found for at, found in enumerate(taken) if at not in (number, second)]
                taken.insert(number, union)
                break
            state.cover(one)
            state.cover(other)
        else:
            number += 1
    return taken
