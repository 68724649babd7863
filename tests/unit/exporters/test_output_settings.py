"""From the policy file to the settings of the outputs."""

from __future__ import annotations

import pytest

from apps.exporters.settings import EventLogSettings, HistorySettings, OutputSettings, PrometheusSettings
from apps.monitor_settings import output_settings
from controller.config.load import load_policy
from controller.performance.events import PortSeverity


def outputs(text: str) -> OutputSettings:
    return output_settings(load_policy(f"version: 1\n{text}\n").monitor)


def test_an_empty_file_gives_the_defaults() -> None:
    assert outputs("") == OutputSettings(
        HistorySettings(), PrometheusSettings(), None, EventLogSettings(), OutputSettings().roll_ups
    )


@pytest.mark.parametrize("severity", list(PortSeverity))
def test_the_least_severity_of_syslog_is_set(severity: PortSeverity) -> None:
    syslog = outputs(f"monitor: {{syslog: {{enabled: true, least: {severity.label}}}}}").syslog
    assert syslog is not None
    assert syslog.least is severity


def test_roll_ups_have_limits_of_their_own_and_can_be_off() -> None:
    found = outputs("monitor: {roll_ups: {csv: true, max_age_s: 7200, max_bytes: 2097152, part_interval_s: 60}}")
    assert found.roll_ups == HistorySettings(True, 7200.0, 2097152, 60.0)
    assert found.history == HistorySettings()
    assert outputs("monitor: {roll_ups: {enabled: false}}").roll_ups is None
