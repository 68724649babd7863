"""How much two properties tell of each other, and the dendrogram that single linkage makes of that.

This is the method of Jain and Frascadore as they wrote it. It joins properties that exclude each other as it does
those that are set together, and it has no rule that says where to cut; `cover` has neither fault.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Join(NamedTuple):
    """One step of the dendrogram: the properties of the node that it makes, and the distance of its two parts."""

    members: tuple[int, ...]
    distance: float


def pair_counts(indicator: Bools) -> Floats:
    """Return on how many rows of an indicator table (R, K) both of two columns are set, (K, K)."""
    table = indicator.astype(np.float32)
    return (table.T @ table).astype(np.float64)


def mutual_information(indicator: Bools) -> Floats:
    """Return I(x; y) in bits of each pair of columns.

    Parameters
    ----------
    indicator
        (R, K): whether property k of resource r is not at its baseline.

    Returns
    -------
    (K, K), symmetric, 0 or more; the diagonal is the entropy of a column. All 0 where there are no rows.
    """
    rows = len(indicator)
    both = pair_counts(indicator)
    ones = np.diag(both)
    if not rows:
        return np.zeros_like(both)
    joint = (both, ones[:, None] - both, ones[None, :] - both, rows - ones[:, None] - ones[None, :] + both)
    set_, unset = ones / rows, 1 - ones / rows
    alone = (np.outer(set_, set_), np.outer(set_, unset), np.outer(unset, set_), np.outer(unset, unset))
    found = np.zeros_like(both)
    for count, product in zip(joint, alone, strict=True):
        there = count > 0
        share = count[there] / rows
        found[there] += share * np.log2(share / product[there])
    return np.maximum(found, 0.0)


def distances(indicator: Bools) -> Floats:
    """Return 1 / I of each pair of columns, (K, K): infinite where neither tells anything of the other."""
    information = mutual_information(indicator)
    with np.errstate(divide="ignore"):
        return np.where(information > 1e-12, 1.0 / np.maximum(information, 1e-300), np.inf)


def positive_distances(indicator: Bools) -> Floats:
    """Return `distances`, infinite too where two columns are set together less often than chance has it."""
    rows, both = len(indicator), pair_counts(indicator)
    ones = np.diag(both)
    return np.where(both * rows > np.outer(ones, ones), distances(indicator), np.inf)


def single_linkage(distance: Floats) -> list[Join]:
    """Return the whole dendrogram of K things by the distance of their closest members: K - 1 joins, nearest first.

    Ties are taken in the order of the columns. Things that nothing joins at a finite distance are joined last, at an
    infinite one.
    """
    size = len(distance)
    if size < 2:
        return []
    within = np.zeros(size, np.bool_)
    within[0] = True
    nearest, link = distance[0].copy(), np.zeros(size, np.int64)
    edges = []
    for _ in range(size - 1):  # Prim's minimum spanning tree
        outside = np.flatnonzero(~within)
        new = int(outside[np.argmin(nearest[outside])])
        edges.append((float(nearest[new]), int(min(new, link[new])), int(max(new, link[new]))))
        within[new] = True
        closer = distance[new] < nearest
        nearest[closer], link[closer] = distance[new][closer], new
    parts: dict[int, tuple[int, ...]] = {column: (column,) for column in range(size)}
    joins = []
    for length, one, other in sorted(edges):
        members = tuple(sorted(parts[one] + parts[other]))
        for column in members:
            parts[column] = members
        joins.append(Join(members, length))
    return joins
