"""Trees of many groups at once: the choice of `controller.trees.vsrt`, one group after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller.trees.bulk.fabric import BulkFabric
from controller.trees.bulk.groups import Groups
from topology.graph import NodeId


@dataclass(frozen=True, slots=True)
class Placement:
    """The trees of all groups, and what the cables carry.

    Attributes
    ----------
    load_bps
        int64[L]: each cable carries the rate of every group whose tree has it, once, whatever the direction.
    tree_links
        int32[G]: links of each tree.
    core
        int32[G]: number of the core in `BulkFabric.cores`, -1 for a tree within one pod.
    searched
        Links of the trees for which no tree of optimal size is alive, by group: they are the live controller's.
    detached
        Switches with members that nothing leads to, by group.
    """

    fabric: BulkFabric
    groups: Groups
    load_bps: npt.NDArray[np.int64]
    tree_links: npt.NDArray[np.int32]
    core: npt.NDArray[np.int32]
    searched: dict[int, npt.NDArray[np.int64]]
    detached: dict[int, tuple[NodeId, ...]]

    @property
    def max_utilisation(self) -> float:
        """Load over capacity of the busiest cable, 1.0 where it is full."""
        return float((self.load_bps / self.fabric.capacity_bps).max(initial=0.0))

    def links_of(self, group: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the cables of a group's tree, ascending."""
        raise NotImplementedError


def place(
    fabric: BulkFabric,
    groups: Groups,
    *,
    seed: int = 0,
    order: str = "rate",
    compiled: bool | None = None,
    salts: npt.NDArray[np.uint64] | None = None,
) -> Placement:
    """Choose every group's tree: of optimal size, and of these the one whose busiest cable is least busy.

    Parameters
    ----------
    order
        ``"rate"`` places the largest rates first, ``"arrival"`` takes the groups by number.
    compiled
        Whether to use the kernel that numba compiles: None where numba is installed and the groups are many enough
        to pay for it. The trees are the same with and without.
    salts
        Odd uint64[G] that decide between equals, instead of those that follow from `seed`.

    Raises
    ------
    ValueError
        For another `order`.
    ModuleNotFoundError
        For ``compiled=True`` without numba.
    """
    raise NotImplementedError
