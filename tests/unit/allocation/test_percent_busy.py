"""Samples of each family to percent busy, and the times they carry."""

from __future__ import annotations

import math

import numpy as np
import pytest

from controller.allocation.busy import BusyTable, SampleOutcome
from controller.allocation.families import cpu_percent_busy, port_percent_busy
from controller.allocation.sample_time import parse_sample_time, parse_utc_time

MINUTE = 60_000


def observe(table: BusyTable, what: str, *columns: object, **more: object) -> list[SampleOutcome]:
    arrays = [np.array(column) for column in columns]
    rows = np.zeros(len(arrays[0]), np.intp)
    return [SampleOutcome(code) for code in getattr(table, what)(rows, *arrays, **more)]


def table(period_s: float = 86400, weight: float = 0.6, poll_interval_s: float = 0) -> BusyTable:
    made = BusyTable(poll_interval_s)
    made.add(period_s, weight)
    return made


def test_the_speed_is_binary():
    assert port_percent_busy(131_072, 1, 1) == 100
    assert port_percent_busy(131_072 * 4 * 60, 60, 8) == 50


def test_percent_is_clamped_and_unknown_without_speed_or_time():
    assert port_percent_busy(1e12, 1, 8) == 100
    assert math.isnan(float(port_percent_busy(5, 1, 0)))
    assert math.isnan(float(port_percent_busy(5, 0, 8)))


def test_the_cpu_is_busy_when_it_is_not_idle():
    assert cpu_percent_busy(750, 1000) == 25
    assert cpu_percent_busy(1001, 1000) == 0
    assert math.isnan(float(cpu_percent_busy(0, 0)))


def test_kilobytes_become_percent_by_time_and_speed():
    busy = table()
    outcomes = observe(busy, "observe_kbytes", [0, MINUTE], [1000, 1000 + 131_072 * 30], [1.0, 1.0])
    assert outcomes == [SampleOutcome.FIRST, SampleOutcome.MEASURED]
    assert busy.average_pct[0] == 50


def test_fractions_of_a_second_count():
    busy = table()
    observe(busy, "observe_kbytes", [0, 1500], [0, 131_072], [1.0, 1.0])
    assert busy.average_pct[0] == pytest.approx(100 / 1.5)


@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        ((0, 500, 1.0), SampleOutcome.TIME_BACKWARDS),
        ((-MINUTE, 500, 1.0), SampleOutcome.TIME_BACKWARDS),
        ((20_000, 500, 1.0), SampleOutcome.TOO_SOON),
        ((MINUTE, 99, 1.0), SampleOutcome.RESET),
        ((MINUTE, 500, 0.0), SampleOutcome.NO_SPEED),
    ],
)
def test_a_discontinuity_gives_no_value_and_moves_the_baseline(
    second: tuple[int, int, float], outcome: SampleOutcome
):
    at, kbytes, speed = second
    busy = table(poll_interval_s=30)
    base = 10 * MINUTE
    third = (base + at + MINUTE, kbytes + 131_072 * 15, 1.0)
    found = observe(
        busy, "observe_kbytes", [base, base + at, third[0]], [100, kbytes, third[1]], np.array([1.0, speed, third[2]])
    )
    assert found == [SampleOutcome.FIRST, outcome, SampleOutcome.MEASURED]
    assert busy.average_pct[0] == 25
    assert busy.count[0] == 1


def test_vmax_counts_idle_of_all_ticks():
    busy = table()
    found = observe(busy, "observe_ticks", [0, MINUTE], [100, 175], all_ticks=np.array([1000, 1100]))
    assert found == [SampleOutcome.FIRST, SampleOutcome.MEASURED]
    assert busy.average_pct[0] == 25


def test_vnx_counts_idle_ticks_of_100_ms():
    busy = table()
    observe(busy, "observe_ticks", [0, MINUTE], [1000, 1000 + 450])
    assert busy.average_pct[0] == 25


def test_a_cpu_whose_ticks_stand_still_reports_nothing():
    found = observe(table(), "observe_ticks", [0, MINUTE], [100, 100], all_ticks=np.array([1000, 1000]))
    assert found[1] is SampleOutcome.NOT_REPORTED


def test_percent_needs_no_sample_before():
    busy = table()
    assert observe(busy, "observe_percent", [0, MINUTE], [30.0, math.nan]) == [
        SampleOutcome.MEASURED,
        SampleOutcome.NOT_REPORTED,
    ]
    assert busy.average_pct[0] == 30


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20260101000000.000000+000", 1767225600),
        ("20260101010000.000000+060", 1767225600),
        ("20251231190000.500000-300", 1767225600.5),
    ],
)
def test_sample_times_honour_their_offset(text: str, seconds: float):
    assert parse_sample_time(text) == seconds * 1000


@pytest.mark.parametrize("text", ["", "2026", "20261301000000.000000+000", "20260101000000.000000+0", "x" * 25])
def test_a_time_of_another_form_is_refused(text: str):
    with pytest.raises(ValueError, match=r"expected|no such time"):
        parse_sample_time(text)


def test_a_time_before_1970_is_refused():
    with pytest.raises(ValueError, match="before 1970"):
        parse_sample_time("19700101000000.000000+001")


def test_vplex_times_are_utc():
    assert parse_utc_time("2026-01-01 00:00:00") == 1767225600000
    with pytest.raises(ValueError, match="no such time"):
        parse_utc_time("2026-02-30 00:00:00")
