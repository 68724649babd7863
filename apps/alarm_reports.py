"""What an app tells the one that keeps the alarms: each thing that is wrong once, and once that it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller.alarms.events import ConditionOver, ConditionReported
from controller.effects import Notice
from controller.snapshot.events import Severity

TABLE_FULL = "table-full"
STATE_LOST = "state-lost"
"""What a restart must know cannot be written."""
OUTPUT_FAILED = "output-failed"
"""A log, a history, a recording or another output cannot be written."""
TLS_FAULTY = "tls-faulty"
"""Certificates or keys that were replaced cannot be used."""


class AlarmReports:
    """What one app reports, by kind and subject; `tell` takes the reports."""

    def __init__(self, source: str, tell: Callable[[Any], None]) -> None:
        self._source = source
        self._tell = tell
        self._held: dict[tuple[str, str], ConditionReported] = {}

    def holds(
        self,
        kind: str,
        subject: str,
        severity: Severity,
        text: str,
        dpid: int | None = None,
        port_no: int | None = None,
    ) -> None:
        """Report that something is wrong, unless just that was reported; a text that lacks its full stop gets it."""
        text = text if text.endswith(".") else f"{text}."
        report = ConditionReported(self._source, kind, subject, severity, text, dpid, port_no)
        if self._held.get((kind, subject)) != report:
            self._held[kind, subject] = report
            self._tell(report)

    def over(self, kind: str, subject: str) -> None:
        """Report that something is right again, where it was reported."""
        if self._held.pop((kind, subject), None) is not None:
            self._tell(ConditionOver(self._source, kind, subject))

    def look_at(self, kind: str, subject: str, fault: str | None) -> None:
        """Report what is wrong with a file or another output of the app, in a sentence, or that nothing is."""
        if fault:
            self.holds(kind, subject, Severity.WARNING, fault)
        else:
            self.over(kind, subject)

    def noticed(self, notice: Notice) -> None:
        """Report a notice that says that a table of a switch is full."""
        dpid = dict(notice.fields).get("dpid")
        if notice.kind == TABLE_FULL and isinstance(dpid, int):
            text = f"A flow table of switch {dpid} is full: entries of {self._source} wait for room."
            self.holds(TABLE_FULL, str(dpid), Severity.CRITICAL, text, dpid)

    def look_at_tables(self, has_room: Callable[[int], bool]) -> None:
        """Report the end of what was full; `has_room` tells whether a switch holds all that it shall, or is gone."""
        for kind, subject in list(self._held):
            if kind == TABLE_FULL and has_room(int(subject)):
                self.over(kind, subject)
