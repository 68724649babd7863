"""The rate behind a flow entry's counter, of readings that lag behind the packets by an unknown part of a second."""

from __future__ import annotations

from typing import NamedTuple

WINDOW_S = 16.0
"""Time that a rate is averaged over while it stays what it is."""

LAG_S = 0.75
"""How far counters of flow entries may be behind: Open vSwitch brings them up to date in steps of 0.5 s or a little
more, so that what was counted between two readings belongs to a time that is longer or shorter by so much."""

READINGS = 16
"""Readings that are kept at most."""


class CounterReading(NamedTuple):
    """A counter as of one instant: on the reader's clock, and the entry's age on the switch's."""

    now_s: float
    age_s: float
    byte_count: int


class RateMeter:
    """Turns readings of one counter into a rate.

    The rate is the slope of the line through the readings of the last `WINDOW_S` (least squares), on the switch's own
    clock where it tells parts of a second. A reading that is off that line by more than a lag explains begins a new
    line: the rate is another.
    """

    __slots__ = ("_readings", "rate_bps")

    def __init__(self) -> None:
        self.rate_bps: float | None = None
        self._readings: list[CounterReading] = []

    @property
    def byte_count(self) -> int | None:
        """The counter as last read."""
        return self._readings[-1].byte_count if self._readings else None

    def take(self, reading: CounterReading) -> None:
        """Take in a reading; where it is behind the last one, the entry is another and counting begins anew."""
        readings = self._readings
        if readings:
            last = readings[-1]
            if reading.byte_count < last.byte_count or reading.age_s < last.age_s or reading.now_s <= last.now_s:
                readings.clear()
                self.rate_bps = None
            elif self.rate_bps is not None and self._is_off(last, reading):
                del readings[:-1]
        readings.append(reading)
        while len(readings) > 2 and (reading.now_s - readings[0].now_s > WINDOW_S or len(readings) > READINGS):
            del readings[0]
        slope = _slope(readings)
        if slope is not None:
            self.rate_bps = 8.0 * slope

    def _is_off(self, last: CounterReading, reading: CounterReading) -> bool:
        elapsed_s = reading.now_s - last.now_s
        counted = 8.0 * (reading.byte_count - last.byte_count)
        expected = (self.rate_bps or 0.0) * elapsed_s
        return abs(counted - expected) > LAG_S * max(self.rate_bps or 0.0, counted / elapsed_s)


def _slope(readings: list[CounterReading]) -> float | None:
    """Return bytes per second, None where that cannot be told yet."""
    by_age = any(reading.age_s % 1 for reading in readings)
    times = [reading.age_s if by_age else reading.now_s for reading in readings]
    middle_s = sum(times) / len(times)
    spread = sum((at_s - middle_s) ** 2 for at_s in times)
    if not spread:
        return None
    middle = sum(reading.byte_count for reading in readings) / len(readings)
    moment = sum(
        (at_s - middle_s) * (reading.byte_count - middle) for at_s, reading in zip(times, readings, strict=True)
    )
    return max(0.0, moment / spread)
