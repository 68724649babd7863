from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.normalcy.footprint import footprint, quantile_frame
from controller.anomaly.normalcy.rolling import RollingNormalcy
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import DAY_S, Settings

START_S = 1.7e9 // DAY_S * DAY_S
PER_DAY = 288


def days(first: int, count: int, level: float = 50.0) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(first * PER_DAY, (first + count) * PER_DAY)
    at_s = START_S + 300.0 * rows
    noise = np.random.default_rng(first).normal(size=len(rows))
    return at_s, level + 20 * np.sin(2 * np.pi * at_s / DAY_S) + noise


def test_columns_of_added_days_are_those_of_the_whole():
    settings = Settings(smoothing_points=1)
    parts = [days(number, 1) for number in range(12)]
    whole = make_series(np.concatenate([at_s for at_s, _ in parts]), np.concatenate([values for _, values in parts]))
    frame = quantile_frame(whole, settings)
    expected = footprint(whole, frame)
    found = footprint(make_series(*parts[0]), frame)
    for part in parts[1:]:
        found = found.extended(make_series(*part))
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.low, expected.low)
    assert np.array_equal(found.high, expected.high)
    shorter = expected.without_first(24)
    assert shorter.frame.origin_s == expected.frame.origin_s + DAY_S
    assert np.array_equal(shorter.counts, expected.counts[24:])


def test_a_new_day_moves_the_bounds_without_a_fit():
    rolling = RollingNormalcy(Settings(refit_s=30 * DAY_S))
    before = rolling.add(*days(0, 20))
    assert (before.period_s, rolling.fits) == (DAY_S, 1)
    at_s, values = days(20, 1)
    values[40] = values[40] + 8
    after = rolling.add(at_s, values)
    assert rolling.fits == 1
    assert after.period_s == DAY_S
    assert before.bounds is not None
    assert after.bounds is not None
    probe = at_s[:PER_DAY:12]
    moved = after.bounds.at(probe)[1] - before.bounds.at(probe)[1]
    assert np.all(moved >= 0)
    assert moved[40 // 12] > 1


def test_bounds_after_added_days_are_those_of_a_fit_to_all():
    settings = Settings(refit_s=30 * DAY_S)
    rolling, whole = RollingNormalcy(settings), RollingNormalcy(settings)
    rolling.add(*days(0, 20))
    for number in range(20, 25):
        rolling.add(*days(number, 1))
    parts = [days(0, 20), *(days(number, 1) for number in range(20, 25))]
    whole.add(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    assert rolling.fits == whole.fits == 1
    probe = START_S + 25 * DAY_S + 3600.0 * np.arange(24)
    assert rolling.normalcy.bounds is not None
    assert whole.normalcy.bounds is not None
    for found, expected in zip(rolling.normalcy.bounds.at(probe), whole.normalcy.bounds.at(probe), strict=True):
        assert found == pytest.approx(expected, abs=3.0)


def test_the_category_is_determined_anew_in_time():
    rolling = RollingNormalcy(Settings(refit_s=7 * DAY_S))
    rolling.add(*days(0, 20))
    for number in range(20, 27):
        rolling.add(*days(number, 1))
    assert rolling.fits == 2


def test_days_before_the_history_go():
    rolling = RollingNormalcy(Settings(history_s=10 * DAY_S, refit_s=5 * DAY_S))
    for number in range(30):
        rolling.add(*days(number, 1))
    held = rolling.history()
    assert held.length_s <= 10 * DAY_S + 600
    assert held.at_s[0] >= START_S + 19 * DAY_S


def test_points_must_follow_those_before():
    rolling = RollingNormalcy()
    rolling.add(*days(0, 2))
    with pytest.raises(ValueError, match="not later"):
        rolling.add(*days(1, 1))
    assert rolling.add([], []).bounds is not None


def test_more_points_than_the_bound_are_not_held():
    rolling = RollingNormalcy(Settings(history_points=1000))
    for number in range(10):
        rolling.add(*days(number, 1))
    assert len(rolling.history()) == 1000
    assert rolling.history().at_s[-1] == days(9, 1)[0][-1]
    assert rolling.normalcy.bounds is not None


@pytest.mark.parametrize("seed", range(4))
def test_bounds_start_again_a_day_after_a_change_of_level(seed: int):
    rng = np.random.default_rng(seed)
    change = int(rng.integers(10, 25))
    level = float(rng.choice([-1, 1]) * rng.uniform(60, 200))
    rolling = RollingNormalcy()
    for number in range(change):
        rolling.add(*days(number, 1))
    for number in range(change, change + 10):
        rolling.add(*days(number, 1, 50 + level))
        at_s, values = days(number + 1, 1, 50 + level)
        assert rolling.normalcy.bounds is not None
        inside = rolling.normalcy.bounds.outside(at_s, values) == 0
        assert inside.mean() > 0.8, number
        assert np.all(rolling.normalcy.bounds.outside(at_s, values - level) != 0)


def test_a_day_off_does_not_make_the_weeks_before_it_forgotten():
    rolling = RollingNormalcy()
    for number in range(21):
        rolling.add(*days(number, 1))
    rolling.add(*days(21, 1, -100))
    rolling.add(*days(22, 1))
    assert rolling.normalcy.period_s == DAY_S
    assert rolling.normalcy.bounds is not None
    at_s, values = days(23, 1)
    assert (rolling.normalcy.bounds.outside(at_s, values) == 0).mean() > 0.9


def test_where_bounds_started_again_is_kept():
    rolling = RollingNormalcy()
    rolling.add(*days(0, 20))
    rolling.add(*days(20, 1, 500))
    restored = RollingNormalcy.restored(rolling.state(), Settings())
    for number in range(21, 30):
        expected, found = rolling.add(*days(number, 1, 500)), restored.add(*days(number, 1, 500))
        assert (found.category, found.reason, found.since_s) == (expected.category, expected.reason, expected.since_s)
        assert found.bounds is not None
        assert expected.bounds is not None
        assert found.bounds.intervals.tolist() == expected.bounds.intervals.tolist()
