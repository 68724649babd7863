from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.score import Scorer
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import Settings

ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)
TIMES = st.one_of(st.floats(0, 2e9), st.sampled_from([float("nan"), float("inf"), 0.0, 1.7e9]))
ROWS = st.lists(st.tuples(TIMES, ANY), max_size=60)
GRIDS = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, 2.0, 45.0, float("nan"), float("inf"), 1e300, -1e300]), ANY),
    min_size=20,
    max_size=80,
)


@given(ROWS)
def test_every_row_is_in_the_series_or_counted(rows: list[tuple[float, float]]):
    series = make_series([at for at, _ in rows], [value for _, value in rows])
    counts = series.counts
    left_out = counts.not_a_number + counts.infinite + counts.duplicated + counts.too_old
    assert len(series) + left_out == len(rows)
    assert np.all(np.diff(series.at_s) > 0)
    assert np.all(np.isfinite(series.values))


@given(GRIDS, st.floats(1, 1e5))
@settings(max_examples=80)
def test_no_values_make_fit_or_score_fail(values: list[float], interval_s: float):
    at_s = 1.7e9 + interval_s * np.arange(len(values))
    with np.errstate(all="raise", under="ignore"):
        found = fit(make_series(at_s, values))
        scores = Scorer().extend(at_s, values)
    assert found.reason
    assert np.all((scores >= 0) & (scores <= 1))
    assert np.all(scores[~np.isfinite(values)] == 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), st.sampled_from([1.0, 3600.0, 86_400.0, 1e6]))
@settings(max_examples=30)
def test_few_points_are_fitted_where_few_are_enough(values: list[float], interval_s: float):
    at_s = 1e9 + interval_s * np.arange(len(values))
    parameters = Settings(min_points=1, history_s=1e8)
    found = fit(make_series(at_s, values, parameters), parameters)
    assert found.category
    assert Scorer(parameters).extend(at_s, values)[0] == 0


def test_few_points_over_a_long_time_are_in_start_up_mode():
    found = fit(make_series(1e9 + 10 * 86_400.0 * np.arange(5), np.arange(5.0)))
    assert found.start_up
    assert found.reason.startswith("start-up mode; 5 points are fewer than 20")


def test_what_was_left_out_is_told():
    at_s = [0.0, 10, 10, 5, 20, 30, float("nan")]
    found = make_series(at_s, [1.0, 2, 3, 4, float("nan"), float("inf"), 1])
    assert found.at_s.tolist() == [0, 5, 10]
    assert found.values.tolist() == [1, 4, 3]
    assert found.counts == (2, 1, 1, 1, 0)
    left_out = "left out of the input: 2 not a number, 1 infinite, 1 duplicated, 1 out of order"
    assert fit(found).reason.endswith(left_out)


def test_what_is_longer_ago_than_the_history_is_counted():
    found = make_series([0.0, 100.0, 200.0], [1.0, 2.0, 3.0], Settings(history_s=100.0))
    assert (found.at_s.tolist(), found.counts.too_old) == ([100, 200], 1)


def test_an_empty_series_is_corrupted_without_bounds():
    found = fit(make_series([], []))
    assert (found.category, found.bounds, found.reason) == ("corrupted", None, "no points")
    assert found.project(0.0, 1e6)[0].tolist() == []


def test_times_and_values_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="2 times for 1 values"):
        make_series([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="2 times for 1 values"):
        Scorer().extend([1.0, 2.0], [1.0])


def test_late_points_are_counted_and_change_nothing():
    values = np.random.default_rng(1).normal(size=3000)
    at_s = 1.7e9 + 300 * np.arange(3000)
    plain, other = Scorer(), Scorer()
    expected = plain.extend(at_s, values)
    first = other.extend(at_s[:1500], values[:1500])
    assert other.extend([at_s[700]], [1e6]).tolist() == [0]
    assert np.concatenate([first, other.extend(at_s[1500:], values[1500:])]).tolist() == expected.tolist()
    assert (plain.late, other.late) == (0, 1)
