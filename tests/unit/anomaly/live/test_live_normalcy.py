"""Bounds of many series by the slot of the day and of the week: what is learnt, what is not, and what is outside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from numpy.typing import NDArray

from controller.anomaly.live_normalcy import LEARNT, SlotBounds
from controller.config.anomaly_settings import Normalcy

DAY_S = 240.0
MONDAY_S = 4 * DAY_S
"""The first Monday of the epoch, if days are as short."""
ENABLED = Normalcy(enabled=True, day_s=DAY_S, confirm_points=3)
POINTS = 240
SLOT = POINTS // 24


def bounds_of(series: int, least: float = 0.01) -> SlotBounds:
    bounds = SlotBounds(ENABLED)
    bounds.fit(series)
    bounds.begin(np.arange(series), np.full(series, least))
    return bounds


def feed(bounds: SlotBounds, values: NDArray[np.float64], start_s: float = MONDAY_S) -> NDArray[np.bool_]:
    """Give (series, minutes) values and return whether each series was confirmed to be outside at each minute."""
    rows = np.arange(len(values))
    confirmed = np.zeros(values.shape, np.bool_)
    for minute, column in enumerate(values.T):
        judged = bounds.take(rows, np.full(len(rows), start_s + minute), column)
        confirmed[judged.rows, minute] = judged.confirmed
    return confirmed


def daily(days: int, seed: int = 1, noise: float = 1.0) -> NDArray[np.float64]:
    hours = np.arange(days * POINTS) / SLOT
    wave = 50 + 40 * np.sin(2 * np.pi * hours / 24)
    return (wave + noise * np.random.default_rng(seed).normal(size=len(hours)))[None]


def test_a_series_takes_no_more_than_2_kb_however_long_it_goes_on():
    bounds = bounds_of(10)
    assert bounds.bytes_per_row <= 2048
    before = {name: array.nbytes for name, array in vars(bounds).items() if isinstance(array, np.ndarray)}
    assert sum(before.values()) == 10 * bounds.bytes_per_row
    feed(bounds, np.random.default_rng(1).normal(size=(10, 15 * POINTS)))
    assert {name: array.nbytes for name, array in vars(bounds).items() if isinstance(array, np.ndarray)} == before


def test_no_bounds_are_known_before_a_slot_was_seen_on_enough_days():
    bounds = bounds_of(1)
    values = daily(9)
    feed(bounds, values[:, : 7 * POINTS])
    assert np.isnan(bounds.score).all()
    feed(bounds, values[:, 7 * POINTS : 8 * POINTS], MONDAY_S + 7 * DAY_S)
    assert bounds.score[0] == 0
    assert bounds.lower[0] < values[0, 8 * POINTS - 1] < bounds.upper[0]


def test_a_day_like_those_before_is_inside_and_one_at_the_level_of_another_hour_is_not():
    bounds = bounds_of(1)
    values = daily(12)
    assert not feed(bounds, values[:, : 10 * POINTS]).any()
    noon = slice(10 * POINTS + 18 * SLOT, 10 * POINTS + 19 * SLOT)
    values[0, noon] += 60  # as high as in the morning, when it is lowest otherwise
    confirmed = feed(bounds, values[:, 10 * POINTS :], MONDAY_S + 10 * DAY_S)
    told = np.flatnonzero(confirmed[0])
    assert told[0] == 18 * SLOT + ENABLED.confirm_points - 1
    assert told[-1] == 19 * SLOT - 1


def test_weekly_bounds_tell_a_working_day_on_a_sunday_once_three_weeks_are_known():
    weeks = 6
    hours = np.arange(weeks * 7 * POINTS) / SLOT
    weekend = hours // 24 % 7 >= 5
    rng = np.random.default_rng(2)
    work = np.where(weekend, 5.0, 60.0)[None] + rng.normal(size=(1, len(hours)))
    sunday = slice(((weeks - 1) * 7 + 6) * POINTS + 10 * SLOT, ((weeks - 1) * 7 + 6) * POINTS + 12 * SLOT)
    work[0, sunday] += 55
    confirmed = feed(bounds_of(1), work)
    assert confirmed[0, sunday].any()
    assert not confirmed[0, (weeks - 1) * 7 * POINTS : sunday.start].any()


def test_a_constant_series_is_inside_and_any_distance_that_counts_is_not():
    bounds = bounds_of(1, least=5.0)
    values = np.full((1, 9 * POINTS), 100.0)
    values[0, 8 * POINTS : 8 * POINTS + SLOT] = 104.9
    values[0, 8 * POINTS + SLOT : 8 * POINTS + 2 * SLOT] = 120.0
    confirmed = feed(bounds, values)[0]
    assert not confirmed[: 8 * POINTS + SLOT].any()
    assert confirmed[8 * POINTS + SLOT : 8 * POINTS + 2 * SLOT].sum() == SLOT - ENABLED.confirm_points + 1


def test_another_level_is_told_and_is_normal_after_days():
    bounds = bounds_of(1)
    values = daily(20)
    values[0, 8 * POINTS :] += 300
    confirmed = feed(bounds, values)[0]
    by_day = confirmed.reshape(-1, POINTS).mean(axis=1)
    assert (by_day[8 : 8 + ENABLED.relearn_days - 1] > 0.9).all()
    assert not by_day[:8].any()
    assert not by_day[8 + ENABLED.relearn_days + 1 :].any()


def test_an_anomaly_teaches_nothing():
    calm, ill = bounds_of(1), bounds_of(1)
    values = daily(9)
    changed = values.copy()
    changed[0, 8 * POINTS + 10 * SLOT : 8 * POINTS + 12 * SLOT] = 1000.0
    feed(calm, values)
    feed(ill, changed)
    hours = [hour for hour in range(24) if hour not in (10, 11)]
    for name in ("day_low", "day_high"):
        assert (getattr(calm, name)[hours] == getattr(ill, name)[hours]).all()
        assert getattr(ill, name)[10:12].max() < 150


def test_holes_numbers_that_are_none_and_clocks_that_are_set_teach_nothing():
    bounds = bounds_of(1)
    values = daily(9)
    feed(bounds, values)
    learnt = {name: getattr(bounds, name).copy() for name in LEARNT}
    now_s = float(bounds.newest_s[0])
    for value in (np.nan, np.inf, 1e300):
        assert not len(bounds.take(np.array([0]), np.array([now_s + 1]), np.array([value])).rows)
    assert not len(bounds.take(np.array([0]), np.array([now_s]), np.array([50.0])).rows)
    assert bounds.late == 1
    # Hours of which a few minutes are known, then the clock back by a day: neither ends a slot that counts.
    for hour in range(1, 6):
        bounds.take(np.array([0]), np.array([now_s + SLOT * hour]), np.array([900.0]))
    bounds.take(np.array([0]), np.array([now_s - DAY_S]), np.array([900.0]))
    assert bounds.steps == 1
    bounds.take(np.array([0]), np.array([now_s - DAY_S + SLOT]), np.array([900.0]))
    changed = {name: int((getattr(bounds, name) != learnt[name]).sum()) for name in LEARNT}
    assert max(changed.values()) <= 1, "only the whole hour that was under way has taught"
    assert bounds.day_high.max() < 150


def test_a_hole_neither_confirms_nor_calms():
    bounds = bounds_of(1)
    feed(bounds, daily(9))
    now_s = float(bounds.newest_s[0])
    for point in range(ENABLED.confirm_points - 1):
        judged = bounds.take(np.array([0]), np.array([now_s + point + 1]), np.array([900.0]))
        assert not judged.confirmed.any()
    judged = bounds.take(np.array([0]), np.array([now_s + SLOT]), np.array([900.0]))
    assert not judged.confirmed.any() and not judged.calm.any()


@settings(max_examples=25, deadline=None)
@given(strategies.integers(0, 10**6), strategies.lists(strategies.integers(1, 15), max_size=4, unique=True))
def test_neither_the_order_of_series_nor_how_they_are_batched_matters(seed: int, cuts: list[int]):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(16, 3 * 24 * 2 + 7)) * 10 ** rng.uniform(-3, 6, (16, 1))
    short = Normalcy(enabled=True, day_s=48, least_days=1, confirm_points=2)
    whole, parts = SlotBounds(short), SlotBounds(short)
    for bounds in (whole, parts):
        bounds.fit(16)
    edges = [0, *sorted(cuts), 16]
    for second, column in enumerate(values.T):
        at_s = np.full(16, 1000.0 + second)
        found = whole.take(np.arange(16), at_s, column)
        mixed = rng.permutation(16)
        for first, last in pairwise(edges):
            rows = mixed[first:last]
            judged = parts.take(rows, at_s[rows], column[rows])
            assert (judged.confirmed == found.confirmed[judged.rows]).all()
    for name in (*LEARNT, "score", "lower", "upper", "unit"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name), equal_nan=True), name
    known = ~np.isnan(whole.score)
    inside = (whole.value >= whole.lower) & (whole.value <= whole.upper)
    assert (whole.score[known & inside] == 0).all() and (whole.score[known & ~inside] >= 0).all()
    assert (whole.score[known] < 1).all()


def test_memory_grows_with_series_and_keeps_what_was_learnt():
    bounds = bounds_of(1)
    values = daily(5)
    feed(bounds, values)
    before = [getattr(bounds, name)[:, 0].copy() for name in LEARNT]
    bounds.fit(50)
    assert all((getattr(bounds, name)[:, 0] == array).all() for name, array in zip(LEARNT, before, strict=True))
    assert np.isnan(bounds.newest_s[1:]).all() and not bounds.days[:, 1:].any()


@pytest.mark.parametrize(("at_s", "hour", "of_week"), [(0.0, 0, 72), (MONDAY_S, 0, 0), (MONDAY_S - SLOT, 23, 167)])
def test_slots_are_parts_of_days_of_the_epoch_and_weeks_begin_on_monday(at_s: float, hour: int, of_week: int):
    bounds = bounds_of(1)
    start_s = at_s // SLOT * SLOT
    for minute in range(SLOT + 1):
        bounds.take(np.array([0]), np.array([start_s + minute]), np.array([7.0]))
    assert np.flatnonzero(bounds.days[:, 0]).tolist() == [hour]
    assert np.flatnonzero(bounds.weeks[:, 0]).tolist() == [of_week]


def test_bounds_can_be_asked_for_any_time_and_are_those_that_points_are_held_against():
    bounds = bounds_of(1)
    feed(bounds, daily(10))
    at_s = bounds.newest_s[0]
    lower, upper = bounds.bounds_at(0, np.array([at_s, at_s - 3 * DAY_S, at_s + 70 * DAY_S]))
    assert lower == pytest.approx([bounds.lower[0]] * 3) and upper == pytest.approx([bounds.upper[0]] * 3)
    noon_low, noon_high = bounds.bounds_at(0, np.array([MONDAY_S + 18.5 * DAY_S / 24]))
    assert noon_high[0] < 20 < upper[0] and noon_low[0] < 12
    assert np.isnan(bounds_of(1).bounds_at(0, np.array([at_s]))[0]).all()
