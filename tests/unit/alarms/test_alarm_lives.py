"""What becomes of alarms: restarts, the expected topology, flaps, operators, reports, bounds."""

from __future__ import annotations

import pytest

from alarm_bench import CALM, EPOCH_S, STAR, TRIANGLE, Bench, dead_switch_events, pull
from controller.alarms.events import (
    AcknowledgeAsked,
    AlarmsChanged,
    ConditionOver,
    ConditionReported,
    ForgetLinkAsked,
    ForgetSwitchAsked,
)
from controller.alarms.known import End, read_cable
from controller.config import PolicyInvalid, load_policy
from controller.config.alarm_settings import ExpectedTopology
from controller.config.terms import NamedSwitch
from controller.effects import ActionRefused
from controller.events import Port, PortChanged, SwitchDisconnected
from controller.snapshot.events import Severity
from topology.events import LinkDown, LinkUp, SwitchDown

# Restarts


def test_what_is_missing_after_a_restart_is_an_alarm_and_what_was_acknowledged_stays_so() -> None:
    before = Bench(TRIANGLE)
    before.give(*(event for events in dead_switch_events() for event in events))
    before.wait(3)
    before.give(AcknowledgeAsked("switch-down:3", "ann"))
    bench = Bench(**before.kept())
    assert bench.open["switch-down:3"]["acknowledged_by"] == "ann"
    bench.wait(1)
    bench.links = TRIANGLE
    bench.connect(1, down=(2,))
    bench.connect(2, down=(2,))
    bench.wait(1)
    bench.wait(40)
    assert bench.told == [("raised", "link-failed:1:1-2:1")], "which nobody plugged in again"
    ((_, link), (_, switch)) = sorted(bench.open.items())
    assert (switch["acknowledged_by"], switch["since_s"]) == ("ann", EPOCH_S + 30)
    assert link["severity"] == "critical"
    bench.give(LinkUp(1, 1, 2, 1, 1e9))
    assert set(bench.open) == {"switch-down:3"}
    bench.connect(3)
    bench.give(LinkUp(1, 2, 3, 1, 1e9), LinkUp(2, 2, 3, 2, 1e9))
    assert bench.open == {}


def test_a_fabric_that_comes_back_after_a_restart_is_told_of_in_no_alarm() -> None:
    bench = Bench(**Bench(TRIANGLE).kept())
    bench.links = TRIANGLE
    for dpid in (1, 2, 3):
        bench.wait(2)
        bench.connect(dpid)
    bench.wait(2)
    for link in TRIANGLE:
        bench.give(LinkUp(*link, 1e9))
    bench.wait(200)
    assert (bench.told, bench.open) == ([], {})


def test_a_failed_link_keeps_its_alarm_over_a_restart_while_its_switches_connect() -> None:
    before = Bench(TRIANGLE)
    pull(before)
    before.wait(3)
    before.give(AcknowledgeAsked("link-failed:1:1-2:1", "ann"))
    bench = Bench(**before.kept())
    bench.links = TRIANGLE
    for dpid in (1, 2, 3):
        bench.wait(1)
        bench.connect(dpid, down=(1,) if dpid < 3 else ())
    for link in TRIANGLE[1:]:
        bench.give(LinkUp(*link, 1e9))
    bench.wait(200)
    assert bench.told == []
    assert bench.open["link-failed:1:1-2:1"]["acknowledged_by"] == "ann"
    assert bench.section("links")["1:1-2:1"]["since_s"] == EPOCH_S + 30


def test_records_that_cannot_be_read_are_left_out_and_counted() -> None:
    bench = Bench(alarm={"x": {}}, link={"1:1": {}, "1:1-2:1": {"capacity_bps": "a"}}, switch={"a": {}, "5": {}})
    assert bench.core.counters["unreadable-records"] == 5
    assert bench.open == {}


# The expected topology


def expected(text: str) -> ExpectedTopology:
    return load_policy(f"version: 1\ntopology: {text}").topology


def test_what_the_policy_expects_and_never_came_is_an_alarm() -> None:
    topology = expected("{switches: [4], links: [[{dpid: 1, port: 1}, {dpid: 2, port: 1}], "
                        "[{dpid: 2, port: 2}, {dpid: 1, port: 2}]]}")  # fmt: skip
    bench = Bench(topology=topology)
    bench.links = ((1, 1, 2, 1), (1, 2, 2, 2))
    bench.connect(1)
    bench.connect(2, down=(2,))
    bench.give(LinkUp(1, 1, 2, 1, 1e9))
    bench.wait(30)
    assert {key: alarm["text"] for key, alarm in bench.open.items()} == {
        "switch-down:4": "Switch s4 is expected and has not connected since the controller started.",
        "link-failed:1:2-2:2": (
            "The link of port s1:2 and port s2:2 is expected and was never found; other links carry on."
        ),
    }
    assert bench.status["fabric"] == "2 of 3 switches, 1 of 2 links"
    bench.give(ForgetSwitchAsked(4))
    assert bench.outcomes == [ActionRefused("dpid", "dpid: the policy file expects switch 4")]
    bench.give(AlarmsChanged(CALM, expected("{links: [[{dpid: 1, port: 1}, {dpid: 2, port: 1}]]}")))
    assert bench.open == {}
    assert bench.status["fabric"] == "2 of 2 switches, 1 of 1 links"


def test_cabling_that_differs_from_the_policy_is_a_warning() -> None:
    bench = Bench(((1, 1, 2, 1),), topology=expected("{links: [[{dpid: 1, port: 1}, {dpid: 3, port: 2}]]}"))
    bench.links = ((1, 1, 2, 1), (3, 2, 4, 1))
    bench.connect(3)
    bench.wait(30)
    (alarm,) = bench.open.values()
    assert alarm["text"] == (
        "The cabling differs from what is expected: port s1:1 leads to port s2:1 now, and not to port s3:2."
    )


# Operators, flaps, reports


def test_a_flapping_link_is_told_of_a_few_times_only() -> None:
    bench = Bench(TRIANGLE)
    for _ in range(60):
        pull(bench)
        bench.wait(2)
        bench.give(LinkUp(1, 1, 2, 1, 1e9))
        bench.wait(2)
    assert len(bench.told) <= 4
    (alarm,) = bench.open.values()
    assert alarm["occurrences"] == 60
    assert alarm["over_s"] == EPOCH_S + bench.now - 2
    bench.wait(299)
    assert bench.open == {}
    assert bench.told[-1] == ("cleared", "link-failed:1:1-2:1")


def test_a_flapping_alarm_whose_cause_is_gone_says_so_wherever_it_is_shown() -> None:
    bench = Bench(STAR)
    for _ in range(2):
        bench.give(SwitchDisconnected(1), *(LinkDown(*link) for link in STAR), SwitchDown(1))
        bench.wait(30)
        bench.connect(1)
        bench.give(*(LinkUp(*link, 1e9) for link in STAR))
        bench.wait(6)
    (alarm,) = bench.open.values()
    assert alarm["over_s"] is not None
    text = "This is over, and the alarm stays open for a while because it flaps: Switch s1 is gone: "
    assert alarm["text"].startswith(text)
    assert bench.status["degraded_because"] == alarm["text"]
    pull(bench, (1, 1, 2, 1))
    bench.wait(2)
    assert bench.status["degraded_because"].startswith("The link of port s1:1")
    bench.wait(299)
    assert bench.cleared_texts[-1].startswith("Switch s1 is gone")


def test_an_alarm_is_acknowledged_by_somebody_and_only_while_it_is_open() -> None:
    bench = Bench(TRIANGLE)
    bench.give(AcknowledgeAsked("link-failed:1:1-2:1", "ann"))
    assert bench.outcomes == [ActionRefused("key", "key: no alarm 'link-failed:1:1-2:1' is open")]
    pull(bench)
    bench.wait(2)
    bench.give(AcknowledgeAsked("link-failed:1:1-2:1", "ann"))
    (alarm,) = bench.open.values()
    assert (alarm["acknowledged_by"], alarm["acknowledged_s"]) == ("ann", EPOCH_S + 32)
    assert bench.outcomes[-1].document == alarm
    assert bench.status["alarms"] == {"critical": 0, "warning": 1, "info": 0, "acknowledged": 1}
    assert bench.events[1] == ("acknowledged", "happened", "ann acknowledged the alarm link-failed:1:1-2:1.")


def test_a_switch_that_was_taken_away_is_forgotten_with_its_links() -> None:
    bench = Bench(TRIANGLE)
    bench.give(*(event for events in dead_switch_events() for event in events))
    bench.wait(3)
    bench.give(ForgetSwitchAsked(1), ForgetLinkAsked(read_cable("1:1-2:1")), ForgetSwitchAsked(8))
    assert [outcome.text for outcome in bench.outcomes] == [
        "dpid: switch 1 is part of the fabric; only one that is gone can be forgotten",
        "link: link 1:1-2:1 is part of the fabric; only one that is missing can be forgotten",
        "dpid: there is no switch 8",
    ]
    bench.give(ForgetSwitchAsked(3))
    assert bench.open == {}
    assert set(bench.section("links")) == {"1:1-2:1"}
    assert bench.section("switches") == {}
    assert bench.status["fabric"] == "2 of 2 switches, 1 of 1 links"
    assert set(bench.kept()["switch"]) == {"1", "2"}


def test_what_two_apps_report_is_over_when_both_say_so() -> None:
    bench = Bench()
    report = ConditionReported("multicast", "table-full", "5", Severity.CRITICAL, "A table of switch 5 is full.", 5)
    bench.give(report, report._replace(source="unicast"))
    assert bench.told == [("raised", "table-full:5")]
    bench.give(ConditionOver("multicast", "table-full", "5"))
    assert set(bench.open) == {"table-full:5"}
    bench.give(ConditionOver("unicast", "table-full", "5"), ConditionOver("unicast", "table-full", "6"))
    assert bench.open == {}


def test_a_report_of_an_earlier_run_that_nobody_repeats_is_over() -> None:
    before = Bench()
    for subject in ("1:4", "1:5"):
        before.give(
            ConditionReported("anomaly", "anomaly", subject, Severity.WARNING, "Port 1:4 loses packets.", 1, 4)
        )
    bench = Bench(**before.kept())
    bench.give(ConditionReported("anomaly", "anomaly", "1:4", Severity.WARNING, "Port 1:4 loses packets.", 1, 4))
    bench.wait(119)
    assert len(bench.open) == 2
    bench.wait(2)
    assert set(bench.open) == {"anomaly:1:4"}


def test_reports_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.alarms.core.REPORTED_BOUND", 2)
    bench = Bench()
    for number in range(4):
        bench.give(ConditionReported("a", "anomaly", str(number), Severity.INFO, "Odd."))
    assert set(bench.open) == {"anomaly:0", "anomaly:1"}
    assert bench.core.counters["reports-over-limit"] == 2


def test_known_links_have_a_bound_and_the_oldest_failure_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.alarms.known.LINKS_BOUND", 2)
    bench = Bench()
    bench.links = TRIANGLE
    for dpid in (1, 2, 3):
        bench.connect(dpid)
    bench.give(LinkUp(1, 1, 2, 1, 1e9), LinkUp(1, 2, 3, 1, 1e9), LinkDown(1, 1, 2, 1), LinkUp(2, 2, 3, 2, 1e9))
    bench.wait(40)
    assert set(bench.section("links")) == {"1:2-3:1", "2:2-3:2"}
    assert bench.core.known.counters["known-links-over-limit"] == 1
    assert bench.open == {}


def test_ports_that_are_down_have_a_bound_and_go_with_their_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.alarms.known.DOWN_PORTS_BOUND", 2)
    monkeypatch.setattr("controller.alarms.known.SWITCHES_BOUND", 1)
    bench = Bench()
    bench.links = TRIANGLE
    bench.connect(1, down=(1, 2))
    known = bench.core.known
    down = Port(3, "p3", bytes(6), False, 1e9)
    bench.give(PortChanged(1, down, False), PortChanged(2, down, False))
    assert known.counters["down-ports-over-limit"] == 1
    assert [known.port_down_s(End(1, port_no)) is None for port_no in (1, 2, 3)] == [False, False, True]
    assert known.port_down_s(End(2, 3)) is None, "nothing is kept of a switch that there is no room for"
    bench.give(PortChanged(1, down._replace(port_no=1, up=True), False), PortChanged(1, down, False))
    assert known.port_down_s(End(1, 3)) is not None
    known.forget_switch(1)
    assert known.port_down_s(End(1, 3)) is None


def test_switches_have_their_names_in_texts() -> None:
    bench = Bench(TRIANGLE)
    bench.core.sections.names.configure((NamedSwitch("leaf1", 1),))
    pull(bench)
    bench.wait(2)
    (alarm,) = bench.open.values()
    assert alarm["text"] == "The link of port leaf1:1 and port 0000000000000002:1 has failed; other links carry on."
    assert alarm["consequences"][0]["text"] == "Port leaf1:1 is down."


def test_policies_that_make_no_sense_are_refused_with_their_place() -> None:
    ends = "{dpid: 1, port: 1}, {dpid: 2, port: 1}"
    for text, field in (
        (f"links: [[{ends}], [{{dpid: 1, port: 1}}, {{dpid: 3, port: 1}}]]", "topology.links"),
        ("links: [[{dpid: 1, port: 1}, {dpid: 1, port: 2}]]", "topology.links[0]"),
        ("links: [[{dpid: 1, port: 1}]]", "topology.links[0]"),
        ("switches: [0]", "topology.switches[0]"),
    ):
        with pytest.raises(PolicyInvalid) as caught:
            load_policy(f"version: 1\ntopology: {{{text}}}")
        assert [error.field for error in caught.value.errors] == [field]
