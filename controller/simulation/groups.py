"""Groups to simulate, as flat arrays: who joins where, in which order, at which rate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.simulation.data_centre import Ints


class SimulatedGroups(NamedTuple):
    """Groups 0 to G - 1; group g holds the positions ``offsets[g]`` to ``offsets[g + 1]`` of `terminals`.

    Attributes
    ----------
    rates_bps
        Rate of each group's traffic in whole bps, shape (G,).
    offsets
        Where each group begins, and the end: shape (G + 1,).
    terminals
        Numbers of the switches to which the members are attached, in order of joining, none twice in a group.
    members_at
        Members of the group behind each of `terminals`.
    """

    rates_bps: Ints
    offsets: Ints
    terminals: Ints
    members_at: Ints

    def __len__(self) -> int:
        return len(self.rates_bps)

    def part(self, start: int, stop: int) -> SimulatedGroups:
        """Return the groups from `start` up to, but without, `stop`."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return SimulatedGroups(
            self.rates_bps[start:stop],
            self.offsets[start : stop + 1] - first,
            self.terminals[first:last],
            self.members_at[first:last],
        )

    def only(self, stays: NDArray[np.bool_]) -> SimulatedGroups:
        """Return the same groups with those of their terminals for which `stays` is true."""
        sizes = np.bincount(self.group_of_terminal()[stays], minlength=len(self))
        return SimulatedGroups(self.rates_bps, starts_of(sizes), self.terminals[stays], self.members_at[stays])

    def group_of_terminal(self) -> Ints:
        """Return the group of every position of `terminals`."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))


def attach(rates_bps: Ints, offsets: Ints, switches: Ints, switch_count: int) -> SimulatedGroups:
    """Return groups from the switch of every member, with the first member alone at each switch kept.

    Parameters
    ----------
    rates_bps, offsets
        As in `SimulatedGroups`; `offsets` is by member here.
    switches
        Number of each member's switch, shape (members,), each from 0 to `switch_count` - 1.
    switch_count
        Switches of the fabric.
    """
    groups = np.repeat(np.arange(len(rates_bps), dtype=np.int64), np.diff(offsets))
    _, first, counts = np.unique(groups * switch_count + switches, return_index=True, return_counts=True)
    order = np.argsort(first)
    first = first[order]
    sizes = np.bincount(groups[first], minlength=len(rates_bps))
    return SimulatedGroups(rates_bps, starts_of(sizes), switches[first], counts[order])


def starts_of(sizes: Ints) -> Ints:
    """Return where runs of these lengths begin, and the end."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
