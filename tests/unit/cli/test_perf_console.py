"""The console commands of `vsrt perf` against a monitor's core behind a real socket."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from apps.status_server import QuestionRefused, StatusServer
from controller.config.settings import Monitor
from controller.events import Port, PortChanged, SwitchConnected
from controller.performance.batch import Samples
from controller.performance.inputs import SamplesReceived
from controller.performance.poller_core import MonitorChanged, MonitorCore
from controller.performance.poller_view import ACTIONS, Console, QuestionInvalid
from controller.snapshot.names import Names

AT_S = 1.7e9


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    core = MonitorCore(Monitor(), 0.0, AT_S)
    ports = tuple(Port(number, f"eth{number}", bytes(6), True, 1e9) for number in (1, 2))
    core.handle(SwitchConnected(7, 4, ports), 0.0)
    for second in range(3):
        counters = np.zeros((2, 12), np.uint64)
        counters[:, 3] = np.array([12_500_000, 25_000_000]) * second
        times = np.full(2, AT_S + second), np.full(2, 100.0 + second)
        core.performance.handle(SamplesReceived(Samples(np.array([0, 1], np.int32), *times, counters)), AT_S + second)
    names = Names()
    console = Console(
        core, lambda settings: core.handle(MonitorChanged(settings), 1.0) and None, lambda: 2.0, dict, names
    )
    names.described(7, "leaf7")
    core.handle(PortChanged(7, ports[0]._replace(up=False), False), 2.0)

    def answer(action: Any, asked: Any) -> Any:
        try:
            return action(console, asked)
        except QuestionInvalid as error:
            raise QuestionRefused(str(error)) from None

    actions = {name: partial(answer, action) for name, action in ACTIONS.items()}
    server = StatusServer(tmp_path / "vsrt.sock", {}, lambda ask: ask(), logging.getLogger("test"), actions)
    server.start()
    yield tmp_path / "vsrt.sock"
    server.stop()


def run(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["perf", *words, "--socket", str(path)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_report_as_table_and_as_json(path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(path, capsys, "report")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["port", "name", "class"]
    assert [line.split()[0] for line in lines[1:]] == ["leaf7:1", "leaf7:2"]
    assert "200 M" in lines[2]
    _, out, _ = run(path, capsys, "report", "0x7:2", "--json")
    (port,) = json.loads(out)["ports"]
    assert port["tx_bps"] == pytest.approx(2e8)
    assert port["tx_utilisation_pct"] == pytest.approx(20.0)


@pytest.mark.parametrize("where", ["leaf7", "7", "0x7", "0000000000000007", "00:00:00:00:00:00:00:07"])
def test_a_switch_goes_by_its_name_and_by_any_spelling_of_its_id(
    path: Path, capsys: pytest.CaptureFixture[str], where: str
):
    def first_cell(*words: str) -> str:
        status, out, _ = run(path, capsys, *words)
        assert status == 0
        return out.splitlines()[1].split("  ")[0]

    assert first_cell("report", f"{where}:2") == "leaf7:2"
    assert first_cell("report", where, "--by", "node") == "leaf7"
    assert run(path, capsys, "events", where)[1].splitlines()[1].split("  ")[1] == "leaf7:1"
    assert run(path, capsys, "histogram", "tx_bytes", "--node", where)[0] == 0


@pytest.mark.parametrize("by", ["node", "type"])
def test_report_sums_up(path: Path, capsys: pytest.CaptureFixture[str], by: str):
    status, out, _ = run(path, capsys, "report", "--by", by)
    assert status == 0
    assert "300 M" in out
    assert json.loads(run(path, capsys, "report", "--by", by, "--json")[1])["rows"][0]["ports"] == 2


def test_top_looks_once_where_there_is_no_terminal(path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(path, capsys, "top", "--limit", "1")
    assert status == 0
    assert "1 switches, 0 down  2 ports" in out
    assert "\x1b" not in out
    assert "leaf7:2" in out
    assert len(json.loads(run(path, capsys, "top", "--json")[1])["ports"]) == 2


def test_lists_are_sorted_and_cut_as_those_of_show_are(path: Path, capsys: pytest.CaptureFixture[str]):
    def places(*words: str) -> list[int]:
        return [port["port_no"] for port in json.loads(run(path, capsys, *words, "--json")[1])["ports"]]

    assert places("report", "--sort", "tx_bps") == [1, 2]
    assert places("report", "--sort", "tx_bps", "--reverse") == [2, 1]
    assert places("report", "--sort", "tx_bps", "--reverse", "--limit", "1") == [2]
    assert places("top", "--sort", "port_no", "--limit", "1") == [1]


@pytest.mark.parametrize(
    "words", [("top",), ("get",), ("report",), ("events",), ("histogram", "tx_bytes"), ("reset",)]
)
def test_what_only_the_socket_answers_is_refused_by_url(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]):
    assert main(["perf", *words, "--url", "http://127.0.0.1:1"]) == 2
    assert f"--url: the dashboard's API does not answer perf-{words[0]}; " in capsys.readouterr().err


def test_times_are_shown_in_utc_or_in_the_zone_of_the_machine(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def titles_and_time(*words: str) -> tuple[str, str]:
        title, line, *_ = run(path, capsys, "events", *words)[1].splitlines()
        return title.split("  ")[0], line.split("  ")[0]

    monkeypatch.setenv("TZ", "UTC-05:30")
    time.tzset()
    try:
        title, utc = titles_and_time()
        assert title == "time (UTC)"
        monkeypatch.setenv("VSRT_TIME", "local")
        title, local = titles_and_time()
        assert title == "time (local)"
        assert local.endswith("+05:30")
        assert datetime.fromisoformat(local) == datetime.fromisoformat(f"{utc}+00:00")
        assert titles_and_time("--time", "utc") == ("time (UTC)", utc)
        monkeypatch.setenv("VSRT_TIME", "mars")
        assert "VSRT_TIME: 'mars' is none of utc, local" in run(path, capsys, "events")[2]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_histogram_events_and_reset(path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(path, capsys, "histogram", "tx_bytes", "--node", "7")
    assert status == 0
    assert "4 rates, 0 of them 0" in out
    assert "#" in out
    status, out, _ = run(path, capsys, "events")
    assert (status, "link_down" in out) == (0, True)
    assert json.loads(run(path, capsys, "events", "7:1", "--json")[1])["events"][0]["state"] == "raised"
    assert json.loads(run(path, capsys, "events", "7:2", "--json")[1])["events"] == []
    status, out, _ = run(path, capsys, "reset", "7:1")
    assert (status, out[:7]) == (0, "1 ports")
    assert json.loads(run(path, capsys, "report", "7:1", "--json")[1])["ports"][0]["totals"]["tx_bytes"] == 0


def test_knobs_are_read_and_set(path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(path, capsys, "set", "interval_s", "30")[:2] == (0, "interval_s: 10 -> 30\n")
    assert json.loads(run(path, capsys, "set", "intervals.core", "60", "--json")[1])["value"] == 60
    status, out, _ = run(path, capsys, "get", "interval")
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["interval_s", "30"],
        ["intervals.tor", "none"],
        ["intervals.aggregation", "none"],
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "interval_s", "0"), "interval_s: 0 is not within 1 and 65535 s"),
        (("set", "intervall_s", "1"), "intervall_s: there is no such setting"),
        (("get", "x"), "x: there is no such setting"),
        (("report", "9"), "there is no switch 9"),
        (("report", "0000000000000009"), "there is no switch 9"),
        (("report", "0"), "'0' is no datapath id"),
        (("report", "7:9"), "has no port 9"),
        (("report", "seven"), "there is no switch seven"),
        (("report", "leaf7:9"), "switch leaf7 has no port 9"),
        (("report", "leaf7:one"), "neither a switch nor SWITCH:PORT"),
        (("histogram", "tx_octets"), "counter: 'tx_octets'"),
        (("histogram", "tx_bytes", "--node", "x"), "there is no switch x"),
        (("histogram", "tx_bytes", "--node", "0"), "--node: '0' is no datapath id"),
        (("top", "--limit", "0"), "--limit: 0 is not at least 1"),
        (("report", "--sort", "colour"), "--sort: nothing has the field 'colour'; there are class, "),
        (("events", "--reverse"), "--reverse: only with --sort"),
        (("get", "--ca", "ca.pem"), "--ca: only with --url"),
        (("top", "--every", "0"), "--every: 0"),
    ],
)
def test_bad_input_is_named_and_exits_with_two(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
):
    status, out, err = run(path, capsys, *words)
    assert (status, out) == (2, "")
    assert message in err


def test_without_a_controller_the_operation_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    status, out, err = run(tmp_path / "none.sock", capsys, "top", "--json")
    assert (status, out) == (1, "")
    assert "none.sock: no controller answers" in err


def test_a_controller_without_monitor_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    server = StatusServer(tmp_path / "s.sock", {"status": dict}, lambda ask: ask(), logging.getLogger("test"))
    server.start()
    status, _, err = run(tmp_path / "s.sock", capsys, "report")
    server.stop()
    assert status == 1
    assert "no monitor runs" in err
