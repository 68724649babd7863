"""Joins and leaves of very many groups one after the other, with loads that stay exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import BulkFabric
from controller.trees.bulk.groups import Integers


class Stream:
    """Trees that follow their members: aggregations and core are designated as `controller.trees.vsrt` does.

    A switch with several members of a group counts them: its part of the tree goes with the last.

    Attributes
    ----------
    load_bps
        int64[L]: what each cable carries now.

    Raises
    ------
    ValueError
        For rates that are negative or no numbers.
    """

    def __init__(
        self,
        fabric: BulkFabric,
        rates_bps: npt.ArrayLike,
        *,
        seed: int = 0,
        compiled: bool | None = None,
        salts: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def load_bps(self) -> npt.NDArray[np.int64]:
        """Load of every cable, int64[L]."""
        raise NotImplementedError

    @property
    def tree_links(self) -> npt.NDArray[np.int32]:
        """Links of each group's tree, int32[G]."""
        raise NotImplementedError

    def join(self, group: int, tor: int) -> None:
        """Count one more member of `group` on switch number `tor` (IndexError: no such group or switch)."""
        raise NotImplementedError

    def leave(self, group: int, tor: int) -> None:
        """Count one member less (IndexError as for `join`, ValueError where there is none)."""
        raise NotImplementedError

    def apply(self, groups: Integers, tors: Integers, joins: npt.NDArray[np.bool_]) -> None:
        """Apply joins (True) and leaves (False) in order; the same as `join` and `leave` one by one, but faster."""
        raise NotImplementedError

    def links_of(self, group: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the cables of a group's tree, ascending."""
        raise NotImplementedError
