"""Scripts at functions of a running controller under each framework, whatever its threads are.

Where VSRT_COMPILE is 1 the controller runs compiled cores, as the test does (script/test).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from control_plane import report_frames
from controllers import OPEN_POLICY

from apps.cli.main import main
from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query

PORTS, JOINS = 8, 40
TIMEOUT_S = 30.0
OF_CORES, OF_ALL = "controller.membership.core.MembershipCore.report_received", "controller.wire.frame.decode"
"""Functions through which each report passes: compiled with the cores, and never."""
IS_COMPILED = os.environ.get("VSRT_COMPILE") == "1"
SEEN = OF_ALL if IS_COMPILED else OF_CORES
SCRIPT = f"""aggr entered[0][1]; aggr left[0][1]; aggr us[0][0]; aggr packets[0][0];
multicast:enter:{SEEN.rpartition(".")[0]}.* {{ entered[point]++; }}
multicast:enter:{SEEN} {{ entered["report"]++; }}
multicast:exit:{SEEN} {{ left["report"]++; us <- took_ns / 1000; }}
multicast:event:PacketReceived {{ packets++; }}"""


@pytest.fixture(params=FRAMEWORKS)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(OPEN_POLICY)
    with ControllerProcess(free_port(), framework=request.param, policy=policy, apps=("multicast",)) as process:
        yield process


@contextmanager
def switch_of(running: ControllerProcess) -> Iterator[Callable[[list[bytes]], None]]:
    """Have a switch, and yield what has its hosts join groups that nobody is in."""
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))

    def join(frames: list[bytes]) -> None:
        before = switch.received[FLOW_MOD]
        switch.say(frames)
        assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + len(frames), TIMEOUT_S)

    try:
        assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
        switch.run_for(1.0)
        yield join
    finally:
        switch.close()


def ask(running: ControllerProcess, **question: Any) -> Any:
    answer = query(running.socket, question, TIMEOUT_S)
    assert "error" not in answer, answer
    return answer


def test_functions_are_seen_entered_and_left_and_are_as_before_after(running: ControllerProcess) -> None:
    with switch_of(running) as join:
        frames = report_frames(2 * JOINS, 3, PORTS)
        number = ask(running, do="probe-run", script=SCRIPT, for_s=60)["id"]
        join(frames[:JOINS])
        found = ask(running, do="probe-stop", id=number)
        counts = {(name, *row["keys"]): row["count"] for name, rows in found["aggregates"].items() for row in rows}
        assert (found["faults"], found["skipped"]) == ({}, 0), found
        assert counts["packets",] == JOINS
        assert counts["entered", "report"] == counts["left", "report"] == counts["us",] == JOINS
        assert sum(count for key, count in counts.items() if key[0] == "entered") >= 2 * JOINS
        join(frames[JOINS:])
        assert ask(running, show="probes") == {"probes": []}


@pytest.mark.parametrize("pattern", [OF_CORES, f"{OF_CORES.rpartition('.')[0]}.*"])
def test_what_is_compiled_is_not_listed_and_a_script_that_names_it_is_told_why(
    running: ControllerProcess, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    point = f"multicast:enter:{pattern}"
    begun = query(running.socket, {"do": "probe-run", "script": f"{point} {{ }}"}, TIMEOUT_S)
    listed = main(["probe", "list", "--json", point])
    out, err = capsys.readouterr()
    if IS_COMPILED:
        assert "compiled here, and scripts look at functions that are not" in begun["error"]
        assert "line 1, column 1" in begun["error"]
        assert listed == 2 and "compiled here" in err
    else:
        assert ask(running, do="probe-stop", id=begun["id"])["faults"] == {}
        assert f"multicast:enter:{OF_CORES}" in {each["name"] for each in json.loads(out)["points"]}
