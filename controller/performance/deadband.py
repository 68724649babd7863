"""Which samples are significant enough to be written."""

from __future__ import annotations

from typing import NamedTuple

from controller.performance.counters import COUNTER_COUNT


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


DEFAULT_DEADBAND = Deadband((1.0, 1.0, 128.0, 128.0, *(0.0,) * 8), (0.05, 0.05, 0.05, 0.05, *(0.0,) * 8))
"""Octets and packets: 5 % and a little; every change of what goes wrong."""
