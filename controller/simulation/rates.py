"""How the rates of simulated groups are distributed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from controller.simulation.data_centre import Ints

UNIFORM = "uniform"
PARETO = "pareto"
LEAST_ALPHA, MOST_ALPHA = 1.01, 100.0
"""Shapes of a Pareto distribution that are allowed; at 1 and below it has no mean."""

GREATEST_SHARE = 0.5
"""Part of the smallest link that one group's rate takes at most, where rates follow a Pareto distribution."""


class RateDistribution(NamedTuple):
    """A distribution: `alpha` is the shape of a Pareto distribution, None stands for a uniform one."""

    alpha: float | None = None

    def draw(
        self, generator: np.random.Generator, bounds_bps: tuple[float, float], count: int, capacity_bps: float
    ) -> Ints:
        """Return rates in whole bit/s, shape (count,).

        Uniform ones are between the bounds. Pareto ones have the mean of the bounds, before those above
        `GREATEST_SHARE` of a link of `capacity_bps` are taken down to it.
        """
        lowest, highest = bounds_bps
        if self.alpha is None:
            return np.rint(generator.uniform(lowest, highest, size=count)).astype(np.int64)
        least = (lowest + highest) / 2 * (self.alpha - 1) / self.alpha
        rates = least * (1 + generator.pareto(self.alpha, size=count))
        return np.rint(np.minimum(rates, GREATEST_SHARE * capacity_bps)).astype(np.int64)


def parse_rates(text: str) -> RateDistribution:
    """Return the distribution written ``uniform`` or ``pareto:ALPHA``; ValueError where `text` is none."""
    name, colon, shape = text.partition(":")
    if name == UNIFORM and not colon:
        return RateDistribution()
    if name != PARETO or not colon:
        raise ValueError(f"{text!r} is neither {UNIFORM} nor {PARETO}:ALPHA")
    try:
        alpha = float(shape)
    except ValueError:
        raise ValueError(f"{shape!r} is no number") from None
    if not LEAST_ALPHA <= alpha <= MOST_ALPHA:
        raise ValueError(f"{shape} is not from {LEAST_ALPHA:g} to {MOST_ALPHA:g}")
    return RateDistribution(alpha)
