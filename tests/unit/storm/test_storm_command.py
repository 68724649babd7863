"""`vsrt storm` against a controller of either framework: who is served, what is told, and what is left behind."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controllers import OPEN_POLICY, controller

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess
from apps.emulation.free_ports import free_port
from apps.status_client import query
from apps.storm.player import StormPlayer
from controller.storm.plan import StormOrder, StormShape, plan_storm
from patience import wait_until

SMALL = ["--switches", "3", "--spines", "2", "--ports", "6", "--groups", "10", "--sigma-s", "0.3"]
AMPLE_MS = "5000"
"""A goal that a busy machine keeps too."""

LONG_S = 240.0

HELD = "default: allow\nversion: 1\nlimits: {groups_per_port: 1, reports_per_second_per_port: 1000}\n"


@pytest.fixture(scope="module", params=["vsrt", "vsrt-os-ken"])
def process(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, OPEN_POLICY) as process:
        yield process


def storm(process: ControllerProcess, *words: str, status: int = 0) -> None:
    assert main(["storm", *SMALL, "--slo-ms", AMPLE_MS, "--port", str(process.port), *words]) == status


def members(process: ControllerProcess) -> int:
    return sum(len(group["members"]) for group in query(process.socket, {"show": "groups"}))


def test_all_are_served_and_nobody_is_a_member_any_more_afterwards(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.jsonl"
    storm(process, "--joins", "60", "--leave", "--json", "--seed", "7", "--output", str(hosts))
    told = json.loads(capsys.readouterr().out)
    (played,) = told["storms"]
    assert (told["keeps_goal"], told["largest"]) == (True, 60)
    assert (played["waits"]["requests"], played["waits"]["unserved"]) == (60, 0)
    assert 0 < played["waits"]["p50_ms"] <= played["waits"]["p99_ms"] <= played["waits"]["max_ms"]
    assert (played["leaves"]["requests"], played["leaves"]["unserved"]) == (60, 0)
    assert played["peak_per_s"] == pytest.approx(0.40002 * 60 / 0.3, rel=1e-4)
    assert sum(played["attempts"].values()) == 60
    lines = [json.loads(line) for line in hosts.read_text().splitlines()]
    planned = plan_storm(StormOrder(60, 0.3, StormShape.NORMAL), 18, 10, 7)
    assert [(line["host"], line["due_s"]) for line in lines] == [(join.host, round(join.at_s, 6)) for join in planned]
    assert all(line["took_ms"] > 0 and line["attempts"] >= 1 for line in lines)
    wait_until(lambda: members(process) == 0, process.pid, 20)


def test_hosts_whose_port_comes_up_first_are_told_apart(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    storm(process, "--joins", "18", "--off", "50%", "--attempts", "30", "--again-s", "0.5", "--json")
    (played,) = json.loads(capsys.readouterr().out)["storms"]
    assert (played["waits"]["requests"], played["after_port_up"]["requests"]) == (9, 9)
    assert played["waits"]["unserved"] == played["after_port_up"]["unserved"] == 0
    assert played["after_port_up"]["p50_ms"] > played["waits"]["p50_ms"]


def test_readers_of_the_controller_see_the_storm_as_it_goes_on(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[str, Any]] = []
    is_over = threading.Event()

    def follow() -> None:
        while True:
            was_over = is_over.is_set()
            answer = query(process.socket, {"changes": {"runs": 0}})
            put = [delta["put"] for delta in answer["sections"]["runs"].values()]
            seen.extend(each["storm"] for each in put if "storm" in each)
            if was_over:
                return
            is_over.wait(0.1)

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        storm(process, "--joins", "60", "--sigma-s", "0.4", "--socket", str(process.socket), "--json")
    finally:
        is_over.set()
        reader.join()
    (played,) = json.loads(capsys.readouterr().out)["storms"]
    going = [each for each in seen if each["state"] == "playing"]
    assert {"switches that are connected", "joins"} <= {each["stage"] for each in going}
    dones = [each["done"] for each in going if each["stage"] == "joins"]
    assert dones == sorted(dones)
    ended = seen[-1]
    assert (ended["state"], ended["joins"], ended["fault"]) == ("ended", 60, "")
    (told,) = ended["storms"]
    assert (told["joins"], told["p99_ms"], told["keeps_goal"]) == (60, played["waits"]["p99_ms"], True)
    assert ended["target"] == f"127.0.0.1:{process.port}"


def test_a_controller_that_ends_ends_the_storm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("os_ken")
    with controller("vsrt-os-ken", OPEN_POLICY) as process:

        def end() -> None:
            wait_until(lambda: members(process), process.pid, 60)
            process.kill()

        ending = threading.Thread(target=end)
        ending.start()
        began_s = time.monotonic()
        storm(process, "--joins", "100", "--shape", "uniform", "--sigma-s", str(LONG_S / 6), status=1)
        ending.join()
    assert time.monotonic() - began_s < LONG_S / 2
    assert "connections were lost" in capsys.readouterr().err


def test_storms_that_were_played_are_told_where_the_controller_ends_in_a_later_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("os_ken")
    hosts = tmp_path / "hosts.jsonl"
    with controller("vsrt-os-ken", OPEN_POLICY) as process:
        leave_all = StormPlayer.leave_all

        def end_before_the_third(player: StormPlayer) -> None:
            leave_all(player)
            left.append(player)
            if len(left) == 2:
                process.kill()

        left: list[StormPlayer] = []
        monkeypatch.setattr(StormPlayer, "leave_all", end_before_the_third)
        words = ("--joins", "20", "--step", "20", "--output", str(hosts))
        storm(process, *words, "--shape", "uniform", "--sigma-s", "1", status=1)
    told = capsys.readouterr()
    assert "20 joins" in told.out and "the largest storm that keeps it: 40 joins" in told.out
    assert "connections were lost" in told.err
    assert len(hosts.read_text().splitlines()) == 40


def test_a_controller_is_reached_by_its_name(process: ControllerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    storm(process, "--joins", "10", "--remote", f"localhost:{process.port}", "--json")
    assert json.loads(capsys.readouterr().out)["keeps_goal"]


def test_a_name_that_nobody_knows_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_args: Any, **_more: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert main(["storm", "--joins", "5", *SMALL, "--remote", "controler.example"]) == 1
    assert "--remote: controler.example: Name or service not known" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told_before_the_storm(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path, reason in ((tmp_path / "nowhere" / "hosts", "No such file or directory"), (tmp_path, "Is a directory")):
        assert main(["storm", "--joins", "5", *SMALL, "--port", str(free_port()), "--output", str(path)]) == 1
        assert f"{path}: {reason}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_steps_go_on_until_the_goal_is_missed_or_no_more_can_join(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    storm(process, "--joins", "50", "--step", "60", "--shape", "uniform")
    told = capsys.readouterr().out
    assert [line.split()[0] for line in told.splitlines()[1:4]] == ["50", "110", "170"]
    assert "the largest storm that keeps it: 170 joins" in told
    storm(process, "--joins", "50", "--step", "60", "--slo-ms", "0.1", "--shape", "burst", status=1)
    told = capsys.readouterr().out
    assert "no storm keeps the goal" in told
    assert len([line for line in told.splitlines() if "joins  " in line]) == 1


def test_who_is_refused_is_not_served_and_that_misses_any_goal(capsys: pytest.CaptureFixture[str]) -> None:
    with controller("vsrt-os-ken", HELD) as process:
        storm(process, "--joins", "36", "--attempts", "2", "--again-s", "0.3", "--json", status=1)
        (played,) = json.loads(capsys.readouterr().out)["storms"]
        assert played["waits"]["unserved"] == 18
        assert played["attempts"]["2"] >= 18


@pytest.mark.parametrize(
    ("policy", "rule", "line"),
    [
        ("version: 1\n", "default", None),
        ("version: 1\ndefault: deny\n", "default", 2),
        (
            "version: 1\ndefault: allow\nrules:\n"
            "  - {name: not-here, groups: [239.0.0.0/8], role: any, hosts: [any], action: deny}\n",
            "not-here",
            4,
        ),
    ],
)
def test_what_of_the_policy_refused_them_is_said(
    policy: str, rule: str, line: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--joins", "12", "--attempts", "1", "--again-s", "0.5", "--shape", "burst")
    with controller("vsrt-os-ken", policy) as process:
        storm(process, *few, "--step", "6", "--socket", str(process.socket), status=1)
        told = capsys.readouterr().out
        place = ".yaml)" if line is None else f".yaml, line {line})"
        (refused,) = [text for text in told.splitlines() if "the policy refused" in text]
        assert f"the policy refused 12 joins by {rule!r} (" in refused and place in refused
        assert told.splitlines()[-1] == "no storm keeps the goal"
        storm(process, *few, "--socket", str(process.socket), "--json", status=1)
        ((found,),) = [each["refused"] for each in json.loads(capsys.readouterr().out)["storms"]]
        assert (found["rule"], found["line"], found["joins"]) == (rule, line, 12)
        storm(process, *few, "--socket", str(process.socket.with_name("none")), status=1)
        assert "12 joins were not served. Whether the policy refused them: " in capsys.readouterr().err


def test_a_controller_that_has_members_of_the_groups_is_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.storm.player.StormPlayer.leave_all", lambda _self: None)
    with controller("vsrt-os-ken", OPEN_POLICY) as process:
        storm(process, "--joins", "10")
        capsys.readouterr()
        storm(process, "--joins", "10", status=1)
        assert "has members of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("remote", "host"), [((), "127.0.0.1"), (("--remote", "::1"), "::1"), (("--remote", "[::1]"), "::1")]
)
def test_where_no_controller_is_that_is_said(
    remote: tuple[str, ...], host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.storm.player.NOBODY_S", 0.5)
    port = free_port()
    assert main(["storm", "--joins", "5", *SMALL, "--port", str(port), *remote]) == 1
    assert f"no controller answers at {host}:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--joins", "0"], "'0' is no whole number from 1 to"),
        (["--joins", "181"], "--joins: 18 hosts and 10 groups have 180 joins at most"),
        (["--joins", "5", "--off", "120%"], "'120' is no number from 0 to 100"),
        (["--joins", "5", "--off", "20%", "--step", "5"], "--off: not with --step"),
        (["--joins", "5", "--sigma-s", "nan"], "'nan' is no number from 0.01 to 1000000"),
        (["--joins", "5", "--remote", "host:99999"], "--remote: 'host:99999' is no host:port"),
        (["--joins", "5", "--shape", "square"], "invalid choice: 'square'"),
    ],
)
def test_what_makes_no_sense_plays_nothing(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storm", *SMALL, *words]) == 2
    assert told in capsys.readouterr().err
