"""Trees of many groups at once: the choice of `controller.trees.builders.vsrt`, one group after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controller.kernel.hashing import stable_hash
from controller.trees.bulk.fabric import NONE, BulkFabric, Numbers, TierWiring
from controller.trees.bulk.groups import Groups
from controller.trees.bulk.kernel import UNREACHED, place_in_order
from controller.trees.bulk.planes import Planes, Tiers, rows_of, tiers_of
from controller.trees.bulk.searched import search
from controller.trees.bulk.unique import ancestry_of
from topology.graph import NodeId

Picks = npt.NDArray[np.int8] | npt.NDArray[np.int16]

WORTH_COMPILING = 2_500_000
"""Groups times cores from which on the compiled kernel makes up for its import, about a second of Python."""

INTERPRETED = 10
"""How much longer the interpreted kernel takes for a core and position than `Planes` for a core."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The trees of all groups, and what the cables carry.

    Attributes
    ----------
    load_bps
        int64[L]: each cable carries the rate of every group whose tree has it, once, whatever the direction.
    core
        int32[G]: number of the core in `BulkFabric.cores`; -1 for a tree without one.
    picks
        Of every entry of ``groups.tors`` the position of its aggregation (`TierWiring`), -1 for none.
    tree_links
        int32[G]: links of each tree.
    searched
        Links of the trees for which no tree of optimal size is alive, by group: the live controller's.
    detached
        Switches with members that are not on the tree, since nothing leads there, by group.
    """

    fabric: BulkFabric
    groups: Groups
    load_bps: Numbers
    core: npt.NDArray[np.int32]
    picks: Picks
    tree_links: npt.NDArray[np.int32]
    searched: dict[int, Numbers]
    detached: dict[int, tuple[NodeId, ...]]

    @property
    def max_utilisation(self) -> float:
        """Load over capacity of the busiest cable, 1.0 where it is full."""
        return float((self.load_bps / self.fabric.capacity_bps).max(initial=0.0))

    @property
    def bytes_per_group(self) -> float:
        """Memory of groups and trees, per group."""
        arrays = (self.core, self.picks, self.tree_links)
        return self.groups.bytes_per_group + sum(a.nbytes for a in arrays) / max(1, self.groups.count)

    def links_of(self, group: int) -> Numbers:
        """Return the numbers of the cables of a group's tree, ascending."""
        if group in self.searched:
            return self.searched[group]
        begin, end = self.groups.offsets[group : group + 2]
        part = slice(begin, end)
        groups = Groups(np.array([0, end - begin]), self.groups.tors[part], self.groups.rates_bps[group : group + 1])
        picks = self.picks[part] if len(self.picks) else self.picks
        alone = Placement(
            self.fabric, groups, self.load_bps, self.core[group : group + 1], picks, self.tree_links, {}, {}
        )
        return np.sort(alone.uses()[1])

    def uses(self) -> tuple[Numbers, Numbers]:
        """Return every use of a cable by a tree, as two arrays: the group, and the number of the cable."""
        fabric, wiring = self.fabric, self.fabric.wiring
        left_out = np.zeros(self.groups.count, dtype=bool)
        left_out[list(self.searched)] = True
        found = [(np.full(len(cables), group), cables) for group, cables in self.searched.items()]
        if wiring is None:
            ancestry = ancestry_of(fabric)
            owners, nodes, _ = ancestry.used(self.groups, left_out)
            found.append((owners, ancestry.cable[nodes]))
        else:
            owner = np.repeat(np.arange(self.groups.count), self.groups.sizes)
            on_tree = (self.picks != NONE) & ~left_out[owner]
            owner, tors, picks = owner[on_tree], self.groups.tors[on_tree], self.picks[on_tree]
            found.append((owner, wiring.lower[tors, picks]))
            core, pods = self.core[owner], wiring.tor_pod[tors]
            new = np.append(True, (owner[1:] != owner[:-1]) | (pods[1:] != pods[:-1]))[: len(owner)] & (core != NONE)
            found.append((owner[new], wiring.upper[pods[new], picks[new], core[new]]))
        owners, cables = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return owners, cables


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
        Whether to use the kernel that numba compiles: None where numba is installed and there is enough to choose
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
    if order not in ("rate", "arrival"):
        raise ValueError(f"order {order!r} is neither 'rate' nor 'arrival'")
    load_bps = np.zeros(len(fabric.links), dtype=np.int64)
    core = np.full(groups.count, NONE, dtype=np.int32)
    tree_links = np.zeros(groups.count, dtype=np.int32)
    wiring = fabric.wiring
    if wiring is None:
        picks: Picks = np.zeros(0, dtype=np.int8)
        ancestry = ancestry_of(fabric)
        apart = ancestry.scattered(groups)
        owners, nodes, _ = ancestry.used(groups, apart)
        np.add.at(load_bps, ancestry.cable[nodes], groups.rates_bps[owners])
        tree_links += np.bincount(owners, minlength=groups.count).astype(np.int32)
        core[apart] = UNREACHED
    else:
        small = wiring.lower.shape[1] <= np.iinfo(np.int8).max
        picks = np.empty(len(groups.tors), np.int8) if small else np.empty(len(groups.tors), np.int16)
        numbers = np.argsort(-groups.rates_bps, kind="stable") if order == "rate" else np.arange(groups.count)
        choice = _Choice(fabric, wiring, groups, numbers, salts_of(seed, groups.count) if salts is None else salts)
        choice.run(compiled, load_bps, core, picks, tree_links)
    lost = np.flatnonzero(core == UNREACHED)
    core[lost] = NONE
    searched, detached = search(fabric, groups, lost.tolist(), load_bps, seed)
    for group, cables in searched.items():
        tree_links[group] = len(cables)
    return Placement(fabric, groups, load_bps, core, picks, tree_links, searched, detached)


def place_one(
    fabric: BulkFabric, tors: Sequence[int], rate_bps: int, salt: int, load_bps: list[int]
) -> tuple[int, list[int]]:
    """Choose and account the tree of one group; return its core (-1, `UNREACHED`) and the position at each ToR."""
    groups = Groups(np.array([0, len(tors)]), np.array(tors, dtype=np.int64), np.array([rate_bps]))
    assert fabric.wiring is not None
    choice = _Choice(fabric, fabric.wiring, groups, np.zeros(1, dtype=np.int64), np.array([salt], dtype=np.uint64))
    core, picks, links = [NONE], [NONE] * len(tors), [0]
    choice.interpret(load_bps, core, picks, links)
    return core[0], picks


class _Choice(NamedTuple):
    """Groups to be placed in a fabric of tiers, in an order."""

    fabric: BulkFabric
    wiring: TierWiring
    groups: Groups
    order: Numbers
    salts: npt.NDArray[np.uint64]

    def run(
        self,
        compiled: bool | None,
        load_bps: Numbers,
        core: npt.NDArray[np.int32],
        picks: Picks,
        tree_links: npt.NDArray[np.int32],
    ) -> None:
        """Fill in what the kernel fills in, by the quickest way there is."""
        tiers = tiers_of(self.fabric)
        if compiled is None:
            _, width, cores = self.wiring.upper.shape
            work = self.groups.count * max(1, cores) * (INTERPRETED * width if tiers is None else 1)
            compiled = work >= WORTH_COMPILING and find_spec("numba") is not None
        if not compiled and tiers is not None:
            self._by_planes(tiers, load_bps, core, picks, tree_links)
            return
        out = (load_bps, core, picks, tree_links)
        if compiled:
            _compiled()(self.wiring.upper.shape, *self._inputs(), *out, *self._room())
            return
        lists = [array.tolist() for array in out]
        self.interpret(*lists)
        for array, values in zip(out, lists, strict=True):
            array[:] = values

    def interpret(self, *out: list[int]) -> None:
        """Run the kernel as it is, over lists."""
        inputs, room = ([array.tolist() for array in arrays] for arrays in (self._inputs(), self._room()))
        place_in_order(self.wiring.upper.shape, *inputs, *out, *room)

    def _inputs(self) -> tuple[npt.NDArray[Any], ...]:
        groups, wiring = self.groups, self.wiring
        over = (wiring.upper != NONE).any(axis=0)
        first = over.argmax(axis=0) if over.size else np.zeros(0, dtype=np.int64)
        last = len(over) - over[::-1].argmax(axis=0) if over.size else first
        members = (self.order, groups.offsets, groups.tors, groups.rates_bps, self.salts)
        cables = (wiring.tor_pod, wiring.lower.ravel(), wiring.upper.ravel(), first, last, wiring.headless.ravel())
        return (*members, *cables, wiring.aggregation_hash.ravel(), wiring.core_hash, self.fabric.capacity_bps)

    def _room(self) -> list[npt.NDArray[Any]]:
        """Return the kernel's working arrays."""
        pods, width, _ = self.wiring.upper.shape
        scores = [np.zeros(pods * width) for _ in range(2)]
        choices = [np.zeros(pods, dtype=np.int64) for _ in range(2)]
        return [np.zeros(pods, dtype=np.int64), *scores, *choices]

    def _by_planes(
        self,
        tiers: Tiers,
        load_bps: Numbers,
        core: npt.NDArray[np.int32],
        picks: Picks,
        tree_links: npt.NDArray[np.int32],
    ) -> None:
        groups, wiring = self.groups, self.wiring
        planes = Planes(wiring, tiers)
        several = self.order[groups.sizes[self.order] > 1]
        cores, positions, links = planes.place(rows_of(groups, wiring.tor_pod, self.salts, several))
        planes.account(load_bps)
        core[several], tree_links[several] = cores, links
        position = np.full(groups.count, NONE, dtype=picks.dtype)
        position[several] = positions
        picks[:] = np.repeat(position, groups.sizes)


@cache
def _compiled() -> Callable[..., None]:
    """Return the kernel as numba compiles it, from its cache on disk where one can be kept."""
    import numba

    try:
        function: Any = numba.njit(cache=True)(place_in_order)
    except RuntimeError:
        function = numba.njit(place_in_order)
    return function  # type: ignore[no-any-return]


def salts_of(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return an odd number for each group: SplitMix64 (Steele, Lea, Flood 2014, doi 10.1145/2660193.2660195)."""
    z = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stable_hash(seed))
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)
