"""A staged policy of a running controller under each framework: read when it is there, judged by, never applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import report_frames
from controllers import OPEN_POLICY

from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query

PORTS = 8
TIMEOUT_S = 30.0
RULE = "{name: one, groups: [224.0.0.0/4], role: receiver, hosts: [{dpid: 1, port: 2}], action: allow}"
STRICT = f"version: 1\nrules: [{RULE}]\n"


@pytest.fixture(params=FRAMEWORKS)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(OPEN_POLICY)
    env = {"VSRT_STAGED": str(tmp_path / "staged.yaml")}
    with ControllerProcess(
        free_port(), framework=request.param, policy=policy, apps=("multicast",), env=env
    ) as process:
        yield process


def test_it_is_judged_by_beside_the_policy_in_force(running: ControllerProcess, tmp_path: Path) -> None:
    path = tmp_path / "staged.yaml"
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))

    def told() -> dict[str, dict[str, Any]]:
        sections = query(running.socket, {"changes": {"staged": 0}, "limit": 2000}, TIMEOUT_S)["sections"]
        found: dict[str, dict[str, Any]] = sections["staged"]["multicast"]["put"]
        return found

    def wait(reached: Callable[[dict[str, Any]], Any]) -> None:
        assert switch.run_until(lambda: reached(told()["alike"]), TIMEOUT_S)

    def join(frames: list[bytes]) -> None:
        before = switch.received[FLOW_MOD]
        switch.say(frames)
        assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + len(frames), TIMEOUT_S)

    try:
        assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
        switch.run_for(1.0)
        frames = report_frames(3 * (PORTS - 1), 3, PORTS)
        join(frames[: PORTS - 1])
        assert told()["alike"]["loaded_s"] is None and len(told()) == 1
        path.write_text(STRICT)
        wait(lambda summary: summary["count"] == 1)  # those who are there already
        assert len(told()) == 1 + PORTS - 2
        join(frames[PORTS - 1 : -PORTS + 1])
        wait(lambda summary: summary["count"] == 2)
        refused = [document for name, document in told().items() if name != "alike"]
        assert {(one["would_be"], one["rule"], one["staged_rule"]) for one in refused} == {
            ("refused", "all", "default")
        }
        assert Counter(one["port_no"] for one in refused) == dict.fromkeys(range(3, PORTS + 1), 2)
        path.write_text("version: 1\ndefault: perhaps\n")
        wait(lambda summary: summary["errors"])
        join(frames[-PORTS + 1 :])
        assert len(query(running.socket, {"show": "groups"}, TIMEOUT_S)) == len(frames)
        wait(lambda summary: summary["count"] == 3)
    finally:
        switch.close()
