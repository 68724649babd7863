from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.anomaly.normalcy.bounds import whisker_bounds
from controller.anomaly.normalcy.footprint import column_distances
from controller.anomaly.normalcy.multinomial import integer_shares, normal_set, without_rare
from controller.anomaly.normalcy.presence import presence
from controller.anomaly.normalcy.settings import Settings
from controller.anomaly.normalcy.stability import relative_change, stabilochart
from controller.anomaly.normalcy.transient import region_between, staying
from controller.anomaly.normalcy.trend_line import fit_line, goodness_of_fit, mann_kendall_sum, trend_pct
from controller.anomaly.normalcy.trendy import objective, width_of
from controller.anomaly.normalcy.variability import variability_pct

RNG = np.random.default_rng(7)


def autoregressive(correlation: float, count: int) -> np.ndarray:
    values = np.zeros(count)
    steps = np.random.default_rng(3).normal(size=count)
    for row in range(1, count):
        values[row] = correlation * values[row - 1] + steps[row]
    return values


def test_variability_of_white_noise_is_86_percent():
    assert variability_pct(RNG.normal(size=200_000)) == pytest.approx(86.5, abs=1.5)


def test_variability_of_lag_one_correlation_0947_is_20_percent():
    assert variability_pct(autoregressive(0.947, 200_000)) == pytest.approx(20, abs=1)


def test_a_shift_of_1_1_sigma_is_the_limit_of_stability():
    noise = RNG.normal(size=(2, 200_000))
    change = relative_change(noise[:1], noise[1:] + 1.1)
    assert change[0] == pytest.approx(0.70, abs=0.02)


def test_a_constant_is_stable_and_a_step_between_constants_is_not():
    assert not stabilochart(np.ones(100), 20, 70).unstable.any()
    steps = np.repeat([1.0, 2.0], 50)
    assert stabilochart(steps, 20, 70).unstable.any()


@given(st.lists(st.integers(-5, 5), max_size=300))
def test_mann_kendall_is_the_sum_over_all_pairs(values: list[int]):
    naive = sum(int(np.sign(later - earlier)) for row, earlier in enumerate(values) for later in values[row + 1 :])
    assert mann_kendall_sum(np.array(values, np.float64)) == naive


def test_mann_kendall_percent_at_its_ends():
    assert trend_pct(np.arange(100.0)) == 100
    assert trend_pct(-np.arange(100.0)) == 100
    assert trend_pct(np.ones(100)) == 0
    assert trend_pct(np.array([1.0])) == 0


def test_goodness_of_fit_is_one_on_the_line_and_zero_at_the_mean():
    values = np.arange(10.0)
    assert goodness_of_fit(values, values) == 1
    assert goodness_of_fit(values, np.full(10, values.mean())) == 0
    assert goodness_of_fit(np.ones(10), np.ones(10)) == 0


def test_lines_are_found_over_time_and_over_its_logarithm():
    at_s = 1e9 + 60 * np.arange(1000)
    line, fit = fit_line(at_s, 3 + 0.5 * (at_s - at_s[0]), logarithmic=False, interval_s=60)
    assert (line.slope, fit) == (pytest.approx(0.5), pytest.approx(1))
    curve, fit = fit_line(at_s, 7 * np.log(at_s - at_s[0] + 60), logarithmic=True, interval_s=60)
    assert (curve.slope, fit) == (pytest.approx(7), pytest.approx(1))


@pytest.mark.parametrize(("a", "sigmas"), [(5.0, 2.0), (15.0, 2.0), (25.0, 3.0), (40.0, 3.0)])
def test_the_parameter_a_picks_the_width(a: float, sigmas: float):
    noise = RNG.normal(size=8640)
    assert width_of(noise, Settings(trend_a=a)) == pytest.approx(sigmas * noise.std())


def test_the_objective_is_one_at_best():
    assert objective(1.0, 0.0, 30) == pytest.approx(1)
    assert objective(0.0, 0.0, 30) == 0
    assert objective(1.0, 1.0, 30) == 0


def test_distance_of_columns_is_relative_to_the_longer():
    distances = column_distances(np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 10.0]]))
    assert distances[0, 1] == 0
    assert distances[0, 2] == distances[2, 0] == pytest.approx(np.sqrt(9 + 36) / 10)


def test_shares_are_of_the_integers_alone():
    found, shares = integer_shares(np.array([1.0, 1.0, 2.0, 2.5, 3.0]))
    assert found.tolist() == [1, 2, 3]
    assert shares.tolist() == [50, 25, 25]


def test_rare_values_go_by_their_tail_sum():
    assert without_rare(np.array([60.0, 38.0, 1.0, 0.6, 0.4]), 2.0 - 1e-6) == 3
    assert without_rare(np.array([60.0, 40.0]), 2.0) == 2


def test_the_normal_set_is_made_of_head_sums():
    values = np.repeat([5.0, 1.0, 9.0, 7.0], [60, 30, 8, 2])
    assert normal_set(values, 95) == (1, 5, 9)
    assert normal_set(values, 60) == (5,)
    assert normal_set(values, 100) == (1, 5, 7, 9)


def test_holes_and_transitions():
    at_s = np.array([0.0, 1, 2, 3, 10, 11, 12, 20, 21])
    found = presence(at_s, 1.0, 2.5)
    assert found.holes_s.tolist() == [7, 8]
    assert found.gap_pct == pytest.approx(100 * 15 / 21)
    assert found.p10 == pytest.approx(2 / 8)
    assert found.p11 == pytest.approx(6 / 8)
    assert found.p01 == pytest.approx(2 / 13)
    assert found.p00 == pytest.approx(11 / 13)


def test_staying_in_an_empty_region_has_probability_0():
    assert staying(0, 0) == 0
    assert staying(3, 4) == 0.75


def test_the_region_between_modes_is_where_nothing_stays():
    modes = np.repeat(np.tile([0.0, 100.0], 20), 30) + RNG.normal(size=1200)
    low, high = region_between(modes, np.ones(1200, bool), Settings()) or (0, 0)
    assert 0 < low < high < 100
    assert region_between(RNG.normal(size=1200), np.ones(1200, bool), Settings()) is None
    jumping = np.tile([0.0, 100.0], 600) + RNG.normal(size=1200)
    assert region_between(jumping, np.ones(1200, bool), Settings()) is None


def test_whiskers_are_clipped_to_the_range():
    assert whisker_bounds(np.arange(101.0)) == (0, 100)
    with_outlier = np.append(np.arange(101.0), 1000.0)
    assert whisker_bounds(with_outlier)[1] == pytest.approx(75.75 + 1.5 * 50.5)
