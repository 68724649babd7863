"""What it costs to write down a table, in bits, and the properties that are set on some of its rows."""

from __future__ import annotations

from functools import lru_cache
from math import lgamma, log, log2

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cells_bits(cells: Floats, ones: Floats) -> Floats:
    """Return n H(n1 / n) + log2(n) / 2 of each pair of a number of cells and how many of them are set; 0 of none."""
    unset = cells - ones
    found = _x_log_x(cells) - _x_log_x(ones) - _x_log_x(unset) + 0.5 * np.log2(np.maximum(cells, 1.0))
    return np.asarray(found, np.float64)


def _x_log_x(x: Floats) -> Floats:
    return np.asarray(x * np.log2(np.maximum(x, 1.0)), np.float64)


@lru_cache(maxsize=65536)
def choice_bits(total: int, chosen: int) -> float:
    """Return log2 of the number of ways to choose some of a total."""
    return (lgamma(total + 1) - lgamma(chosen + 1) - lgamma(total - chosen + 1)) / log(2)


def choices_bits(total: int) -> Floats:
    """Return log2 of the number of ways to choose 0, 1 and so on to all of a total."""
    chosen = np.arange(1, total + 1)
    return np.concatenate([[0.0], np.cumsum(np.log2((total - chosen + 1) / chosen))])


def name_bits(rows: int, columns: int, members: int, properties: int) -> float:
    """Return what it takes to say which members of all rows a policy has, and which of all columns."""
    sizes = log2(max(rows, 1)) + log2(max(columns, 1))
    return choice_bits(rows, members) + choice_bits(columns, properties) + sizes
