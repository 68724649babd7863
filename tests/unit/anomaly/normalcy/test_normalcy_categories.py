from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.normalcy.bounds import constant_bounds
from controller.anomaly.normalcy.categories import CATEGORIES, register
from controller.anomaly.normalcy.fit import fit
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Series, make_series
from controller.anomaly.normalcy.settings import DAY_S, SettingError, Settings

POINTS = 30 * 288
AT_S = 1.7e9 // DAY_S * DAY_S + 300.0 * np.arange(POINTS)
DAY = AT_S / DAY_S % 1
NEXT_S = AT_S[-1] + 300


def noise(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=POINTS)


def fitted(values: np.ndarray, **parameters: object) -> SeriesNormalcy:
    return fit(make_series(AT_S, values), Settings(**parameters))  # type: ignore[arg-type]


def share_inside(found: SeriesNormalcy, values: np.ndarray) -> float:
    assert found.bounds is not None
    return float((found.bounds.outside(AT_S, values) == 0).mean())


def test_white_noise_is_high_variability_without_period():
    found = fitted(noise())
    assert (found.category, found.periodic) == ("high-variability", False)
    assert share_inside(found, noise(2)) > 0.99


def test_slow_noise_is_low_variability():
    values = np.convolve(noise(), 0.97 ** np.arange(300))[:POINTS]
    assert fitted(values, categories=(), stability_pct=100.0).category == "low-variability"


def test_a_daily_wave_is_bounded_slot_by_slot():
    wave = 50 + 20 * np.sin(2 * np.pi * DAY)
    found = fitted(wave + noise())
    assert (found.category, found.period_s) == ("low-variability", DAY_S)
    assert share_inside(found, wave + noise(2)) > 0.97
    at_s, lower, upper = found.project(NEXT_S, NEXT_S + DAY_S)
    assert len(at_s) == 24
    assert at_s[0] == NEXT_S
    assert upper[6] > 69
    assert lower[18] < 31
    assert (upper - lower).max() < 15


def test_weekends_make_a_weekly_period():
    weekday = AT_S // DAY_S % 7 < 5
    wave = 10 + 30 * weekday * np.exp(-(((DAY - 0.5) / 0.12) ** 2))
    found = fitted(wave + noise())
    assert found.period_s == 7 * DAY_S
    assert share_inside(found, wave + noise(2)) > 0.95


def test_states_drawn_at_random_are_multinomial():
    rng = np.random.default_rng(1)
    found = fitted(rng.choice([1.0, 2.0, 3.0, 9.0], POINTS, p=[0.6, 0.3, 0.08, 0.02]))
    assert (found.category, found.periodic) == ("multinomial", False)
    assert found.bounds is not None
    assert found.bounds.members == ((1, 2, 3),)
    assert found.bounds.outside(AT_S[:4], np.array([2.0, 9.0, 2.4, -1.0])).tolist() == pytest.approx([0, 6, 0.4, -2])


def test_a_daily_square_wave_is_multinomial_with_a_set_per_slot():
    found = fitted(np.where((DAY >= 0.375) & (DAY < 0.75), 80.0, 20.0))
    assert (found.category, found.period_s) == ("multinomial", DAY_S)
    assert found.bounds is not None
    assert found.bounds.outside(AT_S[[0, 144]], np.array([80.0, 20.0])).tolist() == [60, -60]


def test_noise_among_states_is_discarded():
    rng = np.random.default_rng(1)
    states = rng.choice([1.0, 2.0], POINTS)
    states[rng.random(POINTS) < 0.05] += 0.25
    found = fitted(states)
    assert found.category == "multinomial"
    assert "noise discarded" in found.reason


def test_modes_at_random_times_are_transient_and_what_is_between_them_is_outside():
    rng = np.random.default_rng(2)
    found = fitted(50.0 * (np.cumsum(rng.random(POINTS) < 0.03) % 2) + noise())
    assert (found.category, found.periodic) == ("transient", False)
    assert found.bounds is not None
    apart = found.bounds.outside(AT_S[:4], np.array([0.0, 50.0, 25.0, 60.0]))
    assert apart[:2].tolist() == [0, 0]
    assert abs(apart[2]) > 15
    assert 5 < apart[3] < 10


def test_modes_of_every_day_are_normal_at_their_hours_alone():
    found = fitted(np.where((DAY >= 0.375) & (DAY < 0.75), 80.0, 20.0) + noise())
    assert (found.category, found.period_s) == ("transient", DAY_S)
    assert found.bounds is not None
    night, noon = found.bounds.normal(AT_S[0]), found.bounds.normal(AT_S[144])
    assert night == [[pytest.approx(20, abs=5), pytest.approx(20, abs=5)]]
    assert noon == [[pytest.approx(80, abs=5), pytest.approx(80, abs=5)]]


def test_one_change_of_level_is_not_transient():
    assert fitted(np.where(np.arange(POINTS) < 5000, 0, 50) + noise()).category != "transient"


@pytest.mark.parametrize("value", [45.0, 45.5, 0.0, -3.0])
def test_a_constant_is_semi_constant(value: float):
    found = fitted(np.full(POINTS, value))
    assert (found.category, found.periodic) == ("semi-constant", False)
    assert found.project(NEXT_S, NEXT_S + 3600)[1:] == (pytest.approx([value]), pytest.approx([value]))


def test_rare_errors_are_outliers_of_a_semi_constant():
    rng = np.random.default_rng(1)
    errors = np.where(rng.random(POINTS) < 0.02, rng.integers(1, 5, POINTS), 0).astype(float)
    found = fitted(errors)
    assert (found.category, found.periodic) == ("semi-constant", False)
    assert share_inside(found, errors) == pytest.approx((errors == 0).mean())


def test_outliers_that_come_daily_are_bounded_when_they_come():
    rng = np.random.default_rng(1)
    busy = (DAY >= 0.125) & (DAY < 0.375)
    found = fitted(np.where(busy, 10 * rng.random(POINTS), 3.5))
    assert (found.category, found.period_s) == ("semi-constant", DAY_S)
    assert found.bounds is not None
    assert found.bounds.outside(AT_S[[48, 200]], np.array([9.0, 9.0])).tolist() == [0, 5.5]


def test_the_latest_part_may_be_semi_constant():
    found = fitted(np.where(np.arange(POINTS) < 4000, noise(), 7.25))
    assert found.category == "semi-constant"
    assert found.since_s is not None
    assert AT_S[2000] < found.since_s <= AT_S[4000]


def test_a_linear_trend_is_projected():
    line = 0.01 * np.arange(POINTS)
    found = fitted(line + 2 * noise())
    assert (found.category, found.kind, found.periodic) == ("trendy", "linear", False)
    assert share_inside(found, line + 2 * noise(2)) > 0.99
    at_s, lower, upper = found.project(NEXT_S + 9 * DAY_S, NEXT_S + 10 * DAY_S)
    expected = 0.01 * (at_s - AT_S[0]) / 300
    assert np.all((lower < expected) & (expected < upper))
    assert np.all(upper - lower < 15)


def test_a_trend_with_a_daily_cycle():
    line = 0.01 * np.arange(POINTS) + 15 * np.sin(2 * np.pi * DAY)
    found = fitted(line + noise())
    assert (found.category, found.kind, found.period_s) == ("trendy", "linear", DAY_S)
    _, lower, upper = found.project(NEXT_S, NEXT_S + DAY_S)
    assert upper[6] - lower[18] > 25
    assert np.median(upper - lower) < 15


def test_a_log_linear_trend():
    curve = 20 * np.log(1 + np.arange(POINTS))
    found = fitted(curve + np.sqrt(3 / 7) * curve.std() * noise())
    assert (found.category, found.kind) == ("trendy", "log-linear")


def test_any_other_trend_is_bounded_by_its_latest_portion():
    found = fitted(np.exp(np.arange(POINTS) / 500) + noise())
    assert (found.category, found.kind, found.periodic) == ("trendy", "non-linear", False)
    assert found.since_s is not None
    assert found.since_s >= AT_S[0] + 0.7 * (AT_S[-1] - AT_S[0])


@pytest.mark.parametrize("seed", range(20))
def test_one_change_of_level_is_not_a_trend(seed: int):
    rng = np.random.default_rng(seed)
    place = int(POINTS * rng.uniform(0.25, 0.75))
    height = rng.uniform(3, 10) * rng.choice([-1, 1])
    values = np.where(np.arange(POINTS) < place, 0, height) + noise(seed) + 2 * np.sin(2 * np.pi * DAY)
    found = fitted(values)
    assert found.category != "trendy", found.reason
    assert found.since_s == pytest.approx(AT_S[place], abs=2 * DAY_S)


@pytest.mark.parametrize("seed", range(5))
def test_a_line_is_a_trend_however_much_noise_hides_it(seed: int):
    rng = np.random.default_rng(seed)
    values = rng.uniform(3, 10) * rng.choice([-1, 1]) * np.linspace(0, 1, POINTS) + noise(seed)
    assert fitted(values).category == "trendy"


def test_points_left_out_evenly_are_sparse_with_a_longest_gap():
    keep = np.random.default_rng(1).random(POINTS) < 0.3
    found = fit(make_series(AT_S[keep], noise()[keep]))
    assert found.category == "sparse"
    assert found.longest_gap_s is not None
    assert 900 < found.longest_gap_s < 2 * 3600


def test_a_localised_gap_is_cleaned_up():
    keep = (AT_S[1500] > AT_S) | (AT_S[5500] < AT_S)
    found = fit(make_series(AT_S[keep], noise()[keep]))
    assert found.category == "high-variability"
    assert "after the gaps" in found.reason
    assert found.since_s == AT_S[5501]


def test_too_little_after_the_latest_gap_is_corrupted():
    keep = (AT_S[1500] > AT_S) | (AT_S[8000] < AT_S)
    found = fit(make_series(AT_S[keep], noise()[keep]))
    assert (found.category, found.bounds) == ("corrupted", None)


def test_hardly_any_points_are_corrupted():
    keep = np.zeros(POINTS, bool)
    keep[:12] = keep[-12:] = True
    assert fit(make_series(AT_S[keep], noise()[keep])).category == "corrupted"


def test_of_data_that_changed_its_level_the_latest_part_is_taken():
    values = np.where(np.arange(POINTS) < 4000, 8, 0) + noise()
    found = fitted(values, categories=())
    assert found.category == "high-variability"
    assert found.since_s == pytest.approx(AT_S[4000], abs=DAY_S)
    assert found.bounds is not None
    assert found.bounds.at(AT_S[:1])[1][0] < 6


def test_a_level_that_changed_just_now_is_corrupted():
    values = np.where(np.arange(POINTS) < 7500, 8, 0) + noise()
    assert fitted(values, categories=()).category == "corrupted"


def test_short_series_are_in_start_up_mode_and_say_so():
    wave = 50 + 20 * np.sin(2 * np.pi * DAY) + noise()
    found = fit(make_series(AT_S[:864], wave[:864]))
    assert found.start_up
    assert found.reason.startswith("start-up mode, 3 of 7 days")
    assert found.bounds is not None
    assert not fitted(wave).start_up


def test_few_points_have_their_range_as_bounds():
    found = fit(make_series(AT_S[:5], [1.0, 5.0, 2.0, 3.0, 4.0]))
    assert (found.category, found.start_up) == ("corrupted", True)
    assert found.project(NEXT_S, NEXT_S + 3600)[1:] == (pytest.approx([1]), pytest.approx([5]))


def test_a_users_own_category_is_tried_in_its_place():
    def detect_saturated(series: Series, settings: Settings) -> SeriesNormalcy | None:
        if series.values.max() < 100:
            return None
        return SeriesNormalcy("saturated", "reaches 100", constant_bounds(series.at_s[0], 3600.0, 0.0, 100.0))

    known = dict(CATEGORIES)
    register("saturated", detect_saturated, known)
    settings = Settings(categories=("saturated", *Settings().categories))
    assert fit(make_series(AT_S, 100 + noise()), settings, known).category == "saturated"
    assert fit(make_series(AT_S, noise()), settings, known).category == "high-variability"
    with pytest.raises(SettingError, match="there already"):
        register("saturated", detect_saturated, known)
    with pytest.raises(SettingError, match="saturated"):
        fit(make_series(AT_S, noise()), settings)


def test_the_default_order_names_every_category():
    assert Settings().categories == tuple(CATEGORIES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("quality_pct", 101.0),
        ("closeness", -0.1),
        ("time_unit_s", 0.0),
        ("whisker", float("nan")),
        ("trend_widths", ()),
        ("alarm_score", 1.0),
        ("known_shape_divisor", 0.5),
        ("repeat_factor", 1.0),
    ],
)
def test_parameters_out_of_range_are_named(name: str, value: object):
    with pytest.raises(SettingError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]
