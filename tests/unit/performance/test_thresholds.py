from __future__ import annotations

import numpy as np
import pytest

from controller.performance.alarms import ESCALATED_COUNT, TOLD_AT_ONCE, TOLD_EVERY_S, PortEvents
from controller.performance.counters import Counter
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.ports import KINDS, PortRows
from controller.performance.thresholds import DEFAULT_RULES, ThresholdRule, ThresholdTable
from port_samples import made_rates
from topology.graph import NodeKind

SWITCH = np.array([KINDS.index(NodeKind.SWITCH)], np.uint8)
CORE = np.array([KINDS.index(NodeKind.CORE)], np.uint8)
DROPS = ThresholdRule("rx_dropped", 10, 5, 0, 0, PortSeverity.INFO)


def table(*rules: ThresholdRule) -> ThresholdTable:
    made = ThresholdTable(rules)
    made.fit(4)
    return made


def seen(thresholds: ThresholdTable, *per_s: float, kinds: np.ndarray = SWITCH, interval_s: float = 10) -> list[str]:
    """What happens with each of several rates of rx_dropped: '+' raised, '-' cleared, '.' nothing."""
    marks = []
    for rate in per_s:
        found = thresholds.update(made_rates(rx_dropped=rate, interval_s=interval_s), kinds)
        marks.append("".join("+" if crossing.begins else "-" for crossing in found) or ".")
    return marks


def test_between_the_levels_nothing_changes():
    assert seen(table(DROPS), 9, 11, 9, 6, 11, 4, 9, 6) == [".", "+", ".", ".", ".", "-", ".", "."]


def test_a_level_itself_is_not_beyond_it():
    assert seen(table(DROPS), 10, 10.5, 5, 4.9) == [".", "+", ".", "-"]


def test_a_rate_must_be_beyond_its_level_for_the_whole_hold_down():
    held = table(DROPS._replace(hold_s=30))
    assert seen(held, 11, 11, 11) == [".", ".", "+"]
    assert seen(held, 4, 4, 6, 4, 4, 4) == [".", ".", ".", ".", ".", "-"]
    assert seen(held, 11, 11, 9, 11, 11) == ["."] * 5


def test_what_is_not_known_changes_nothing():
    held = table(DROPS._replace(hold_s=30))
    assert seen(held, 11, 11, np.nan, 11) == [".", ".", ".", "+"]
    gap = made_rates(rx_dropped=np.nan, interval_s=np.nan)
    assert held.update(gap, SWITCH) == [] and held.raised(0) == (held.rules[0],)


def test_a_limit_per_hour_counts_a_burst_once():
    crc = next(rule for rule in DEFAULT_RULES if rule.counter == Counter.RX_CRC_ERR)
    assert crc.severity is PortSeverity.CRITICAL
    for errors, raised in ((110, False), (125, True)):
        limited = table(crc)
        burst = limited.update(made_rates(rx_crc_err=errors / 10), SWITCH)
        assert [crossing.begins for crossing in burst] == [True] * raised
        assert [crossing.rate * 3600 for crossing in burst] == pytest.approx([errors] * raised, rel=0.01)
    quiet = [limited.update(made_rates(interval_s=600), SWITCH) for _ in range(6)]
    assert [crossing.begins for found in quiet for crossing in found] == [False], "half of it has faded"


def test_a_steady_rate_over_the_limit_is_raised_once():
    limited = table(ThresholdRule("rx_dropped", 120 / 3600, 60 / 3600, 3600, 0, PortSeverity.CRITICAL))
    assert seen(limited, *[200 / 3600] * 720).count("+") == 1
    assert seen(limited, *[110 / 3600] * 720).count("-") == 0


def test_a_rule_of_a_class_stands_for_the_one_of_all():
    both = DROPS, DROPS._replace(raise_above=100, kind=NodeKind.CORE)
    assert seen(table(*both), 50, kinds=SWITCH) == ["+"]
    assert seen(table(*both), 50, 150, kinds=CORE) == [".", "+"]


def test_utilisation_is_watched_in_percent():
    found = table(*DEFAULT_RULES).update(made_rates(utilisation_pct=95), SWITCH)
    assert [(crossing.rule.counter, crossing.rate) for crossing in found] == [
        ("rx_utilisation", 95),
        ("tx_utilisation", 95),
    ]


@pytest.mark.parametrize(
    "change", [{"counter": "x"}, {"clear_below": 11}, {"clear_below": -1}, {"window_s": -1}, {"hold_s": -1}]
)
def test_a_rule_that_makes_no_sense_is_refused(change: dict[str, object]):
    with pytest.raises(ValueError, match=r"\w"):
        table(DROPS._replace(**change))


class Fabric:
    """One port and its alarms."""

    def __init__(self) -> None:
        ports = PortRows(4)
        ports.add(1, 7, "s1-eth7", 1e9)
        self.alarms = PortEvents(ports, 4)
        self.told: list[PortEvent] = []
        self.thresholds = table(DROPS)

    def rate(self, per_s: float, now: float) -> list[PortEvent]:
        return self.alarms.crossings(self.thresholds.update(made_rates(at_s=now, rx_dropped=per_s), SWITCH))


def test_an_event_names_port_rate_and_level():
    fabric = Fabric()
    assert fabric.rate(11, 100.0) == [
        PortEvent(100.0, 1, 7, "rx_dropped", PortSeverity.INFO, 11.0, 10.0, EventState.RAISED)
    ]
    assert fabric.rate(1, 110.0) == [
        PortEvent(110.0, 1, 7, "rx_dropped", PortSeverity.INFO, 1.0, 5.0, EventState.CLEARED, lasted_s=10.0)
    ]


def test_a_link_that_goes_down_is_fatal_and_cleared_when_it_is_back():
    fabric = Fabric()
    down, up = fabric.alarms.link(0, False, 10.0), fabric.alarms.link(0, True, 20.0)
    assert [(e.counter, e.severity, e.state) for e in down + up] == [
        ("link_down", PortSeverity.CRITICAL, EventState.RAISED),
        ("link_down", PortSeverity.CRITICAL, EventState.CLEARED),
    ]


def test_more_than_five_recoveries_in_a_minute_are_fatal_until_they_stop():
    fabric = Fabric()
    told = [event for k in range(7) for up in (False, True) for event in fabric.alarms.link(0, up, 5.0 * k)]
    assert [e.state for e in told if e.counter == "link_recovery"] == [EventState.RAISED]
    later = [event for k in range(20) for event in fabric.alarms.tick(40.0 + 10 * k)]
    assert [(e.counter, e.state) for e in later] == [("link_recovery", EventState.CLEARED)]


def test_five_recoveries_in_a_minute_are_not():
    fabric = Fabric()
    told = [event for k in range(5) for up in (False, True) for event in fabric.alarms.link(0, up, 12.0 * k)]
    assert {e.counter for e in told} == {"link_down"}


def test_three_repeated_events_within_an_hour_escalate():
    fabric = Fabric()
    told = [event for k in range(ESCALATED_COUNT) for rate in (11, 1) for event in fabric.rate(rate, 600.0 * k)]
    grave = [event for event in told if event.severity is PortSeverity.WARNING]
    assert [(e.counter, e.state, e.rate) for e in grave] == [("repeated_events", EventState.RAISED, 3.0)]
    assert [e.counter for e in fabric.alarms.tick(1200.0 + 3700.0)] == ["repeated_events"], (
        "cleared after a quiet hour"
    )


def test_repeated_events_farther_apart_do_not():
    fabric = Fabric()
    told = [event for k in range(6) for rate in (11, 1) for event in fabric.rate(rate, 2000.0 * k)]
    assert {e.counter for e in told} == {"rx_dropped"}


def test_a_flapping_port_makes_no_storm_and_says_what_was_kept_back():
    fabric = Fabric()
    told = [event for k in range(1000) for up in (False, True) for event in fabric.alarms.link(0, up, 0.1 * k)]
    raised = [event for event in told if event.state is EventState.RAISED]
    assert len(raised) <= TOLD_AT_ONCE + 100 / TOLD_EVERY_S + 1
    assert len(told) <= 2 * len(raised), "no clear without its raise"
    assert fabric.alarms.suppressed > 900
    fabric.alarms.link(0, False, 1000.0)
    assert fabric.alarms.raised(0) == ("link_down", "link_recovery")


def test_what_was_kept_back_and_still_holds_is_told_later():
    fabric = Fabric()
    for k in range(200):
        fabric.alarms.link(0, bool(k % 2), 0.01 * k)
    assert fabric.alarms.link(0, False, 2.1) == []
    told = [event for k in range(120) for event in fabric.alarms.tick(3.0 + k)]
    late = [event for event in told if event.counter == "link_down"]
    assert [(e.state, e.suppressed > 50) for e in late] == [(EventState.RAISED, True)]


def test_a_port_that_is_gone_has_nothing_raised():
    fabric = Fabric()
    fabric.rate(11, 100.0)
    assert [event.state for event in fabric.alarms.forget(0, 110.0)] == [EventState.CLEARED]
    assert fabric.alarms.raised(0) == ()


def test_quiet_ports_are_forgotten():
    fabric = Fabric()
    fabric.rate(11, 100.0), fabric.rate(1, 110.0)
    fabric.alarms.tick(20_000.0)
    assert fabric.alarms.forget(0, 20_001.0) == [] and not fabric.alarms._ports
