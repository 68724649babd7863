"""Cleared alarms are listed, in bounded number, over restarts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alarm_bench import EPOCH_S, TRIANGLE, Bench, dead_switch_events, pull
from controller.alarms.events import AcknowledgeAsked, ConditionOver, ConditionReported
from controller.alarms.history import HISTORY_BOUND
from controller.config.terms import NamedSwitch
from controller.snapshot.events import Severity
from topology.events import LinkUp

KEY = "link-failed:1:1-2:1"


def cleared(bench: Bench) -> list[dict[str, Any]]:
    """The cleared alarms, the oldest first."""
    found = bench.core.sections.by_name()["cleared-alarms"].changes(0, 10_000)["put"]
    return [document for _, document in sorted(found.items(), key=lambda item: int(item[0]))]


def fail_and_mend(bench: Bench, by: str | None = None) -> None:
    pull(bench)
    bench.wait(5)
    if by is not None:
        bench.give(AcknowledgeAsked(KEY, by))
    bench.wait(5)
    bench.give(LinkUp(*TRIANGLE[0], 1e9))


def report(bench: Bench, number: int) -> None:
    bench.give(ConditionReported("x", "port-event", str(number), Severity.WARNING, "Slow.", 1, number))
    bench.give(ConditionOver("x", "port-event", str(number)))


def restarted(bench: Bench) -> Bench:
    return Bench(**json.loads(json.dumps(bench.kept())))


def test_a_cleared_alarm_tells_what_was_wrong_since_when_until_when_and_who_took_care() -> None:
    bench = Bench(TRIANGLE)
    assert cleared(bench) == []
    fail_and_mend(bench, by="ann")
    (found,) = cleared(bench)
    assert bench.open == {}
    assert {name: found[name] for name in ("key", "kind", "state", "severity", "acknowledged_by", "part_of")} == {
        "key": KEY,
        "kind": "link-failed",
        "state": "cleared",
        "severity": "warning",
        "acknowledged_by": "ann",
        "part_of": None,
    }
    assert (found["since_s"], found["acknowledged_s"], found["cleared_s"]) == (
        EPOCH_S + 30,
        EPOCH_S + 35,
        EPOCH_S + 40,
    )
    assert found["text"] == "The link of port s1:1 and port s2:1 has failed; other links carry on."
    assert (found["dpid_a"], found["port_a"], found["dpid_b"], found["port_b"]) == (1, 1, 2, 1)


def test_one_that_became_part_of_another_names_it() -> None:
    bench = Bench(TRIANGLE)
    events = dead_switch_events()
    bench.give(*events[0])
    bench.wait(5)
    bench.give(*(event for part in events[1:] for event in part))
    bench.wait(5)
    (found,) = cleared(bench)
    assert (found["key"], found["part_of"]) == ("link-failed:1:2-3:1", "switch-down:3")


def test_they_outlast_restarts_and_are_called_as_switches_are_called_then() -> None:
    bench = Bench(TRIANGLE)
    fail_and_mend(bench, by="ann")
    fail_and_mend(bench)
    bench.wait(20)
    before = cleared(bench)
    assert [alarm["acknowledged_by"] for alarm in before] == ["ann", None]
    again = restarted(restarted(bench))
    assert cleared(again) == before
    report(again, 7)
    assert [alarm["key"] for alarm in cleared(again)] == [KEY, KEY, "port-event:7"]
    again.core.sections.names.configure([NamedSwitch("leaf", 1, ())])
    again.core.sections.renamed()
    assert "port leaf:1" in cleared(again)[0]["text"]


def test_the_oldest_goes_beyond_the_bound_and_its_record_too() -> None:
    bench = Bench(TRIANGLE)
    for number in range(HISTORY_BOUND + 5):
        report(bench, number)
        bench.core.kept.take(100)
    assert [alarm["subject"] for alarm in cleared(bench)] == [str(number) for number in range(5, HISTORY_BOUND + 5)]
    report(bench, 9999)
    changed = {id_: document is None for part, id_, document in bench.core.kept.take(100) if part == "cleared"}
    assert changed == {"6": True, str(HISTORY_BOUND + 6): False}


def test_a_reader_gets_what_came_and_what_went() -> None:
    bench = Bench(TRIANGLE)
    section = bench.core.sections.by_name()["cleared-alarms"]
    for number in range(HISTORY_BOUND):
        report(bench, number)
    version = section.changes(0, 10_000)["version"]
    report(bench, 9999)
    delta = section.changes(version, 100)
    assert (list(delta["put"]), delta["remove"]) == ([str(HISTORY_BOUND + 1)], ["1"])


@pytest.mark.parametrize(
    "damage",
    [
        {"cleared_s": None},
        {"cleared_s": "x"},
        {"severity": "odd"},
        {"subject": "1:1"},
        {"subject": "1:1:1-2:1"},
    ],
)
def test_records_that_cannot_be_read_are_left_out_and_counted(damage: dict[str, Any]) -> None:
    bench = Bench(TRIANGLE)
    fail_and_mend(bench)
    kept = bench.kept()
    good = kept["cleared"]["1"]
    kept["cleared"] = {"1": good, "2": {**good, **damage}, "x": good, "0": good}
    again = Bench(**kept)
    assert [alarm["key"] for alarm in cleared(again)] == [KEY]
    assert again.core.counters["unreadable-records"] == 3
