"""From the monitor's section of the policy file to the settings of its outputs."""

from __future__ import annotations

from apps.exporters.settings import (
    EventLogSettings,
    HistorySettings,
    OutputSettings,
    PrometheusSettings,
    SyslogSettings,
)
from controller.config.settings import Monitor
from controller.wire.addresses import format_ip


def output_settings(monitor: Monitor) -> OutputSettings:
    """Return which outputs are wanted, and how."""
    history, prometheus, syslog, log = monitor.history, monitor.prometheus, monitor.syslog, monitor.event_log
    return OutputSettings(
        HistorySettings(history.csv, history.max_age_s, history.max_bytes, history.part_interval_s)
        if history.enabled
        else None,
        PrometheusSettings(format_ip(prometheus.address), prometheus.port, prometheus.stale_s)
        if prometheus.enabled
        else None,
        SyslogSettings(syslog.target, facility=syslog.facility, events_per_s=syslog.events_per_s)
        if syslog.enabled
        else None,
        EventLogSettings(log.max_bytes, log.files) if log.enabled else None,
    )
