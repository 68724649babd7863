"""What is told as events: a line for each thing that happened, with its consequences told once."""

from __future__ import annotations

from alarm_bench import TRIANGLE, Bench, dead_switch_events, port_event, pull
from controller.alarms.events import ForgetLinkAsked, ForgetSwitchAsked
from controller.alarms.known import read_cable
from controller.events import SwitchDisconnected
from topology.events import LinkDown, LinkUp, SwitchDown

LINK = "The link of port s1:1 and port s2:1 has failed"


def test_a_pulled_cable_is_one_line_and_its_return_another() -> None:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.wait(75)
    bench.give(port_event(1, 1, True), port_event(2, 1, True), LinkUp(1, 1, 2, 1, 1e9))
    bench.wait(30)
    assert bench.events == [
        ("link-failed", "raised", f"{LINK}; other links carry on."),
        ("link-failed", "cleared", f"This is over after 1 min 15 s: {LINK}; other links carry on."),
    ]


def test_a_switch_that_dies_is_one_line_with_all_its_links() -> None:
    bench = Bench(TRIANGLE)
    for events in dead_switch_events():
        bench.give(*events)
    bench.wait(60)
    text = "Switch s3 is gone: its connection ended, and 2 links to it are out of service."
    assert bench.events == [("switch-down", "raised", text)]
    bench.connect(3)
    bench.give(LinkUp(1, 2, 3, 1, 1e9), LinkUp(2, 2, 3, 2, 1e9))
    bench.wait(60)
    assert bench.events[1:] == [("switch-down", "cleared", f"This is over after 1 min: {text}")]


def test_a_link_whose_switch_is_lost_later_is_not_told_to_be_well() -> None:
    bench = Bench(TRIANGLE)
    bench.give(LinkDown(1, 2, 3, 1))
    bench.wait(10)
    bench.give(LinkDown(2, 2, 3, 2), SwitchDisconnected(3), SwitchDown(3))
    bench.wait(10)
    assert [(kind, state) for kind, state, _ in bench.events] == [
        ("link-failed", "raised"),
        ("switch-down", "raised"),
    ]


def test_what_an_operator_forgets_is_one_line() -> None:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.give(SwitchDisconnected(3), LinkDown(1, 2, 3, 1), LinkDown(2, 2, 3, 2), SwitchDown(3))
    bench.wait(10)
    told = len(bench.events)
    bench.give(ForgetSwitchAsked(3), ForgetLinkAsked(read_cable("1:1-2:1")))
    bench.wait(10)
    assert [kind for kind, _, _ in bench.events[told:]] == ["forgotten", "forgotten"]
    assert bench.open == {}
