"""`vsrt latency` on Open vSwitch: every switch answers echoes, and joins are timed within what hosts see."""

from __future__ import annotations

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
GROUP, HOSTS = "239.1.1.1", ("h5", "h9", "h13")


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
        assert main(["latency", "--socket", str(controller.socket), "--for", "1s"]) == 0
        assert "no join that changed anything" in capsys.readouterr().out


def measured(controller: ControllerProcess, number: int, joins: int) -> Any:
    """Return what was measured, once switches have confirmed so many joins and each has answered an echo."""

    def is_whole(document: Any) -> bool:
        switches = document["switches"]
        count = sum(each["join"]["count"] for each in switches if each["join"])
        return count >= joins and all(each["echo"] for each in switches)

    document = query(controller.socket, {"do": "latency-look", "id": number})
    while not is_whole(document):
        controller.check_alive()
        document = query(controller.socket, {"do": "latency-look", "id": number})
    return query(controller.socket, {"do": "latency-stop", "id": number})
