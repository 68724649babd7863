from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.normalcy.cyclochart import (
    Cyclochart,
    choose_period,
    cyclochart,
    find_cycle,
    groups,
    kept_columns,
    peaks,
    period_series,
    shortest_equal,
)
from controller.anomaly.normalcy.footprint import Footprint, Frame, footprint, quantile_frame, similar_columns
from controller.anomaly.normalcy.series import make_series
from controller.anomaly.normalcy.settings import DAY_S, Settings

SETTINGS = Settings()


def columns_of(*counts: tuple[int, ...]) -> Footprint:
    cells = np.array(counts, np.uint32)
    empty = np.where(cells.any(axis=1), 0.0, np.nan)
    return Footprint(Frame(0.0, 3600.0, 4, np.arange(1.0, cells.shape[1])), cells, empty, empty)


def test_the_articles_example_of_seven_days():
    similarity = np.full(30, 10.0)
    for units, pct in ((2, 30), (4, 35), (7, 60), (14, 58), (21, 55), (28, 52)):
        similarity[units - 1] = pct
    chart = Cyclochart(similarity, similarity, 0.0)
    found = peaks(chart, 5.0, 20.0)
    assert found == [2, 4, 7, 14, 21, 28]
    series = {one.units: one for one in period_series(found, similarity)}
    assert (series[7].positive, series[7].negative, series[7].strength) == (4, 0, 4)
    assert series[2].strength < 0
    assert choose_period(list(series.values()), 20.0) == 7


def test_a_period_below_the_floor_is_none():
    assert choose_period(period_series([3], np.array([0, 0, 19.0, 0, 0])), 20.0) == 0
    assert choose_period([], 20.0) == 0


def test_the_order_of_choice():
    similarity = np.zeros(12)
    similarity[[4, 6]] = 40, 50
    candidates = period_series([5, 7], similarity)
    assert [one.strength for one in candidates] == [0, 1]
    assert choose_period(candidates, 20.0) == 7


def test_a_flat_chart_is_a_cycle_of_one_unit():
    chart = Cyclochart(np.full(14, 97.0), np.full(14, 90.0), 20.0)
    found = peaks(chart, 10.0, 20.0)
    assert found == list(range(1, 15))
    assert choose_period(period_series(found, chart.similarity_pct), 20.0) == 1


def test_what_chance_gives_is_no_peak():
    similarity = np.array([0, 10, 20, 30, 40, 50.0])
    assert peaks(Cyclochart(similarity, np.full(6, 42.0), 40.0), 10.0, 20.0) == []
    assert peaks(Cyclochart(np.full(6, 100.0), np.full(6, 100.0), 100.0), 10.0, 20.0) == []


def test_a_divisor_as_similar_is_taken():
    chart = Cyclochart(np.zeros(4), np.array([70.0, 66, 74, 72]), 0.0)
    assert shortest_equal(4, chart, 10.0) == 1
    assert shortest_equal(4, Cyclochart(np.zeros(4), np.array([40.0, 70, 40, 72]), 0.0), 10.0) == 2


def test_the_cyclochart_of_an_alternation():
    alternating = columns_of(*[(9, 0, 0), (9, 0, 0), (9, 0, 0), (9, 0, 0), *[(0, 0, 9)] * 4] * 4)
    chart = cyclochart(alternating, similar_columns(alternating, 0.2), SETTINGS)
    assert chart.similarity_pct.tolist() == [0, 100, 0, 100]
    assert chart.pairs_pct.tolist() == pytest.approx([100 * 12 / 28, 100, 100 * 2 / 7, 100])
    assert chart.all_pairs_pct == pytest.approx(100 * 15 / 31)


def test_the_reference_column_is_searched():
    first_day_odd = columns_of((9, 0, 0), (0, 0, 9), (0, 0, 9), (0, 0, 9))
    found = groups(similar_columns(first_day_odd, 0.2), 1, 75.0)
    assert found.periodic.tolist() == [True]
    assert found.alike[0].tolist() == [False, True, True, True]
    assert kept_columns(found, first_day_odd.present)[0].tolist() == [False, True, True, True]


def test_below_the_quality_all_columns_are_kept():
    mixed = columns_of((9, 0, 0), (0, 0, 9), (0, 9, 0), (0, 0, 9))
    found = groups(similar_columns(mixed, 0.2), 1, 75.0)
    assert not found.periodic[0]
    assert kept_columns(found, mixed.present)[0].all()


def test_an_empty_column_is_missing_and_never_similar():
    gaps = columns_of((0, 0), (0, 0), (5, 0), (5, 0))
    similar = similar_columns(gaps, 0.2)
    assert similar[2, 3]
    assert not similar[0, 1]
    assert not similar[0, 0]
    assert not groups(similar, 1, 75.0).periodic[0]


@pytest.mark.parametrize("period_days", [1, 2, 7])
def test_periods_are_found_in_noise(period_days: int):
    rng = np.random.default_rng(period_days)
    at_s = 1.7e9 // DAY_S * DAY_S + 300 * np.arange(28 * 288)
    levels = rng.permutation(np.arange(24 * period_days)) % 11
    place = (at_s / 3600 % (24 * period_days)).astype(int)
    series = make_series(at_s, 10.0 * levels[place] + rng.normal(size=len(at_s)))
    assert find_cycle(footprint(series, quantile_frame(series, SETTINGS)), SETTINGS).units == period_days


def test_noise_has_no_period():
    for seed in range(5):
        values = np.random.default_rng(seed).normal(size=30 * 288)
        series = make_series(1.7e9 + 300 * np.arange(len(values)), values)
        assert not find_cycle(footprint(series, quantile_frame(series, SETTINGS)), SETTINGS).periodic


def test_a_frame_cannot_start_after_its_series():
    series = make_series([0.0, 300.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="before the frame"):
        footprint(series, Frame(3600.0, 3600.0, 24, np.array([1.5])))
