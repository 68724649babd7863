"""What is normal for a port, live: learnt in short days, told when it is left and over, kept over a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from topology.generators import make

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]
FRAMEWORK = "os-ken"

POLICY = """\
version: 1
default: allow
monitor:
  interval_s: 1
  port_capacity_bps: 1e9
  prometheus: {enabled: false}
anomaly:
  interval_s: 1
  normalcy: {enabled: true, day_s: 24, least_days: 1, confirm_points: 2, hold_off_points: 2, raise_score: 0.5}
"""


class Watched:
    """Two hosts at one switch under a controller that learns what is normal for their ports."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess) -> None:
        self.fabric, self.controller = fabric, controller
        (switch,) = fabric.graph.switches()
        self.dpid, self.port_no = fabric.dpid(switch), fabric.graph.port(switch, "h1")

    def series(self, metric: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any] | None:
        """What the command tells of a metric of the port of h1."""
        capsys.readouterr()
        place = f"{self.dpid}:{self.port_no}"
        if main(["normalcy", "--live", place, "--json", "--socket", str(self.controller.socket)]):
            return None
        found = json.loads(capsys.readouterr().out)["series"]
        return next((each for each in found if each["metric"] == metric), None)

    def told(self) -> list[tuple[str, int, int]]:
        """State, switch and port of the events of normalcy so far."""
        answer = query(self.controller.socket, {"changes": {"events": {"anomaly": 0}}})
        events = answer["sections"]["events"]["anomaly"]["put"].values()
        return [(each["state"], each["dpid"], each["port_no"]) for each in events if each["kind"] == "normalcy"]


@pytest.fixture(scope="module")
def watched(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    policy = tmp_path_factory.mktemp("normalcy") / "policy.yaml"
    policy.write_text(POLICY)
    apps = ("multicast", "unicast", "monitor", "anomaly")
    with ExitStack() as stack:
        fabric = stack.enter_context(EmulatedFabric(make("tree", {"depth": 1, "fanout": 2})))
        controller = stack.enter_context(
            ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
        )
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= 2)
        yield Watched(fabric, controller)


def is_learnt(series: dict[str, Any] | None) -> bool:
    return series is not None and series["learnt_pct"] >= 90 and series["upper"] is not None


def test_a_port_that_carries_what_it_never_did_is_told_and_told_again_when_that_is_over(
    watched: Watched, capsys: pytest.CaptureFixture[str]
):
    watched.controller.wait_for(lambda: is_learnt(watched.series("rx_bytes_per_s", capsys)), "a day is learnt", 120.0)
    place = (watched.dpid, watched.port_no)
    assert ("raised", *place) not in watched.told()
    address = watched.fabric.address("h2")
    watched.fabric.run_on("h1", "ping", "-q", "-i", "0.002", "-w", "6", "-s", "1200", address)
    watched.controller.wait_for(lambda: ("raised", *place) in watched.told(), "the port is told", 60.0)
    watched.controller.wait_for(lambda: ("cleared", *place) in watched.told(), "it is over", 60.0)


def test_bounds_outlast_a_restart(watched: Watched, capsys: pytest.CaptureFixture[str]):
    watched.controller.restart()
    watched.controller.wait_for(watched.controller.socket.exists, "the controller answers", 60.0)
    learnt = watched.controller.wait_for(lambda: watched.series("rx_bytes_per_s", capsys), "the port is known", 60.0)
    assert learnt["learnt_pct"] >= 90
