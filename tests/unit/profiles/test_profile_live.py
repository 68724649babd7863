"""`vsrt profile` with a controller of either framework: what happens there is in the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from controllers import controller

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess
from apps.profile_parts import clear_left
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.status_client import query
from apps.storm.player import StormPlayer
from apps.storm.switches import FIRST_DPID, storm_switches
from controller.storm.plan import StormOrder, StormShape, plan_storm
from patience import wait_until

LEAVES, SPINES, PORTS, GROUPS, JOINS = 3, 2, 6, 10, 60
POLICY = """version: 1
default: allow
limits: {groups_per_port: 1000, reports_per_second_per_port: 1000}
monitor: {interval_s: 1}
"""
APPS = ("multicast", "unicast", "monitor")


@pytest.fixture(scope="module", params=["vsrt", "vsrt-os-ken"])
def process(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, POLICY, APPS) as process:
        yield process


def profile(process: ControllerProcess, *words: str, status: int = 0) -> None:
    assert main(["profile", *words, "--socket", str(process.socket)]) == status


def shown(process: ControllerProcess) -> Any:
    return query(process.socket, {"show": "profile"})["profile"]


def test_what_happens_at_a_controller_is_in_its_profile(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    profile(process, "start", "--for", "5m", "--name", "all", "--json")
    begun = json.loads(capsys.readouterr().out)
    assert (begun["name"], begun["state"], begun["spans"]) == ("all", "running", 0)
    fabric = SimulatedFabric(storm_switches(LEAVES, SPINES, PORTS), ("127.0.0.1", process.port))
    try:
        player = StormPlayer(fabric, SimulatedHosts(fabric), GROUPS, lambda *_told: None)
        player.settle(60)
        planned = plan_storm(StormOrder(JOINS, 0.3, StormShape.UNIFORM), LEAVES * PORTS, GROUPS)
        assert all(state.done_s is not None for state in player.join(planned, 3, 1.0))

        def while_switches_answer(operation: str, count: int) -> None:
            def is_there() -> bool:
                fabric.run_for(0.05)
                found = {each["operation"]: each["count"] + each["others"] for each in shown(process)["operations"]}
                return found.get(operation, 0) >= count

            wait_until(is_there, process.pid, 30)

        spine = FIRST_DPID + LEAVES + 1
        query(process.socket, {"do": "switch-drain", "dpid": spine})
        while_switches_answer("drain", 1)
        query(process.socket, {"do": "switch-undrain", "dpid": spine})
        while_switches_answer("drain", 2)
        for dpid, port_no in ((spine, 1), (FIRST_DPID + 1, PORTS + 1)):
            fabric.switches[dpid].set_carrier(port_no, False)
        while_switches_answer("repair", 1)
        query(process.socket, {"do": "policy-reload"})
        while_switches_answer("reload", 1)
        while_switches_answer("poll", 2)
        while_switches_answer("journal", 1)
        player.leave([0.0] * JOINS, 5, 5.0)
        while_switches_answer("leave", JOINS)
    finally:
        fabric.close()
    profile(process, "stop", "--json")
    ended = json.loads(capsys.readouterr().out)
    assert (ended["state"], ended["ended"], ended["missed"]) == ("ended", "it was stopped", 0)
    table = pq.read_table(ended["path"])
    assert table.num_rows == ended["spans"]
    rows = table.to_pylist()
    done = Counter(row["operation"] for row in rows if row["outcome"] == "done")
    assert (done["join"], done["leave"], done["connect"]) == (JOINS, JOINS, LEAVES + SPINES)
    assert {"drain", "repair", "poll", "journal"} <= set(done)
    reloads = [row for row in rows if row["operation"] == "reload"]
    assert {row["outcome"] for row in reloads} <= {"done", "no-edits"}
    for row in rows:
        if row["operation"] == "join":
            waits = [row[f"wait_{name}_s"] for name in ("loop", "controller", "switch")]
            assert sum(waits) == pytest.approx(row["took_s"], abs=1e-6)
            assert 0 < row["took_s"] < 30
        if row["operation"] in ("drain", "repair") and row["outcome"] == "done":
            waits = [row[f"wait_{name}_s"] for name in ("loop", "controller", "switch")]
            assert sum(waits) == pytest.approx(row["took_s"], abs=1e-6)
        assert begun["begun_s"] - 1 < row["start_s"] < begun["begun_s"] + 300
    assert main(["profile", "report", ended["path"], "--json", "--html", str(tmp_path / "page.html")]) == 0
    told = {each["operation"]: each for each in json.loads(capsys.readouterr().out)["operations"]}
    assert told["join"]["count"] == JOINS
    assert 0 < told["join"]["p50_ms"] <= told["join"]["p95_ms"] <= told["join"]["p99_ms"]


def test_one_runs_at_a_time_and_ends_by_itself(
    process: ControllerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    profile(process, "start", "--for", "1h", "--name", "first")
    profile(process, "start", "--name", "second", status=1)
    assert "A profile runs already, first: `vsrt profile stop` ends it." in capsys.readouterr().err
    profile(process, "stop")
    profile(process, "stop", status=1)
    assert "No profile runs: `vsrt profile start` begins one." in capsys.readouterr().err
    profile(process, "start", "--name", "first", status=2)
    assert "first.parquet is there already" in capsys.readouterr().err
    profile(process, "start", "--for", "1s", "--name", "short", "--wait")
    told = capsys.readouterr().out
    assert told.rstrip().endswith("; its time is over")
    assert Path(told.partition(":")[0]).exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--for", "soon"], "--for: 'soon' is no duration"),
        (["--for", "2d"], "for_s: 172800.0 is not within 0.1 and 86400 seconds"),
        (["--name", "../up"], "name: a letter or digit, then up to 63"),
    ],
)
def test_what_makes_no_sense_begins_nothing(
    words: list[str], told: str, process: ControllerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    profile(process, "start", *words, status=2)
    assert told in capsys.readouterr().err
    profile(process, "stop", status=1)


def test_without_a_controller_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "start", "--socket", str(tmp_path / "none.sock")]) == 1
    assert "no controller answers" in capsys.readouterr().err


def test_a_controller_that_ends_leaves_its_profile_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with controller("vsrt-os-ken", POLICY, APPS, {"VSRT_STATE_DIR": str(tmp_path)}) as process:
        profile(process, "start", "--name", "last")
    assert main(["profile", "report", str(tmp_path / "profiles" / "last.parquet")]) == 0
    assert re_ended(capsys.readouterr().out)


def test_what_a_controller_that_was_killed_left_is_removed_by_the_next(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    part = tmp_path / "profiles" / "killed.parquet.part"
    with controller("vsrt-os-ken", POLICY, APPS, {"VSRT_STATE_DIR": str(tmp_path)}) as process:
        profile(process, "start", "--name", "killed")
        assert part.exists()
        assert clear_left(part.parent) == [], "it is written"
        process.kill()
        assert part.exists()
        process.start()
        assert not part.exists()
        profile(process, "start", "--name", "killed")
    assert main(["profile", "report", str(part.with_suffix(""))]) == 0


def re_ended(told: str) -> bool:
    return any(line.endswith(" ended") for line in told.splitlines())
