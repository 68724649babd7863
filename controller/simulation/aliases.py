"""Aliases in a simulation: further trees for the groups that fill the busiest links, their senders split over all."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from controller.service_classes.measures import is_gain
from controller.service_classes.pool import MAX_ALIASES
from controller.simulation.data_centre import DataCentre, Floats, Ints
from controller.simulation.groups import SimulatedGroups, starts_of
from controller.simulation.outcome import utilisation_pct
from controller.simulation.placement import place_trees
from controller.simulation.trees import PlacedTrees, TreeLinks

NEAR = 1.005
"""How far above the least that any trees can have the busiest link may stay without another alias."""

LEAST_FALL = 0.001
"""Part by which an alias must lower the busiest link to be worth it for that alone."""

AT_ONCE = 3
"""Aliases that one group is given together at most."""

TRIED = 3
"""Groups that are tried on the busiest link before it is left as it is, those with most on it first."""


class AliasedTrees(NamedTuple):
    """Trees of groups and of their aliases, each alias a group of its own in `groups` and `trees`.

    `owner` says of each whose tree it is; `used` counts the aliases.
    """

    groups: SimulatedGroups
    owner: Ints
    trees: PlacedTrees
    used: int


class _Placement(NamedTuple):
    groups: SimulatedGroups
    owner: Ints
    trees: PlacedTrees
    links: TreeLinks
    utilisation: Floats

    def fullest_of(self, group: int) -> float:
        """Return the utilisation of the fullest cable of a group's trees, in percent."""
        cables = self.links.cable[self.owner[self.links.group] == group]
        return float(self.utilisation[cables].max(initial=0.0))


def split_groups(groups: SimulatedGroups, trees: Ints) -> tuple[SimulatedGroups, Ints]:
    """Return groups as one for each of their trees, and the group of each.

    All members of a group send at the same rate, so that its trees have as many senders each, or one more.

    Parameters
    ----------
    trees
        How many trees each group has, at least 1 and at most as many as members; shape (groups,).
    """
    sizes = np.diff(groups.offsets)
    owner = np.repeat(np.arange(len(groups), dtype=np.int64), trees)
    place = np.arange(len(owner), dtype=np.int64) - starts_of(trees)[:-1][owner]
    senders = np.maximum(1, _senders(groups))[owner]
    here = senders // trees[owner] + (place < senders % trees[owner])
    rates = np.rint(groups.rates_bps[owner] * (here / senders)).astype(np.int64)
    offsets = starts_of(sizes[owner])
    positions = np.arange(offsets[-1], dtype=np.int64)
    positions += (groups.offsets[:-1][owner] - offsets[:-1]).repeat(sizes[owner])
    return SimulatedGroups(rates, offsets, groups.terminals[positions], groups.members_at[positions]), owner


def place_aliased(
    centre: DataCentre, groups: SimulatedGroups, algorithm: str, seed: int, aliases: int, bound_pct: float
) -> AliasedTrees:
    """Return trees of all groups and of as few aliases as bring the busiest link near its bound.

    One after the other, or a few at once where fewer do not help, goes to a group on the busiest link, if that lowers
    the busiest link by `LEAST_FALL`; or the fullest link of the group by as much as makes an alias worth it in the
    controller, while no link gets busier than the busiest was.

    Parameters
    ----------
    algorithm, seed
        As for `controller.simulation.placement.place_trees`; all trees are placed anew with each alias.
    aliases
        How many there are.
    bound_pct
        Least utilisation that the busiest cable can have.
    """
    trees = np.ones(len(groups), dtype=np.int64)
    most = np.minimum(_senders(groups), MAX_ALIASES + 1)
    found = _placed(centre, groups, trees, algorithm, seed)
    used = 0
    while used < aliases and found.utilisation.max(initial=0.0) > bound_pct * NEAR:
        for group, more in product(_on_busiest(found)[:TRIED], range(1, min(AT_ONCE, aliases - used) + 1)):
            if trees[group] + more > most[group]:
                continue
            trees[group] += more
            other = _placed(centre, groups, trees, algorithm, seed)
            if _is_worth_it(found, other, group):
                found = other
                used += more
                break
            trees[group] -= more
        else:
            break
    return AliasedTrees(found.groups, found.owner, found.trees, used)


def _is_worth_it(found: _Placement, other: _Placement, group: int) -> bool:
    before, after = found.utilisation.max(), other.utilisation.max()
    if after < before * (1 - LEAST_FALL):
        return True
    return bool(after <= before) and is_gain(found.fullest_of(group), other.fullest_of(group))


def _placed(centre: DataCentre, groups: SimulatedGroups, trees: Ints, algorithm: str, seed: int) -> _Placement:
    expanded, owner = split_groups(groups, trees)
    parts: list[TreeLinks] = []
    placed = place_trees(centre, expanded, algorithm, seed, links=parts)
    links = TreeLinks(np.concatenate([part.group for part in parts]), np.concatenate([part.cable for part in parts]))
    return _Placement(expanded, owner, placed, links, utilisation_pct(centre, placed))


def _on_busiest(found: _Placement) -> list[int]:
    """Return the groups with trees on the busiest cable, those with most on it first."""
    users = found.links.group[found.links.cable == found.utilisation.argmax()]
    ordered = users[np.argsort(-found.groups.rates_bps[users], kind="stable")]
    return list(dict.fromkeys(found.owner[ordered].tolist()))


def _senders(groups: SimulatedGroups) -> Ints:
    """Return how many members each group has."""
    counts = np.zeros(len(groups), dtype=np.int64)
    np.add.at(counts, groups.group_of_terminal(), groups.members_at)
    return counts
