"""The alarms that are over: what was wrong, since when, until when, and who took care of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from controller.alarms.register import Alarm
from controller.snapshot.log import Document, Section

HISTORY_BOUND = 1000
"""Cleared alarms that are kept; beyond it the oldest goes."""


class ClearedAlarm(NamedTuple):
    """An alarm that was closed at `cleared_s`; `part_of` is the key of the alarm that it became part of."""

    alarm: Alarm
    cleared_s: float
    part_of: str | None = None


class AlarmHistory:
    """Cleared alarms, numbered in the order in which they were cleared; `section` has their documents.

    Parameters
    ----------
    render
        Returns the document of one.
    touched
        Told the number of each that comes or goes.
    """

    def __init__(self, render: Callable[[ClearedAlarm], Document], touched: Callable[[int], None]) -> None:
        self.section: Section[int] = Section(lambda: list(self.alarms), self._document)
        self.alarms: dict[int, ClearedAlarm] = {}
        self._render = render
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
            self._noted(oldest)
        self.alarms[number] = cleared
        self._noted(number)

    def _noted(self, number: int) -> None:
        self.section.touch(number)
        self._touched(number)

    def _document(self, number: int) -> Document | None:
        cleared = self.alarms.get(number)
        return None if cleared is None else self._render(cleared)
