"""When an alarm is raised and what it says: hosts that go, ports, settling, restarts, operators, reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from alarm_bench import CALM, EPOCH_S, TRIANGLE, Bench, host, port_event, pull
from controller.alarms.events import (
    AcknowledgeAsked,
    AlarmsChanged,
    AlarmsRead,
    ConditionOver,
    ConditionReported,
    ForgetLinkAsked,
    ForgetSwitchAsked,
    TreesRepaired,
)
from controller.alarms.known import read_cable
from controller.config import load_policy
from controller.config.alarm_settings import ExpectedTopology
from controller.effects import ActionRefused, ActionTaken, Notice
from controller.events import SwitchDisconnected
from controller.snapshot.events import Severity
from topology.events import HostGone, LinkDown, LinkUp, SwitchDown

SQUARE = ((1, 1, 2, 1), (2, 2, 3, 1), (3, 2, 4, 1), (1, 2, 4, 2))
PORT_9 = load_policy("version: 1\ntopology: {ports: [{dpid: 1, port: 9}]}").topology
REPORT = ConditionReported("monitor", "port-event", "1:4", Severity.WARNING, "Errors.", 1, 4)


def lost(*hosts: Any) -> list[HostGone]:
    return [HostGone(learnt.mac, learnt.dpid, learnt.port_no) for learnt in hosts]


def consequences(bench: Bench, key: str) -> list[str]:
    return [each["text"] for each in bench.open[key]["consequences"]]


# Hosts of a switch that goes


def test_hosts_that_go_one_by_one_before_their_switch_are_all_cut_off() -> None:
    bench = Bench(TRIANGLE)
    hosts = [host(number, 3) for number in range(1, 5)]
    bench.give(*hosts, *lost(hosts[0]))
    bench.wait(10)
    for gone in lost(*hosts[1:]):
        bench.give(gone)
        bench.wait(0.6)
    bench.give(SwitchDisconnected(3), SwitchDown(3))
    bench.wait(2)
    assert consequences(bench, "switch-down:3")[-1] == "3 hosts of the switch are cut off."


def test_hosts_that_go_after_the_connection_ended_are_cut_off_too() -> None:
    bench = Bench(TRIANGLE)
    hosts = [host(1, 3), host(2, 3)]
    bench.give(*hosts, SwitchDisconnected(3))
    bench.wait(2)
    bench.give(*lost(*hosts), SwitchDown(3))
    bench.wait(2)
    assert consequences(bench, "switch-down:3")[-1] == "2 hosts of the switch are cut off."


# Links


def test_two_cables_that_join_the_same_switches_fail_and_return_each_by_itself() -> None:
    bench = Bench(TRIANGLE)
    bench.give(LinkUp(1, 7, 2, 7, 1e9))
    assert {id_: link["state"] for id_, link in bench.section("links").items() if id_.startswith("1:1-2")} == {
        "1:1-2:1": "up"
    }
    assert bench.status["fabric"] == "3 of 3 switches, 4 of 4 links"
    bench.give(LinkDown(1, 1, 2, 1), TreesRepaired(1, 1, 2, 1, 2))
    bench.wait(2)
    assert {key: alarm["severity"] for key, alarm in bench.open.items()} == {"link-failed:1:1-2:1": "warning"}
    assert consequences(bench, "link-failed:1:1-2:1") == ["2 trees were built around it."]
    bench.give(LinkDown(1, 7, 2, 7))
    bench.wait(2)
    assert set(bench.open) == {"link-failed:1:1-2:1", "link-failed:1:7-2:7"}
    bench.give(LinkUp(1, 7, 2, 7, 1e9))
    assert set(bench.open) == {"link-failed:1:1-2:1"}


def test_trees_are_told_of_at_the_link_around_which_they_were_built() -> None:
    bench = Bench(SQUARE)
    pull(bench, (1, 1, 2, 1))
    pull(bench, (3, 2, 4, 1))
    bench.give(TreesRepaired(3, 2, 4, 1, 1), TreesRepaired(2, 2, 3, 1, 7))
    bench.wait(2)
    assert consequences(bench, "link-failed:3:2-4:1")[2:] == ["1 tree was built around it."]
    assert consequences(bench, "link-failed:1:1-2:1")[2:] == []
    bench.give(LinkUp(3, 2, 4, 1, 1e9))
    pull(bench, (3, 2, 4, 1))
    bench.wait(2)
    assert consequences(bench, "link-failed:3:2-4:1")[2:] == [], "that was another time"


def test_a_link_that_turns_out_to_cut_the_fabric_in_two_becomes_graver() -> None:
    bench = Bench(SQUARE)
    pull(bench, (1, 1, 2, 1))
    bench.wait(5)
    assert bench.open["link-failed:1:1-2:1"]["severity"] == "warning"
    pull(bench, (3, 2, 4, 1))
    bench.wait(5)
    assert {alarm["severity"] for alarm in bench.open.values()} == {"critical"}
    assert bench.told.count(("raised", "link-failed:1:1-2:1")) == 2, "that it is graver is news"


# Switches


def test_the_end_of_a_connection_becomes_graver_with_the_last_link() -> None:
    bench = Bench(TRIANGLE)
    bench.give(SwitchDisconnected(3))
    bench.wait(2)
    bench.give(LinkDown(1, 2, 3, 1))
    assert bench.open["switch-down:3"]["severity"] == "warning"
    bench.give(LinkDown(2, 2, 3, 2))
    assert bench.open["switch-down:3"]["severity"] == "critical"
    assert bench.open["switch-down:3"]["text"].endswith("2 links to it are out of service.")


def test_a_link_that_stays_out_when_its_switch_is_back_has_an_alarm_of_its_own() -> None:
    bench = Bench(TRIANGLE)
    bench.give(SwitchDisconnected(3), SwitchDown(3))
    bench.wait(5)
    bench.connect(3, down=(1,))
    bench.give(LinkUp(2, 2, 3, 2, 1e9))
    bench.wait(10)
    assert set(bench.open) == {"link-failed:1:2-3:1"}


def test_a_switch_keeps_the_tier_that_it_had() -> None:
    bench = Bench(TRIANGLE)
    bench.give(host(1, 2), host(2, 3))
    bench.give(LinkUp(1, 1, 2, 1, 1e9), LinkDown(2, 2, 3, 2))
    bench.wait(5)
    for dpid in (1, 2):
        bench.give(SwitchDisconnected(dpid), *(LinkDown(*link) for link in TRIANGLE if dpid in link[::2]))
    bench.wait(5)
    switches = bench.section("switches")
    assert {id_: (document["tier"], document["level"]) for id_, document in switches.items()} == {
        "1": ("aggregation", 2),
        "2": ("tor", 1),
    }


def test_a_switch_keeps_its_tier_whose_links_fail_before_its_connection_ends() -> None:
    bench = Bench(TRIANGLE)
    bench.give(host(1, 2), LinkDown(2, 2, 3, 2), LinkUp(2, 2, 3, 2, 1e9))
    bench.wait(5)
    bench.give(LinkDown(1, 1, 2, 1), LinkDown(1, 2, 3, 1))
    bench.wait(5)
    bench.give(SwitchDisconnected(1), SwitchDown(1))
    bench.wait(5)
    document = bench.section("switches")["1"]
    assert (document["tier"], document["level"]) == ("aggregation", 2)


def test_a_switch_has_the_tier_of_now_though_hosts_came_after_the_links() -> None:
    bench = Bench(TRIANGLE)
    bench.wait(5)
    bench.give(host(1, 2))
    bench.wait(5)
    bench.give(SwitchDisconnected(2), SwitchDown(2))
    bench.wait(5)
    document = bench.section("switches")["2"]
    assert (document["tier"], document["level"]) == ("tor", 1)


def test_where_no_hosts_are_known_switches_have_no_tiers() -> None:
    bench = Bench(TRIANGLE)
    bench.give(SwitchDisconnected(3), SwitchDown(3))
    bench.wait(5)
    assert bench.section("switches")["3"]["tier"] == "switch"


# Ports that the policy expects to be up


def test_a_port_that_is_down_when_its_switch_connects_is_an_alarm() -> None:
    bench = Bench(topology=PORT_9)
    bench.connect(1, down=(9,))
    bench.connect(2, down=(9,))
    bench.wait(30)
    assert set(bench.open) == {"port-down:1:9"}
    bench.connect(1)
    assert bench.open == {}


def test_a_port_of_a_switch_that_is_gone_is_no_alarm_of_its_own() -> None:
    bench = Bench(TRIANGLE, topology=PORT_9)
    bench.port(1, 9, False)
    bench.wait(2)
    assert set(bench.open) == {"port-down:1:9"}
    bench.give(SwitchDisconnected(1))
    bench.wait(2)
    assert set(bench.open) == {"switch-down:1"}
    bench.connect(1, down=(9,))
    bench.wait(30)
    assert set(bench.open) == {"port-down:1:9"}


# Time, restarts, policy


def test_an_alarm_is_raised_when_it_has_settled_though_something_else_is_due_later() -> None:
    bench = Bench(**Bench(TRIANGLE).kept())
    bench.links = TRIANGLE
    for dpid in (1, 2, 3):
        bench.connect(dpid)
    bench.give(*(LinkUp(*link, 1e9) for link in TRIANGLE))
    bench.wait(50)
    pull(bench)
    bench.wait(0.9)
    assert bench.open == {}
    bench.wait(0.2)
    assert bench.open["link-failed:1:1-2:1"]["since_s"] == EPOCH_S + 1050


def test_switches_that_never_come_back_after_a_restart_are_alarms_when_their_time_is_over() -> None:
    bench = Bench(**Bench(TRIANGLE).kept())
    bench.wait(CALM.start_grace_s - 1)
    assert bench.open == {}
    bench.wait(2)
    assert set(bench.open) == {"switch-down:1", "switch-down:2", "switch-down:3"}


def test_other_settings_hold_from_the_moment_they_are_loaded() -> None:
    bench = Bench(TRIANGLE)
    bench.give(AlarmsChanged(replace(CALM, settle_s=5), ExpectedTopology()))
    pull(bench)
    bench.wait(4.5)
    assert bench.open == {}
    bench.wait(1)
    assert set(bench.open) == {"link-failed:1:1-2:1"}


def test_another_policy_ends_no_alarm_of_what_is_known_or_reported() -> None:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.give(REPORT)
    bench.wait(2)
    told = list(bench.told)
    bench.give(AlarmsChanged(CALM, PORT_9))
    bench.wait(2)
    assert bench.told == told
    assert set(bench.open) == {"link-failed:1:1-2:1", "port-event:1:4"}


def test_what_the_policy_expects_no_more_is_not_known_after_a_restart_either() -> None:
    links = "links: [[{dpid: 1, port: 1}, {dpid: 2, port: 1}]]"
    bench = Bench(topology=load_policy(f"version: 1\ntopology: {{{links}}}").topology)
    records: dict[tuple[str, str], Any] = {}
    bench.links = ((1, 1, 2, 1),)
    for dpid in (1, 2):
        bench.connect(dpid)
    bench.port(1, 1, False)
    bench.wait(30)
    assert set(bench.open) == {"link-failed:1:1-2:1"}
    records |= {(part, id_): document for part, id_, document in bench.core.kept.take(1000)}
    bench.give(AlarmsChanged(CALM, ExpectedTopology()))
    records |= {(part, id_): document for part, id_, document in bench.core.kept.take(1000)}
    assert {id_: document for (part, id_), document in records.items() if part == "link"} == {"1:1-2:1": None}


def test_records_that_cannot_be_read_are_told_of() -> None:
    before = Bench(TRIANGLE)
    pull(before)
    before.wait(2)
    (document,) = before.kept()["alarm"].values()
    bench = Bench()
    effects = bench.core.handle(AlarmsRead({"alarm": {"another-key": document}, "link": {"1": {}}}), bench.now)
    assert [effect.text for effect in effects if isinstance(effect, Notice)] == [
        "2 records of alarms and of the known fabric cannot be read and are left out."
    ]
    assert bench.open == {}


# Operators and apps


def test_who_acknowledges_without_a_name_is_an_operator() -> None:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.wait(2)
    bench.give(AcknowledgeAsked("link-failed:1:1-2:1", None))
    assert bench.open["link-failed:1:1-2:1"]["acknowledged_by"] == "an operator"


def test_what_is_forgotten_is_answered_and_told() -> None:
    bench = Bench(SQUARE)
    pull(bench, (1, 1, 2, 1))
    bench.give(SwitchDisconnected(4), LinkDown(1, 2, 4, 2), LinkDown(3, 2, 4, 1), SwitchDown(4))
    bench.wait(2)
    bench.give(ForgetLinkAsked(read_cable("1:1-2:1")), ForgetSwitchAsked(4), ForgetSwitchAsked(3))
    assert bench.outcomes == [
        ActionTaken({"link": "1:1-2:1", "forgotten": True}),
        ActionTaken({"dpid": 4, "forgotten": True}),
        ActionRefused("dpid", "dpid: switch 3 is part of the fabric; only one that is gone can be forgotten"),
    ]
    events = bench.core.sections.events.section.changes(0, 10)["put"].values()
    told = [(event["kind"], event["text"], event["dpid"], event["port_no"]) for event in events]
    assert told[-2:] == [
        ("forgotten", "An operator forgot link 1:1-2:1: it is not expected any more.", 1, 1),
        ("forgotten", "An operator forgot switch 4: it is not expected any more.", 4, None),
    ]


def test_a_switch_whose_failed_links_are_all_forgotten_is_not_cut_off_any_more() -> None:
    bench = Bench(TRIANGLE)
    pull(bench, (1, 2, 3, 1))
    pull(bench, (2, 2, 3, 2))
    bench.wait(2)
    assert set(bench.open) == {"switch-down:3"}
    bench.give(ForgetLinkAsked(read_cable("1:2-3:1")), ForgetLinkAsked(read_cable("2:2-3:2")))
    assert bench.open == {}


def test_the_bound_of_reports_counts_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.alarms.core.REPORTED_BOUND", 2)
    bench = Bench()
    other = REPORT._replace(subject="1:5")
    bench.give(REPORT, REPORT._replace(source="anomaly"), other)
    assert bench.core.counters["reports-over-limit"] == 1
    bench.give(REPORT._replace(text="More errors."))
    assert bench.open["port-event:1:4"]["text"] == "Errors.", "of equally grave ones that of the first app by name"
    bench.give(*[ConditionOver("nobody", "port-event", "1:4")] * 3, other)
    assert bench.core.counters["reports-over-limit"] == 2
    bench.give(ConditionOver("anomaly", "port-event", "1:4"), other)
    assert bench.open["port-event:1:4"]["text"] == "More errors."
    assert set(bench.open) == {"port-event:1:4", "port-event:1:5"}
    bench.give(REPORT._replace(subject="1:6"))
    assert bench.core.counters["reports-over-limit"] == 3


def test_an_event_of_another_kind_is_a_mistake_of_who_gives_it() -> None:
    with pytest.raises(KeyError):
        Bench().core.handle(object(), 0.0)


def test_a_state_of_a_port_that_is_no_news_changes_nothing() -> None:
    bench = Bench(TRIANGLE)
    assert bench.core.handle(port_event(1, 1, True), bench.now) == ()
    assert bench.open == {}
