"""The latest events of an app, as documents."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from controller.snapshot.log import Document
from controller.snapshot.ring import Ring

EVENTS_BOUND = 1000
"""Events kept; beyond it the oldest goes."""


class Severity(StrEnum):
    """How much an event matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class State(StrEnum):
    """Whether an event begins something, ends it, or is over as it is told."""

    RAISED = "raised"
    CLEARED = "cleared"
    HAPPENED = "happened"


class LoggedEvent(NamedTuple):
    """One event; `at_s` is on the clock of who added it."""

    at_s: float
    kind: str
    text: str
    severity: Severity
    state: State
    dpid: int | None
    port_no: int | None
    group: str | None


class EventRing:
    """The newest events of the app `source`, numbered from 1.

    `offset_s` is what its clock lacks of seconds since 1970-01-01 UTC. `spoken` puts names in the place of ids.
    """

    def __init__(self, source: str, spoken: Callable[[str], str] = str) -> None:
        self.offset_s = 0.0
        self._spoken = spoken
        self._source = source
        self._ring = Ring(EVENTS_BOUND, self._document, lambda number: f"{source}-{number}")
        self.section = self._ring.section

    def add(
        self,
        at_s: float,
        kind: str,
        text: str,
        *,
        severity: Severity = Severity.INFO,
        state: State = State.HAPPENED,
        dpid: int | None = None,
        port_no: int | None = None,
        group: str | None = None,
    ) -> None:
        """Add an event."""
        self._ring.add(LoggedEvent(at_s, kind, self._spoken(text), severity, state, dpid, port_no, group))

    def _document(self, event: LoggedEvent) -> Document:
        return {
            "time_s": event.at_s + self.offset_s,
            "source": self._source,
            "kind": event.kind,
            "severity": event.severity.value,
            "state": event.state.value,
            "text": event.text,
            "dpid": event.dpid,
            "port_no": event.port_no,
            "group": event.group,
        }
