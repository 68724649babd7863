from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.anomaly.normalcy.score import Scorer, units_of
from controller.anomaly.normalcy.settings import DAY_S, Settings

START_S = 1.7e9 // DAY_S * DAY_S


def hours(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    at_s = START_S + 3600.0 * np.arange(count)
    wave = 50 + 20 * np.sin(2 * np.pi * at_s / DAY_S)
    return at_s, wave + np.random.default_rng(seed).normal(size=count)


@given(st.integers(1, 700), st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8))
@settings(max_examples=8)
def test_rows_to_come_never_change_earlier_scores(known: int, odd: list[float]):
    at_s, values = hours(700)
    values[known : known + len(odd)] = odd[: len(values) - known]
    whole = Scorer().extend(at_s, values)
    assert Scorer().extend(at_s[:known], values[:known]).tolist() == whole[:known].tolist()


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8))
@settings(max_examples=8)
def test_scores_do_not_depend_on_how_rows_are_handed_over(sizes: list[int]):
    at_s, values = hours(700)
    values[[300, 301, 302, 500]] += 60
    scorer, found, start = Scorer(), [], 0
    for size in [*sizes, 700]:
        found += scorer.extend(at_s[start : start + size], values[start : start + size]).tolist()
        start += size
    assert found == Scorer().extend(at_s, values).tolist()


def test_one_row_at_a_time():
    at_s, values = hours(400)
    values[350] += 80
    scorer = Scorer()
    single = [scorer.extend([at], [value])[0] for at, value in zip(at_s, values, strict=True)]
    assert single == Scorer().extend(at_s, values).tolist()


def test_an_outlier_is_scored_and_what_is_normal_is_not():
    at_s, values = hours(24 * 28)
    values[600] = 130
    scores = Scorer().extend(at_s, values)
    assert scores.argmax() == 600
    assert scores[600] > 0.4
    assert np.delete(scores, 600)[24 * 14 :].max() < 0.15


def test_a_value_that_is_normal_at_another_hour_is_scored():
    at_s, values = hours(24 * 28)
    night = 24 * 25 + 18
    values[night : night + 3] = 68
    scores = Scorer().extend(at_s, values)
    assert scores[24 * 14 :].argmax() + 24 * 14 in range(night, night + 3)


def test_the_further_out_the_higher():
    found = []
    for height in (80.0, 120.0, 260.0):
        at_s, values = hours(24 * 21)
        values[450] = height
        found.append(Scorer().extend(at_s, values)[450])
    assert 0 < found[0] < found[1] < found[2] < 1


def test_the_longer_outside_the_higher():
    at_s = START_S + 300.0 * np.arange(288 * 10)
    values = np.random.default_rng(1).normal(size=len(at_s))
    values[2600:2700] = 8
    flat = Scorer(Settings(duration_gain=0.0, discord_gain=0.0)).extend(at_s, values)
    longer = Scorer(Settings(duration_gain=1.0, discord_gain=0.0)).extend(at_s, values)
    assert np.flatnonzero(flat[2600:2700]).tolist() == [0]
    assert 2 <= np.count_nonzero(longer[2600:2613]) <= 3
    assert not longer[2613:2700].any()
    assert longer[2600:2613].max() > longer[2600] == flat[2600]


def test_hold_off_keeps_quiet_until_something_is_half_as_far_out_again():
    at_s, values = hours(24 * 28)
    values[500], values[510], values[515], values[520], values[550] = 120, 110, 125, 190, 110
    scores = Scorer(Settings(hold_off_s=DAY_S)).extend(at_s, values)
    assert scores[500] > 0.3
    assert scores[510] == scores[515] == 0
    assert scores[520] > scores[500]
    assert scores[550] > 0
    without = Scorer(Settings(hold_off_s=0.0)).extend(at_s, values)
    assert without[510] > 0


def test_what_is_held_off_holds_nothing_off():
    at_s, values = hours(24 * 28)
    values[500:548] = 120
    scores = Scorer(Settings(hold_off_s=DAY_S, duration_gain=0.0)).extend(at_s, values)
    assert np.flatnonzero(scores[500:548]).tolist() == [0, 24]


def test_slow_growth_is_told_by_rungs_and_not_row_by_row():
    at_s, values = hours(24 * 28)
    values[500:524] = 80 + 5 * np.arange(24)
    scores = Scorer(Settings(hold_off_s=DAY_S, duration_gain=0.0)).extend(at_s, values)
    told = scores[500:524][scores[500:524] > 0]
    assert 3 <= len(told) <= 7
    distances = told / (1 - told)
    assert np.all(distances[1:] >= 1.5 * distances[:-1] * (1 - 1e-9))


@pytest.mark.parametrize("seed", range(3))
def test_at_every_threshold_alarms_are_those_of_that_threshold_alone(seed: int):
    rng = np.random.default_rng(seed)
    at_s, values = hours(24 * 40)
    odd = rng.integers(24 * 20, 24 * 40, 60)
    values[odd] += rng.uniform(30, 200, 60)
    settings = Settings(hold_off_s=DAY_S, duration_gain=0.0)
    every = Scorer(replace(settings, hold_off_s=0.0)).extend(at_s, values)
    scores = Scorer(settings).extend(at_s, values)
    for threshold in np.unique(every[every > 0]):
        expected, alarm_s, alarm = [], -np.inf, 0.0
        for row in np.flatnonzero(every >= threshold):
            if at_s[row] >= alarm_s + DAY_S or every[row] > alarm:
                expected.append(row)
                alarm_s, alarm = at_s[row], every[row]
        assert np.flatnonzero(scores >= threshold).tolist() == expected


def test_who_is_at_the_alarm_score_does_not_depend_on_where_the_next_rungs_are():
    at_s, values = hours(24 * 40)
    rng = np.random.default_rng(5)
    values[rng.integers(24 * 20, 24 * 40, 60)] += rng.uniform(5, 120, 60)
    for alarm_score in (0.17, 0.2, 0.25):
        plain = Settings(hold_off_s=0.0, alarm_score=alarm_score)
        scores = [
            Scorer(replace(plain, repeat_factor=factor)).extend(at_s, values) for factor in (1.5, 2.0, 3.0, 16.0)
        ]
        told = [np.flatnonzero(each >= alarm_score - 1e-9).tolist() for each in scores]
        assert 10 < len(told[0]) < len(np.flatnonzero(scores[0]))
        assert told[1:] == [told[0]] * 3


def test_many_errors_after_one_are_not_held_off():
    at_s, errors = hours(24 * 20)
    errors[:] = 0
    errors[400], errors[405], errors[410] = 1, 1000, 1
    scores = Scorer().extend(at_s, errors)
    assert np.flatnonzero(scores).tolist() == [400, 405]
    assert scores[405] > scores[400] > 0.9


def test_what_happens_every_day_is_discounted():
    at_s, values = hours(24 * 40)
    rng = np.random.default_rng(2)
    once = values.copy()
    once[900] = 120
    often = once.copy()
    often[np.arange(24 * 10, 24 * 37, 24) + rng.integers(0, 24, 27)] = 120
    assert Scorer().extend(at_s, often)[900] < Scorer().extend(at_s, once)[900]


def test_a_floor_on_the_scale_keeps_a_flicker_of_a_constant_low():
    at_s, values = hours(24 * 10)
    values[:] = 45.0
    values[200] = 45.1
    flicker = Scorer().extend(at_s, values)
    values[200] = 60.0
    jump = Scorer().extend(at_s, values)
    assert 0 < flicker[200] < 0.3
    assert jump[200] > 0.8
    assert flicker[:200].max() == 0


def test_the_unit_above_counts_reaches_as_far_as_their_tail():
    rng = np.random.default_rng(1)
    normal = rng.normal(1000, 50, 20_000)
    plain = units_of(np.rint(normal), Settings())
    assert plain.below == pytest.approx(50 * 5.15, rel=0.05)
    assert 1 < plain.above / plain.below < 1.4
    heavy = np.floor(rng.pareto(1.5, 20_000) * 10)
    units = units_of(heavy, Settings())
    assert units.above > 3 * units.below
    assert units.below + np.quantile(heavy, 0.005) == pytest.approx(np.quantile(heavy, 0.995))
    assert units_of(heavy + 0.5, Settings()).above == units_of(heavy - 1, Settings()).above == units.below
    assert units_of(np.full(30, 7.0), Settings()) == (0.07, 0.07)


def test_a_constant_series_is_never_scored():
    at_s, _ = hours(24 * 10)
    assert Scorer().extend(at_s, np.full(len(at_s), 7.0)).max() == 0


def test_events_tell_how_far_out_and_how_long():
    at_s, values = hours(24 * 28)
    values[600:604] = 130, 140, 135, 120
    scorer = Scorer()
    scores = scorer.extend(at_s, values)
    scorer.close_event()
    event = max(scorer.events, key=lambda one: one.score)
    assert (event.first_s, event.last_s, event.points) == (at_s[600], at_s[603], 4)
    assert event.furthest == pytest.approx(140 - scorer.normalcy.bounds.at(at_s[601:602])[1][0], abs=10)
    assert event.score == scores[600:604].max()


def test_of_corrupted_data_only_what_was_never_seen_is_scored():
    dense_s = START_S + 300.0 * np.arange(288 * 8)
    late_s = dense_s[-1] + 300 + 10 * DAY_S + 28_800.0 * np.arange(6)
    values = np.concatenate([np.random.default_rng(1).normal(size=len(dense_s)), [0, 0, 0, 0.5, 70, 0]])
    scorer = Scorer()
    scores = scorer.extend(np.concatenate([dense_s, late_s]), values)
    assert scorer.normalcy.category == "corrupted"
    assert scores[-3] == 0
    assert scores[-2] > 0.3


def test_the_first_points_are_not_scored():
    at_s, values = hours(24)
    values[5] = 1000
    assert Scorer(Settings(min_points=20)).extend(at_s[:20], values[:20]).max() == 0


def test_a_second_point_at_a_time_is_scored_and_not_learnt_from():
    at_s, values = hours(24 * 14)
    scorer = Scorer()
    scorer.extend(at_s, values)
    assert scorer.extend([at_s[-1]], [500.0])[0] > 0.5
    later, more = hours(24 * 16)
    plain = Scorer(Settings(hold_off_s=0.0))
    expected = plain.extend(later, more)
    twice = Scorer(Settings(hold_off_s=0.0))
    twice.extend(at_s, values)
    twice.extend([at_s[-1]], [values[-1]])
    assert twice.extend(later[24 * 14 :], more[24 * 14 :]).tolist() == expected[24 * 14 :].tolist()
