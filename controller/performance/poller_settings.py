"""From the monitor's section of the policy file to the settings of poller and core."""

from __future__ import annotations

from collections.abc import Iterable

from controller.config.settings import Monitor, Threshold
from controller.performance.core_settings import CoreSettings
from controller.performance.deadband import deadband
from controller.performance.events import PortSeverity
from controller.performance.schedule import PollSettings, StatKind
from controller.performance.thresholds import DEFAULT_RULES, ThresholdRule
from topology.graph import NodeKind

SWITCH_KINDS = (NodeKind.TOR, NodeKind.AGGREGATION, NodeKind.CORE, NodeKind.SWITCH)
CLEAR_FRACTION = 0.5
"""Where a threshold without built-in rule says when it is raised only, it is cleared at this part of that."""

_SEVERITIES = {severity.label: severity for severity in PortSeverity}


def poll_settings(monitor: Monitor) -> PollSettings:
    """Return how polls go."""
    return PollSettings(
        kinds=frozenset(kind for kind in StatKind if getattr(monitor.statistics, kind.name.lower())),
        interval_s=monitor.interval_s,
        class_interval_s=_class_intervals(monitor),
        outstanding=monitor.outstanding,
        timeout_s=monitor.timeout_s,
    )


def core_settings(monitor: Monitor) -> CoreSettings:
    """Return how rates are judged and kept."""
    change = monitor.deadband
    return CoreSettings(
        interval_s=monitor.interval_s,
        class_interval_s=_class_intervals(monitor),
        capacity_bps=monitor.port_capacity_bps,
        thresholds=threshold_rules(monitor.thresholds),
        deadband=deadband(change.packets_per_s, change.bytes_per_s, 0.0, change.relative_pct / 100, change.silence_s),
        sticky_bits=0 if monitor.sticky_bits == "none" else int(monitor.sticky_bits),
        max_ports=monitor.ports,
    )


def threshold_rules(thresholds: Iterable[Threshold]) -> tuple[ThresholdRule, ...]:
    """Return the built-in rules with an operator's in their place, or beside them where they are for a class."""
    rules = {(rule.counter, rule.kind): rule for rule in DEFAULT_RULES}
    for threshold in thresholds:
        kind = None if threshold.switches == "all" else NodeKind(threshold.switches)
        counter = threshold.counter
        base = rules.get((counter, kind)) or rules.get((counter, None))
        raise_above = threshold.raise_above
        if raise_above is None:
            if base is None:
                continue
            raise_above = base.raise_above
        clear_below = threshold.clear_below
        if clear_below is None:
            same = base is not None and base.raise_above > 0
            fraction = base.clear_below / base.raise_above if base is not None and same else CLEAR_FRACTION
            clear_below = raise_above * fraction
        rules[counter, kind] = ThresholdRule(
            counter,
            raise_above,
            min(clear_below, raise_above),
            _or(threshold.window_s, 0.0 if base is None else base.window_s),
            _or(threshold.hold_s, 0.0 if base is None else base.hold_s),
            _SEVERITIES.get(threshold.severity, PortSeverity.INFO if base is None else base.severity),
            kind,
        )
    return tuple(rules.values())


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _class_intervals(monitor: Monitor) -> dict[NodeKind, int]:
    found = {kind: getattr(monitor.intervals, kind.value) for kind in SWITCH_KINDS}
    return {kind: interval_s for kind, interval_s in found.items() if interval_s is not None}
