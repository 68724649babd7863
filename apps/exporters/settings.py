"""What an operator may say about the outputs of the performance manager."""

from __future__ import annotations

from typing import NamedTuple

from controller.performance.events import PortSeverity


class HistorySettings(NamedTuple):
    """The files of samples and rates, or of roll-ups.

    Attributes
    ----------
    csv
        Whether each finished part is written as CSV too, beside Parquet.
    max_age_s, max_bytes
        What is older, or over the size of all files together, is removed, oldest hour (or day) first.
    part_interval_s, part_rows
        When a journal becomes a finished part of its hour (or day), whichever comes first.
    backlog_rows
        Rows that wait for the disk; more make the oldest go.
    """

    csv: bool = False
    max_age_s: float = 14 * 86400.0
    max_bytes: int = 20 << 30
    part_interval_s: float = 300.0
    part_rows: int = 1 << 22
    backlog_rows: int = 400_000


ROLL_UP_DEFAULTS = HistorySettings(max_age_s=400 * 86400.0, max_bytes=10 << 30, part_interval_s=3600.0)


class PrometheusSettings(NamedTuple):
    """The endpoint that Prometheus scrapes; port 0 takes any free one.

    `stale_s` is how long a port's last sample is shown.
    """

    host: str = "127.0.0.1"
    port: int = 9471
    stale_s: float = 300.0


class SyslogSettings(NamedTuple):
    """Where significant events go: a Unix socket's path, or ``host:port`` by UDP.

    `least` is the severity from which on an event is significant; `facility` is 0 to 23 (3: daemons). `events_per_s`
    bounds the messages; what is over is counted.
    """

    target: str = "/dev/log"
    least: PortSeverity = PortSeverity.WARNING
    facility: int = 3
    events_per_s: float = 50.0


class EventLogSettings(NamedTuple):
    """The JSON log of events, kept to `files` files of `max_bytes`."""

    max_bytes: int = 16 << 20
    files: int = 4
    backlog_events: int = 10_000


class OutputSettings(NamedTuple):
    """Every output; None for one that is not wanted."""

    history: HistorySettings | None = HistorySettings()
    prometheus: PrometheusSettings | None = PrometheusSettings()
    syslog: SyslogSettings | None = None
    event_log: EventLogSettings | None = EventLogSettings()
    roll_ups: HistorySettings | None = ROLL_UP_DEFAULTS
