"""What a simulated algorithm gives, and the salts and cables that all of them count with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.kernel.hashing import stable_hash
from controller.simulation.data_centre import Ints
from controller.simulation.groups import SimulatedGroups


class PlacedTrees(NamedTuple):
    """Trees of all groups.

    Attributes
    ----------
    load_bps
        What each cable carries: the rates of the groups whose trees use it, each once. Shape (cables,).
    tree_links
        Links of each tree, shape (groups,).
    """

    load_bps: Ints
    tree_links: Ints


class TreeLinks(NamedTuple):
    """Links of trees, each as the number of a group and of a cable; shape (links,) both."""

    group: Ints
    cable: Ints

    def placed(self, groups: SimulatedGroups, cable_count: int) -> PlacedTrees:
        """Return what trees of these links are to `groups`."""
        load = np.zeros(cable_count, dtype=np.int64)
        np.add.at(load, self.cable, groups.rates_bps[self.group])
        return PlacedTrees(load, np.bincount(self.group, minlength=len(groups)).astype(np.int64))


def salts(seed: int, start: int, stop: int) -> NDArray[np.uint64]:
    """Return the salts of the trees of groups `start` to `stop` - 1, as `controller.trees.tree.Tree` has them."""
    return np.array([stable_hash(seed, number) for number in range(start, stop)], dtype=np.uint64)
