"""Candidates of a running controller: found by a process of its own, told, accepted into files, ignored for good."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.candidates import search as searching
from apps.candidates.search import ACCEPTED_NAME, DECISIONS_NAME, LOG_NAME, SUMMARY, CandidateSearch
from apps.openflow.questions import Deferred
from apps.status_server import QuestionRefused
from controller.config.policy_discovery_settings import PolicyDiscovery
from controller.policy_discovery.candidate_documents import (
    CANDIDATES_BOUND,
    LISTED,
    FabricInventory,
    candidate_document,
    identified,
)
from controller.switch_templates.templates import read_templates
from fed_controller import FedController
from ovsdb_server import OvsdbServer
from patience import wait_until

WAIT_S = 60.0
GUARDED = {"guard": "on", "mtu": "9000", "leave": "fast"}
SETTINGS = PolicyDiscovery(enabled=True, interval_s=1.0)
PORTS = 40


def port(number: int, labels: dict[str, str]) -> dict[str, Any]:
    return {"dpid": 1, "port_no": number, "role": "edge", "labels": labels}


def labels_of(number: int) -> dict[str, str]:
    """What ports have: every third is guarded, one of these forgot a setting."""
    if number % 3:
        return {}
    return {name: value for name, value in GUARDED.items() if (number, name) != (9, "mtu")}


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[FedController]:
    documents = {
        "switches": {"1": {"dpid": 1, "name": "leaf", "connected": True, "drained": False, "labels": {}}},
        "ports": {f"1:{number}": port(number, labels_of(number)) for number in range(1, PORTS + 1)},
        "routers": {},
        "policy": {"policy": {"text": "version: 1\n"}},
    }
    fed = FedController(tmp_path / "controller.sock", documents)
    fed.start()
    yield fed
    fed.stop()


class Loop:
    """A search with a loop of its own: the test's thread, which does what is left for it."""

    def __init__(self, directory: Path, socket: Path) -> None:
        self._left: list[Callable[[], None]] = []
        self.search = CandidateSearch(
            logging.getLogger("candidates"),
            directory,
            socket,
            lambda work: threading.Thread(target=work).start(),
            self._later,
        )
        self._version = 0
        self.known: dict[str, Any] = {}

    def _later(self, work: Callable[[], None]) -> bool:
        self._left.append(work)
        return True

    def turn(self) -> dict[str, Any]:
        """Do what is due; return the documents as a reader has them."""
        self.search.look()
        while self._left:
            self._left.pop(0)()
        delta = self.search.documents.changes(self._version, 1000)
        if delta["whole"]:
            self.known = {}
        self._version = delta["version"]
        self.known |= delta["put"]
        for id_ in delta["remove"]:
            self.known.pop(id_, None)
        return self.known

    def until(self, reached: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        wait_until(lambda: reached(self.turn()), os.getpid(), WAIT_S)
        return self.known

    def decide(self, verb: str, id_: str) -> Any:
        answers: list[Any] = []
        deferred = self.search.actions()[f"candidate-{verb}"]({"id": id_}, "ann")
        assert isinstance(deferred, Deferred)
        deferred.when_settled(answers.append)
        self.until(lambda _known: answers)
        return answers[0]


@pytest.fixture
def loop(tmp_path: Path, controller: FedController) -> Iterator[Loop]:
    loop = Loop(tmp_path, controller.path)
    loop.search.use(SETTINGS)
    yield loop
    loop.search.stop()


def found(known: dict[str, Any]) -> dict[str, Any]:
    return {id_: document for id_, document in known.items() if id_ != SUMMARY}


def test_what_ports_have_in_common_is_found_and_who_lacks_it(loop: Loop, controller: FedController) -> None:
    known = loop.until(found)
    (candidate,) = found(known).values()
    guarded = [f"1:{number}" for number in range(3, PORTS + 1, 3)]
    assert candidate["properties"] == sorted(f"labels.{name}" for name in GUARDED)
    assert (candidate["resources"], candidate["state"]) == (sorted(guarded), "new")
    assert candidate["deviations"] == [{"resource": "1:9", "missing": ["labels.mtu"], "other": {}}]
    assert candidate["varieties"][0]["values"] == {f"labels.{name}": value for name, value in GUARDED.items()}
    summary = known[SUMMARY]
    assert (summary["state"], summary["resource_count"], summary["fault"]) == (SUMMARY, PORTS + 1, None)
    controller.put("ports", "1:9", port(9, GUARDED))
    loop.until(lambda known: [each["deviation_count"] for each in found(known).values()] == [0])


def test_one_that_is_accepted_is_a_file_and_what_was_said_of_it_is_kept(
    loop: Loop, controller: FedController, tmp_path: Path
) -> None:
    (id_,) = found(loop.until(found))
    answer = loop.decide("accept", id_)
    path = tmp_path / ACCEPTED_NAME / f"{id_}.json"
    assert [each.name for each in path.parent.iterdir()] == [path.name], "labels are in no template"
    assert (answer["state"], answer["path"]) == ("accepted", str(path))
    written = json.loads(path.read_text())
    assert written["accepted_by"] == "ann" and len(written["policies"][0]["resources"]) == PORTS // 3
    assert loop.turn()[id_]["state"] == "accepted"
    loop.decide("ignore", id_)
    assert loop.turn()[id_]["state"] == "ignored" and path.exists()
    loop.search.stop()
    again = Loop(tmp_path, controller.path)
    again.search.use(SETTINGS)
    try:
        assert again.until(found)[id_]["state"] == "ignored"
        again.decide("consider", id_)
        assert again.turn()[id_]["state"] == "new"
    finally:
        again.search.stop()


def test_settings_of_the_policy_s_database_are_a_template_beside_it(
    loop: Loop, controller: FedController, tmp_path: Path
) -> None:
    with OvsdbServer(tmp_path) as server:
        server.bridge("leaf", 1, PORTS)
        words: list[str] = []
        for number in range(3, PORTS + 1, 3):
            words += ["--", "set", "Interface", f"leaf-{number}", "mtu_request=9000"]
            words += ["--", "set", "Port", f"leaf-{number}", "tag=5", "lacp=off"]
        server.vsctl(*words[1:])
        controller.put("policy", "policy", {"text": f'version: 1\nmonitor: {{ovsdb: "{server.target}"}}\n'})
        loop.until(lambda known: any("port.tag" in each["properties"] for each in found(known).values()))
    known = loop.turn()
    (id_,) = (id_ for id_, each in found(known).items() if "port.tag" in each["properties"])
    loop.decide("accept", id_)
    path = tmp_path / ACCEPTED_NAME / f"{id_}.yaml"
    (template,) = read_templates(path.read_bytes(), path.name)
    assert template.select == "guard=on", "who has that label is known by it"
    assert {(one.table, one.column): one.value for one in template.settings} == {
        ("Interface", "mtu_request"): 9000,
        ("Port", "tag"): 5,
        ("Port", "lacp"): "off",
    }


def test_nothing_is_said_of_one_that_there_is_not_or_that_cannot_be_written(loop: Loop, tmp_path: Path) -> None:
    (id_,) = found(loop.until(found))
    with pytest.raises(QuestionRefused, match="no candidate 'x'"):
        loop.search.actions()["candidate-accept"]({"id": "x"}, None)
    (tmp_path / ACCEPTED_NAME).write_text("in the way")
    answer = loop.decide("accept", id_)
    assert answer["refused"] and "could not be written" in answer["error"]
    assert loop.turn()[id_]["state"] == "new"


def test_where_it_is_switched_off_nothing_runs_and_nothing_is_told(loop: Loop, tmp_path: Path) -> None:
    loop.until(found)
    process = loop.search._process
    assert process is not None
    loop.search.use(PolicyDiscovery())
    assert loop.turn() == {}
    wait_until(lambda: loop.turn() == {} and process.returncode is not None, os.getpid(), WAIT_S)
    assert process.returncode == 0 and (tmp_path / LOG_NAME).exists()
    loop.search.use(SETTINGS)
    loop.until(found)


def test_a_search_that_is_killed_is_told_and_begins_anew(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "RETRY_S", 0.2)
    before = found(loop.until(found))
    assert loop.search._process is not None
    loop.search._process.send_signal(signal.SIGKILL)
    known = loop.until(lambda known: known[SUMMARY]["fault"])
    assert found(known) == before and "ended with status -9" in known[SUMMARY]["fault"]
    loop.until(lambda known: known[SUMMARY]["fault"] is None)


def test_it_says_why_it_cannot_record(tmp_path: Path, controller: FedController) -> None:
    (tmp_path / LOG_NAME).write_text('{"no": "log"}\n')
    loop = Loop(tmp_path, controller.path)
    loop.search.use(SETTINGS)
    try:
        known = loop.until(lambda known: known.get(SUMMARY, {}).get("fault"))
        assert "this is no log of changes" in known[SUMMARY]["fault"]
    finally:
        loop.search.stop()


@pytest.mark.parametrize("text", ["[]", '{"a": {"state": "ignored"}}', "{"])
def test_what_was_said_before_and_makes_no_sense_is_put_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / DECISIONS_NAME).write_text(text)
    Loop(tmp_path, tmp_path / "none.sock")
    assert (tmp_path / f"{DECISIONS_NAME}.faulty").read_text() == text


def policy(properties: list[str], resources: int = 1) -> dict[str, Any]:
    names = [f"1:{number}" for number in range(resources)]
    return {
        **{"properties": properties, "types": ["port"], "resources": names, "told_by": [], "bits_saved": 1.0},
        **{"varieties": [{"values": {"a": "v" * 1000, "b": None}, "resources": names}] * 40},
        "deviations": [{"resource": name, "missing": properties, "other": {"a": "v" * 1000}} for name in names],
        "near": [{"resource": name, "missing": ["a"]} for name in names],
    }


def test_ids_are_the_same_after_each_search_and_differ_by_properties() -> None:
    one, other = dict(identified([policy(["a", "b"]), policy(["b", "c"])])), dict(identified([policy(["b", "a"])]))
    assert len(one) == 2 and set(other) <= set(one)
    twice = [id_ for id_, _ in identified([policy(["a"]), policy(["a"])])]
    assert twice[1] == f"{twice[0]}-2"


def test_a_document_is_bounded_and_says_how_many_there_are() -> None:
    document = candidate_document(policy(["a", "b"], 10_000))
    assert document["resource_count"] == document["deviation_count"] == document["near_count"] == 10_000
    assert len(document["resources"]) == len(document["deviations"]) == LISTED
    assert len(json.dumps(document)) * CANDIDATES_BOUND < 4 << 20


def test_a_port_is_told_by_what_is_known_of_its_switch_too() -> None:
    inventory = FabricInventory()
    inventory.put("switches", {"id": "1", "tier": "leaf", "labels": {"rack": "b7"}})
    inventory.put("ports", {"id": "1:2", "dpid": 1, "role": "edge", "labels": {"rack": "own"}})
    inventory.put("policy", {"id": "policy", "text": ""})
    assert inventory.labels() == {
        "1": {"tier": "leaf", "rack": "b7"},
        "1:2": {"tier": "leaf", "rack": "own", "role": "edge"},
    }
    assert inventory.kinds() == {"1": "switch", "1:2": "port"}
    inventory.remove("ports", "1:2")
    assert inventory.kinds() == {"1": "switch"}
