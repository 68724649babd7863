"""Within a policy's resources: which share their values, and who deviates from all of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.policy_discovery.change_table import BASELINE
from controller.policy_discovery.cover import Block

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

VARIETY_RESOURCES = 2
"""Resources that must have the same values for these to be a variety."""

VARIETY_SHARE = 0.02
"""And the least part of the policy's resources."""


MOST_VARIETIES = 64
"""Varieties of a policy, at most."""


class Variety(NamedTuple):
    """The code of a value of each of the policy's columns, and the rows that are held to them."""

    values: tuple[int, ...]
    rows: tuple[int, ...]


class Deviation(NamedTuple):
    """A row of a policy, the columns that it lacks, and those that are set to another value than its variety's."""

    row: int
    missing: tuple[int, ...]
    other: tuple[int, ...]


class DiscoveredPolicy(NamedTuple):
    """A block with its varieties, the largest first, who deviates, and rows without it that lack one column only."""

    block: Block
    varieties: tuple[Variety, ...]
    deviations: tuple[Deviation, ...]
    near: tuple[int, ...]


def discovered(blocks: Sequence[Block], indicator: Bools, final: Ints, applicable: Bools) -> list[DiscoveredPolicy]:
    """Return what the blocks of a table are as policies.

    Values come from rows that no other policy sets in the same columns, where there are such: who is held to two
    policies has the values of one of them, and deviates from neither.
    """
    shared = _shared(blocks, indicator.shape)
    return [_policy(block, indicator, final, applicable, shared) for block in blocks]


def _shared(blocks: Sequence[Block], shape: tuple[int, ...]) -> Bools:
    """Return which cells more than one policy covers."""
    times = np.zeros(shape, np.int16)
    for block in blocks:
        times[np.ix_(block.rows, block.columns)] += 1
    return times > 1


def _policy(block: Block, indicator: Bools, final: Ints, applicable: Bools, shared: Bools) -> DiscoveredPolicy:
    cells = np.ix_(block.rows, block.columns)
    values, doubtful = final[cells], shared[cells]
    tuples = frequent_tuples(values, doubtful)
    fits = np.array([(values == np.array(one)).sum(1) for one in tuples])
    of_row = fits.argmax(0)
    members: list[list[int]] = [[] for _ in tuples]
    deviations = []
    for number, row in enumerate(block.rows):
        members[of_row[number]].append(row)
        wanted = tuples[of_row[number]]
        lacks = [column for at, column in enumerate(block.columns) if values[number, at] == BASELINE]
        differs = [
            column
            for at, column in enumerate(block.columns)
            if values[number, at] not in (BASELINE, wanted[at]) and not doubtful[number, at]
        ]
        if lacks or differs:
            deviations.append(Deviation(row, tuple(lacks), tuple(differs)))
    varieties = [Variety(one, tuple(rows)) for one, rows in zip(tuples, members, strict=True) if rows]
    within = np.zeros(len(indicator), np.bool_)
    within[list(block.rows)] = True
    able = applicable[:, block.columns].all(1)
    count = indicator[:, block.columns].sum(1)
    near = able & ~within & (count == len(block.columns) - 1) & (len(block.columns) > 2)
    return DiscoveredPolicy(
        block,
        tuple(sorted(varieties, key=lambda one: (-len(one.rows), one.rows))),
        tuple(deviations),
        tuple(np.flatnonzero(near).tolist()),
    )


def frequent_tuples(values: Ints, doubtful: Bools) -> list[tuple[int, ...]]:
    """Return the values of each variety, those of most rows first.

    Rows that hold all properties, which no other policy covers, say them; then what rows that agree with less than
    half of any of these have most often.
    """
    whole = (values != BASELINE).all(1)
    alone = whole & ~doubtful.any(1)
    least = max(VARIETY_RESOURCES, VARIETY_SHARE * len(values))
    found: list[tuple[int, ...]] = []
    for some in (alone, whole):
        counts = Counter(tuple(row) for row in values[some].tolist())
        found = [one for _, one in sorted((-count, one) for one, count in counts.items() if count >= least)]
        if found:
            break
    if not found:  # no two rows agree in everything
        found = [tuple(_most_frequent(column) for column in values.T)]
    while len(found) < MOST_VARIETIES:
        left = ~_agree(values, found)
        if left.sum() < least:
            break
        known = np.where(doubtful[left], BASELINE, values[left])
        one = tuple(
            _most_frequent(column if (column != BASELINE).any() else beside)
            for column, beside in zip(known.T, values[left].T, strict=True)
        )
        if BASELINE in one or one in found or (_agree(values, [one]) & left).sum() < least:
            break
        found.append(one)
    return found


def _agree(values: Ints, tuples: Sequence[tuple[int, ...]]) -> Bools:
    """Return which rows have half of the values of one of some tuples, or more."""
    agreed = np.array([(values == np.array(one)).sum(1) for one in tuples]).max(0)
    return np.asarray(2 * agreed >= values.shape[1])


def _most_frequent(column: Ints) -> int:
    codes, counts = np.unique(column[column != BASELINE], return_counts=True)
    return int(codes[np.argmax(counts)]) if len(codes) else BASELINE
