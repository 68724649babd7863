"""`vsrt changes record`: a line for each change, over restarts, full disks and other recorders."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cli.change_file import read_changes
from fed_controller import FedController
from ovsdb_server import OvsdbServer
from patience import wait_until

ROOT = Path(__file__).parents[3]
WAIT_S = 20.0
LEAF = {"dpid": 1, "name": "leaf", "connected": True, "drained": False, "labels": {}}
PORT = {"dpid": 1, "port_no": 3, "role": "edge", "labels": {}}


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[FedController]:
    documents = {
        "switches": {"1": LEAF},
        "ports": {"1:3": PORT},
        "routers": {},
        "policy": {"policy": {"text": "version: 1\ndefault: allow\n"}},
    }
    fed = FedController(tmp_path / "controller.sock", documents)
    fed.start()
    yield fed
    fed.stop()


@contextmanager
def recording(controller: FedController, path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "apps.cli.main", "changes", "record", "-o", str(path), "--socket"]
    process = subprocess.Popen(
        [*command, str(controller.path), *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_of(process: subprocess.Popen[str], path: Path, count: int) -> list[dict[str, Any]]:
    """Return the lines of a file as soon as there are so many."""

    def lines() -> list[str]:
        text = path.read_text() if path.is_file() else ""
        return text.splitlines() if text.count("\n") >= count else []

    return [json.loads(line) for line in wait_until(lines, process.pid, WAIT_S)]


def ended(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(how)
    out, errors = process.communicate(timeout=WAIT_S)
    return process.returncode, out, errors


def facts(line: dict[str, Any]) -> tuple[str, ...]:
    return tuple(line[name] for name in ("type", "resource", "property", "old", "new"))


def test_changes_are_recorded_and_what_changed_meanwhile_is_when_it_runs_again(controller, tmp_path):
    path = tmp_path / "changes.jsonl"
    began_s = time.time()
    with recording(controller, path, "--from-nothing") as process:
        first = lines_of(process, path, 4)
        assert {facts(line) for line in first} == {
            ("switch", "1", "name", "", "leaf"),
            ("switch", "1", "drained", "", "false"),
            ("policy", "policy", "version", "", "1"),
            ("policy", "policy", "default", "", "allow"),
        }
        controller.put("ports", "1:3", {**PORT, "rx_bps": 7.0})
        controller.put("switches", "1", {**LEAF, "drained": True})
        (line,) = lines_of(process, path, 5)[4:]
        assert facts(line) == ("switch", "1", "drained", "false", "true")
        assert began_s - 1 <= line["time"] <= time.time() + 1
        assert ended(process) == (0, f"5 changes recorded in {path}\n", "")
    controller.put("switches", "1", LEAF)
    with path.open("a") as file:
        file.write('{"time": 1, "resou')
    with recording(controller, path, "--json") as process:
        assert facts(lines_of(process, path, 6)[5]) == ("switch", "1", "drained", "true", "false")
        status, out, errors = ended(process, signal.SIGINT)
        assert (status, json.loads(out), errors) == (0, {"file": str(path), "changes": 1, "unwritten": 0}, "")
    changes = read_changes([path])
    assert changes.notes == []
    assert len(changes.changes.time_s) == 6


def test_settings_of_a_database_that_is_named_are_recorded_too(controller, tmp_path):
    path = tmp_path / "changes.jsonl"
    with OvsdbServer(tmp_path) as server:
        server.bridge("leaf", 1, 3)
        with recording(controller, path, "--db", server.target) as process:
            # What is told first is usual: it is set anew until the recorder has been told of it.
            numbers = iter(range(1, 4096))

            def is_recorded() -> bool:
                server.vsctl("set", "Port", "leaf-3", f"tag={next(numbers)}")
                return path.is_file()

            wait_until(is_recorded, process.pid, WAIT_S)
            last = lines_of(process, path, 1)[-1]
            assert (last["type"], last["resource"], last["property"]) == ("port", "1:3", "port.tag")
            assert ended(process)[0] == 0
    with recording(controller, path, "--db", "nonsense") as process:
        _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 2
        assert "--db: 'nonsense' is neither unix:PATH nor tcp:HOST:PORT" in errors


def test_whoever_asks_it_to_end_more_than_once_is_told_the_same(controller, tmp_path):
    path = tmp_path / "changes.jsonl"
    with recording(controller, path, "--from-nothing") as process:
        lines_of(process, path, 4)
        for how in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            process.send_signal(how)
        assert ended(process) == (0, f"4 changes recorded in {path}\n", "")


def test_a_second_recorder_of_a_file_is_refused(controller, tmp_path):
    path = tmp_path / "changes.jsonl"
    with recording(controller, path, "--from-nothing") as first:
        lines_of(first, path, 4)
        with recording(controller, path) as second:
            out, errors = second.communicate(timeout=WAIT_S)
            assert (second.returncode, out) == (1, "")
            assert f"process {first.pid} records in it already" in errors


def test_what_cannot_be_written_is_told_once_and_written_when_it_can_be(controller, tmp_path):
    path = tmp_path / "changes.jsonl"
    path.mkdir()
    with recording(controller, path) as process:
        out, errors = process.communicate(timeout=WAIT_S)
        assert (process.returncode, out) == (2, "")
        assert f"{path}: Is a directory" in errors
    path.rmdir()
    with recording(controller, path, "--from-nothing") as process:
        lines_of(process, path, 4)
        path.unlink()
        path.mkdir()
        for number in range(2):
            controller.put("ports", "1:3", {**PORT, "labels": {"rack": f"b{number}"}})
        assert process.stderr is not None
        assert select.select([process.stderr], [], [], WAIT_S)[0]
        assert process.stderr.readline() == f"vsrt: {path}: Is a directory; trying again\n"
        path.rmdir()
        controller.put("ports", "1:3", {**PORT, "labels": {"rack": "b7"}})
        assert facts(lines_of(process, path, 1)[0]) == ("port", "1:3", "labels.rack", "", "b7")
        status, _, told_more = ended(process)
        assert (status, told_more) == (0, "")


def test_a_file_that_is_no_log_of_changes_is_left_alone(controller, tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"host": "h1"}\n')
    with recording(controller, path) as process:
        _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 2
        assert f"{path}:1: this is no log of changes" in errors
    assert path.read_text() == '{"host": "h1"}\n'
    with recording(controller, tmp_path / "changes.jsonl.gz") as process:
        assert "nothing can be added to a file that gzip packed" in process.communicate(timeout=WAIT_S)[1]
