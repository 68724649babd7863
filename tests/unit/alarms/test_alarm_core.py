"""Alarms by their causes: a pulled cable, a dead switch, a moved cable, a port."""

from __future__ import annotations

from itertools import permutations

import pytest

from alarm_bench import EPOCH_S, STAR, TRIANGLE, Bench, dead_switch_events, host, port_event, pull
from controller.alarms.events import (
    AcknowledgeAsked,
    AlarmsChanged,
    ForgetLinkAsked,
    TreesRepaired,
)
from controller.alarms.known import read_cable
from controller.config import load_policy
from controller.events import SwitchDisconnected
from topology.events import LinkDown, LinkUp, SwitchDown


def test_a_healthy_fabric_has_no_alarm() -> None:
    bench = Bench(TRIANGLE)
    assert bench.open == {}
    assert bench.told == []
    status = bench.status
    assert (status["degraded"], status["fabric"]) == (False, "3 of 3 switches, 3 of 3 links")
    assert bench.section("links")["1:1-2:1"]["state"] == "up"


@pytest.mark.parametrize("order", [order for order in permutations(range(4)) if order.index(2) < order.index(3)])
def test_a_pulled_cable_is_one_alarm_with_its_consequences_beneath(order: tuple[int, ...]) -> None:
    bench = Bench(TRIANGLE)
    events = [port_event(1, 1, False), port_event(2, 1, False), LinkDown(1, 1, 2, 1), TreesRepaired(1, 1, 2, 1, 5)]
    for index in order:
        bench.give(events[index])
    assert bench.open == {}
    bench.wait(1.5)
    ((key, alarm),) = bench.open.items()
    assert key == "link-failed:1:1-2:1"
    assert (alarm["severity"], alarm["since_s"]) == ("warning", EPOCH_S + 30)
    assert alarm["text"] == "The link of port s1:1 and port s2:1 has failed; other links carry on."
    assert [each["text"] for each in alarm["consequences"]] == [
        "Port s1:1 is down.",
        "Port s2:1 is down.",
        "5 trees were built around it.",
    ]
    assert bench.told == [("raised", key)]
    link = bench.section("links")["1:1-2:1"]
    assert (link["state"], link["since_s"], link["capacity_bps"]) == ("failed", EPOCH_S + 30, 1e9)
    status = bench.status
    assert status["degraded"]
    assert status["degraded_because"].startswith("1 of 3 links is missing. The link of port s1:1")
    bench.wait(10)
    bench.give(port_event(1, 1, True), port_event(2, 1, True), LinkUp(1, 1, 2, 1, 1e9))
    assert bench.open == {}
    assert bench.told[1:] == [("cleared", key)]
    assert not bench.status["degraded"]


@pytest.mark.parametrize("order", [order for order in permutations(range(4)) if order.index(3) > order.index(0)])
def test_a_dead_switch_is_one_alarm_in_whatever_order_it_is_told(order: tuple[int, ...]) -> None:
    bench = Bench(TRIANGLE)
    bench.give(host(7, 3))
    events = dead_switch_events()
    for index in order:
        bench.give(*events[index])
        bench.wait(0.1)
    bench.wait(3)
    ((key, alarm),) = bench.open.items()
    assert (key, alarm["severity"]) == ("switch-down:3", "critical")
    assert alarm["text"] == "Switch s3 is gone: its connection ended, and 2 links to it are out of service."
    assert [each["text"] for each in alarm["consequences"]] == [
        "The link of port s1:2 and port s3:1 is out of service.",
        "The link of port s2:2 and port s3:2 is out of service.",
        "1 host of the switch is cut off.",
    ]
    assert bench.told == [("raised", key)]
    assert bench.status["fabric"] == "2 of 3 switches, 1 of 3 links"
    switch = bench.section("switches")["3"]
    assert (switch["connected"], switch["dpid"], switch["disconnected_s"] >= EPOCH_S + 30) == (False, 3, True)
    assert bench.section("links")["1:2-3:1"]["state"] == "failed"


def test_a_switch_that_is_lost_first_gives_its_links_no_alarm_when_it_is_given_up() -> None:
    bench = Bench(TRIANGLE)
    bench.give(SwitchDisconnected(3))
    bench.wait(2)
    assert {key: alarm["severity"] for key, alarm in bench.open.items()} == {"switch-down:3": "warning"}
    bench.give(AcknowledgeAsked("switch-down:3", "ann"))
    bench.wait(8)
    bench.give(LinkDown(1, 2, 3, 1), LinkDown(2, 2, 3, 2), SwitchDown(3))
    bench.wait(5)
    ((key, alarm),) = bench.open.items()
    assert (key, alarm["severity"], alarm["since_s"]) == ("switch-down:3", "critical", EPOCH_S + 30)
    assert alarm["acknowledged_by"] is None, "what became graver is to be acknowledged again"
    assert bench.told == [("raised", key), ("raised", key)]
    bench.connect(3)
    bench.wait(2)
    bench.give(LinkUp(1, 2, 3, 1, 1e9), LinkUp(2, 2, 3, 2, 1e9))
    assert bench.open == {}
    bench.wait(60)
    assert bench.told[2:] == [("cleared", key)]


def test_links_that_fail_long_before_their_switch_is_lost_become_part_of_its_alarm() -> None:
    bench = Bench(TRIANGLE)
    pull(bench, (1, 2, 3, 1))
    bench.wait(5)
    assert set(bench.open) == {"link-failed:1:2-3:1"}
    pull(bench, (2, 2, 3, 2))
    bench.wait(3)
    assert set(bench.open) == {"switch-down:3"}
    assert bench.open["switch-down:3"]["text"].startswith("Switch s3 is cut off: all its 2 links have failed")
    bench.give(SwitchDisconnected(3), SwitchDown(3))
    bench.wait(3)
    assert set(bench.open) == {"switch-down:3"}
    assert bench.told.count(("raised", "switch-down:3")) == 1, "it was critical all the time"
    bench.connect(3, down=(1,))
    bench.give(LinkUp(2, 2, 3, 2, 1e9))
    bench.wait(6)
    assert set(bench.open) == {"link-failed:1:2-3:1"}, "the cable of before is still out"
    assert bench.open["link-failed:1:2-3:1"]["since_s"] == EPOCH_S + 30


def test_a_link_without_another_way_cuts_off_what_is_behind_it() -> None:
    bench = Bench(STAR)
    bench.give(host(1, 2), host(2, 2), host(3, 4))
    pull(bench)
    bench.wait(2)
    (alarm,) = bench.open.values()
    assert alarm["severity"] == "critical"
    assert alarm["text"] == "The link of port s1:1 and port s2:1 has failed: 1 switch with 2 hosts is cut off."
    assert len(bench.told) == 1
    assert bench.status["degraded_because"] == alarm["text"]
    bench.give(LinkUp(1, 1, 2, 1, 1e9))
    told = bench.core.sections.events.section.changes(0, 10)["put"].values()
    assert [(event["kind"], event["severity"], event["state"]) for event in told] == [
        ("link-failed", "critical", "raised"),
        ("link-failed", "info", "cleared"),
    ]


def test_a_moved_cable_names_both_places() -> None:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.wait(3)
    bench.connect(4)
    bench.give(port_event(1, 1, True), LinkUp(1, 1, 4, 7, 1e9))
    bench.wait(3)
    ((key, alarm),) = bench.open.items()
    assert (key, alarm["severity"]) == ("cable-moved:1:1-2:1", "warning")
    assert alarm["text"] == "A cable was moved: port s1:1 leads to port s4:7 now, and not to port s2:1."
    bench.give(ForgetLinkAsked(read_cable("1:1-2:1")))
    assert bench.open == {}
    assert "1:1-2:1" not in bench.section("links")


def test_a_parallel_cable_leaves_the_other_failed() -> None:
    bench = Bench(TRIANGLE)
    bench.give(LinkUp(1, 5, 2, 5, 1e9), LinkDown(1, 1, 2, 1), port_event(1, 1, False), port_event(2, 1, False))
    bench.wait(2)
    assert set(bench.open) == {"link-failed:1:1-2:1"}
    bench.give(port_event(1, 1, True), port_event(2, 1, True), LinkUp(1, 1, 2, 1, 1e9))
    bench.wait(2)
    assert bench.open == {}


def test_a_port_of_a_host_is_no_alarm_unless_the_policy_expects_it() -> None:
    bench = Bench(TRIANGLE)
    bench.port(1, 9, False)
    bench.wait(3)
    assert bench.open == {}
    policy = load_policy("version: 1\ntopology: {ports: [{dpid: 1, port: 9}]}")
    bench.give(AlarmsChanged(policy.alarms, policy.topology))
    bench.wait(3)
    assert bench.open["port-down:1:9"]["text"] == "Port s1:9 is down, and the policy file expects it to be up."
    bench.port(1, 9, True)
    assert bench.open == {}
