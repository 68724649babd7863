"""`vsrt allocate` with --live, and `watch`, against an allocator's core behind a real socket."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from apps.status_server import QuestionRefused, StatusServer
from controller.allocation.events import PortsRated
from controller.allocation.fields import RequestError
from controller.allocation.live import AllocatorCore
from controller.allocation.live_view import ACTIONS, AllocatorConsole
from controller.config.settings import Allocation, PortParameters
from controller.events import Port, SwitchConnected

START_S = 1_700_000_000


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """The socket of an allocator that knows switch 7: port 1 is at 40 %, 2 at 10 %, 3 not measured."""
    core = AllocatorCore(Allocation(openflow=PortParameters(days_to_average_utilization=10001)))
    core.handle(
        SwitchConnected(7, 4, tuple(Port(number, f"eth{number}", bytes(6), True, 1e9) for number in (1, 2, 3))), 0
    )
    for second in range(0, 81, 10):
        core.handle(PortsRated(((7, 1), (7, 2)), np.full(2, START_S + second), np.array([40.0, 10.0]), {}), 0)
    state = {"path": "allocation.sqlite", "fault": "", "set_aside": "it was damaged"}
    console = AllocatorConsole(core, lambda: (START_S + 80) * 1000, lambda: {"state": state})

    def answer(action: Any, asked: Any) -> Any:
        try:
            return action(console, asked)
        except RequestError as error:
            raise QuestionRefused(str(error)) from None

    actions = {name: partial(answer, action) for name, action in ACTIONS.items()}
    server = StatusServer(tmp_path / "vsrt.sock", {}, lambda ask: ask(), logging.getLogger("test"), actions)
    server.start()
    yield tmp_path / "vsrt.sock"
    server.stop()


def run(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["allocate", *words, "--socket", str(path)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def written(tmp_path: Path, document: Any) -> str:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_ports_are_allocated_from_measured_load(path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(path, capsys, "ports", "--live", "--count", "1", "--size-pct", "5", "--json")
    assert (status, json.loads(out)["ports"]) == (0, ["7:2"])
    status, out, _ = run(path, capsys, "ports", "--live", "--count", "3")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "2 of 3 ports have a valid metric"
    assert [line.split()[0] for line in lines[2:]] == ["7:2", "7:1", "7:3", "7:3:"]
    assert lines[-1] == "7:3: never measured: the monitor told nothing of it"


def test_the_switch_with_room_is_chosen_from_measured_load(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    status, out, _ = run(path, capsys, "pool", "--live", "--by", "switch", "--count", "3", "--size-pct", "50")
    assert (status, out.splitlines()[0]) == (0, "2 of 3 ports have a valid metric")
    assert out.splitlines()[2].split()[:6] == ["7", "3", "3", "250.0", "25.00", "yes"]
    request = written(tmp_path, {"by": "switch", "count": 4})
    status, out, _ = run(path, capsys, "pool", "--live", "--input", request, "--json")
    assert (status, json.loads(out)["pool"]) == (1, None)
    status, out, _ = run(path, capsys, "pool", "--live")
    assert (status, out.splitlines()[-1]) == (1, "3 ports are in no pod")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "pod", "--input", "x.json"), "--by: only with --live"),
        (("--live", "--by", "pod", "--input", "x.json"), "--by: not with --input"),
        (("--count", "2"), "--count: only with --live"),
    ],
)
def test_words_of_pool_that_do_not_go_together(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
):
    status = main(["allocate", "pool", *words])
    assert (status, message in capsys.readouterr().err) == (2, True)


def test_a_request_comes_from_a_file_too(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    request = written(tmp_path, {"ports": ["7:1", "7:3"], "count": 1})
    status, out, _ = run(path, capsys, "ports", "--live", "--input", request, "--json")
    assert (status, json.loads(out)["ports"]) == (0, ["7:1"])
    request = written(tmp_path, {"ports": ["7:1"], "count": 2})
    status, out, err = run(path, capsys, "ports", "--live", "--input", request, "--json")
    assert (status, json.loads(out)["error"]) == (1, {"requested": 2, "allocated": 1, "available": 1})
    status, out, err = run(path, capsys, "ports", "--live", "--input", request)
    assert (status, out, err) == (1, "", "vsrt: 2 ports requested, 1 allocated, 1 available\n")


def test_a_request_over_networks_comes_from_a_file(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    host = {"name": "esx1", "initiators": [{"id": "nic0", "network": "a"}]}
    asked = {"networks": [{"name": "a", "ports": ["7:1", "7:2"]}], "hosts": [host], "max_paths": 1}
    status, out, _ = run(path, capsys, "ports", "--live", "--input", written(tmp_path, asked))
    assert status == 0
    assert "network a" in out
    assert out.splitlines()[-1].split() == ["esx1", "nic0", "7:2"]
    request = written(tmp_path, {**asked, "max_paths": 2, "min_paths": 2})
    status, _, err = run(path, capsys, "ports", "--live", "--input", request)
    assert (status, err) == (1, "vsrt: host esx1: 2 paths needed, 1 found\n")


def test_explain_tells_of_the_last_allocation_and_of_a_request(path: Path, capsys: pytest.CaptureFixture[str]):
    run(path, capsys, "ports", "--live", "--count", "1")
    status, out, _ = run(path, capsys, "explain", "--live", "--port", "7:1")
    assert status == 0
    assert "usage 40 %; 7:2 has 10 %" in out
    assert "port 40 % counts" in out
    assert out.endswith("metric: valid, 0 s old\n")
    status, out, _ = run(path, capsys, "explain", "--live", "--port", "7:2", "--count", "1", "--json")
    assert status == 0
    assert json.loads(out)["reserved_pct"] == 1.5


def test_watch_prints_once_without_a_terminal(path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(path, capsys, "watch")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("2023-11-14 22:14:40 UTC  2 of 3 ports")
    assert lines[1] == "it was damaged"
    assert [line.split()[0] for line in lines[3:]] == ["7:1", "7:2", "7:3"]
    assert "N/A" in lines[5]
    status, out, _ = run(path, capsys, "watch", "--limit", "1", "--json")
    assert [port["usage"] for port in json.loads(out)["ports"]] == pytest.approx([40])


@pytest.mark.parametrize(
    ("words", "document", "message"),
    [
        (["ports", "--live"], None, "count: expected a whole number, found None"),
        (["ports", "--live", "--count", "1", "--type", "tor"], None, None),
        (["explain", "--live", "--port", "7:9"], None, "port: there is no port 7:9"),
        (["explain", "--live", "--port", "7:1"], None, "no allocation is kept"),
        (["watch", "--limit", "0"], None, "--limit: 0 is not at least 1"),
        (["watch", "--url", "http://127.0.0.1:1"], None, "the dashboard's API does not answer allocate-watch"),
        (["ports", "--live", "--count", "1", "--url", "http://h:1"], None, "does not answer allocate; ask where"),
        (["watch", "--every", "0"], None, "--every: 0 is not within"),
        (["ports", "--live", "--count", "1"], {"count": 1}, "--count: not with --input"),
        (["ports", "--live"], {"count": 1, "ports": ["1"]}, "request.json: ports[0]: '1' is not DPID:PORT"),
        (["ports", "--live"], [1], "request.json: request: expected an object"),
        (["ports", "--live"], {"do": "perf-reset"}, "request.json: request.do: unknown field"),
        (["ports", "--live"], {"count": 1, "ports": ["7:1"] * 10000}, "at most 65536 bytes"),
        (["ports", "--count", "1"], None, "--count: only with --live"),
    ],
)
def test_bad_input_is_refused_with_its_field(
    path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    document: Any,
    message: str | None,
):
    given = [] if document is None else ["--input", written(tmp_path, document)]
    status, out, err = run(path, capsys, *words, *given)
    assert status == (1 if message is None else 2)
    assert (message or "1 ports requested, 0 allocated, 0 available") in err
    assert out == ""


def test_a_request_needs_a_source(capsys: pytest.CaptureFixture[str]):
    assert main(["allocate", "ports"]) == 2
    assert "--input: missing (or --live)" in capsys.readouterr().err


def test_a_controller_without_an_allocator_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    server = StatusServer(tmp_path / "vsrt.sock", {"status": dict}, lambda ask: ask(), logging.getLogger("test"))
    server.start()
    status, _, err = run(tmp_path / "vsrt.sock", capsys, "watch")
    server.stop()
    assert (status, "no allocator runs in this controller" in err) == (1, True)
    status, _, err = run(tmp_path / "vsrt.sock", capsys, "watch")
    assert (status, "no controller answers" in err) == (1, True)
