"""Who follows the sections sees what one sees who reads all of them, and a restart finds what there was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from alarm_bench import CALM, TRIANGLE, Bench, dead_switch_events, host, port_event, pull
from controller.alarms.events import (
    AcknowledgeAsked,
    AlarmsChanged,
    ConditionOver,
    ConditionReported,
    ForgetLinkAsked,
    ForgetSwitchAsked,
    TreesRepaired,
)
from controller.alarms.known import read_cable
from controller.config import load_policy
from controller.events import SwitchDisconnected
from controller.snapshot.events import Severity
from topology.events import HostGone, LinkDown, LinkUp, SwitchDown

SECTIONS = ("alarms", "switches", "links", "status")
REPORT = ConditionReported("multicast", "table-full", "1", Severity.CRITICAL, "A table of switch 1 is full.", 1)
POLICIES = [
    load_policy(f"version: 1\nalarms: {{settle_s: 1, start_grace_s: 20}}\ntopology: {topology}").topology
    for topology in (
        "{}",
        "{switches: [1, 5], ports: [{dpid: 2, port: 9}]}",
        "{links: [[{dpid: 1, port: 1}, {dpid: 2, port: 1}], [{dpid: 1, port: 4}, {dpid: 5, port: 1}]]}",
    )
]


class Reader:
    """Follows the sections of a bench by their changes, and its records by those that are to be written."""

    def __init__(self, bench: Bench) -> None:
        self._sections = bench.core.sections
        self._bench = bench
        self._versions = dict.fromkeys(SECTIONS, 0)
        self.documents: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        self.kept: dict[tuple[str, str], Any] = {}

    def follow(self) -> None:
        self._sections.refresh()
        for name in SECTIONS:
            delta = getattr(self._sections, name).changes(self._versions[name], 1000)
            assert not delta["more"]
            known = self.documents[name] = {} if delta["whole"] else self.documents[name]
            for id_ in delta["remove"]:
                known.pop(id_, None)
            known.update(delta["put"])
            self._versions[name] = delta["version"]
        for part, id_, document in self._bench.core.kept.take(1000):
            self.kept.pop((part, id_), None)
            if document is not None:
                self.kept[part, id_] = document


def read_whole(bench: Bench) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], Any]]:
    """Read all sections and all records afresh."""
    sections = bench.core.sections
    sections.refresh()
    for name in SECTIONS:
        getattr(sections, name).log.forget()
    documents = {name: getattr(sections, name).changes(0, 1000)["put"] for name in SECTIONS}
    return documents, {(part, id_): kept for part, found in bench.kept().items() for id_, kept in found.items()}


def settled(bench: Bench) -> None:
    bench.wait(6)


def put_back(bench: Bench) -> None:
    for dpid in (1, 2, 3):
        bench.connect(dpid)
    bench.give(*(LinkUp(*link, 1e9) for link in TRIANGLE))


STEPS: list[Callable[[Bench], None]] = [
    settled,
    put_back,
    pull,
    lambda bench: pull(bench, (1, 2, 3, 1)),
    lambda bench: bench.give(TreesRepaired(1, 1, 2, 1, 3)),
    lambda bench: bench.give(host(7, 3), host(8, 2)),
    lambda bench: bench.give(HostGone(host(8, 2).mac, 2, 9)),
    lambda bench: bench.give(SwitchDisconnected(3)),
    lambda bench: bench.give(LinkDown(1, 2, 3, 1), LinkDown(2, 2, 3, 2)),
    lambda bench: bench.give(SwitchDown(3)),
    lambda bench: bench.give(*(event for events in dead_switch_events() for event in events)),
    lambda bench: bench.connect(3, down=(1,)),
    lambda bench: bench.give(LinkUp(2, 2, 3, 2, 1e9)),
    lambda bench: bench.give(LinkUp(1, 1, 2, 1, 4e9)),
    lambda bench: bench.give(LinkUp(1, 1, 3, 7, 1e9)),
    lambda bench: bench.give(port_event(2, 9, False)),
    lambda bench: bench.give(port_event(2, 9, True)),
    lambda bench: bench.give(REPORT, REPORT._replace(severity=Severity.WARNING, source="unicast")),
    lambda bench: bench.give(ConditionOver("multicast", "table-full", "1")),
    lambda bench: bench.give(ConditionOver("unicast", "table-full", "1")),
    lambda bench: bench.give(*(AcknowledgeAsked(key, "ann") for key in list(bench.core.register.open)[:1])),
    lambda bench: bench.give(ForgetLinkAsked(read_cable("1:2-3:1")), ForgetLinkAsked(read_cable("1:1-2:1"))),
    lambda bench: bench.give(ForgetSwitchAsked(3)),
    *(lambda bench, topology=topology: bench.give(AlarmsChanged(CALM, topology)) for topology in POLICIES),
]


def played(seed: int) -> Iterator[Callable[[Bench], None]]:
    random = Random(seed)
    for _ in range(60):
        yield random.choice(STEPS)
        if random.random() < 0.5:
            yield settled


@pytest.mark.parametrize("seed", range(12))
def test_a_reader_who_follows_sees_what_one_sees_who_reads_all(seed: int) -> None:
    followed, whole = Bench(TRIANGLE), Bench(TRIANGLE)
    reader = Reader(followed)
    reader.follow()
    for step in played(seed):
        step(followed)
        step(whole)
        reader.follow()
        documents, kept = read_whole(whole)
        assert reader.documents == documents
        assert reader.kept == kept


@pytest.mark.parametrize("seed", range(4))
def test_a_restart_finds_the_alarms_that_there_were(seed: int) -> None:
    bench = Bench(TRIANGLE)
    for step in played(seed):
        step(bench)
    before, _ = read_whole(bench)
    after, _ = read_whole(Bench(**bench.kept()))
    told = ("key", "severity", "since_s", "occurrences", "acknowledged_by", "acknowledged_s", "dpid", "port_no")
    assert {key: [alarm[name] for name in told] for key, alarm in before["alarms"].items()} == {
        key: [alarm[name] for name in told] for key, alarm in after["alarms"].items()
    }
