"""Events to the JSON log, and significant ones to syslog."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.exporters import rfc5424
from apps.exporters.event_log import EventLogFile
from apps.exporters.settings import EventLogSettings, OutputSettings, SyslogSettings
from apps.exporters.sink import MakeSink, RatedSamples, Sink, SinkState, Sources
from apps.exporters.syslog import SyslogSender
from controller.performance.event_texts import event_text
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps

SYSLOG_SEVERITY = {
    PortSeverity.INFO: rfc5424.SyslogSeverity.INFORMATIONAL,
    PortSeverity.WARNING: rfc5424.SyslogSeverity.WARNING,
    PortSeverity.CRITICAL: rfc5424.SyslogSeverity.CRITICAL,
}
"""Of a condition that begins; its end is a notice."""

EVENT_LOG = "events.jsonl"


def document(event: PortEvent, ports: PortRows) -> dict[str, Any]:
    """Return an event as an object for JSON; a rate that is no number is null."""
    row = ports.row(event.dpid, event.port_no)
    return {
        "time": event.time_s,
        "state": event.state.value,
        "severity": event.severity.label,
        "dpid": event.dpid,
        "port_no": event.port_no,
        "port": "" if row is None else ports.name(row).name,
        "class": str(ports.kind(event.dpid)),
        "counter": event.counter,
        "rate": event.rate if math.isfinite(event.rate) else None,
        "threshold": event.threshold if math.isfinite(event.threshold) else None,
        "suppressed": event.suppressed,
        "lasted_s": event.lasted_s,
    }


class EventLogSink:
    """All events, as JSON lines."""

    def __init__(self, path: Path, settings: EventLogSettings, ports: PortRows, logger: logging.Logger) -> None:
        self._ports = ports
        self._log = EventLogFile(path, settings, logger)

    def write(self, batch: RatedSamples) -> None:
        """Samples are not logged."""

    def event(self, event: PortEvent) -> None:
        """Log one event."""
        self._log.add(document(event, self._ports))

    def roll_up(self, roll_ups: RollUps) -> None:
        """Roll-ups are not logged."""

    def state(self) -> SinkState:
        """Return how the log fares."""
        fault = self._log.fault
        faults = () if fault.text is None else (fault.text,)
        return SinkState(faults, fault.failures, {"written": self._log.written, "dropped": self._log.dropped})

    def close(self) -> None:
        """Write what is left."""
        self._log.close()


class SyslogSink:
    """Events of at least the severity asked for."""

    def __init__(
        self,
        settings: SyslogSettings,
        ports: PortRows,
        logger: logging.Logger,
        spoken: Callable[[str], str] = str,
    ) -> None:
        self._least = settings.least
        self._spoken = spoken
        self._ports = ports
        self._sender = SyslogSender(settings, logger)

    def write(self, batch: RatedSamples) -> None:
        """Samples are not sent."""

    def roll_up(self, roll_ups: RollUps) -> None:
        """Roll-ups are not sent."""

    def event(self, event: PortEvent) -> None:
        """Send one event."""
        if event.severity < self._least:
            return
        raised = event.state is EventState.RAISED
        data = {name: value for name, value in document(event, self._ports).items() if value is not None}
        del data["time"]
        self._sender.send(
            self._spoken(event_text(event)),
            SYSLOG_SEVERITY[event.severity] if raised else rfc5424.SyslogSeverity.NOTICE,
            event.time_s,
            event.counter,
            data,
        )

    def state(self) -> SinkState:
        """Return how syslog fares."""
        self._sender.look()
        fault = self._sender.fault
        faults = () if fault.text is None else (fault.text,)
        return SinkState(faults, fault.failures, {"sent": self._sender.sent, "suppressed": self._sender.suppressed})

    def close(self) -> None:
        """Close the socket."""
        self._sender.close()


def _event_log(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.event_log
    return wanted and EventLogSink(of.state_dir / EVENT_LOG, wanted, of.ports, of.logger)


def _syslog(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.syslog
    return wanted and SyslogSink(wanted, of.ports, of.logger, of.spoken)


OUTPUTS: dict[str, MakeSink] = {"event_log": _event_log, "syslog": _syslog}
