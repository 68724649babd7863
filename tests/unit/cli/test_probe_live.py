"""`vsrt probe run`, `ps` and `stop` at a controller process with a switch whose hosts join groups."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_plane import report_frames
from controllers import controller

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query
from controller.probes.library import library

TIMEOUT_S = 30.0
PORTS = 8
JOINS = 200
COUNT = 'aggr n[0][1]; multicast:event:PacketReceived { n[str(dpid)]++; print("%d", in_port); }'


@pytest.fixture(scope="module", params=["vsrt", "vsrt-os-ken"])
def bench(request: pytest.FixtureRequest) -> Iterator[tuple[ControllerProcess, LoneSwitch, Iterator[bytes]]]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param) as process:
        switch = LoneSwitch(1, PORTS, ("127.0.0.1", process.port))
        assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
        switch.run_for(1.0)
        yield process, switch, iter(report_frames(4 * JOINS, 3, PORTS))
        switch.close()


def begin(bench: Any, *arguments: str, count: int = 1) -> subprocess.Popen[str]:
    process, _switch, _frames = bench
    command = [sys.executable, "-m", "apps.cli.main", "probe", "run", *arguments, "--socket", str(process.socket)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_count(bench, count)
    return running


def wait_count(bench: Any, count: int) -> None:
    """Wait until so many scripts run; the switch answers meanwhile, since one that is silent is given up."""
    process, switch, _frames = bench
    until_s = time.monotonic() + TIMEOUT_S
    while len(query(process.socket, {"show": "probes"})["probes"]) != count:
        assert time.monotonic() < until_s
        switch.run_for(0.05)


def join(switch: LoneSwitch, frames: Iterator[bytes]) -> None:
    before = switch.received[FLOW_MOD]
    switch.say([next(frames) for _ in range(JOINS)])
    assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + JOINS, TIMEOUT_S)


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


def test_what_happens_is_counted_until_ctrl_c(bench: Any, capsys: pytest.CaptureFixture[str]):
    process, switch, frames = bench
    running = begin(bench, "--text", COUNT, "--for", "5m")
    join(switch, frames)
    status, out, _err = call(capsys, "probe", "ps", "--socket", process.socket)
    assert status == 0 and "aggr n[0][1]" in out
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0 and err == ""
    lines = out.splitlines()
    assert sorted({*lines[:JOINS]}) == [str(port) for port in range(2, PORTS + 1)]
    assert [line.split() for line in lines[JOINS:]] == [[], ["n:"], ["key", "count"], ["1", str(JOINS)]]
    wait_count(bench, 0)


def test_it_is_one_document_with_json_and_ends_when_another_stops_it(
    bench: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    process, switch, frames = bench
    table = tmp_path / "n.parquet"
    running = begin(bench, "--library", "tree-changes", "--json", "--output", str(table))
    join(switch, frames)
    (probe,) = query(process.socket, {"show": "probes"})["probes"]
    assert probe["script"] == library()["tree-changes"].text
    assert call(capsys, "probe", "stop", probe["id"], "--socket", process.socket)[0] == 0
    out, err = running.communicate(timeout=TIMEOUT_S)
    found = json.loads(out)
    (row,) = found["aggregates"]["edits_of"]
    assert (running.returncode, err, row["keys"], row["count"]) == (0, "", [1, "Put"], JOINS)
    import pyarrow.parquet

    rows = {(each["aggregate"], *each["keys"]): each for each in pyarrow.parquet.read_table(table).to_pylist()}
    assert rows["edits_of", "1", "Put"]["count"] == JOINS
    assert sum(each["count"] for each in rows["batch", "1"]["histogram"]) == rows["batch", "1"]["count"]


def test_what_is_refused_is_told_with_its_place(bench: Any, capsys: pytest.CaptureFixture[str]):
    process, _switch, _frames = bench
    status, out, err = call(
        capsys, "probe", "run", "-e", "multicast:event:PacketRecieved { }", "--socket", process.socket
    )
    assert (status, out) == (2, "")
    assert "line 1, column 1" in err and "did you mean multicast:event:PacketReceived?" in err
    status, _out, err = call(capsys, "probe", "run", "--library", "joins", "--socket", process.socket)
    assert status == 2 and "join-latency" in err
    assert call(capsys, "probe", "run", "-e", "begin { }", "--for", "soon", "--socket", process.socket)[0] == 2
    assert call(capsys, "probe", "stop", "99", "--socket", process.socket)[0] == 2
    wait_count(bench, 0)


def test_every_script_of_the_library_may_look(bench: Any):
    process, switch, _frames = bench
    for script in library().values():
        switch.turn(0.0)
        begun = query(process.socket, {"do": "probe-run", "script": script.text})
        assert "error" not in begun, (script.name, begun)
        ended = query(process.socket, {"do": "probe-stop", "id": begun["id"]})
        assert not ended["faults"].get("defect of the probe"), script.name


def test_where_the_controller_knows_nothing_of_it_any_more_what_was_found_is_shown(bench: Any):
    process, switch, frames = bench
    running = begin(bench, "--text", COUNT, "--for", "5m")
    join(switch, frames)
    assert running.stdout is not None
    for _ in range(JOINS):
        assert running.stdout.readline()
    running.send_signal(signal.SIGSTOP)
    (probe,) = query(process.socket, {"show": "probes"})["probes"]
    query(process.socket, {"do": "probe-stop", "id": probe["id"]})
    while "error" not in query(process.socket, {"do": "probe-look", "id": probe["id"]}):
        begun = query(process.socket, {"do": "probe-run", "script": "begin { }"})
        query(process.socket, {"do": "probe-stop", "id": begun["id"]})
    running.send_signal(signal.SIGCONT)
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 1 and [line.split() for line in out.splitlines()][-1] == ["1", str(JOINS)]
    assert "no script" in err


def test_where_the_controller_ends_what_was_found_is_shown(bench: Any):
    process, switch, frames = bench
    running = begin(bench, "--text", COUNT, "--for", "5m")
    join(switch, frames)
    assert running.stdout is not None
    for _ in range(JOINS):
        assert running.stdout.readline()
    process.stop()
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 1 and [line.split() for line in out.splitlines()][-1] == ["1", str(JOINS)]
    assert str(process.socket) in err
