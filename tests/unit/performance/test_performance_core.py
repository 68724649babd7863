from __future__ import annotations

import numpy as np
import pytest

from controller.effects import Notice
from controller.events import Port
from controller.performance import effects, inputs
from controller.performance.batch import Discontinuity, Samples
from controller.performance.core import RANKINGS, PerformanceCore
from controller.performance.core_settings import CoreSettings
from controller.performance.counters import COUNTERS, UNSUPPORTED, Counter
from controller.performance.events import EventState, PortSeverity
from controller.performance.thresholds import DEFAULT_RULES, ThresholdRule
from port_samples import one_sample
from topology.graph import NodeKind

T = 1_000_000.0


def port(number: int, up: bool = True, speed_bps: float = 1e9) -> Port:
    return Port(number, f"eth{number}", bytes(6), up, speed_bps)


def core_of(*numbers: int, settings: CoreSettings | None = None, dpid: int = 1, **knobs: object) -> PerformanceCore:
    core = PerformanceCore(settings or CoreSettings(**knobs))
    core.handle(inputs.MonitoredSwitchUp(dpid, tuple(port(number) for number in numbers)), T)
    return core


def feed(core: PerformanceCore, at_s: float, port_no: int = 1, dpid: int = 1, **values: int) -> tuple[object, ...]:
    row = int(core.ports.rows_of(dpid, np.array([port_no]))[0])
    return core.handle(inputs.SamplesReceived(one_sample(at_s, row=row, **values)), at_s)


def of_type(found: tuple[object, ...], kind: type) -> list:
    return [effect for effect in found if isinstance(effect, kind)]


def events(found: tuple[object, ...]) -> list[tuple[str, EventState]]:
    return [(event.counter, event.state) for each in of_type(found, effects.EventsRaised) for event in each.events]


def test_samples_become_rates_and_a_report():
    core = core_of(1, 2)
    feed(core, T, rx_bytes=0, rx_crc_err=UNSUPPORTED)
    (rated,) = of_type(feed(core, T + 10, rx_bytes=125_000_000, rx_crc_err=UNSUPPORTED), effects.SamplesRated)
    assert rated.rates.per_s[0, Counter.RX_BYTES.column] == 12_500_000 and rated.write.tolist() == [True]
    report = core.report(1, 1)[0]
    assert (report.name, report.at_s, report.rx_utilisation_pct, report.since_s) == ("eth1", T + 10, 10.0, T)
    assert report.per_s[Counter.RX_BYTES.column] == 12_500_000
    assert report.totals[Counter.RX_BYTES.column] == 125_000_000
    assert report.per_s[Counter.RX_CRC_ERR.column] is None and report.totals[Counter.RX_CRC_ERR.column] is None
    unseen = core.report(1, 2)[0]
    assert unseen.at_s is None and set(unseen.per_s) == {None} and set(unseen.totals) == {None}


def test_a_full_link_is_told_when_it_begins_and_when_it_is_over():
    core = core_of(1)
    feed(core, T)
    assert events(feed(core, T + 10, tx_bytes=1_200_000_000)) == [("tx_utilisation", EventState.RAISED)]
    assert core.report(1, 1)[0].raised == ("tx_utilisation",)
    assert events(feed(core, T + 20, tx_bytes=1_300_000_000)) == [("tx_utilisation", EventState.CLEARED)]
    assert [event.severity for event in core.events()] == [PortSeverity.WARNING] * 2


def test_samples_of_unknown_rows_are_counted_and_passed_over():
    core = core_of(1)
    batch = Samples(
        np.array([-1, 0, 99], np.int32), np.full(3, T), np.full(3, np.nan), np.zeros((3, len(COUNTERS)), np.uint64)
    )
    (rated,) = core.handle(inputs.SamplesReceived(batch), T)
    assert rated.rates.rows.tolist() == [0] and core.tally["samples-of-unknown-ports"] == 2


def test_a_batch_that_names_a_port_twice_is_taken_in_order():
    core = core_of(1)
    both = Samples.concatenate([one_sample(T, rx_bytes=0), one_sample(T + 10, rx_bytes=1000)])
    rated = of_type(core.handle(inputs.SamplesReceived(both), T + 10), effects.SamplesRated)
    assert [float(each.rates.per_s[0, Counter.RX_BYTES.column]) for each in rated][1:] == [100.0]
    assert core.histogram(Counter.RX_BYTES).samples == 1


def test_a_sample_that_is_put_aside_leaves_everything_as_it_is():
    core = core_of(1)
    feed(core, T)
    feed(core, T + 10, rx_bytes=1000)
    before = core.report(), core.histogram(Counter.RX_BYTES), core.history(1, 1).rx_bytes_per_s.tolist()
    (rated,) = feed(core, T + 10, rx_bytes=1000)
    assert rated.rates.discontinuity.tolist() == [Discontinuity.DUPLICATE] and rated.write.tolist() == [False]
    (report,) = before[0]
    assert core.report() == (report._replace(discontinuities=1),)
    assert (core.histogram(Counter.RX_BYTES), core.history(1, 1).rx_bytes_per_s.tolist()) == before[1:]


def test_top_ranks_by_what_is_asked():
    core = core_of(1, 2, 3)
    for number in (1, 2, 3):
        feed(core, T, number)
        feed(core, T + 10, number, rx_bytes=1000 * number, tx_packets=100 // number, rx_crc_err=number == 2)
    assert [report.port_no for report in core.top(2)] == [3, 2]
    assert [report.port_no for report in core.top(9, "tx_packets")] == [1, 2, 3]
    assert [report.port_no for report in core.top(9, "errors")] == [2], "ports without errors are not in the list"
    assert "utilisation" in RANKINGS
    with pytest.raises(ValueError, match="colour"):
        core.top(1, "colour")


def test_histograms_are_by_switch_and_over_all():
    core = core_of(1, 2)
    core.handle(inputs.MonitoredSwitchUp(2, (port(1),)), T)
    for dpid, number in ((1, 1), (1, 2), (2, 1)):
        feed(core, T, number, dpid)
        feed(core, T + 10, number, dpid, rx_bytes=1000)
    assert [core.histogram(Counter.RX_BYTES, dpid).samples for dpid in (1, 2, None)] == [2, 1, 3]
    assert core.histogram(Counter.COLLISIONS).zeros == 3
    with pytest.raises(KeyError):
        core.histogram(Counter.RX_BYTES, 9)


def test_resets_are_kept_with_their_time_and_reason():
    core = core_of(1)
    feed(core, T, rx_bytes=10**12)
    feed(core, T + 10, rx_bytes=5)
    assert core.report(1, 1)[0].reset_s == T + 10 and core.report(1, 1)[0].discontinuities == 1
    assert core.zero(T + 15, 1) == 1
    assert [(r.time_s, r.dpid, r.port_no, r.reason) for r in core.resets()] == [
        (T + 10, 1, 1, "reset"),
        (T + 15, 1, 1, "on-request"),
    ]


def test_totals_begin_anew_on_request_and_rates_go_on():
    core = core_of(1)
    feed(core, T)
    feed(core, T + 10, rx_bytes=1000)
    core.zero(T + 15)
    feed(core, T + 20, rx_bytes=3000)
    report = core.report(1, 1)[0]
    assert report.totals[Counter.RX_BYTES.column] == 2000 and report.since_s == T + 15
    assert report.per_s[Counter.RX_BYTES.column] == 200


def test_a_port_deleted_and_created_again_begins_anew():
    core = core_of(1)
    feed(core, T, rx_bytes=1000)
    core.handle(inputs.PortDown(1, 1), T + 5)
    assert not core.report(1, 1)[0].present and core.top(5) == ()
    core.handle(inputs.PortUp(1, port(1)), T + 6)
    (rated,) = of_type(feed(core, T + 10, rx_bytes=9000), effects.SamplesRated)
    assert rated.rates.discontinuity.tolist() == [Discontinuity.RECREATED] and rated.rates.gap[0]


def test_a_switch_that_connects_again_keeps_its_ports_and_loses_those_it_has_not_any_more():
    core = core_of(1, 2)
    feed(core, T)
    core.handle(inputs.MonitoredSwitchDown(1), T + 1)
    core.handle(inputs.MonitoredSwitchUp(1, (port(1), port(3))), T + 5)
    assert [(r.port_no, r.present) for r in core.report(1)] == [(1, True), (2, False), (3, True)]
    (rated,) = of_type(feed(core, T + 10, rx_bytes=1000), effects.SamplesRated)
    assert rated.rates.discontinuity.tolist() == [Discontinuity.NONE]


def test_of_a_switch_that_is_away_nothing_is_known_but_its_class_and_totals():
    core = core_of(1)
    core.handle(inputs.SwitchClassified(1, NodeKind.TOR), T)
    feed(core, T)
    feed(core, T + 10, rx_bytes=1000)
    core.handle(inputs.MonitoredSwitchDown(1), T + 11)
    report = core.report(1, 1)[0]
    assert set(report.per_s) == {None} and core.top(5) == () and report.totals[Counter.RX_BYTES.column] == 1000
    core.handle(inputs.MonitoredSwitchUp(1, (port(1),)), T + 12)
    assert core.report(1, 1)[0].kind is NodeKind.TOR


def test_switches_that_stay_away_make_room_for_others_and_what_they_raised_is_cleared():
    core = core_of(1, 2, max_ports=2)
    core.handle(inputs.MonitoredPortChanged(1, port(1, up=False)), T)
    core.handle(inputs.MonitoredSwitchDown(1), T + 1)
    told = core.handle(inputs.MonitoredSwitchUp(2, (port(1), port(2))), T + 2)
    assert [report.dpid for report in core.report()] == [2, 2] and core.tally["ports-over-limit"] == 0
    assert [(e.dpid, e.state) for each in of_type(told, effects.EventsRaised) for e in each.events] == [
        (1, EventState.CLEARED)
    ]
    core.handle(inputs.MonitoredSwitchUp(1, (port(1),)), T + 3)
    assert core.tally["ports-over-limit"] == 1


def test_a_link_that_goes_down_is_an_event_and_one_that_was_never_up_is_none():
    core = core_of(1)
    assert events(core.handle(inputs.MonitoredPortChanged(1, port(1, up=False)), T)) == [
        ("link_down", EventState.RAISED)
    ]
    assert events(core.handle(inputs.MonitoredPortChanged(1, port(1, up=False)), T + 1)) == []
    assert events(core.handle(inputs.MonitoredPortChanged(1, port(1)), T + 2)) == [("link_down", EventState.CLEARED)]
    assert events(core.handle(inputs.MonitoredSwitchUp(2, (port(1, up=False),)), T)) == []
    assert events(core.handle(inputs.PortDown(1, 1), T + 3)) == []


def test_the_policys_capacity_stands_for_the_speed_of_ports():
    core = core_of(1, capacity_bps=1e7)
    feed(core, T)
    feed(core, T + 10, rx_bytes=1_250_000)
    assert core.report(1, 1)[0].rx_utilisation_pct == 10.0


def test_what_counts_as_missed_follows_the_class_of_the_switch():
    core = core_of(1, interval_s=10, class_interval_s={NodeKind.CORE: 60})
    feed(core, T)
    core.handle(inputs.SwitchClassified(1, NodeKind.CORE), T)
    feed(core, T + 60)
    assert core.tally["discontinuity-missed"] == 0 and core.report(kind=NodeKind.CORE)[0].kind is NodeKind.CORE
    assert core.report(kind=NodeKind.TOR) == ()
    core.handle(inputs.SettingsChanged(core.settings._replace(class_interval_s={})), T)
    feed(core, T + 120)
    assert core.tally["discontinuity-missed"] == 1


def test_other_thresholds_clear_what_the_old_ones_raised():
    core = core_of(1)
    feed(core, T)
    feed(core, T + 10, tx_bytes=1_200_000_000)
    rule = ThresholdRule("rx_bytes", 5, 5, 0, 0, PortSeverity.INFO)
    changed = core.handle(inputs.SettingsChanged(core.settings._replace(thresholds=(rule,))), T + 11)
    assert events(changed) == [("tx_utilisation", EventState.CLEARED)]
    assert events(feed(core, T + 20, rx_bytes=1000, tx_bytes=2_400_000_000)) == [("rx_bytes", EventState.RAISED)]
    assert CoreSettings().thresholds == DEFAULT_RULES


def test_roll_ups_are_closed_by_the_next_sample_or_by_time():
    core = core_of(1)
    for k in range(7):
        found = feed(core, T // 60 * 60 + 10 * k + 1, rx_bytes=1000 * k)
    (closed,) = of_type(found, effects.RollUpsClosed)
    assert closed.rollups.step_s == 60 and closed.rollups.total[0, Counter.RX_BYTES.column] == 5000
    later = of_type(core.handle(inputs.Tick(), T + 7200), effects.RollUpsClosed)
    assert sorted(each.rollups.step_s for each in later) == [60, 3600]


def test_the_last_hour_can_be_asked_for():
    core = core_of(1)
    for k in range(5):
        feed(core, T + 10 * k, rx_bytes=1000 * k)
    assert core.history(1, 1).rx_bytes_per_s == pytest.approx([100] * 4, rel=1e-3)
    with pytest.raises(KeyError):
        core.history(1, 9)


def test_a_counter_that_sticks_is_to_be_reset_near_its_maximum_now_and_then():
    core = core_of(1, sticky_bits=32)
    near = (1 << 32) // 4 * 3 + 5
    assert of_type(feed(core, T, rx_bytes=near - 10), effects.ResetCounters) == []
    asked = of_type(feed(core, T + 10, rx_bytes=near), effects.ResetCounters)
    assert asked == [effects.ResetCounters(1, 1, Counter.RX_BYTES, near)]
    raised = core.events()[-1]
    assert (raised.counter, raised.state, raised.severity) == (
        "counter_full",
        EventState.RAISED,
        PortSeverity.WARNING,
    )
    assert (raised.rate, raised.threshold) == (pytest.approx(75.0, abs=0.01), 75.0)
    later = feed(core, T + 20, rx_bytes=near + 5)
    assert of_type(later, effects.ResetCounters) == [] and events(later) == []
    assert core.report()[0].raised == ("counter_full",)
    assert events(feed(core, T + 30, rx_bytes=3)) == [("counter_full", EventState.CLEARED)]
    assert core.resets()[-1].reason == "reset"


def test_ports_over_the_limit_are_refused_and_said_once():
    core = PerformanceCore(CoreSettings(max_ports=2))
    found = core.handle(inputs.MonitoredSwitchUp(1, tuple(port(number) for number in (1, 2, 3, 4))), T)
    assert [notice.kind for notice in of_type(found, Notice)] == ["ports-over-limit"]
    assert core.tally["ports-over-limit"] == 2 and len(core.report()) == 2


def test_a_row_that_goes_to_another_port_brings_nothing_along():
    core = PerformanceCore(CoreSettings(max_ports=1))
    core.handle(inputs.MonitoredSwitchUp(1, (port(1),)), T)
    for k in range(10):
        feed(core, T + 10 * k, rx_bytes=10**9 * k, rx_crc_err=1000 * k)
    core.handle(inputs.PortDown(1, 1), T + 100)
    core.handle(inputs.MonitoredSwitchUp(2, (port(9),)), T + 101)
    report = core.report(2, 9)[0]
    assert (report.at_s, report.since_s, report.discontinuities, report.raised) == (None, None, 0, ())
    assert core.report(1) == () and len(core.history(2, 9).start_s) == 0
    (rated,) = of_type(feed(core, T + 110, 9, 2, rx_bytes=5), effects.SamplesRated)
    assert rated.rates.discontinuity.tolist() == [Discontinuity.FIRST]
    assert core.histogram(Counter.RX_BYTES).samples == 9, "the sum over all keeps what was counted"


def test_an_event_of_unknown_type_is_our_own_mistake():
    with pytest.raises(KeyError):
        PerformanceCore().handle("tick", T)
