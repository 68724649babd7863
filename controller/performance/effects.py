"""What the performance core asks its shell to do."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.effects import Notice
from controller.performance.batch import SampleRates, Samples
from controller.performance.counters import Counter
from controller.performance.events import PortEvent
from controller.performance.rollups import RollUps


class SamplesRated(NamedTuple):
    """Samples and their rates, entry by entry; `write` bool[n] marks the significant ones, which are to be kept.

    Ignored samples (`Discontinuity.ignored`) are among them and never marked.
    """

    samples: Samples
    rates: SampleRates
    write: NDArray[np.bool_]


class RollUpsClosed(NamedTuple):
    """Roll-ups whose time is over, to be kept."""

    rollups: RollUps


class EventsRaised(NamedTuple):
    """Conditions that began or ended, in order."""

    events: tuple[PortEvent, ...]


class ResetCounters(NamedTuple):
    """A counter that sticks at its maximum is near it: reset the port's counters where the device can."""

    dpid: int
    port_no: int
    counter: Counter
    value: int


PerformanceEffect: TypeAlias = SamplesRated | RollUpsClosed | EventsRaised | ResetCounters | Notice
