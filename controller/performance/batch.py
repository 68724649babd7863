"""Samples of port counters and the rates made of them, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from controller.performance.counters import COUNTER_COUNT


class Discontinuity(IntEnum):
    """What came between two samples of a port; the numbers stand in files and do not change.

    Not all are gaps: a wrap is put right, a missed poll only makes the interval longer, a jump and an unsupported
    counter concern single counters. An `ignored` sample is put aside and the next one compared with that before it,
    so that nothing is lost. In a gap, `SampleRates.interval_s` is NaN: what was sent between the samples is unknown.
    """

    NONE = 0
    FIRST = 1
    """There is no sample before this one."""
    WRAP_32 = 2
    WRAP_64 = 3
    RESET = 4
    """The counters began anew."""
    TIME_BACKWARDS = 5
    """The clock was set back; known where the switch tells the duration itself."""
    RECREATED = 6
    """The port went and came back."""
    MISSED = 7
    """More than one and a half polling intervals passed."""
    UNSUPPORTED = 8
    """A counter that was supported is not any more."""
    DUPLICATE = 9
    """The same sample once more, or another at almost the same time."""
    LATE = 10
    """A sample older than the last one."""
    JUMP = 11
    """A counter rose faster than the port can carry."""
    STUCK = 12
    """A counter stands at its maximum."""
    CLOCK_STEP = 13
    """The clocks of controller and switch disagree about the time between two samples."""
    WRAPS_UNKNOWN = 14
    """A 32-bit counter may have wrapped more than once."""

    @property
    def label(self) -> str:
        """The word for it in files and messages, such as ``wrap-32``."""
        return self.name.lower().replace("_", "-")

    @property
    def ignored(self) -> bool:
        """Whether the sample was put aside."""
        return self in (Discontinuity.DUPLICATE, Discontinuity.LATE)


@dataclass(frozen=True, slots=True)
class Samples:
    """Port counters as switches sent them; n samples, of any ports.

    Attributes
    ----------
    rows
        int32[n], rows of `PortRows`.
    at_s
        float64[n], when the reply was received.
    duration_s
        float64[n], how long the switch says the port has been counted; NaN where it does not say.
    counters
        uint64[n, 12], columns as in `COUNTERS`; 2**64 - 1 is a counter that the switch has not.
    """

    rows: NDArray[np.int32]
    at_s: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    counters: NDArray[np.uint64]

    def __post_init__(self) -> None:
        """Refuse columns that do not fit together."""
        n = len(self.rows)
        if self.counters.shape != (n, COUNTER_COUNT) or self.at_s.shape != (n,) or self.duration_s.shape != (n,):
            raise ValueError("the columns of the samples differ in length")

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Self:
        """Return some of the samples, by mask, index or slice."""
        return type(self)(self.rows[which], self.at_s[which], self.duration_s[which], self.counters[which])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return several batches as one, in order; at least one is given."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.at_s for part in parts]),
            np.concatenate([part.duration_s for part in parts]),
            np.concatenate([part.counters for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class SampleRates:
    """What samples say when compared with the samples before them; entry i is about sample i.

    Attributes
    ----------
    rows, at_s
        As in the samples.
    interval_s
        float64[n], the time that the rates are about: the switch's own where it tells it; NaN in a gap.
    per_s
        float64[n, 12], counts per second over `interval_s`; NaN where unknown, never a zero or a spike in its place.
        Bytes are octets per second.
    utilisation_pct
        float64[n, 2], received and transmitted octets x 8 / capacity, in percent; NaN where either is unknown.
    discontinuity
        uint8[n], a `Discontinuity`: the gravest of what happened.
    unsupported
        uint16[n], mask of the counters that the switch has not (`counters_of`).
    wrapped
        uint16[n], mask of the counters whose wrap was put right.
    """

    rows: NDArray[np.int32]
    at_s: NDArray[np.float64]
    interval_s: NDArray[np.float64]
    per_s: NDArray[np.float64]
    utilisation_pct: NDArray[np.float64]
    discontinuity: NDArray[np.uint8]
    unsupported: NDArray[np.uint16]
    wrapped: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def gap(self) -> NDArray[np.bool_]:
        """bool[n], whether what was counted since the sample before is not known; False for ignored samples."""
        ignored = (self.discontinuity == Discontinuity.DUPLICATE) | (self.discontinuity == Discontinuity.LATE)
        gap: NDArray[np.bool_] = np.isnan(self.interval_s) & ~ignored
        return gap

    @property
    def busier_pct(self) -> NDArray[np.float64]:
        """float64[n], the utilisation of the busier direction; NaN where neither is known."""
        return np.fmax(self.utilisation_pct[:, 0], self.utilisation_pct[:, 1])

    @property
    def transmit_busier(self) -> NDArray[np.bool_]:
        """bool[n], whether the transmitting direction is the busier one."""
        received, transmitted = self.utilisation_pct[:, 0], self.utilisation_pct[:, 1]
        busier: NDArray[np.bool_] = (transmitted > received) | np.isnan(received)
        return busier

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Self:
        """Return the entries chosen by mask, index or slice."""
        return type(self)(
            self.rows[which],
            self.at_s[which],
            self.interval_s[which],
            self.per_s[which],
            self.utilisation_pct[which],
            self.discontinuity[which],
            self.unsupported[which],
            self.wrapped[which],
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return several as one, in order; at least one is given."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))
