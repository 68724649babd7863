"""Flows of a group over its trees."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

Flow = TypeVar("Flow", bound=Hashable)


def split(
    rates_bps: Mapping[Flow, float],
    trees: Sequence[int],
    held: Mapping[Flow, int] | None = None,
    fresh: Collection[int] = (),
) -> dict[Flow, int]:
    """Return the tree of each flow: those without one go to the least loaded tree, the largest first.

    A flow that has one of `trees` keeps it, but for those that go to a fresh tree: the largest ones of the fullest
    trees, as long as the fresh tree stays less full than the one that a flow leaves.

    Parameters
    ----------
    rates_bps
        Rate of each flow, a sender or a 5-tuple.
    trees
        Numbers of the group's trees, the base's first; of equally loaded ones the first is taken.
    held
        The tree of each flow until now, which may be gone.
    fresh
        Those of `trees` that have just been bound.

    Raises
    ------
    ValueError
        Where there is no tree.
    """
    if not trees:
        raise ValueError("no tree; a group has at least its base's")
    order = sorted(rates_bps, key=lambda flow: -rates_bps[flow])
    load = dict.fromkeys(trees, 0.0)
    found: dict[Flow, int] = {}
    for flow in order:
        tree = (held or {}).get(flow)
        if tree in load:
            found[flow] = tree
            load[tree] += rates_bps[flow]
    for tree in trees:
        if tree in fresh:
            _fill(tree, order, rates_bps, found, load)
    for flow in order:
        if flow not in found:
            tree = min(trees, key=load.__getitem__)
            found[flow] = tree
            load[tree] += rates_bps[flow]
    return found


def _fill(
    fresh: int, order: Sequence[Flow], rates_bps: Mapping[Flow, float], found: dict[Flow, int], load: dict[int, float]
) -> None:
    """Move flows to a fresh tree."""
    moved = True
    while moved:
        moved = False
        for fullest in sorted(load, key=lambda tree: -load[tree]):
            for flow in order:
                rate = rates_bps[flow]
                if found.get(flow) == fullest and 0 < rate < load[fullest] - load[fresh]:
                    found[flow] = fresh
                    load[fullest] -= rate
                    load[fresh] += rate
                    moved = True
                    break
            if moved:
                break
