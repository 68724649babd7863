"""What policies say of a table of values: how likely each cell is by those that cover it, and what it costs.

A cell is written by the policies that cover it, by its column's own code where none does: whether it is set, and to
what. A policy says one value per property and variety; a few cells are set otherwise. Where several policies cover a
cell each is as likely to have set it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.policy_discovery.change_table import BASELINE

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Sums = NDArray[np.float32]

NO_VALUE = BASELINE - 1
"""What stands for the value of a property whose values differ from row to row."""

_LEAST_LIKELY = 1e-30


class ValuedPolicy(NamedTuple):
    """A policy's columns and rows, the values of its varieties (V, C) and in which columns these count.

    In the others each row has a value of its own: there only that it is set is said. `variety` is the number of each
    row's, V where a row is set to none of them.
    """

    columns: Ints
    rows: Ints
    values: Ints
    alike: Bools
    variety: Ints
    bits: float

    def is_said_by(self, other: ValuedPolicy) -> bool:
        """Whether each variety says nothing but what one of another policy does."""
        at = {column: place for place, column in enumerate(other.columns.tolist())}
        if not all(column in at for column in self.columns.tolist()):
            return False
        told = other.values[:, [at[column] for column in self.columns.tolist()]]
        return all(bool((told == one).all(1).any()) for one in self.values)

    def is_as(self, other: ValuedPolicy) -> bool:
        """Whether it has the properties and rows of another one."""
        return all(map(np.array_equal, (self.columns, self.rows), (other.columns, other.rows)))


class ValueTable:
    """A table of values (R, K), -1 where nothing is set, and what policies say of its cells."""

    def __init__(self, final: Ints, applicable: Bools) -> None:
        self.applicable = np.asfortranarray(applicable)
        self.codes = np.full(final.shape, -1, np.int64, order="F")
        self.set = np.asfortranarray(final >= 0)
        self.kinds = np.ones(final.shape[1], np.int64)
        """How many values each column has."""
        for column in range(final.shape[1]):
            chosen = self.set[:, column]
            if chosen.any():
                known, self.codes[chosen, column] = np.unique(final[chosen, column], return_inverse=True)
                self.kinds[column] = len(known)
        self.times = np.zeros(final.shape, np.int16, order="F")
        self.unset = np.zeros(final.shape, np.float32, order="F")
        """Sum over the policies that cover a cell of how likely it is not set."""
        self.alike = np.zeros(final.shape, np.float32, order="F")
        """Sum over the policies that cover a cell of how likely its value is if it is set."""
        self.own = np.zeros(final.shape, np.float32, order="F")
        """How likely the value of a cell is by its column's own code if it is set."""
        self.own_bits = np.zeros(final.shape, np.float32, order="F")

    def learn(self) -> None:
        """Have the codes of columns follow from the cells that no policy covers."""
        for column in range(self.set.shape[1]):
            free = (self.times[:, column] == 0) & self.applicable[:, column]
            chosen = self.set[:, column]
            counts = np.bincount(self.codes[free & chosen, column], minlength=self.kinds[column]) + 0.5
            self.own[chosen, column] = (counts / counts.sum())[self.codes[chosen, column]]
            share = ((free & chosen).sum() + 0.5) / (free.sum() + 1.0)
            self.own_bits[:, column] = np.where(
                chosen, -np.log2(share * np.maximum(self.own[:, column], _LEAST_LIKELY)), -np.log2(1 - share)
            )

    def said(self, policy: ValuedPolicy, omitted: float, otherwise: float, by: int) -> None:
        """Cover a policy's cells once more, or once less with -1."""
        cells = np.ix_(policy.rows, policy.columns)
        self.times[cells] += by
        self.unset[cells] += by * omitted
        self.alike[cells] += by * self.likely(policy, otherwise, policy.rows, policy.variety)
        none = self.times[cells] == 0
        for sums in (self.unset, self.alike):
            left = sums[cells]
            left[none] = 0.0
            sums[cells] = np.maximum(left, 0.0)

    def likely(self, policy: ValuedPolicy, otherwise: float, rows: Ints, variety: Ints) -> Floats:
        """Return how likely a policy makes the values of some rows, each of a variety (rows, C)."""
        cells = np.ix_(rows, policy.columns)
        own = self.own[cells].astype(np.float64)
        told = np.vstack([policy.values, np.full((1, len(policy.columns)), NO_VALUE)])[variety]
        wanted = np.where(self.codes[cells] == told, 1 - otherwise, 0.0) + otherwise * own
        return np.where(policy.alike[None, :] & (variety < len(policy.values))[:, None], wanted, own)

    def bits(self, cells: tuple[NDArray[np.int64], ...], more: Floats | None = None, omitted: float = 0.0) -> Floats:
        """Return what cells cost as they are, or with another policy that covers them."""
        times = self.times[cells].astype(np.float64)
        unset = self.unset[cells].astype(np.float64)
        alike = self.alike[cells].astype(np.float64)
        if more is not None:
            times, unset, alike = times + 1, unset + omitted, alike + more
        number = np.maximum(times, 1)
        unset, alike = unset / number, alike / number
        covered = -np.log2(np.maximum(np.where(self.set[cells], (1 - unset) * alike, unset), _LEAST_LIKELY))
        return np.where(times > 0, covered, self.own_bits[cells])
