"""Sets of properties that may be policies: those that are often set where one or two others are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.policy_discovery.dependence import positive_distances, single_linkage

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

SHARES = (0.3, 0.45, 0.6, 0.8)
"""How often a property must be set where others are, to stand in one set with them."""

PAIRS, PAIR_CELLS = 2000, 6_000_000
"""Pairs of properties that candidates are made of, those that chance explains least: how many, and times rows."""

LEAST_DEVIATION = 1.0
"""Standard deviations by which a pair is set together more often than chance has it, at least."""

PAIRS_AT_ONCE = 256


def candidates(table: Bools) -> Bools:
    """Return sets of two properties or more (S, K), each once, of a table of what is set and not covered (R, K)."""
    rows, columns = table.shape
    if not rows or columns < 2:
        return np.zeros((0, columns), np.bool_)
    ones = table.astype(np.float32)
    both = (ones.T @ ones).astype(np.float64)
    sets = [_of_one(both), *_of_two(ones, both)]
    nodes = [join.members for join in single_linkage(positive_distances(table)) if np.isfinite(join.distance)]
    of_nodes = np.zeros((len(nodes), columns), np.bool_)
    for number, members in enumerate(nodes):
        of_nodes[number, list(members)] = True
    found = np.concatenate([*sets, of_nodes])
    found = found[found.sum(1) >= 2]
    return np.unique(found, axis=0) if len(found) else found


def beside_one(table: Bools) -> Bools:
    """Return the sets of two properties or more (S, K) that are often set where some other one is, each once."""
    ones = table.astype(np.float32)
    sets = _of_one((ones.T @ ones).astype(np.float64))
    return np.unique(sets[sets.sum(1) >= 2], axis=0)


def _of_one(both: Floats) -> Bools:
    counts = np.diag(both)
    share = both / np.maximum(counts, 1.0)[:, None]
    return np.concatenate([(share >= least) & (counts > 0)[:, None] for least in SHARES])


def _of_two(ones: NDArray[np.float32], both: Floats) -> list[Bools]:
    rows = len(ones)
    counts = np.diag(both)
    expected = np.outer(counts, counts) / rows
    deviation = (both - expected) / np.sqrt(np.maximum(expected, 0.25))
    first, second = np.triu_indices(len(both), 1)
    strength = deviation[first, second]
    order = np.argsort(-strength, kind="stable")[: min(PAIRS, PAIR_CELLS // rows)]
    order = order[(strength[order] > LEAST_DEVIATION) & (both[first[order], second[order]] >= 2)]
    found = []
    for start in range(0, len(order), PAIRS_AT_ONCE):
        some = order[start : start + PAIRS_AT_ONCE]
        together = ones[:, first[some]] * ones[:, second[some]]
        share = (together.T @ ones) / both[first[some], second[some]][:, None]
        found += [share >= least for least in SHARES]
    return found
