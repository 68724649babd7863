"""The alarms that are over: what was wrong, since when, until when, and who took care of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from controller.alarms.register import Alarm

HISTORY_BOUND = 1000
"""Cleared alarms that are kept; beyond it the oldest goes."""


class ClearedAlarm(NamedTuple):
    """An alarm that was closed at `cleared_s`; `part_of` is the key of the alarm that it became part of."""

    alarm: Alarm
    cleared_s: float
    part_of: str | None = None


class AlarmHistory:
    """Keeps cleared alarms, numbered in the order in which they were cleared.

    Parameters
    ----------
    alarms
        Where they are kept, by number.
    touched
        Told the number of each that comes or goes.
    """

    def __init__(self, alarms: dict[int, ClearedAlarm], touched: Callable[[int], None]) -> None:
        self.alarms = alarms
        self._touched = touched
        self._last = 0

    def add(self, cleared: ClearedAlarm) -> None:
        """Take in the alarm that was cleared last."""
        self._last += 1
        self._put(self._last, cleared)

    def restore(self, alarms: dict[int, ClearedAlarm]) -> None:
        """Take over what earlier runs cleared."""
        for number in sorted(alarms):
            self._last = number
            self._put(number, alarms[number])

    def _put(self, number: int, cleared: ClearedAlarm) -> None:
        if len(self.alarms) >= HISTORY_BOUND:
            oldest = next(iter(self.alarms))
            del self.alarms[oldest]
            self._touched(oldest)
        self.alarms[number] = cleared
        self._touched(number)
