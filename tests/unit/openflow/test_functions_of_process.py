"""Scripts at functions of a running controller under each framework, whatever its threads are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import report_frames
from controllers import OPEN_POLICY, free_port

from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query

PORTS, JOINS = 8, 40
TIMEOUT_S = 30.0
SCRIPT = """aggr entered[0][1]; aggr left[0][1]; aggr us[0][0]; aggr packets[0][0];
multicast:enter:controller.multicast.frames.MulticastIntake.* { entered[point]++; }
multicast:enter:controller.multicast.core.MulticastCore.handle { entered["handle"]++; }
multicast:exit:controller.multicast.core.MulticastCore.handle { left["handle"]++; us <- took_ns / 1000; }
multicast:event:PacketReceived { packets++; }"""


@pytest.fixture(params=FRAMEWORKS)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(OPEN_POLICY)
    with ControllerProcess(free_port(), framework=request.param, policy=policy, apps=("multicast",)) as process:
        yield process


def test_functions_are_seen_entered_and_left_and_are_as_before_after(running: ControllerProcess) -> None:
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))

    def ask(**question: Any) -> Any:
        answer = query(running.socket, question, TIMEOUT_S)
        assert "error" not in answer, answer
        return answer

    def join(frames: list[bytes]) -> None:
        before = switch.received[FLOW_MOD]
        switch.say(frames)
        assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + len(frames), TIMEOUT_S)

    try:
        assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
        switch.run_for(1.0)
        frames = report_frames(2 * JOINS, 3, PORTS)
        number = ask(do="probe-run", script=SCRIPT, for_s=60)["id"]
        join(frames[:JOINS])
        found = ask(do="probe-stop", id=number)
        counts = {(name, *row["keys"]): row["count"] for name, rows in found["aggregates"].items() for row in rows}
        assert (found["faults"], found["skipped"]) == ({}, 0), found
        assert counts["packets",] == JOINS
        assert counts["entered", "handle"] == counts["left", "handle"] == counts["us",] >= JOINS
        assert sum(count for key, count in counts.items() if key[0] == "entered") >= 2 * JOINS
        join(frames[JOINS:])
        assert ask(show="probes") == {"probes": []}
    finally:
        switch.close()
