"""From the monitor's section of the policy file to the settings of its outputs."""

from __future__ import annotations

from apps.exporters.settings import (
    EventLogSettings,
    HistorySettings,
    OutputSettings,
    PrometheusSettings,
    SyslogSettings,
)
from controller.config.settings import HistoryFiles, Monitor, RollUpFiles
from controller.performance.events import PortSeverity
from controller.wire.addresses import format_ip


def output_settings(monitor: Monitor) -> OutputSettings:
    """Return which outputs are wanted, and how."""
    syslog, log = monitor.syslog, monitor.event_log
    return OutputSettings(
        _files(monitor.history),
        prometheus_settings(monitor),
        SyslogSettings(syslog.target, PortSeverity[syslog.least.upper()], syslog.facility, syslog.events_per_s)
        if syslog.enabled
        else None,
        EventLogSettings(log.max_bytes, log.files) if log.enabled else None,
        _files(monitor.roll_ups),
    )


def prometheus_settings(monitor: Monitor) -> PrometheusSettings | None:
    """Return where this process serves Prometheus, None where it does not."""
    prometheus = monitor.prometheus
    if not prometheus.enabled:
        return None
    return PrometheusSettings(format_ip(prometheus.address), prometheus.port, prometheus.stale_s)


def _files(files: HistoryFiles | RollUpFiles) -> HistorySettings | None:
    if not files.enabled:
        return None
    return HistorySettings(files.csv, files.max_age_s, files.max_bytes, files.part_interval_s)
