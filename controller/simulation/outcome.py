"""What a set of trees does to the links between switches, in the article's figures and a few more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.simulation.data_centre import DataCentre, Floats, Ints
from controller.simulation.groups import SimulatedGroups
from controller.simulation.placement import place_trees
from controller.simulation.trees import PlacedTrees
from controller.trees.bound import lower_bound
from controller.trees.bulk import Groups
from controller.trees.fabric import Hierarchy, LayeredFabric

LABELS_IN_A_WORD = 62
"""Labels that one 64-bit number can hold as a set, the sign left alone."""


class AlgorithmFigures(NamedTuple):
    """Figures of one algorithm; utilisation counts links between switches, each cable once with a group's rate.

    Attributes
    ----------
    unused_pct, below_5_pct, over_100_pct
        Links that carry nothing, less than 5 % of their capacity (those that carry nothing among them), and more than
        they can, in percent of all links.
    max_pct, p99_pct
        Utilisation of the busiest link, and its 99th percentile over the links.
    links_per_group
        Mean size of a tree.
    optimal_pct
        Groups whose tree has the least possible number of links, in percent; None where that number is not known.
    max_over_lower_bound
        `max_pct` over the least that any trees can have; None where that is 0.
    """

    unused_pct: float
    below_5_pct: float
    max_pct: float
    p99_pct: float
    over_100_pct: float
    links_per_group: float
    optimal_pct: float | None
    max_over_lower_bound: float | None


def utilisation_pct(centre: DataCentre, trees: PlacedTrees) -> Floats:
    """Return load over capacity of every cable, in percent."""
    return 100 * trees.load_bps / centre.capacity_bps


def outcome(
    trees: PlacedTrees, utilisation: Floats, optimum: Ints | None, lower_bound_pct: float
) -> AlgorithmFigures:
    """Return the figures of `trees`, whose cables have this utilisation in percent.

    Parameters
    ----------
    optimum
        Least size of each group's tree, as from `optimal_sizes`.
    lower_bound_pct
        Least utilisation of the busiest cable.
    """
    used = utilisation if len(utilisation) else np.zeros(1)
    busiest = float(used.max())
    return AlgorithmFigures(
        unused_pct=_share(used == 0),
        below_5_pct=_share(used < 5),
        max_pct=busiest,
        p99_pct=float(np.percentile(used, 99)),
        over_100_pct=_share(used > 100),
        links_per_group=float(trees.tree_links.mean()),
        optimal_pct=None if optimum is None else _share(trees.tree_links == optimum),
        max_over_lower_bound=busiest / lower_bound_pct if lower_bound_pct else None,
    )


def _distinct(labels: Ints, offsets: Ints) -> Ints:
    """Return how many different labels, all from 0 on, each run has."""
    sizes = np.diff(offsets)
    filled = sizes > 0
    counts = np.zeros(len(sizes), dtype=np.int64)
    highest = int(labels.max(initial=-1))
    for first in range(0, highest + 1, LABELS_IN_A_WORD):
        here = labels - first
        bits = np.where((here >= 0) & (here < LABELS_IN_A_WORD), np.int64(1) << (here % LABELS_IN_A_WORD), 0)
        sets = np.bitwise_or.reduceat(bits, offsets[:-1][filled])
        for place in range(min(LABELS_IN_A_WORD, highest - first + 1)):
            counts[filled] += sets >> place & 1
    return counts


def least_max_pct(centre: DataCentre, groups: SimulatedGroups) -> float:
    """Return how much the busiest cable must carry at least, in percent of its capacity, whatever the trees."""
    if not centre.cables:
        return 0.0
    flat = Groups.of(groups.offsets, groups.terminals, groups.rates_bps, len(centre.switches))
    return lower_bound(centre.graph, centre.switches, flat).percent


def _share(chosen: NDArray[np.bool_]) -> float:
    return 100 * float(chosen.mean())


def optimal_sizes(centre: DataCentre, groups: SimulatedGroups) -> Ints | None:
    """Return the least number of links of each group's tree, None where the fabric's shape does not tell.

    On a fabric it is the closed form of `controller.trees.fabric`, for the fabric without missing links; on a graph
    without a cycle there is one tree only.
    """
    shape = centre.network(0).shape
    if isinstance(shape, Hierarchy):
        return place_trees(centre, groups).tree_links
    if not isinstance(shape, LayeredFabric) or not all(
        centre.switches[i] in shape.pod for i in np.unique(groups.terminals)
    ):
        return None
    names: dict[int | None, int] = {}
    pods = np.array([names.setdefault(shape.pod.get(n), len(names)) for n in centre.switches], dtype=np.int64)
    pod_count = _distinct(pods[groups.terminals], groups.offsets)
    switch_count = np.diff(groups.offsets)
    sizes: Ints = switch_count + np.where(pod_count > 1, pod_count, 0)
    return np.where(switch_count <= 1, 0, sizes)
