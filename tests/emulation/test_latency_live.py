"""`vsrt latency` on Open vSwitch: every switch answers echoes, and joins are timed within what hosts see."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from controller.profiles.latencies import JOIN_SEGMENTS
from topology.generators import make

pytestmark = pytest.mark.emulation
FRAMEWORK = "ryu"
ROOT = Path(__file__).parents[2]
GROUP, HOSTS = "239.1.1.1", ("h5", "h9", "h13")
HOPS_S = 8.0
"""Within which discovery sends a frame over each cable several times, as an unhurried machine goes."""


def test_a_join_s_segments_are_within_what_its_host_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], framework: Framework
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\n")
    controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy)
    with EmulatedFabric(make("fattree", {"k": 4}), controller=controller) as fabric:
        controller.wait_discovered(fabric)
        fabric.announce()
        fabric.open_stream(1, "h1", GROUP, 10e6)
        fabric.send()
        begun = query(controller.socket, {"do": "latency-start"})
        for host in HOSTS:
            fabric.join(host, GROUP)
        document = measured(controller, begun["id"], len(HOSTS))
        controller.wait_for(lambda: have_received(fabric), "every host has received a packet", 60)
        fabric.halt()
        received = fabric.settled()
        switches = {each["dpid"]: each for each in document["switches"]}
        assert switches.keys() == {fabric.dpid(switch) for switch in fabric.graph.switches()}
        assert all(each["echo"]["p50_ms"] > 0 for each in switches.values())
        for host in HOSTS:
            (switch,) = fabric.graph.neighbours(host)
            each = switches[fabric.dpid(switch)]
            assert each["join"]["count"] == 1
            segments_ms = [each["segments"][name]["mean_ms"] for name in JOIN_SEGMENTS]
            assert sum(segments_ms) == pytest.approx(each["join"]["mean_ms"], abs=1e-4)
            (tally,) = received[f"{host} {GROUP}"]["streams"].values()
            until_sent_ms = sum(segments_ms[:3])
            assert until_sent_ms < tally["first_packet_ms"]
        told = told_while_joined(controller, fabric, "h7", begun["id"] + 1)
        assert len(told["hops"]) == 2 * fabric.switch_link_count()
        ways = {way["receiver"]: way for way in told["ways"]}
        assert len(ways) == len(HOSTS) + 1
        assert all(way["is_joined"] and len(way["hops"]) == 4 for way in ways.values())
        for way in ways.values():
            assert sum(hop["hop_ms"] for hop in way["hops"]) == pytest.approx(way["hops_ms"], abs=1e-4)
        (joined,) = (way for way in ways.values() if way["join_ms"] is not None)
        (switch,) = fabric.graph.neighbours("h7")
        assert joined["receiver"].rpartition(":")[0] == switch
        assert joined["whole_ms"] == pytest.approx(joined["join_ms"] + joined["hops_ms"], abs=1e-4)
        assert main(["latency", "--socket", str(controller.socket), "--for", "5s"]) == 0
        assert "no join that changed anything" in capsys.readouterr().out


def have_received(fabric: EmulatedFabric) -> bool:
    """Tell whether each host has received a packet: a switch confirms an entry before its cache has followed it."""
    received = fabric.received()
    return all(received[f"{host} {GROUP}"]["streams"] for host in HOSTS)


def told_while_joined(controller: ControllerProcess, fabric: EmulatedFabric, host: str, number: int) -> Any:
    """Return what the command tells that measures, by this number, while a host joins, until it is ended."""
    words = ["latency", "--socket", str(controller.socket), "--for", "5m", "--group", GROUP, "--json"]
    command = [sys.executable, "-m", "apps.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        controller.wait_for(lambda: measures(controller, number), "the command measures", 60)
        fabric.join(host, GROUP)
        controller.wait_for(
            lambda: is_whole(look_at(controller, number), 1, HOPS_S), "the join and all hops are measured", 60
        )
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return json.loads(told)


def measures(controller: ControllerProcess, number: int) -> bool:
    """Tell whether the measurement with a number has begun, without a measurement that would be in its way."""
    return "error" not in look_at(controller, number)


def look_at(controller: ControllerProcess, number: int) -> Any:
    """Return what was measured so far."""
    return query(controller.socket, {"do": "latency-look", "id": number})


def is_whole(document: Any, joins: int, lasted_s: float = 0.0) -> bool:
    """Tell whether so many joins were measured, for so long, and each switch has answered an echo."""
    switches = document["switches"]
    count = sum(each["join"]["count"] for each in switches if each["join"])
    return count >= joins and document["lasted_s"] >= lasted_s and all(each["echo"] for each in switches)


def measured(controller: ControllerProcess, number: int, joins: int) -> Any:
    """Return what was measured, once switches have confirmed so many joins and each has answered an echo."""
    controller.wait_for(lambda: is_whole(look_at(controller, number), joins), "all joins are measured", 60)
    return query(controller.socket, {"do": "latency-stop", "id": number})
