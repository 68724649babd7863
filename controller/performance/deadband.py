"""Which samples are significant enough to be written."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import Discontinuity, SampleRates
from controller.performance.counters import COUNTER_COUNT
from controller.performance.ports import longer


class Deadband(NamedTuple):
    """A rate is significant where it differs from the one last written by more than both parts together.

    Attributes
    ----------
    absolute_per_s
        12 differences, 1/s.
    relative
        12 fractions of the rate last written.
    silence_s
        A port is written after this time whatever its rates are.
    """

    absolute_per_s: tuple[float, ...] = (0.0,) * COUNTER_COUNT
    relative: tuple[float, ...] = (0.0,) * COUNTER_COUNT
    silence_s: float = 300.0


def deadband(
    packets_per_s: float, bytes_per_s: float, errors_per_s: float, relative: float, silence_s: float
) -> Deadband:
    """Return a deadband with the same widths for counters of the same sort; errors have no relative part."""
    absolute = (packets_per_s,) * 2 + (bytes_per_s,) * 2 + (errors_per_s,) * 8
    return Deadband(absolute, (relative,) * 4 + (0.0,) * 8, silence_s)


DEFAULT_DEADBAND = deadband(1.0, 128.0, 0.0, 0.05, 300.0)
"""Octets and packets: 5 % and a little; every change of what goes wrong."""


class WriteFilter:
    """The rates last written, by row."""

    def __init__(self, settings: Deadband) -> None:
        self._written = np.empty((0, COUNTER_COUNT), np.float32)
        self._written_s = np.empty(0)
        self.configure(settings)

    def configure(self, settings: Deadband) -> None:
        """Go on with other widths; ValueError where there are not 12 of each, or one is negative."""
        for widths in (settings.absolute_per_s, settings.relative):
            if len(widths) != COUNTER_COUNT or not all(width >= 0 for width in widths):
                raise ValueError("a deadband has a width of at least 0 for each counter")
        self._absolute = np.array(settings.absolute_per_s, np.float32)
        self._relative = np.array(settings.relative, np.float32)
        self._silence_s = settings.silence_s

    def fit(self, capacity: int) -> None:
        """Make room for rows below `capacity`."""
        former = len(self._written_s)
        if former < capacity:
            self._written, self._written_s = longer(self._written, capacity), longer(self._written_s, capacity)
            self._written_s[former:] = -np.inf

    def forget(self, row: int) -> None:
        """Let the next sample of a row be written: it belongs to another port now."""
        self._written_s[row] = -np.inf

    def update(self, rates: SampleRates) -> NDArray[np.bool_]:
        """Return which of rates of different rows are significant, and remember these as written.

        A discontinuity is significant, and so is a counter that becomes known or unknown; what was put aside is not.
        """
        rows, at_s = rates.rows, rates.at_s
        per_s = rates.per_s.astype(np.float32)
        written = self._written[rows]
        width = self._absolute + self._relative * np.abs(written)
        # NaN on both sides is no change, NaN on one side is one.
        same = (np.abs(per_s - written) <= width) | (np.isnan(per_s) & np.isnan(written))
        code = rates.discontinuity
        silent = ~(np.abs(at_s - self._written_s[rows]) < self._silence_s)
        write: NDArray[np.bool_] = ~same.all(axis=1) | (code != Discontinuity.NONE) | silent
        write &= (code != Discontinuity.DUPLICATE) & (code != Discontinuity.LATE)
        if write.all():
            self._written[rows], self._written_s[rows] = per_s, at_s
        elif write.any():
            self._written[rows[write]], self._written_s[rows[write]] = per_s[write], at_s[write]
        return write
