"""What a controller keeps: on the disk before an operator is answered, and complete again after a full disk."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from control_plane import report_frames
from controllers import OPEN_POLICY, controller

from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query

PORTS = 8
GROUPS = 400
FULL_AT_BYTES = 30_000
TIMEOUT_S = 30.0


@pytest.fixture(params=["vsrt", "vsrt-os-ken"])
def running(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, OPEN_POLICY) as process:
        yield process


def ask(process: ControllerProcess, **question: Any) -> Any:
    return query(process.socket, question, TIMEOUT_S)


def journal_states(process: ControllerProcess) -> list[str]:
    events = ask(process, changes={"events": 0}, limit=2000)["sections"]["events"]["multicast"]["put"].values()
    return [event["state"] for event in events if event["kind"] == "journal-unwritable"]


def serve_until(switch: LoneSwitch, reached: Callable[[], bool]) -> None:
    for _ in range(int(TIMEOUT_S / 0.2)):
        switch.run_for(0.2)
        if reached():
            return
    raise AssertionError("not reached in time")


def test_what_an_operator_was_told_is_done_outlasts_a_crash(running: ControllerProcess) -> None:
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))
    serve_until(switch, lambda: ask(running, show="status")["switches"] == 1)
    answer = ask(running, do="static-member-add", group="239.9.9.9", dpid=1, port_no=3, by="me")
    running.kill()
    switch.close()
    assert answer.get("error") is None and "kept" not in answer
    state = running.directory / "state"
    (line,) = (state / "actions.jsonl").read_text().splitlines()
    assert json.loads(line)["action"] == "static-member-add"
    running.start()
    (group,) = ask(running, show="groups")
    members = [(member["dpid"], member["port_no"]) for member in group["static_members"]]
    assert (group["group"], members) == ("239.9.9.9", [(1, 3)])


def test_the_journal_of_a_version_before_is_taken_over_once(running: ControllerProcess) -> None:
    running.kill()
    state = running.directory / "state"
    settings = {"static_members": [[1, 3, "239.9.9.9"]], "router_ports": [], "drained": []}
    (state / "journal.jsonl").write_text(json.dumps({"kind": "operator", **settings}) + "\n")
    running.start()
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))
    serve_until(switch, lambda: (state / "journal.jsonl.taken-over").exists())
    switch.close()
    assert not (state / "journal.jsonl").exists()
    running.kill()
    running.start()
    (group,) = ask(running, show="groups")
    assert (group["group"], len(group["static_members"])) == ("239.9.9.9", 1)


def test_a_full_disk_is_told_once_and_what_was_missed_is_written_later(
    running: ControllerProcess,
) -> None:
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))
    (first,) = report_frames(1, 3, PORTS)
    serve_until(switch, lambda: switch.say([first]) or len(ask(running, show="groups")) == 1)
    _, hard = resource.prlimit(running.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (FULL_AT_BYTES, hard))
    before = switch.received[FLOW_MOD]
    switch.say(report_frames(GROUPS, 3, PORTS))
    assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + GROUPS - 1, TIMEOUT_S)
    serve_until(switch, lambda: journal_states(running) == ["raised"])
    answer = ask(running, do="static-member-add", group="239.9.9.9", dpid=1, port_no=3)
    assert answer["kept"] is False
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (hard, hard))
    serve_until(switch, lambda: journal_states(running) == ["raised", "cleared"])
    switch.close()
    running.kill()
    running.start()
    kept = {group["group"]: group for group in ask(running, show="groups")}
    assert len(kept) == GROUPS + 1
    assert kept.pop("239.9.9.9")["static_members"]
    assert all(group["members"] for group in kept.values())
