"""Traffic that moved from some members of a group to others: who lost it is to blame, not who took it over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moves(NamedTuple):
    """Which traffic moved between the members of a group, where half of them or more carry what they never did."""

    taken: Floats
    """(windows, members): which share of what a member carries more than usual others have lost, 0 to 1."""
    has_lost: NDArray[np.bool_]
    """(windows, members): whether a member carries less than it ever did, where most of what others carry more was
    lost so: what changed is then no load that members share."""


def moved(level: Floats, reference: Floats) -> Moves:
    """Return what moved: below the least of its past a member lost traffic, above the most of it gained some.

    How much is the difference to the middle of its past.

    Parameters
    ----------
    level : NDArray[np.float64]
        (windows, members), the mean of each window, NaN where unknown.
    reference : NDArray[np.float64]
        (members, n), ascending quantiles of what a member did without a fault, NaN where it had no such time.

    Notes
    -----
    Where more was gained than others lost, as much of every gain counts as taken over as is of all gains together. A
    member that does no more than it ever did without that took all of it over.
    """
    usual = reference[:, reference.shape[1] // 2]
    gain = np.where(level > reference[:, -1], level - usual, 0.0)
    loss = np.where(level < reference[:, 0], usual - level, 0.0)
    gained, lost = gain.sum(axis=1), loss.sum(axis=1)
    changed = np.count_nonzero((gain > 0) | (loss > 0), axis=1)
    concerned = (changed * 2 >= np.count_nonzero(~np.isnan(level), axis=1)) & (gained > 0) & (lost > 0)
    share = np.minimum(1.0, np.divide(lost, gained, out=np.zeros_like(lost), where=concerned))
    without = level - share[:, None] * gain
    taken = np.where(without > reference[:, -1], share[:, None], 1.0)
    return Moves(np.where((gain > 0) & concerned[:, None], taken, 0.0), (loss > 0) & (share > 0.5)[:, None])


def blamed_by_way(scores: Floats, own: Floats, moves: Moves) -> Floats:
    """Return scores by which way members changed.

    Who took over what others lost is excused by as much. Who lost it gets the score of its own history where that is
    higher: where most of a group fell silent its members are alike, and the distance to peers says nothing.

    Parameters
    ----------
    scores, own : NDArray[np.float64]
        (windows, members), multiples of the threshold: to be judged, and to the own past alone; NaN where unknown.
    moves : Moves
        What moved.
    """
    return np.asarray(np.where(moves.has_lost, np.fmax(scores, own), scores * (1 - moves.taken)))
