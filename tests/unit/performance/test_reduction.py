"""Deadband, histograms, history and roll-ups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.performance.batch import Discontinuity, SampleRates
from controller.performance.counters import Counter
from controller.performance.deadband import Deadband, WriteFilter, deadband
from controller.performance.histograms import Histograms
from controller.performance.history import SLOTS, RateHistory
from controller.performance.rollups import RollUpTable
from port_samples import made_rates

RX = Counter.RX_BYTES.column


def with_code(rates: SampleRates, code: Discontinuity) -> SampleRates:
    rates.discontinuity[:] = code
    return rates


def write_filter(settings: Deadband) -> WriteFilter:
    made = WriteFilter(settings)
    made.fit(4)
    return made


def written(filter_: WriteFilter, *rx_bytes: float) -> list[bool]:
    return [
        bool(filter_.update(made_rates(at_s=1000.0 + 10 * k, rx_bytes=rate))[0]) for k, rate in enumerate(rx_bytes)
    ]


def test_only_changes_beyond_both_parts_of_the_deadband_are_written():
    band = deadband(0, 100, 0, 0.1, 1e9)
    assert written(write_filter(band), 1000, 1190, 1210, 1030, 980) == [True, False, True, False, True]


def test_small_changes_that_add_up_are_written():
    band = deadband(0, 100, 0, 0, 1e9)
    assert written(write_filter(band), 0, 60, 120, 180, 240) == [True, False, True, False, True]


def test_what_is_not_written_of_one_port_is_still_compared_with_what_was():
    filter_ = write_filter(deadband(0, 100, 0, 0, 1e9))
    marks = []
    for k in range(4):
        both = made_rates(at_s=1000.0 + 10 * k, rows=(0, 1))
        both.per_s[:, RX] = 1000 * k, 60 * k
        marks.append(filter_.update(both).tolist())
    assert marks == [[True, True], [True, False], [True, True], [True, False]]


def test_errors_have_no_relative_part_and_equal_rates_are_not_written_again():
    band = deadband(0, 0, 0, 0.5, 1e9)
    filter_ = write_filter(band)
    marks = [bool(filter_.update(made_rates(rx_errors=rate))[0]) for rate in (0.1, 0.1, 0.11, 0.11)]
    assert marks == [True, False, True, False]


def test_discontinuities_are_written_and_what_was_put_aside_is_not():
    filter_ = write_filter(deadband(1e9, 1e9, 1e9, 0, 1e9))
    filter_.update(made_rates())
    for code in Discontinuity:
        marked = bool(filter_.update(with_code(made_rates(), code))[0])
        assert marked == (code is not Discontinuity.NONE and not code.ignored), code


def test_a_counter_that_becomes_unknown_or_known_is_written():
    assert written(write_filter(deadband(0, 100, 0, 0, 1e9)), 5, math.nan, math.nan, 5) == [True, True, False, True]


def test_a_port_is_written_after_some_time_whatever_it_does():
    assert written(write_filter(deadband(0, 100, 0, 0, 30)), *[5] * 7) == [True, False, False] * 2 + [True]


def test_a_deadband_needs_a_width_for_every_counter():
    for band in (Deadband((1.0,) * 11), Deadband((-1.0,) * 12)):
        with pytest.raises(ValueError, match="deadband"):
            WriteFilter(band)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.just(0.0), st.floats(1e-3, 1e12), st.just(math.nan))), max_size=60
    )
)
def test_counts_are_exact_and_percentiles_within_a_sixteenth(found: list[tuple[int, float]]):
    histograms = Histograms()
    for node, rate in found:
        histograms.update(made_rates(rx_bytes=rate), np.array([node], np.int32), 3)
    for node in (0, 1, 2, None):
        values = sorted(r for n, r in found if node in (n, None) and not math.isnan(r))
        report = histograms.report(Counter.RX_BYTES, node)
        assert report.samples == len(values) and report.zeros == values.count(0.0)
        for lower, upper, count in report.buckets:
            assert sum(lower <= np.float32(value) < upper for value in values) == count
        for percent, told in report.percentiles.items():
            exact = values[max(1, math.ceil(len(values) * percent / 100)) - 1]
            assert told == pytest.approx(exact, rel=1 / 15)


def test_a_switch_that_went_still_counts_in_the_sum():
    histograms = Histograms()
    histograms.update(made_rates(rows=(0, 1), rx_bytes=8.0), np.array([0, 1], np.int32), 2)
    histograms.forget(0)
    assert histograms.report(Counter.RX_BYTES, 0).samples == 0
    assert histograms.report(Counter.RX_BYTES).samples == 2
    histograms.update(made_rates(rx_bytes=1e6), np.array([0], np.int32), 2)
    assert histograms.report(Counter.RX_BYTES, 0).buckets[0][0] == pytest.approx(1e6, rel=0.13)


def history(*at_s: float, per_s: tuple[float, ...] | None = None) -> RateHistory:
    made = RateHistory()
    made.fit(4)
    for k, at in enumerate(at_s):
        made.update(made_rates(at_s=at, rx_bytes=per_s[k] if per_s else 1000.0 + k, rx_crc_err=2, tx_dropped=1))
    return made


def test_an_hour_is_kept_within_a_two_thousandth():
    rates = tuple(10.0**k * 1.2345 for k in range(-2, 13))
    found = history(*(1e9 + 10 * k for k in range(15)), per_s=rates).of(0)
    assert found.start_s.tolist() == [1e9 + 10 * k for k in range(15)]
    np.testing.assert_allclose(found.rx_bytes_per_s + 1, np.array(rates) + 1, rtol=5e-4)
    np.testing.assert_allclose(found.errors_per_s, 3, rtol=1e-3)


def test_a_longer_interval_fills_the_steps_it_covers_and_a_gap_stays_unknown():
    made = history(1000.0, 1030.0)
    assert made.of(0).rx_bytes_per_s == pytest.approx([1000, 1001, 1001, 1001], rel=1e-3)
    made.update(made_rates(at_s=1050.0, interval_s=math.nan, rx_bytes=math.nan, tx_bytes=math.nan))
    assert np.isnan(made.of(0).rx_bytes_per_s).tolist() == [False] * 4 + [True] * 2


def test_what_is_older_than_an_hour_is_gone():
    made = history(*(1000.0 + 10 * k for k in range(SLOTS + 50)))
    found = made.of(0)
    assert len(found.start_s) == SLOTS and found.start_s[0] == 1500.0
    assert found.rx_bytes_per_s[0] == pytest.approx(1050, rel=1e-3)
    assert len(made.of(1).start_s) == 0


def test_a_roll_up_has_extremes_mean_by_time_and_sum():
    table = RollUpTable(60)
    assert table.update(made_rates(at_s=120.0, interval_s=10, rx_bytes=100), 4) is None
    assert table.update(made_rates(at_s=150.0, interval_s=30, rx_bytes=500), 4) is None
    closed = table.update(made_rates(at_s=181.0, rx_bytes=1), 4)
    assert closed is not None and (closed.step_s, closed.rows.tolist(), closed.start_s.tolist()) == (60, [0], [120.0])
    assert closed.minimum[0, RX] == 100 and closed.maximum[0, RX] == 500
    assert closed.total[0, RX] == 16000 and closed.mean[0, RX] == 400
    assert closed.count.tolist() == [2] and closed.covered_s.tolist() == [40]


def test_what_is_unknown_adds_neither_sum_nor_time():
    table = RollUpTable(60)
    table.update(made_rates(at_s=0.0, rx_bytes=100), 4)
    table.update(made_rates(at_s=10.0, rx_bytes=math.nan, tx_bytes=7), 4)
    table.update(made_rates(at_s=20.0, interval_s=math.nan), 4)
    closed = table.flush(60.0)
    assert closed is not None and closed.mean[0, RX] == 100 and closed.mean[0, RX + 1] == 3.5
    assert closed.count.tolist() == [2]
    assert table.flush(1e6) is None


def test_a_sample_over_more_than_the_period_is_no_part_of_it():
    table = RollUpTable(1)
    assert table.update(made_rates(at_s=5.0, interval_s=10), 4) is None
    assert table.flush(1e6) is None
    table.update(made_rates(at_s=5.0, interval_s=1), 4)
    assert table.update(made_rates(at_s=6.0, interval_s=1), 4) is not None


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30), st.integers(0, 1000)), max_size=60))
def test_roll_ups_of_every_length_have_the_same_sum(found: list[tuple[int, int, int]]):
    tables, now = [RollUpTable(60), RollUpTable(3600)], 0.0
    totals = [0.0, 0.0]
    for row, interval_s, rate in found:
        now += interval_s
        for place, table in enumerate(tables):
            closed = table.update(made_rates(at_s=now, interval_s=interval_s, rows=(row,), rx_bytes=rate), 4)
            totals[place] += 0 if closed is None else closed.total[:, RX].sum()
    for place, table in enumerate(tables):
        closed = table.flush(now + 7200)
        totals[place] += 0 if closed is None else closed.total[:, RX].sum()
    assert totals == [sum(interval_s * rate for _, interval_s, rate in found)] * 2
