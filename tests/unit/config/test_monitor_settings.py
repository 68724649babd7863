"""The monitor's section of the policy file."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.settings import SEVERITIES, SWITCH_CLASSES, WATCHED_COUNTERS, Threshold
from controller.performance.events import PortSeverity
from controller.performance.thresholds import WATCHED
from topology.graph import NodeKind


def test_the_words_are_those_of_the_performance_core():
    assert tuple(WATCHED) == WATCHED_COUNTERS
    assert tuple(severity.label for severity in PortSeverity) == SEVERITIES
    assert {kind.value for kind in NodeKind if kind is not NodeKind.HOST} == set(SWITCH_CLASSES)


def test_thresholds_are_read_one_by_one():
    text = """version: 1
monitor:
  thresholds:
    - {counter: rx_crc_err, raise_above: 0.5, clear_below: 0.1, hold_s: 30, severity: critical}
    - {counter: tx_utilisation, switches: tor, raise_above: 80}
"""
    first, second = load_policy(text).monitor.thresholds
    assert first == Threshold("rx_crc_err", "all", 0.5, 0.1, None, 30.0, "critical")
    assert second == Threshold("tx_utilisation", "tor", 80.0)


@pytest.mark.parametrize(
    ("item", "field", "message"),
    [
        ("{raise_above: 1}", "monitor.thresholds[0].counter", "missing"),
        ("{counter: rx_errror}", "monitor.thresholds[0].counter", "rx_error"),
        ("{counter: rx_errors, raise_above: -1}", "monitor.thresholds[0].raise_above", "not within"),
        ("{counter: rx_errors, switches: spine}", "monitor.thresholds[0].switches", "expected one of"),
        ("{counter: rx_errors, level: 1}", "monitor.thresholds[0].level", "unknown key"),
        ("{counter: rx_errors, raise_above: 1, clear_below: 2}", "monitor.thresholds[0].clear_below", "above"),
        ("7", "monitor.thresholds[0]", "expected a mapping"),
    ],
)
def test_a_faulty_threshold_is_told_with_its_line(item: str, field: str, message: str):
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(f"version: 1\nmonitor:\n  thresholds:\n    - {item}\n")
    (fault,) = caught.value.errors
    assert (fault.line, fault.field) == (4, field)
    assert message in fault.message


def test_intervals_reach_from_one_second_to_65535():
    for interval_s in (1, 65535):
        assert load_policy(f"version: 1\nmonitor: {{intervals: {{core: {interval_s}}}}}").monitor.intervals.core
    for interval_s in (0, 65536):
        with pytest.raises(PolicyInvalid):
            load_policy(f"version: 1\nmonitor: {{interval_s: {interval_s}}}")


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        ("ovsdb: tcp:6640", "monitor.ovsdb", "'tcp:6640' is neither unix:PATH nor tcp:HOST:PORT"),
        ("ovsdb: 'unix:'", "monitor.ovsdb", "'unix:' is neither unix:PATH nor tcp:HOST:PORT"),
        ("ovsdb: tcp:localhost:65536", "monitor.ovsdb", "neither unix:PATH nor tcp:HOST:PORT"),
        ("ovsdb: 'tcp:no..name:6640'", "monitor.ovsdb", "'tcp:no..name:6640' is neither unix:PATH nor tcp:HOST:PORT"),
        ("syslog: {enabled: true, target: loghost}", "monitor.syslog.target", "neither a socket's path, such as"),
        ("syslog: {enabled: true, target: 'loghost:0'}", "monitor.syslog.target", "nor HOST:PORT"),
        ("syslog: {enabled: true, target: ':514'}", "monitor.syslog.target", "nor HOST:PORT"),
    ],
)
def test_a_target_that_is_none_is_told_with_its_line(line: str, field: str, message: str):
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(f"version: 1\nmonitor:\n  {line}\n")
    (fault,) = caught.value.errors
    assert (fault.line, fault.field) == (3, field)
    assert message in fault.message


@pytest.mark.parametrize(
    "line",
    [
        "ovsdb: unix:/run/openvswitch/db.sock",
        "ovsdb: 'tcp:[::1]:6640'",
        "syslog: {enabled: true}",
        "syslog: {enabled: true, target: '[2001:db8::1]:514'}",
        "syslog: {enabled: false, target: nowhere}",
    ],
)
def test_targets_are_taken_whether_anything_is_there_or_not(line: str):
    load_policy(f"version: 1\nmonitor:\n  {line}\n")
