"""The latest events of an app, as documents."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import NamedTuple

from controller.snapshot.log import Document, Section

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


class EventLog:
    """The newest events of the app `source`, numbered from 1.

    `offset_s` is what its clock lacks of seconds since 1970-01-01 UTC.
    """

    def __init__(self, source: str) -> None:
        self.offset_s = 0.0
        self.section: Section[int] = Section(self._numbers, self._document, lambda number: f"{source}-{number}")
        self._source = source
        self._events: deque[LoggedEvent] = deque(maxlen=EVENTS_BOUND)
        self._last = 0

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
        self._events.append(LoggedEvent(at_s, kind, text, severity, state, dpid, port_no, group))
        self._last += 1
        self.section.touch(self._last)
        if self._last > EVENTS_BOUND:
            self.section.touch(self._last - EVENTS_BOUND)

    def _numbers(self) -> range:
        return range(self._last - len(self._events) + 1, self._last + 1)

    def _document(self, number: int) -> Document | None:
        index = number - self._last + len(self._events) - 1
        if index < 0:
            return None
        event = self._events[index]
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
