"""Joins and leaves of very many groups one after the other, with loads that stay exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.designated import DesignatedTrees
from controller.trees.bulk.fabric import BulkFabric, Numbers
from controller.trees.bulk.groups import Integers, whole_rates
from controller.trees.bulk.placement import salts_of
from controller.trees.bulk.unique import UniqueTrees


class Stream:
    """Trees that follow their members as those of the live controller do, one join or leave at a time.

    A switch with several members of a group counts them: its part of the tree goes with the last.

    Parameters
    ----------
    rates_bps
        Numbers[G]: the rate of each group, rounded to whole bits per second.
    seed, salts
        As for `place`.

    Raises
    ------
    ValueError
        Naming the group, for a rate that is negative or no number; for a graph without a cycle that falls apart.
    """

    def __init__(
        self,
        fabric: BulkFabric,
        rates_bps: npt.ArrayLike,
        *,
        seed: int = 0,
        salts: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        rates: list[int] = whole_rates(rates_bps).tolist()
        ties = salts_of(seed, len(rates)) if salts is None else salts
        self._group_count, self._tor_count = len(rates), len(fabric.tors)
        self._members: dict[int, int] = {}
        """Members by group and switch."""
        if fabric.wiring is None:
            self._trees: DesignatedTrees | UniqueTrees = UniqueTrees(fabric, rates)
        else:
            self._trees = DesignatedTrees(fabric, rates, ties.tolist(), seed)

    @property
    def load_bps(self) -> Numbers:
        """Load of every cable, int64[L]: the rate of every group whose tree has it."""
        return np.array(self._trees.load_bps, dtype=np.int64)

    @property
    def tree_links(self) -> npt.NDArray[np.int32]:
        """Links of each group's tree, int32[G]."""
        return self._trees.sizes().astype(np.int32)

    def join(self, group: int, tor: int) -> None:
        """Count one more member of `group` on switch number `tor` (IndexError: no such group or switch)."""
        self.apply(np.array([group]), np.array([tor]), np.ones(1, dtype=bool))

    def leave(self, group: int, tor: int) -> None:
        """Count one member less (IndexError as for `join`, ValueError where there is none)."""
        self.apply(np.array([group]), np.array([tor]), np.zeros(1, dtype=bool))

    def apply(self, groups: Integers, tors: Integers, joins: npt.NDArray[np.bool_]) -> None:
        """Apply joins (True) and leaves (False) in order: `join` and `leave` for many, at a fraction of the cost.

        Nothing is applied where a group or switch is not known; a leave without a member ends it in its place.
        """
        unknown = (groups < 0) | (groups >= self._group_count) | (tors < 0) | (tors >= self._tor_count)
        if unknown.any():
            at = int(unknown.argmax())
            raise IndexError(f"group {groups[at]} or switch {tors[at]} is not known")
        members, enter, leave = self._members, self._trees.enter, self._trees.leave
        keys = groups.astype(np.int64) * self._tor_count + tors
        for key, group, tor, comes in zip(keys.tolist(), groups.tolist(), tors.tolist(), joins.tolist(), strict=True):
            count = members.get(key, 0)
            if comes:
                members[key] = count + 1
                if not count and not enter(group, tor):
                    after = self.tors_of(group)
                    self._trees.renew(group, [other for other in after if other != tor], after)
            elif count == 1:
                del members[key]
                if not leave(group, tor):
                    after = self.tors_of(group)
                    self._trees.renew(group, sorted([*after, tor]), after)
            elif count:
                members[key] = count - 1
            else:
                raise ValueError(f"group {group} has no member on switch {tor}")

    def tors_of(self, group: int) -> list[int]:
        """Return the switches with members of a group, ascending."""
        first = group * self._tor_count
        return [tor for tor in range(self._tor_count) if first + tor in self._members]

    def links_of(self, group: int) -> Numbers:
        """Return the numbers of the cables of a group's tree, ascending."""
        return self._trees.cables(group, self.tors_of(group))
