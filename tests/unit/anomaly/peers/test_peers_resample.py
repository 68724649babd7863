from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.anomaly.peers.resample import Grid, grid_over, is_counter, moving_average, rates, resample, resolution
from controller.anomaly.series import OrderedSeries, RawSeries, SeriesName, ordered


def series(at_s: list[float], values: list[float]) -> OrderedSeries:
    return ordered(RawSeries(SeriesName("a", "g", "m"), np.array(at_s, float), np.array(values, float)))


@given(st.lists(st.tuples(st.sampled_from([1.0, 1.0, 1.0, 2.0]), st.floats(0, 1e6)), min_size=20, max_size=80))
def test_no_work_is_lost(samples: list[tuple[float, float]]):
    at_s = np.cumsum([step for step, _ in samples]) + 1000
    one = series(at_s.tolist(), [value for _, value in samples])
    steps = np.diff(one.at_s, prepend=one.at_s[0] - np.median(np.diff(one.at_s)))
    first_s = float(one.at_s[0] - steps[0])
    grid = Grid(first_s, 4.0, int(np.ceil((one.at_s[-1] - first_s) / 4)))
    found = resample(one, grid)
    of_cell = np.ceil((one.at_s - first_s) / 4).astype(int) - 1
    time_s = np.bincount(of_cell, steps)
    work = np.bincount(of_cell, one.values * steps)
    assert time_s.sum() == pytest.approx(one.at_s[-1] - first_s)
    assert (found * time_s)[:-1].tolist() == pytest.approx(work[:-1].tolist(), rel=1e-9, abs=1e-6)


def test_a_cell_does_not_hold_what_was_seen_after_it():
    found = resample(series([4, 9, 14, 19], [0, 0, 30, 30]), Grid(0, 5, 4))
    assert found.tolist() == [0, 0, 30, 30]


def test_a_sample_between_two_of_its_cell_counts_for_its_own_time_alone():
    found = resample(series([4, 6, 10, 14], [3, 30, 6, 6]), Grid(0, 5, 3))
    assert found.tolist() == pytest.approx([3, (30 * 2 + 6 * 4) / 6, 6])


def test_a_sample_at_the_end_of_a_cell_is_of_it_however_times_are_rounded():
    start_s = 1_700_000_000.0
    at_s = start_s + 15 * np.arange(1, 5)
    early, late = (series((at_s + off_s).tolist(), [1, 2, 3, 4]) for off_s in (-3e-7, 3e-7))
    grid = Grid(start_s, 15, 4)
    assert resample(early, grid).tolist() == resample(late, grid).tolist() == pytest.approx([1, 2, 3, 4])


def test_a_burst_between_the_samples_of_the_grid_is_kept():
    values = [0.0] * 60
    values[20] = 150.0
    found = resample(series(list(range(1, 61)), values), Grid(0, 15, 4))
    assert found.tolist() == pytest.approx([0, 10, 0, 0])


def test_what_happened_in_a_gap_is_not_known():
    at_s = [*range(1, 31), *range(91, 121)]
    found = resample(series(at_s, [5.0] * 60), Grid(0, 15, 8))
    assert np.isnan(found).tolist() == [False, False, True, True, True, True, False, False]
    assert found[0] == found[-1] == 5


def test_coarser_samples_than_the_grid_stand_for_all_their_time():
    assert resample(series([60, 120], [2, 4]), Grid(0, 15, 8)).tolist() == [2] * 4 + [4] * 4


def test_a_grid_lies_on_whole_multiples():
    assert grid_over(31, 61, 15) == (30, 15, 3)
    assert grid_over(30, 30, 15) == (30, 15, 1)


def test_nothing_known_gives_nothing():
    assert np.isnan(resample(series([], []), Grid(0, 15, 3))).all()


@given(
    st.lists(st.one_of(st.just(np.nan), st.floats(-1e3, 1e3)), min_size=1, max_size=40),
    st.integers(1, 20),
)
def test_moving_average_is_the_mean_of_what_is_known(values: list[float], width: int):
    found = moving_average(np.array([values]), width)[0]
    for place in range(len(values)):
        known = [value for value in values[max(0, place - width + 1) : place + 1] if not np.isnan(value)]
        if len(known) * 2 >= width and known:
            assert found[place] == pytest.approx(np.mean(known), abs=1e-9)
        else:
            assert np.isnan(found[place])


def test_counters_are_told_by_never_falling():
    growing = series([1, 2, 3, 4], [5, 6, 6, 8])
    assert is_counter("packets", [growing, series([1, 2, 3], [0, 0, 1])])
    assert not is_counter("packets", [growing, series([1, 2, 3], [5, 4, 6])])
    assert not is_counter("packets", [series([1, 2, 3], [5, 5, 5])])
    assert rates(growing).values.tolist() == [1, 0, 2]


@pytest.mark.parametrize("metric", ["0/0/3output-drops", "Input Errors", "discard-packets", "checksum-error-packets"])
def test_failures_are_counted_from_the_first_on(metric: str):
    idle, once = series([1, 2, 3, 4], [0, 0, 0, 0]), series([1, 2, 3, 4], [0, 0, 372, 372])
    assert is_counter(metric, [idle, once])
    assert is_counter(metric, [idle])
    assert not is_counter(metric, [idle, series([1, 2, 3], [0, 3, 0])])
    assert not is_counter(metric, [idle, series([1, 2, 3], [0, 0.5, 0.5])])
    assert not is_counter("sessions", [idle, once])


@pytest.mark.parametrize("metric", ["rxdrop/s", "error-rate", "drop_pct", "drops_per_s", "loss%", "error ratio"])
def test_rates_of_failures_are_no_counts(metric: str):
    assert not is_counter(metric, [series([1, 2, 3, 4], [0, 0, 5, 5])])


@pytest.mark.parametrize("unit", [1, 1e-3, 1e9, 0.1, 1 / 3])
def test_values_are_rounded_to_half_of_the_least_step_that_any_two_show(unit: float):
    group = [series([1, 2, 3], np.array([0.0, 50, 50]) * unit), series([1, 2], np.array([1e8, 47.0]) * unit)]
    assert resolution(group) == pytest.approx(1.5 * unit)
    assert resolution(group) > 1.5 * unit


def test_what_never_changes_shows_no_step():
    assert resolution([]) == 0
    assert resolution([series([1, 2], [7, 7]), series([], [])]) == 0
    assert resolution([series([1, 2], [0.3, 0.1 + 0.2])]) == 0
