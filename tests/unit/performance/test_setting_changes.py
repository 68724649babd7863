"""Every setting of the monitor by name, bounds checked, the setting named in every error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.config.settings import Monitor, Setting, SettingType, Threshold, all_settings
from controller.performance.deadband import DEFAULT_DEADBAND
from controller.performance.events import PortSeverity
from controller.performance.poller_settings import core_settings, poll_settings, threshold_rules
from controller.performance.schedule import PollSettings, StatKind
from controller.performance.setting_changes import AT_START, SettingInvalid, changed, shown_settings
from controller.performance.thresholds import DEFAULT_RULES, ThresholdRule
from topology.graph import NodeKind

LIVE = [
    (name.removeprefix("monitor."), entry)
    for name, entry in all_settings()
    if name.startswith("monitor.") and name.split(".")[1] not in (*AT_START, "thresholds")
]


def value_of(monitor: Monitor, name: str) -> Any:
    (setting,) = [setting for setting in shown_settings(monitor, name) if setting.name == name]
    return setting.value


def test_defaults_are_those_of_poller_and_core():
    assert poll_settings(Monitor()) == PollSettings()
    core = core_settings(Monitor())
    assert core.deadband == DEFAULT_DEADBAND
    assert core.thresholds == DEFAULT_RULES
    assert core.class_interval_s == {}


@pytest.mark.parametrize(("name", "entry"), LIVE, ids=[name for name, _ in LIVE])
def test_every_live_setting_takes_its_bounds_and_nothing_beyond(name: str, entry: Setting):
    if entry.lower is None or entry.upper is None:
        values = entry.choices or ("true", "false")
        for value in values:
            assert str(value_of(changed(Monitor(), name, value), name)).lower() == value
        with pytest.raises(SettingInvalid, match=name):
            changed(Monitor(), name, "perhaps")
        return
    for value in (entry.lower, entry.upper):
        text = str(int(value)) if entry.type is SettingType.INTEGER else str(value)
        assert value_of(changed(Monitor(), name, text), name) == value
    for text in (str(int(entry.lower) - 1), str(int(entry.upper) + 1), "nan", "inf", "many", "", "1e999"):
        if text == "" and entry.optional:
            continue
        with pytest.raises(SettingInvalid, match=name):
            changed(Monitor(), name, text)


def test_a_class_interval_can_be_taken_back():
    monitor = changed(changed(Monitor(), "intervals.core", 60), "interval_s", "5")
    assert poll_settings(monitor).interval_of(NodeKind.CORE) == 60
    monitor = changed(monitor, "intervals.core", None)
    assert poll_settings(monitor).interval_of(NodeKind.CORE) == 5


def test_statistics_are_switched_on():
    monitor = changed(Monitor(), "statistics.meter", "on")
    assert poll_settings(monitor).kinds == {StatKind.PORT, StatKind.METER}


@pytest.mark.parametrize(
    "name", ["", "speed", "intervals", "intervals.spine", "interval_s.tor", "thresholds", "limits.groups"]
)
def test_an_unknown_setting_is_named(name: str):
    with pytest.raises(SettingInvalid, match=f"^{name}: "):
        changed(Monitor(), name, 1)


@pytest.mark.parametrize("name", ["role", "prometheus.port", "history.enabled", "ports"])
def test_what_holds_from_the_start_on_is_said_so(name: str):
    with pytest.raises(SettingInvalid, match="restart"):
        changed(Monitor(), name, 1)


def test_a_threshold_of_one_class_stands_beside_that_of_all():
    monitor = changed(Monitor(), "thresholds.tx_utilisation.raise_above", "80")
    monitor = changed(monitor, "thresholds.tx_utilisation.core.raise_above", 60)
    monitor = changed(monitor, "thresholds.tx_utilisation.core.severity", "critical")
    rules = {rule.kind: rule for rule in threshold_rules(monitor.thresholds) if rule.counter == "tx_utilisation"}
    assert (rules[None].raise_above, rules[NodeKind.CORE].raise_above) == (80, 60)
    assert rules[NodeKind.CORE].severity is PortSeverity.CRITICAL
    assert value_of(monitor, "thresholds.tx_utilisation.core.raise_above") == 60
    assert len(monitor.thresholds) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("thresholds.rx_errors.level", 1, "FIELD is one of"),
        ("thresholds.rx_errrors.raise_above", 1, "none of"),
        ("thresholds.rx_errors.spine.raise_above", 1, "none of"),
        ("thresholds.rx_errors.tor.raise_above.x", 1, "no such setting"),
        ("thresholds.rx_errors.raise_above", -1, "not within"),
        ("thresholds.rx_errors.severity", "awful", "expected one of"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(name: str, value: Any, message: str):
    with pytest.raises(SettingInvalid, match=message) as caught:
        changed(Monitor(), name, value)
    assert str(caught.value).startswith(f"{name}: ")


def test_levels_that_cross_are_refused():
    monitor = replace(Monitor(), thresholds=(Threshold("rx_errors", "all", 10.0, 5.0),))
    with pytest.raises(SettingInvalid, match=r"thresholds\.rx_errors\.clear_below: clear_below 11"):
        changed(monitor, "thresholds.rx_errors.clear_below", 11)
    with pytest.raises(SettingInvalid, match="above raise_above 4"):
        changed(monitor, "thresholds.rx_errors.raise_above", 4)


def test_what_a_threshold_does_not_say_is_as_the_built_in_rule_has_it(monkeypatch: pytest.MonkeyPatch):
    from controller.performance import poller_settings

    built_in = ThresholdRule("rx_errors", 10.0, 2.0, 60.0, 5.0, PortSeverity.WARNING)
    monkeypatch.setattr(poller_settings, "DEFAULT_RULES", (built_in,))
    assert threshold_rules([Threshold("rx_errors", "all", 100.0)]) == (
        built_in._replace(raise_above=100, clear_below=20),
    )
    assert threshold_rules([Threshold("rx_errors", "tor", hold_s=9.0)]) == (
        built_in,
        built_in._replace(hold_s=9.0, kind=NodeKind.TOR),
    )
    assert threshold_rules([Threshold("collisions", "all", hold_s=9.0)]) == (built_in,)
