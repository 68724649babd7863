"""Running average and EMA against their definitions, in any order of batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.busy import KEYS, BusyTable

DAY_MS = 86_400_000
HOUR_MS = 3_600_000


def feed(busy: BusyTable, samples: list[tuple[int, int, float]]) -> None:
    rows, at_ms, percent = (list(column) for column in zip(*samples, strict=True))
    busy.observe_percent(np.array(rows, np.intp), np.array(at_ms), np.array(percent, np.float64))


def one(period_s: float = 86400, weight: float = 0.6) -> BusyTable:
    busy = BusyTable()
    busy.add(period_s, weight)
    return busy


def value(busy: BusyTable, now_ms: int, stale_ms: float = math.inf) -> float:
    return float(busy.values(np.array([0]), now_ms, stale_ms, np.array([np.inf]))[0])


def test_the_running_average_is_the_mean():
    busy = one()
    feed(busy, [(0, hour * HOUR_MS, percent) for hour, percent in enumerate([10.0, 20.0, 60.0])])
    assert busy.average_pct[0] == pytest.approx(30)
    assert busy.count[0] == 3


def test_there_is_no_metric_before_the_first_period_ended():
    busy = one()
    feed(busy, [(0, 0, 40.0), (0, DAY_MS, 40.0)])
    assert math.isnan(value(busy, DAY_MS))
    feed(busy, [(0, DAY_MS + 1, 40.0)])
    assert value(busy, DAY_MS + 1) == pytest.approx(40)


def test_the_first_ema_is_the_first_average():
    busy = one()
    feed(busy, [(0, 0, 20.0), (0, DAY_MS + 1, 40.0)])
    assert busy.history_pct[0] == pytest.approx(30)


def test_then_the_latest_weighs_k():
    busy = one()
    feed(busy, [(0, 0, 20.0), (0, DAY_MS + 1, 20.0), (0, DAY_MS + HOUR_MS, 80.0)])
    assert value(busy, DAY_MS + HOUR_MS) == pytest.approx(0.6 * 80 + 0.4 * 20)
    feed(busy, [(0, 2 * DAY_MS + 1, 80.0)])
    assert busy.history_pct[0] == pytest.approx(0.6 * 80 + 0.4 * 20)


@pytest.mark.parametrize(("weight", "expected"), [(1.0, 80), (0.0, 20)])
def test_the_extremes_of_the_weight(weight: float, expected: float):
    busy = one(weight=weight)
    feed(busy, [(0, 0, 20.0), (0, DAY_MS + 1, 20.0), (0, DAY_MS + HOUR_MS, 80.0)])
    assert value(busy, DAY_MS + HOUR_MS) == pytest.approx(expected)


def test_a_long_gap_ends_one_period_after_another():
    busy = one()
    feed(busy, [(0, 0, 20.0), (0, DAY_MS + 1, 20.0), (0, DAY_MS + HOUR_MS, 80.0), (0, 4 * DAY_MS + 1, 80.0)])
    expected = 20.0
    for _ in range(3):
        expected = 0.6 * 80 + 0.4 * expected
    assert busy.history_pct[0] == pytest.approx(expected)
    assert busy.start_ms[0] == 4 * DAY_MS


def test_a_metric_is_stale_without_samples():
    busy = one()
    feed(busy, [(0, 0, 20.0), (0, DAY_MS + 1, 20.0)])
    last = DAY_MS + 1
    assert value(busy, last + 48 * HOUR_MS, 48 * HOUR_MS) == pytest.approx(20)
    assert math.isnan(value(busy, last + 48 * HOUR_MS + 1, 48 * HOUR_MS))


def test_a_clock_that_jumped_ahead_and_back_does_not_stop_the_averages():
    busy = one()
    feed(
        busy,
        [(0, 0, 20.0), (0, 1000 * DAY_MS, 20.0), (0, 10, 20.0), (0, DAY_MS + 11, 20.0), (0, 2 * DAY_MS + 12, 50.0)],
    )
    assert busy.start_ms[0] <= 2 * DAY_MS + 12
    assert value(busy, 2 * DAY_MS + 12) > 20


def naive(samples: list[tuple[int, float]], period_ms: int, k: float) -> tuple[float, float | None, int]:
    average, history, count, start = math.nan, None, 0, samples[0][0]
    for at, percent in samples:
        average = percent if count == 0 else average * count / (count + 1) + percent / (count + 1)
        count += 1
        while at - start > period_ms:
            history = average if history is None else k * average + (1 - k) * history
            count, start = 0, start + period_ms
    return average, history, count


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 90_000), st.floats(0, 100)), min_size=1, max_size=40),
    st.lists(st.integers(1, 10), max_size=10),
)
def test_batches_of_any_size_give_what_one_sample_after_another_does(
    steps: list[tuple[int, int, float]], cuts: list[int]
):
    busy = BusyTable()
    for _ in range(3):
        busy.add(60, 0.6)
    now = 0
    samples = []
    for row, passed, percent in steps:
        now += passed
        samples.append((row, now, percent))
    rest = list(samples)
    for cut in cuts:
        if rest[:cut]:
            feed(busy, rest[:cut])
        rest = rest[cut:]
    if rest:
        feed(busy, rest)
    for row in range(3):
        own = [(at, percent) for of, at, percent in samples if of == row]
        if own:
            average, history, count = naive(own, 60_000, 0.6)
            assert busy.average_pct[row] == pytest.approx(average)
            assert busy.count[row] == count
            assert (history is None and math.isnan(busy.history_pct[row])) or busy.history_pct[row] == pytest.approx(
                history
            )


def test_the_nine_keys_come_back():
    busy, other = one(), one()
    assert list(busy.state(0)) == list(KEYS)
    assert set(busy.state(0).values()) == {None, 0}
    busy.observe_kbytes(
        np.array([0, 0]), np.array([5, 70_000]), np.array([7, 900]), np.array([8.0, 8.0]), np.array([1, 2])
    )
    other.restore(0, busy.state(0))
    assert other.state(0) == busy.state(0)
    assert other.state(0)["kbytesValue"] == 900
    assert other.state(0)["iopsValue"] == 2


def test_the_misprinted_key_is_read_too():
    busy = one()
    values = dict(busy.state(0))
    values["avgPercnetBusy"] = 12.5
    del values["avgPercentBusy"]
    busy.restore(0, values)
    assert busy.average_pct[0] == 12.5


@pytest.mark.parametrize(
    ("key", "bad"), [("avgCount", -1), ("avgPercentBusy", 101), ("kbytesValue", 1.5), ("lastSampleTime", "x")]
)
def test_a_damaged_value_is_named(key: str, bad: object):
    busy = one()
    with pytest.raises(ValueError, match=key):
        busy.restore(0, {**busy.state(0), key: bad})
    with pytest.raises(ValueError, match=f"{key}: missing"):
        busy.restore(0, {name: each for name, each in busy.state(0).items() if name != key})
    with pytest.raises(ValueError, match="nonsense"):
        busy.restore(0, {**busy.state(0), "nonsense": 1})
