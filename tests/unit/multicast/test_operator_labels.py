"""Labels that operators give: beside those of the policy, over restarts and reloads, and with another controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from controller.config.labels import MAX_LABELS
from controller.config.policy import Policy
from controller.config.terms import Labelled, NamedSwitch
from controller.effects import ActionRefused, ActionTaken
from controller.log import LogEntry, LogEntryKind, WriteLog
from controller.multicast import operator_labels
from controller.multicast.actions import ActionInvalid, read_action
from controller.multicast.core import MulticastCore
from controller.multicast.events import LeadTaken, LogFollowed, PolicyLoaded
from controller.snapshot.reader import Document, DocumentCopy
from controller.snapshot.selectors import parse_selector, selected

POLICY = Policy(default_allow=True, labels=(Labelled(1, None, (("pod", "1"), ("rack", "a"))),))


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world("leaf-spine", POLICY)


def document(world: Any, section: str, id_: str) -> dict[str, Any]:
    found: dict[str, Any] = getattr(world.core.sections, section).changes(0, 1000)["put"][id_]
    return found


def labels(world: Any, dpid: int, port_no: int | None = None) -> dict[str, str]:
    section, id_ = ("switches", str(dpid)) if port_no is None else ("ports", f"{dpid}:{port_no}")
    found = document(world, section, id_)
    of_thing: dict[str, str] = found["labels"]
    return of_thing


def done(outcome: Any) -> dict[str, Any]:
    assert isinstance(outcome, ActionTaken), outcome
    return outcome.document


def refused(outcome: Any) -> str:
    assert isinstance(outcome, ActionRefused), outcome
    return f"{outcome.field}: {outcome.text.removeprefix(outcome.field + ': ')}"


def add(world: Any, dpid: int, key: str, value: str) -> Any:
    return world.do("switch-label-add", dpid=dpid, key=key, value=value)


def test_an_operators_label_stands_for_the_policys_until_it_is_taken_back(world: Any) -> None:
    assert done(add(world, 1, "rack", "b7")) == {"dpid": 1, "labels": {"pod": "1", "rack": "b7"}}
    assert labels(world, 1) == {"pod": "1", "rack": "b7"}
    assert done(world.do("switch-label-remove", dpid=1, key="rack"))["labels"] == {"pod": "1", "rack": "a"}
    assert labels(world, 1) == {"pod": "1", "rack": "a"}


def test_a_port_has_labels_of_its_own(world: Any) -> None:
    assert done(world.do("port-label-add", dpid=2, port_no=1, key="room", value="a")) == {
        "dpid": 2,
        "port_no": 1,
        "labels": {"room": "a"},
    }
    assert labels(world, 2, 1) == {"room": "a"}
    assert labels(world, 2) == labels(world, 2, 2) == {}
    done(world.do("port-label-remove", dpid=2, port_no=1, key="room"))
    assert labels(world, 2, 1) == {}


def test_readers_hear_of_a_label_at_once(world: Any) -> None:
    section = world.core.sections.switches
    known = section.changes(0, 1000)["version"]
    add(world, 2, "rack", "b7")
    changed = section.changes(known, 1000)["put"]
    assert {id_: document["labels"] for id_, document in changed.items()} == {"2": {"rack": "b7"}}


def test_selectors_choose_by_them(world: Any) -> None:
    add(world, 2, "rack", "b7")
    documents = [Document(str(dpid), document(world, "switches", str(dpid))) for dpid in (1, 2)]
    found = selected(documents, parse_selector("rack=b7"), DocumentCopy("switches"), DocumentCopy("ports"))
    assert [document.fields["dpid"] for document in found] == [2]


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("switch-label-add", {"dpid": 99, "key": "rack", "value": "b"}, "dpid: there is no switch"),
        ("port-label-add", {"dpid": 1, "port_no": 99, "key": "rack", "value": "b"}, "port_no: switch"),
        ("switch-label-remove", {"dpid": 1, "key": "pod"}, "key: switch 0000000000000001 has pod=1 by the policy"),
        ("switch-label-remove", {"dpid": 1, "key": "room"}, "key: switch 0000000000000001 has no label room"),
        ("port-label-remove", {"dpid": 1, "port_no": 1, "key": "room"}, "has no label room"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(world: Any, name: str, fields: dict[str, Any], told: str) -> None:
    assert told in refused(world.do(name, **fields))
    assert labels(world, 1) == {"pod": "1", "rack": "a"}


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"dpid": 1, "key": "tier", "value": "x"}, "key"),
        ({"dpid": 1, "key": "-x", "value": "x"}, "key"),
        ({"dpid": 1, "key": "rack", "value": ""}, "value"),
        ({"dpid": 1, "key": "rack", "value": "a b"}, "value"),
        ({"dpid": 1, "key": "rack", "value": 7}, "value"),
        ({"dpid": 1, "key": "rack"}, "value"),
        ({"dpid": 1, "key": "rack", "value": "b", "port_no": 1}, "port_no"),
    ],
)
def test_what_makes_no_sense_names_its_field(fields: dict[str, Any], at: str) -> None:
    with pytest.raises(ActionInvalid) as caught:
        read_action("switch-label-add", fields)
    assert caught.value.field == at


def test_labels_outlast_a_restart_and_a_reload(world: Any) -> None:
    add(world, 1, "rack", "b7")
    add(world, 2, "room", "c")
    world.do("port-label-add", dpid=2, port_no=1, key="room", value="d")
    world.settle()
    world.restart()
    world.connect_all()
    assert labels(world, 1) == {"pod": "1", "rack": "b7"}
    assert (labels(world, 2), labels(world, 2, 1)) == ({"room": "c"}, {"room": "d"})
    world.feed(PolicyLoaded(replace(POLICY, labels=(), switches=(NamedSwitch("spine", 1),))))
    assert labels(world, 1) == {"rack": "b7"}
    world.do("switch-label-remove", dpid=1, key="rack")
    world.settle()
    world.restart()
    world.connect_all()
    assert labels(world, 1) == {"pod": "1", "rack": "a"}


def test_a_log_that_is_written_anew_has_them(world: Any) -> None:
    add(world, 1, "rack", "b7")
    world.settle()
    world.core.pending_writes.begin_anew(world.now)
    world.advance(1)
    values = {entry.key: entry.value for entry in world.log.read() if entry.subject == "label"}
    assert values == {"label/1/0/rack": {"dpid": 1, "port_no": 0, "key": "rack", "value": "b7"}}


def test_another_controller_that_follows_has_them_and_goes_on(world: Any) -> None:
    add(world, 1, "rack", "b7")
    add(world, 2, "room", "c")
    world.settle()
    shadow = MulticastCore(POLICY, 0.0)
    shadow.handle(LogFollowed(world.log.read()), 1.0)
    gone = LogEntry(LogEntryKind.DECISION, "label/2/0/room", None)
    changed = LogEntry.of_record(
        LogEntryKind.DECISION, "label/1/0/rack", {"dpid": 1, "port_no": 0, "key": "rack", "value": "b8"}
    )
    shadow.handle(LogFollowed((gone, changed)), 2.0)
    shadow.handle(LeadTaken(), 3.0)
    assert [tuple(label) for label in shadow.labels.by_operator()] == [(1, 0, "rack", "b8")]
    assert shadow.sections.names.labels(1) == {"pod": "1", "rack": "b8"}


@pytest.mark.parametrize(
    "value",
    [
        {"dpid": 1, "port_no": 0, "key": "rack"},
        {"dpid": 1, "port_no": 0, "key": "tier", "value": "x"},
        {"dpid": "x", "port_no": 0, "key": "rack", "value": "b"},
    ],
)
def test_a_label_of_the_log_that_cannot_be_read_is_counted_and_left_out(world: Any, value: dict[str, Any]) -> None:
    world.settle()
    entry = LogEntry.of_record(LogEntryKind.DECISION, "label/1/0/rack", value)
    world.log.write(WriteLog((entry,)))
    world.restart()
    assert not list(world.core.labels.by_operator())
    assert any(notice.kind == "journal-faulty" for notice in world.notices)


def test_there_are_bounds(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MAX_LABELS):
        done(add(world, 1, f"k{number}", "x"))
    assert "32 labels" in refused(add(world, 1, "more", "x"))
    done(add(world, 1, "k0", "y"))
    monkeypatch.setattr(operator_labels, "SETTINGS_BOUND", MAX_LABELS)
    assert "as many as are kept" in refused(add(world, 2, "more", "x"))


def test_a_label_of_what_is_gone_is_found(world: Any) -> None:
    add(world, 2, "rack", "b7")
    world.do("port-label-add", dpid=2, port_no=1, key="room", value="d")
    assert list(label_findings(world)) == []
    world.disconnect(2)
    assert list(label_findings(world)) == [(2, None), (2, 1)]


def label_findings(world: Any) -> Iterator[tuple[int, int | None]]:
    for finding in world.core.findings.search():
        if finding is not None and finding["text"].startswith("A label of an operator"):
            yield finding["dpid"], finding.get("port_no")


def test_what_was_done_is_an_event(world: Any) -> None:
    add(world, 2, "rack", "b7")
    told = [event["text"] for event in world.core.sections.events.section.changes(0, 1000)["put"].values()]
    assert told[-1] == "An operator gives switch 0000000000000002 the label rack=b7."
