"""`vsrt latency` with a controller of either framework and simulated switches: segments that add up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from controllers import controller

from apps.cli.main import main
from apps.cli.snapshot_socket import user_name
from apps.emulation.controller import ControllerProcess
from apps.openflow.live_latency import LEASE_S
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.status_client import query
from apps.storm.player import StormPlayer
from apps.storm.switches import FIRST_DPID, storm_switches
from controller.profiles.latencies import JOIN_SEGMENTS, JOIN_WAY
from controller.storm.plan import StormOrder, StormShape, plan_storm
from patience import wait_until

LEAVES, SPINES, PORTS, GROUPS, JOINS = 3, 2, 6, 10, 60
DPIDS = [FIRST_DPID + number for number in range(1, LEAVES + SPINES + 1)]
CABLE_S = 0.4
"""So long that a busy machine does not hide it."""

POLICY = """version: 1
default: allow
limits: {groups_per_port: 1000, reports_per_second_per_port: 1000}
"""


@pytest.fixture(scope="module", params=["vsrt", "vsrt-os-ken"])
def process(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, POLICY, ("multicast", "unicast")) as process:
        yield process


@pytest.fixture(scope="module")
def fabric(process: ControllerProcess) -> Iterator[SimulatedFabric]:
    fabric = SimulatedFabric(storm_switches(LEAVES, SPINES, PORTS), ("127.0.0.1", process.port))
    yield fabric
    fabric.close()


@pytest.fixture(scope="module")
def player(fabric: SimulatedFabric) -> StormPlayer:
    player = StormPlayer(fabric, SimulatedHosts(fabric), GROUPS, lambda *_told: None)
    player.settle(60)
    return player


def latency(process: ControllerProcess, *words: str) -> int:
    return main(["latency", "--socket", str(process.socket), *words])


@pytest.fixture
def answering(fabric: SimulatedFabric) -> Iterator[None]:
    """Have the simulated switches answer while a test runs."""
    over = threading.Event()

    def answer() -> None:
        while not over.is_set():
            fabric.run_for(0.05)

    answers = threading.Thread(target=answer)
    answers.start()
    yield
    over.set()
    answers.join()


def test_switches_and_joins_are_timed_in_segments_that_add_up(
    process: ControllerProcess, player: StormPlayer, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = query(process.socket, {"do": "latency-start"})
    planned = plan_storm(StormOrder(JOINS, 0.3, StormShape.UNIFORM), LEAVES * PORTS, GROUPS)
    assert all(state.done_s is not None for state in player.join(planned, 3, 1.0))
    assert latency(process, "--for", "1s") == 1
    assert "Somebody measures already" in capsys.readouterr().err
    document = query(process.socket, {"do": "latency-stop", "id": begun["id"]})
    switches = {each["dpid"]: each for each in document["switches"]}
    assert switches.keys() == set(DPIDS)
    for each in switches.values():
        assert each["echo"]["count"] >= 1
        if each["join"] is not None:
            assert sum(each["segments"][name]["mean_ms"] for name in JOIN_SEGMENTS) == pytest.approx(
                each["join"]["mean_ms"], abs=1e-4
            )
            assert each["barrier"]["count"] >= 1
            way = each["way"]
            assert sum(way[name] for name in JOIN_WAY) == pytest.approx(way["whole"], abs=1e-4)
            assert way["whole"] == pytest.approx(each["join"]["mean_ms"] + each["echo"]["mean_ms"] / 2, abs=1e-4)
    joins = sum(each["join"]["count"] for each in switches.values() if each["join"])
    assert 0 < joins <= JOINS
    assert query(process.socket, {"do": "latency-look", "id": begun["id"]})["refused"]


def test_a_long_cable_is_seen_in_its_hop_alone(
    process: ControllerProcess,
    player: StormPlayer,
    fabric: SimulatedFabric,
    answering: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    near, far = min(fabric.links.items())
    fabric.switches[near[0]].cable_s[near[1]] = CABLE_S
    assert latency(process, "--for", "1h", "--group", "239.9.9.9") == 2, "nobody has to wait for that"
    assert "there is no group 239.9.9.9" in capsys.readouterr().err
    assert latency(process, "--for", "6s", "--json") == 0
    hops = json.loads(capsys.readouterr().out)["hops"]
    del fabric.switches[near[0]].cable_s[near[1]]
    assert {(hop["dpid_a"], hop["port_a"]) for hop in hops} == set(fabric.links)
    for hop in hops:
        assert hop["to_ms"] + hop["hop_ms"] + hop["from_ms"] == pytest.approx(hop["frame_ms"], abs=1e-5)
    long = max(hops, key=lambda hop: hop["hop_ms"])
    assert (long["dpid_a"], long["port_a"], long["dpid_b"], long["port_b"]) == (*near, *far)
    assert long["frame_ms"] >= 1000 * CABLE_S
    assert sum(hop["frame_ms"] >= 1000 * CABLE_S for hop in hops) < len(hops) / 2
    assert latency(process, "--for", "2500ms", "--hops", "--switch", str(near[0])) == 0
    assert "FRAME MS" in capsys.readouterr().out


def test_the_command_tells_and_can_be_told_one_switch(
    process: ControllerProcess, player: StormPlayer, answering: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert latency(process, "--for", "1s", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["joins"] is None
    assert [each["dpid"] for each in told["switches"]] == DPIDS
    assert all(each["echo"]["p50_ms"] > 0 for each in told["switches"])
    one = str(FIRST_DPID + 1)
    assert latency(process, "--for", "1s", "--switch", one) == 0
    told = capsys.readouterr().out
    assert told.startswith("SWITCH")
    assert len(told.splitlines()) == 4
    assert "no join that changed anything in" in told
    assert latency(process, "--for", "1s", "--switch", "77") == 1
    log = process.directory / "state" / "actions.jsonl"

    def measured_by_us() -> set[str]:
        lines = map(json.loads, log.read_text().splitlines() if log.exists() else ())
        return {line["action"] for line in lines if line["by"] == user_name()}

    wait_until(lambda: measured_by_us() >= {"latency-start", "latency-stop"}, process.pid, 30)


def test_a_measurement_that_nobody_looks_at_ends(process: ControllerProcess, fabric: SimulatedFabric) -> None:
    begun = query(process.socket, {"do": "latency-start"})
    end_s = time.monotonic() + 4 * LEASE_S
    answer = query(process.socket, {"do": "latency-start"})
    while answer.get("refused") and time.monotonic() < end_s:
        fabric.run_for(0.2)
        answer = query(process.socket, {"do": "latency-start"})
    assert answer["id"] == begun["id"] + 1
    query(process.socket, {"do": "latency-stop", "id": answer["id"]})


@pytest.mark.parametrize("words", [("--for", "soon"), ("--for", "1ms"), ("--switch", "x y")])
def test_bad_words_are_told(
    process: ControllerProcess, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert latency(process, *words) == 2
    assert words[0] in capsys.readouterr().err


def test_no_controller_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["latency", "--socket", str(tmp_path / "none.sock")]) == 1
    assert "none.sock" in capsys.readouterr().err
