from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controller.anomaly.normalcy.discord import Discords
from controller.anomaly.normalcy.score import Scorer
from controller.anomaly.normalcy.settings import DAY_S, Settings

START_S = 1.7e9 // DAY_S * DAY_S


def nearest_before(values: np.ndarray, length: int) -> list[float]:
    """The definition: root mean squared distance to the nearest stretch that does not overlap, NaN without one."""
    stretches = {end: values[end - length + 1 : end + 1] for end in range(length - 1, len(values))}
    found = []
    for end in range(len(values)):
        earlier = [each for other, each in stretches.items() if other <= end - length]
        own = stretches.get(end)
        found.append(min((np.sqrt(np.mean((own - each) ** 2)) for each in earlier), default=np.nan))
    return found


def far_beyond(settings: Settings, values: np.ndarray, interval_s: float, taught: int) -> np.ndarray:
    discords = Discords(settings)
    discords.begin(interval_s)
    discords.extend(values[:taught])
    discords.learn()
    return discords.extend(values[taught:])


@pytest.mark.parametrize("length", [3, 4, 12])
def test_distances_are_those_of_the_definition(length: int):
    values = np.random.default_rng(length).normal(size=300)
    settings = Settings(discord_s=length * 60.0, discord_quantile=1.0)
    expected = np.array(nearest_before(values, length))
    limit = np.nanmax(expected[:200])
    found = far_beyond(settings, values, 60.0, 200)
    assert found == pytest.approx(np.sqrt(length) * np.maximum(expected[200:] - limit, 0), abs=1e-9)


def test_what_is_held_is_bounded_and_distances_go_on_from_there():
    rng = np.random.default_rng(5)
    values = rng.normal(size=1000)
    settings = Settings(discord_s=240.0, discord_points=100, discord_quantile=0.0)
    discords = Discords(settings)
    discords.begin(60.0)
    discords.extend(values)
    discords.learn()
    assert discords.extend(values[-40:-30])[4:].max() == 0
    assert discords.extend(values[:10])[4:].min() > 0


def test_a_huge_value_leaves_distances_of_the_others_as_they_are():
    values = np.random.default_rng(6).normal(size=900)
    odd = values.copy()
    odd[400] = 1e30
    settings = Settings(discord_s=300.0)
    fresh = 5 * np.random.default_rng(7).normal(size=100)
    found = []
    for each in (values, odd):
        discords = Discords(settings)
        discords.begin(60.0)
        for start in range(0, 900, 100):
            discords.extend(each[start : start + 100])
            discords.learn()
        found.append(discords.extend(fresh))
    assert found[0].max() > 5
    assert found[1] == pytest.approx(found[0], rel=0.2, abs=0.2)


def five_minutes(days: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    at_s = START_S + 300.0 * np.arange(288 * days)
    return at_s, 20 + rng.normal(size=len(at_s)) + 30.0 * (rng.random(len(at_s)) < 0.06)


@pytest.mark.parametrize("what", ["more spikes", "flat where it varied", "order lost"])
def test_a_change_among_values_that_are_normal_each_is_told_by_the_second_witness_alone(what: str):
    at_s, values = five_minutes(20, 7)
    rng = np.random.default_rng(8)
    start, end = 288 * 15 + 40, 288 * 15 + 140
    if what == "more spikes":
        values[start:end] = 20 + 30.0 * (rng.random(100) < 0.6)
    else:
        values = 50 + 30 * np.sin(2 * np.pi * np.arange(len(at_s)) / 29.3) + rng.normal(size=len(at_s))
        values[start:end] = values[start] if what == "flat where it varied" else rng.permutation(values[start:end])
    one = Scorer(Settings(discord_gain=0.0)).extend(at_s, values)
    both = Scorer().extend(at_s, values)
    assert one[start:end].max() < 0.24
    assert both[start : end + 12].max() > 1.3 * one[start:end].max()
    assert both[288 * 8 : start].max() < 0.24


def test_what_is_as_far_outside_in_a_shape_that_was_seen_before_is_a_rung_lower():
    at_s = START_S + 300.0 * np.arange(288 * 30)
    values = 20 + np.random.default_rng(9).normal(size=len(at_s))
    for day in (10, 12, 14, 16, 18, 20, 22, 24):
        values[288 * day + 6 : 288 * day + 9] = 90.0
    scores = Scorer(Settings(hold_off_s=0.0, habit_gain=0.0, duration_gain=0.0)).extend(at_s, values)
    assert 0 < scores[288 * 24 + 6] < scores[288 * 10 + 6]


def test_by_how_much_a_shape_that_was_seen_before_counts_less_is_a_setting():
    at_s, values = five_minutes(20, 7)
    values[288 * 15 : 288 * 15 + 3] = 60.0
    alike = Settings(discord_gain=0.0, habit_gain=0.0, hold_off_s=0.0, known_shape_divisor=1.0)
    less = replace(alike, known_shape_divisor=3.0)
    whole, part = (Scorer(each).extend(at_s, values) for each in (alike, less))
    assert part.max() <= whole.max()
    assert np.all(part <= whole)
    assert part.sum() < whole.sum()


def test_a_short_series_says_nothing_and_a_constant_one_has_no_discord():
    assert far_beyond(Settings(discord_s=300.0), np.ones(20), 60.0, 12).tolist() == [0.0] * 8
    assert far_beyond(Settings(discord_s=300.0), np.full(400, 7.0), 60.0, 300).tolist() == [0.0] * 100
