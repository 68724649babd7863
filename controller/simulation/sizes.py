"""How many members groups have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import Floats, Ints


class PowerPart(NamedTuple):
    """A share of the groups: sizes from `lowest` to `highest`, their density falling as size^-(exponent + 1)."""

    share: float
    lowest: int
    highest: int
    exponent: float


WVE_PARTS = (
    PowerPart(0.80, 5, 60, 0.0),
    PowerPart(0.194, 61, 700, 0.7745),
    PowerPart(0.006, 701, 2000, 0.0),
)
"""Sizes like those of IBM WebSphere Virtual Enterprise.

Published of that trace are four figures: at least 5 members, 60 on average, fewer than 61 in nearly 80 % of the
groups, more than 700 in about 0.6 % (X. Li, M. J. Freedman, "Scaling IP multicast on datacenter topologies", CoNEXT
2013; M. Shahbaz et al., "Elmo: Source routed multicast for public clouds", IEEE/ACM Transactions on Networking
28(6), 2020, doi 10.1109/TNET.2020.3020869). The parts keep to all four; the power laws within the parts and the
largest size are chosen here, the middle exponent so that the mean is 60.
"""


def uniform_sizes(generator: np.random.Generator, count: int, lowest: int, highest: int) -> Ints:
    """Return `count` sizes, each from `lowest` to `highest` equally often."""
    return generator.integers(lowest, highest, size=count, endpoint=True, dtype=np.int64)


def wve_sizes(generator: np.random.Generator, count: int, lowest: int, highest: int) -> Ints:
    """Return `count` sizes by `WVE_PARTS`, whatever `lowest` and `highest` are.

    Examples
    --------
    >>> sizes = wve_sizes(np.random.default_rng(1), 200_000, 0, 0)
    >>> int(sizes.min()), 58 < sizes.mean() < 62, 0.79 < (sizes < 61).mean() < 0.81
    (5, True, True)
    """
    edges = np.cumsum([part.share for part in WVE_PARTS])[:-1]
    which = np.searchsorted(edges, generator.random(count), side="right")
    at = generator.random(count)
    sizes = np.zeros(count, dtype=np.int64)
    for number, part in enumerate(WVE_PARTS):
        chosen = which == number
        sizes[chosen] = _power_law(at[chosen], part)
    return sizes


def _power_law(at: Floats, part: PowerPart) -> Ints:
    """Return the sizes at which the part's distribution reaches `at`."""
    low, high = float(part.lowest), float(part.highest + 1)
    if part.exponent == 0:
        values = low * (high / low) ** at
    else:
        a = part.exponent
        values = (low**-a - at * (low**-a - high**-a)) ** (-1 / a)
    return np.minimum(np.floor(values).astype(np.int64), part.highest)


SIZES: dict[str, Callable[[np.random.Generator, int, int, int], Ints]] = {
    "uniform": uniform_sizes,
    "wve": wve_sizes,
}
"""Distributions of group sizes by name."""
