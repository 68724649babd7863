"""A constant stream reads constant, however its counters lag and its readings jitter; a change is seen at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from controller.multicast.rate_meter import CounterReading, RateMeter

RATE_BPS = 2e6
INTERVAL_S = 2.0
WARM_UP_S = 20.0


def readings(
    seed: int, bytes_at: Callable[[float], float], *, step_s: float, jitter_s: float, whole_seconds: bool
) -> Iterator[CounterReading]:
    """Readings of an entry whose counter is brought up to date in steps, heard of after a time that jitters."""
    draw = random.Random(seed)
    updated_s, byte_count, offset_s = draw.random() * step_s, 0, draw.random()
    for number in range(1, 60):
        at_s = number * INTERVAL_S + draw.random() * jitter_s
        while updated_s + step_s <= at_s:
            updated_s += step_s * draw.uniform(1.0, 1.1)
            byte_count = int(bytes_at(min(updated_s, at_s)))
        age_s = at_s + offset_s
        yield CounterReading(
            at_s + draw.random() * jitter_s, float(int(age_s)) if whole_seconds else age_s, byte_count
        )


@pytest.mark.parametrize("whole_seconds", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_constant_stream_reads_constant(seed: int, whole_seconds: bool) -> None:
    meter, seen = RateMeter(), []
    options = {"step_s": 0.5, "jitter_s": 0.05, "whole_seconds": whole_seconds}
    for reading in readings(seed, lambda at_s: RATE_BPS / 8 * at_s, **options):
        meter.take(reading)
        if reading.now_s > WARM_UP_S:
            seen.append(meter.rate_bps)
    assert min(seen) > 0.95 * RATE_BPS
    assert max(seen) < 1.05 * RATE_BPS


@pytest.mark.parametrize("after_bps", [0.0, 5e5, 8e6])
def test_another_rate_is_seen_within_two_readings(after_bps: float) -> None:
    meter, changed_s = RateMeter(), 30.0

    def bytes_at(at_s: float) -> float:
        return (RATE_BPS * min(at_s, changed_s) + after_bps * max(0.0, at_s - changed_s)) / 8

    for reading in readings(1, bytes_at, step_s=0.5, jitter_s=0.05, whole_seconds=False):
        meter.take(reading)
        if reading.now_s > changed_s + 2 * INTERVAL_S + 0.5:
            break
    assert meter.rate_bps == pytest.approx(after_bps, rel=0.3, abs=1e3)


def test_an_entry_made_anew_begins_anew() -> None:
    meter = RateMeter()
    meter.take(CounterReading(10.0, 10.5, 1_000_000))
    meter.take(CounterReading(12.0, 12.5, 1_500_000))
    assert meter.rate_bps == pytest.approx(2e6)
    meter.take(CounterReading(14.0, 0.5, 1_600_000))
    assert meter.rate_bps is None
    meter.take(CounterReading(16.0, 2.5, 1_850_000))
    assert meter.rate_bps == pytest.approx(1e6)


def test_one_reading_or_two_of_one_instant_are_no_rate() -> None:
    meter = RateMeter()
    assert meter.byte_count is None
    meter.take(CounterReading(10.0, 10.5, 7))
    meter.take(CounterReading(10.0, 10.5, 9))
    assert (meter.rate_bps, meter.byte_count) == (None, 9)
