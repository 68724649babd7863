"""Groups split over trees, and rates of which few are large."""

from __future__ import annotations

import numpy as np
import pytest

from controller.simulation.aliases import split_groups
from controller.simulation.groups import SimulatedGroups
from controller.simulation.rates import RateDistribution, parse_rates


def test_senders_go_to_the_trees_in_equal_numbers():
    groups = SimulatedGroups(
        np.array([700, 100]), np.array([0, 3, 5]), np.array([4, 2, 9, 1, 0]), np.array([5, 1, 1, 1, 1])
    )
    found, owner = split_groups(groups, np.array([3, 1]))
    assert owner.tolist() == [0, 0, 0, 1]
    assert found.rates_bps.tolist() == [300, 200, 200, 100]
    assert found.offsets.tolist() == [0, 3, 6, 9, 11]
    assert found.terminals.tolist() == [4, 2, 9, 4, 2, 9, 4, 2, 9, 1, 0]
    assert found.members_at.tolist() == [5, 1, 1, 5, 1, 1, 5, 1, 1, 1, 1]


def test_pareto_rates_have_the_mean_of_the_bounds_and_stay_below_half_a_link():
    generator = np.random.default_rng(3)
    rates = RateDistribution(3.0).draw(generator, (1e6, 3e6), 200_000, 1e9)
    assert rates.mean() == pytest.approx(2e6, rel=0.02)
    assert rates.min() >= 2e6 * 2 / 3 - 1
    assert RateDistribution(1.1).draw(generator, (1e6, 3e6), 10_000, 1e7).max() == 5_000_000
    assert parse_rates("uniform") == RateDistribution()
    assert parse_rates("pareto:1.2") == RateDistribution(1.2)
