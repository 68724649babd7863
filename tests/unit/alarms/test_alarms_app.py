"""The alarms' app without switches: its socket, its log of actions, and what it keeps over a restart."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from alarm_receiver import Receiver
from apps.alarms import AlarmsApp
from apps.cli.main import main
from apps.emulation import status
from apps.openflow.bus import AlarmReported, TopologyChanged
from controller.alarms.events import ConditionReported
from controller.events import DeadlineReached, Port, PortChanged, SwitchConnected
from controller.snapshot.events import Severity
from topology.events import LinkDown, LinkUp, SwitchUp

POLICY = "version: 1\nalarms: {settle_s: 0, start_grace_s: 3600}\n"
KEY = "link-failed:1:1-2:1"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("VSRT_CONFIG", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VSRT_SOCKET", raising=False)
    monkeypatch.delenv("VSRT_AUDIT_LOG", raising=False)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@contextmanager
def running() -> Iterator[AlarmsApp]:
    """The app on its own loop."""
    app = AlarmsApp()
    app_manager.register_app(app)
    app.start()
    try:
        yield app
    finally:
        app.stop()
        app_manager.unregister_app(app)


def connect(app: AlarmsApp) -> None:
    for dpid in (1, 2):
        app.ask(lambda dpid=dpid: app.feed(SwitchConnected(dpid, 4, (Port(1, "", bytes(6), True, 1e9),))))
    app.send_event(app.name, TopologyChanged((SwitchUp(1, 4), SwitchUp(2, 4), LinkUp(1, 1, 2, 1, 1e9))))


def pull(app: AlarmsApp) -> None:
    """What a switch and discovery tell where a cable is pulled."""
    app.ask(lambda: app.feed(PortChanged(1, Port(1, "", bytes(6), False, 1e9), False)))
    app.send_event(app.name, TopologyChanged((LinkDown(1, 1, 2, 1),)))
    app.ask(lambda: app.feed(DeadlineReached()))


def ask(path: Path, **question: Any) -> Any:
    return status.query(path / "vsrt.sock", question)


def alarms(path: Path) -> dict[str, Any]:
    return {alarm["key"]: alarm for alarm in ask(path, show="alarms")["alarms"]}


def cleared(path: Path) -> list[dict[str, Any]]:
    sections = ask(path, changes={"cleared-alarms": 0})["sections"]
    return list(sections["cleared-alarms"]["alarms"]["put"].values())


def test_an_alarm_is_acknowledged_logged_and_outlasts_a_restart(tmp_path: Path) -> None:
    with running() as app:
        connect(app)
        pull(app)
        found = alarms(tmp_path)[KEY]
        assert found["acknowledged_by"] is None
        answer = ask(tmp_path, do="alarm-acknowledge", key=KEY, by="ann")
        assert (answer["key"], answer["acknowledged_by"]) == (KEY, "ann")
        refused = ask(tmp_path, do="alarm-acknowledge", key="x", by="bob")
        assert refused == {"error": "key: no alarm 'x' is open", "refused": True, "field": "key"}
        assert ask(tmp_path, do="alarm-acknowledge", kee="x")["field"] == "kee"
    lines = [json.loads(line) for line in (tmp_path / "actions.jsonl").read_text().splitlines()]
    assert [(line["action"], line["by"], line["verdict"]) for line in lines] == [
        ("alarm-acknowledge", "ann", "done"),
        ("alarm-acknowledge", "bob", "refused"),
        ("alarm-acknowledge", None, "refused"),
    ]
    with running() as app:
        kept = alarms(tmp_path)[KEY]
        assert (kept["acknowledged_by"], kept["since_s"]) == ("ann", pytest.approx(found["since_s"], abs=0.01))
        sections = ask(tmp_path, changes={"links": 0, "status": 0})["sections"]
        assert sections["links"]["alarms"]["put"]["1:1-2:1"]["state"] == "failed"
        connect(app)
        app.ask(lambda: None)
        assert alarms(tmp_path) == {}
        (over,) = cleared(tmp_path)
        assert (over["key"], over["acknowledged_by"]) == (KEY, "ann")
        assert over["since_s"] == pytest.approx(found["since_s"], abs=0.01)
    with running():
        assert alarms(tmp_path) == {}
        assert [(alarm["key"], alarm["cleared_s"]) for alarm in cleared(tmp_path)] == [
            (KEY, pytest.approx(over["cleared_s"], abs=0.01))
        ]


def test_the_fabric_of_a_file_is_expected(tmp_path: Path) -> None:
    assert main(["topology", "make", "fattree", "--k", "2", "-o", str(tmp_path / "fabric.json")]) == 0
    (tmp_path / "policy.yaml").write_text(POLICY + "topology: {file: fabric.json}\n")
    with running() as app:
        for dpid in range(1, 5):
            app.ask(lambda dpid=dpid: app.feed(SwitchConnected(dpid, 4, ())))
            app.ask(lambda dpid=dpid: app.feed(SwitchUp(dpid, 4)))
        status = ask(tmp_path, changes={"status": 0})["sections"]["status"]["alarms"]["put"]["status"]
        assert status["fabric"] == "4 of 5 switches, 0 of 4 links"
        assert ask(tmp_path, do="switch-forget", dpid=5)["refused"]


def test_a_missing_link_is_forgotten(tmp_path: Path) -> None:
    with running() as app:
        connect(app)
        pull(app)
        assert ask(tmp_path, do="link-forget", link="1:1-2:9")["error"] == "link: there is no link 1:1-2:9"
        assert ask(tmp_path, do="link-forget", link="x")["error"] == "link: 'x' is no link, such as 1:3-5:1"
        assert ask(tmp_path, do="switch-forget", dpid=1)["refused"]
        assert ask(tmp_path, do="link-forget", link="1:1-2:1") == {"link": "1:1-2:1", "forgotten": True}
        assert alarms(tmp_path) == {}
    with running():
        assert ask(tmp_path, changes={"links": 0})["sections"]["links"]["alarms"]["put"] == {}


def test_a_damaged_database_is_set_aside(tmp_path: Path) -> None:
    with running() as app:
        connect(app)
        pull(app)
    database = tmp_path / "alarms.sqlite"
    database.write_bytes(b"no database at all" * 1000)
    with running():
        assert "damaged" in ask(tmp_path, show="alarms")["state"]["set_aside"]
        assert alarms(tmp_path) == {}


def test_a_faulty_policy_file_is_an_alarm_until_it_is_mended(tmp_path: Path) -> None:
    with running() as app:
        policy = tmp_path / "policy.yaml"
        policy.write_text("version: 1\nnonsense: 1\n")
        app.policy_file.reload()
        app.ask(app.ticked)
        found = alarms(tmp_path)["policy-faulty:policy"]
        assert found["severity"] == "critical"
        assert "policy.yaml:2" in found["text"]
        assert found["text"].endswith(".")
        assert ask(tmp_path, show="alarms")["status"]["degraded_because"] == found["text"]
        policy.write_text(POLICY + "limits: {}\n")
        app.policy_file.reload()
        app.ask(app.ticked)
        assert alarms(tmp_path) == {}


def test_other_apps_report_over_the_bus(tmp_path: Path) -> None:
    with running() as app:
        report = ConditionReported("monitor", "port-event", "1:4:rx_errors", Severity.WARNING, "Errors.", 1, 4)
        app.send_event(app.name, AlarmReported(report))
        assert alarms(tmp_path)["port-event:1:4:rx_errors"]["port_no"] == 4


def test_alarms_are_posted_and_a_receiver_that_is_away_is_an_alarm_itself(tmp_path: Path, receiver: Receiver) -> None:
    policy = tmp_path / "policy.yaml"
    hook = f"webhook: {{url: 'http://127.0.0.1:{receiver.port}/', attempts: 1}}"
    policy.write_text(POLICY.replace("}", f", {hook}}}"))
    with running() as app:
        connect(app)
        pull(app)
        _, body = receiver.taken.get(timeout=10)
        assert (body["key"], body["state"]) == (KEY, "raised")
        receiver.answers = [404]
        connect(app)
        _, body = receiver.taken.get(timeout=10)
        assert (body["key"], body["state"], body["cleared_s"] > 0) == (KEY, "cleared", True)
        while app.webhook.fault is None:
            app.ask(lambda: None)
        app.ask(app.ticked)
        assert "status 404" in alarms(tmp_path)["webhook-failed:webhook"]["text"]
        assert ask(tmp_path, show="alarms")["webhook"]["failed"] == 1
        assert receiver.taken.empty(), "what is wrong with the webhook is not posted to it"
