"""What an operator is told: a port's rate passed a threshold, or its link changed."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import NamedTuple


class PortSeverity(IntEnum):
    """How grave an event is; higher is graver."""

    INFO = 1
    WARNING = 2
    CRITICAL = 3

    @property
    def label(self) -> str:
        """The word for it in files and messages."""
        return self.name.lower()


class EventState(StrEnum):
    """What an event tells."""

    RAISED = "raised"
    CLEARED = "cleared"


class PortEvent(NamedTuple):
    """A condition of a port that began or ended.

    Attributes
    ----------
    time_s
        When, epoch seconds.
    dpid, port_no
        Where.
    counter
        The name of what is watched: a counter, ``rx_utilisation``, ``tx_utilisation``, ``link_down``,
        ``link_recovery``, ``counter_full`` (a counter that sticks is to be reset), or ``repeated_events`` where
        several of severity info came together.
    severity
        How grave the condition is; a cleared one has that of its raise.
    rate
        The rate judged, 1/s (percent for utilisation and ``counter_full``, a count for ``link_down`` and
        ``repeated_events``); no number where a condition ended because it is judged no more.
    threshold
        The level that it passed, in the same unit.
    state
        Whether it began or ended.
    suppressed
        Events of this port that were kept back since the last one told, because there were too many.
    lasted_s
        How long a condition that ended held; None where it began.
    """

    time_s: float
    dpid: int
    port_no: int
    counter: str
    severity: PortSeverity
    rate: float
    threshold: float
    state: EventState
    suppressed: int = 0
    lasted_s: float | None = None
