"""The text of every alarm, whatever its cause, is a sentence: others may follow it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from alarm_bench import TRIANGLE, Bench, host, port_event, pull
from apps.alarm_reports import AlarmReports
from controller.alarms.causes import KINDS_OF
from controller.alarms.events import ConditionReported, TreesRepaired
from controller.config import load_policy
from controller.effects import Notice
from controller.events import SwitchDisconnected
from controller.snapshot.events import Severity
from topology.events import LinkDown, LinkUp, SwitchDown

DOCUMENT = Path(__file__).parents[3] / "docs" / "alarms.md"
DOCUMENTED = re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT.read_text().partition("## Raised")[0], re.MULTILINE)
FOUND = [kind for kinds in KINDS_OF.values() for kind in kinds]
"""Kinds that the core finds by itself; of all others apps report."""


def is_sentence(text: str) -> bool:
    return (text[0].isupper() or text[0].isdigit()) and text.endswith(".") and not text.endswith("..")


def expecting(text: str) -> Any:
    return load_policy(f"version: 1\ntopology: {text}").topology


def cut_cable() -> Bench:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.give(TreesRepaired(1, 1, 2, 1, 3))
    return bench


def moved_cable() -> Bench:
    bench = Bench(TRIANGLE)
    pull(bench)
    bench.wait(3)
    bench.connect(4)
    bench.give(port_event(1, 1, True), LinkUp(1, 1, 4, 7, 1e9))
    return bench


def cut_off() -> Bench:
    bench = Bench(((1, 1, 2, 1),))
    bench.give(host(1, 2), LinkDown(1, 1, 2, 1))
    return bench


def cut_off_switch() -> Bench:
    bench = Bench(TRIANGLE)
    bench.give(LinkDown(1, 2, 3, 1), LinkDown(2, 2, 3, 2))
    return bench


def silent_switch() -> Bench:
    bench = Bench(TRIANGLE)
    bench.give(SwitchDisconnected(3))
    return bench


def dead_switch() -> Bench:
    bench = Bench(TRIANGLE)
    bench.give(host(1, 3), SwitchDisconnected(3), SwitchDown(3))
    return bench


def nothing_there() -> Bench:
    return Bench(topology=expecting("{switches: [7], links: [[{dpid: 1, port: 1}, {dpid: 2, port: 1}]]}"))


def missing_link() -> Bench:
    return Bench(TRIANGLE[:2], expecting("{links: [[{dpid: 2, port: 2}, {dpid: 3, port: 2}]]}"))


def closed_port() -> Bench:
    bench = Bench(TRIANGLE, expecting("{ports: [{dpid: 1, port: 9}]}"))
    bench.port(1, 9, False)
    return bench


FAULTS = (
    cut_cable,
    moved_cable,
    cut_off,
    cut_off_switch,
    silent_switch,
    dead_switch,
    nothing_there,
    missing_link,
    closed_port,
)


def test_what_the_core_finds_is_told_in_sentences() -> None:
    kinds = set()
    for fault in FAULTS:
        bench = fault()
        bench.wait(60)
        assert bench.open, fault
        for alarm in bench.open.values():
            kinds.add(alarm["kind"])
            texts = [alarm["text"], *(consequence["text"] for consequence in alarm["consequences"])]
            assert all(map(is_sentence, texts)), texts
    assert kinds == set(FOUND)


@pytest.mark.parametrize("kind", [kind for kind in DOCUMENTED if kind not in FOUND])
@pytest.mark.parametrize("fault", ["/etc/p.yaml: Permission denied", "/etc/p.yaml: Permission denied."])
def test_what_apps_report_is_told_in_sentences(kind: str, fault: str) -> None:
    told: list[ConditionReported] = []
    reports = AlarmReports("multicast", told.append)
    if kind == "table-full":
        reports.noticed(Notice(kind, fault, (("dpid", 5),)))
    else:
        reports.holds(kind, "x", Severity.WARNING, fault)
        reports.look_at(kind, "y", fault)
    assert told
    assert all(each.text.endswith(".") and not each.text.endswith("..") for each in told)


def test_every_kind_that_is_found_is_documented() -> None:
    assert set(FOUND) <= set(DOCUMENTED)
    assert len(DOCUMENTED) > len(FOUND)
