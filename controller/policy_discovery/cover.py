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

from controller.policy_discovery.candidates import beside_one, candidates
from controller.policy_discovery.code_length import cells_bits, name_bits

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
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


LEAST_GAIN = 1.0
"""Bits that other policies have to save in the place of two."""


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
        # By column: what is asked of a few columns is asked far more often than what is asked of a few rows.
        self.table = indicator = np.asfortranarray(indicator)
        self.applicable = applicable = np.asfortranarray(applicable)
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

    def best_rows(self, columns: Bools, among: Bools | None = None) -> _Found:
        """Return the rows with at least some number of these properties with which the policy saves most.

        `among`, where it is given, are the only rows that are looked at.
        """
        at = np.flatnonzero(columns)
        counts = self.table.T[at].sum(0, dtype=np.int32)
        if among is not None:
            counts *= among
        near = np.flatnonzero(counts >= max(1, int(np.ceil(LEAST_SHARE * len(at) - 1e-9))))
        near = near[self.applicable.T[np.ix_(at, near)].all(0)]
        if len(near) < self.least_rows:
            return _Found(columns, np.zeros(len(counts), np.bool_), -np.inf)
        near = near[np.argsort(-counts[near], kind="stable")]
        starts = np.flatnonzero(np.diff(counts[near], prepend=-1))  # where those with one property less begin
        sizes = np.append(starts[1:], len(near))
        cells = np.add.reduceat(self.open.T[np.ix_(at, near)], starts, 1, np.int64).cumsum(1)
        ones = np.add.reduceat(self.open_ones.T[np.ix_(at, near)], starts, 1, np.int64).cumsum(1)
        bits = np.where(sizes >= self.least_rows, self._saved(at, cells, ones, sizes), -np.inf)
        best = int(np.argmax(bits))
        rows = np.zeros(len(counts), np.bool_)
        rows[near[: sizes[best]]] = True
        return _Found(columns, rows, float(bits[best]))

    def _saved(self, at: Ints, cells: Ints, ones: Ints, sizes: Ints) -> Floats:
        """Return what each of N policies of K columns saves, by its cells (K, N), ones (K, N) and rows (N)."""
        left = cells_bits(self.cells[at, None] - cells, self.set[at, None] - ones)
        block = cells_bits(cells.sum(0).astype(np.float64), ones.sum(0).astype(np.float64))
        names = np.array([self._name(size, len(at)) for size in sizes.tolist()])
        return np.asarray((self.columns_bits[at, None] - left).sum(0) - block - names, np.float64)

    def shares(self, columns: Bools) -> Floats:
        """Return which part of some properties each row has."""
        return np.asarray(self.table.T[columns].mean(0), np.float64)

    def bits_of(self, found: _Found) -> float:
        """Return what a policy that is not covered saves as it is."""
        at = np.flatnonzero(found.columns)
        within = np.ix_(at, np.flatnonzero(found.rows))
        cells = self.open.T[within].sum(1, keepdims=True)
        ones = self.open_ones.T[within].sum(1, keepdims=True)
        return float(self._saved(at, cells, ones, found.rows.sum(keepdims=True))[0])

    def best_flip(self, found: _Found) -> tuple[int, float]:
        """Return the property with which, added or dropped, the policy saves most on the rows that it has."""
        at = np.flatnonzero(found.rows)
        cells = self.open.T[:, at].sum(1).astype(np.float64)
        ones = self.open_ones.T[:, at].sum(1).astype(np.float64)
        saved = self.columns_bits - cells_bits(self.cells - cells, self.set - ones)
        sign = np.where(found.columns, -1.0, 1.0)
        within = found.columns
        size = int(within.sum())
        seldom = (self.table.T[:, at].mean(1) < LEAST_SET) | ~self.applicable.T[:, at].all(1)
        block = cells_bits(cells[within].sum() + sign * cells, ones[within].sum() + sign * ones)
        names = np.array([self._name(len(at), min(size + 1, len(within))), self._name(len(at), max(size - 1, 1))])
        bits = saved[within].sum() + sign * saved - block - np.where(within, names[1], names[0])
        if size <= LEAST_PROPERTIES:
            bits[within] = -np.inf
        bits[seldom & ~within] = -np.inf
        best = int(np.argmax(bits))
        return best, float(bits[best])

    def usual(self, rows: Bools) -> Bools:
        """Return the properties that are set on half of some rows or more, covered or not."""
        return np.asarray(self.table.T[:, rows].mean(1) >= LEAST_SET)

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
    sets = np.unique(np.concatenate([sets, beside_one(state.open_ones[rows])]), axis=0)
    order = np.argsort(-state.scores(sets), kind="stable")[:SPLIT_TRIED]
    pool = [found for found in (state.best_rows(sets[index]) for index in order) if found.bits > 0]
    best, saved = list[_Found](), one.bits + 1e-9
    for first in pool[:SPLIT_FIRST]:
        state.cover(first)
        second = max((state.best_rows(found.columns) for found in pool), key=lambda found: found.bits)
        state.cover(first, -1)
        if second.bits > 0 and first.bits + second.bits > saved:
            best, saved = [first, second], first.bits + second.bits
    for number, first in enumerate(pool[:SPLIT_FIRST]):
        for other in pool[number + 1 : SPLIT_FIRST]:
            two = _apart(state, first.columns, other.columns)
            if sum(part.bits for part in two) > saved:
                best, saved = two, sum(part.bits for part in two)
    best = best or [one]
    for part in best:
        state.cover(part)
    return best


def _apart(state: _Cover, columns: Bools, others: Bools) -> list[_Found]:
    """Return two policies of which each row has the one that it is more like, then all rows that save more.

    Alone, each of them would have the rows of the other where they share most of their properties. Where they share
    none, or one of them saves nothing beside the other, there are none.
    """
    if not (columns & others).any():
        return []
    like, like_others = state.shares(columns), state.shares(others)
    first = state.best_rows(columns, like >= like_others)
    if not np.isfinite(first.bits):
        return []
    state.cover(first)
    second = state.best_rows(others)
    state.cover(first, -1)
    if not np.isfinite(second.bits):
        return []
    state.cover(second)
    first = state.best_rows(columns)
    state.cover(second, -1)
    second = second._replace(bits=state.bits_of(second))
    return [second, first] if first.bits > 0 and second.bits > 0 else []


def _is_universal(state: _Cover, one: _Found) -> bool:
    return bool((state.table[:, one.columns].mean(0) >= UNIVERSAL_SHARE).all())


def _same(one: _Found, other: _Found) -> bool:
    return bool((one.columns == other.columns).all() and (one.rows == other.rows).all())


def _joined(state: _Cover, taken: list[_Found]) -> list[_Found]:
    """Make one policy of two, or two of other properties, where that saves more: each two are looked at once."""
    taken = list(taken)
    number = 0
    while number < len(taken):
        second = number + 1
        while second < len(taken):
            one, other = taken[number], taken[second]
            are_apart = not ((one.rows & other.rows).any() or (one.columns & other.columns).any())
            if are_apart or _is_universal(state, one) or _is_universal(state, other):
                second += 1
                continue
            state.cover(one, -1)
            state.cover(other, -1)
            instead = _in_place_of(state, one, other)
            for found in instead:
                state.cover(found)
            taken[number], taken[second : second + 1] = instead[0], instead[1:]
            second += len(instead) - 1
        number += 1
    return taken


def _in_place_of(state: _Cover, one: _Found, other: _Found) -> list[_Found]:
    """Return which of some one or two policies save most: two that are not covered, or others in their place."""
    state.cover(one)
    saved = state.bits_of(other)
    state.cover(one, -1)
    saved += state.bits_of(one) + LEAST_GAIN
    best = [one, other]
    union = state.climb(one.columns | other.columns)
    if union.bits > saved:
        best, saved = [union], union.bits
    if not (one.rows & other.rows).any():
        return best
    for found, left in ((one, other), (other, one)):
        grown = state.usual(found.rows)
        if not (grown & left.columns & ~found.columns).any():
            continue
        first = state.climb(grown)
        again = _beside(state, first, [left.columns, found.columns])
        for two in ((first, again), _apart(state, grown, left.columns)):
            some = [one for one in two if one.bits > 0]
            if some and sum(one.bits for one in some) > saved:
                best, saved = some, sum(one.bits for one in some)
    return best


def _beside(state: _Cover, first: _Found, sets: list[Bools]) -> _Found:
    """Return what saves most of some sets of properties beside a policy."""
    state.cover(first)
    found = max((state.best_rows(columns) for columns in sets), key=lambda one: one.bits)
    state.cover(first, -1)
    return found
