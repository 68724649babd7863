"""The allocator in a FatTree: a loaded uplink is avoided, and that is explained; metrics outlast a restart."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from apps.status_client import query
from fat_tree import measured_fat_tree

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]
FRAMEWORK = "os-ken"

CAPACITY_BPS = 3e6
RATE_BPS = 1e6
LEAST_PCT = 10.0
MOST_IDLE_PCT = 0.5
"""What LLDP and a late packet of somebody's are to a port in a period: less than what a request here takes."""
POLICY = f"""\
version: 1
discovery: {{link_capacity_bps: {CAPACITY_BPS}}}
monitor:
  interval_s: 1
  port_capacity_bps: {CAPACITY_BPS}
  prometheus: {{enabled: false}}
allocation:
  openflow: {{days_to_average_utilization: 10001}}
  trees: true
default: allow
multicast: {{default_rate_bps: 1000}}
"""
EDGE_PORT = 1
"""Of a ToR; whether a host is there makes no difference to the tree."""
GROUPS = [f"239.1.1.{number}" for number in range(1, 7)]


class Fabric:
    """A FatTree under all apps, one host of which sends to another all the time."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess) -> None:
        self.controller = controller
        (tor,) = fabric.graph.neighbours("h1")
        self.tor = fabric.dpid(tor)
        self.tors = sorted(
            {fabric.dpid(near) for host in fabric.graph.hosts() for near in fabric.graph.neighbours(host)}
        )
        self.switches = [fabric.dpid(switch) for switch in fabric.graph.switches()]

    def ask(self, action: str, **asked: Any) -> Any:
        answer = query(self.controller.socket, {"do": action, **asked})
        assert not isinstance(answer.get("error"), str), answer
        return answer

    def uplinks(self) -> dict[str, Any]:
        """The ports by which the sender's ToR reaches the fabric."""
        found = self.ask("allocate-watch", node=self.tor, role="trunk")["ports"]
        return {port["id"]: port for port in found}

    def loaded(self) -> str | None:
        """The uplink that is known to be loaded, where every uplink has a metric."""
        found = self.uplinks()
        if len(found) != 2 or any(port["usage"] is None for port in found.values()):
            return None
        return next((name for name, port in found.items() if port["usage"] > LEAST_PCT), None)

    def measured(self) -> list[dict[str, Any]] | None:
        """The uplinks of all ToRs, where each of them has a metric."""
        ports = self.ask("allocate-watch", type="tor", role="trunk", count=1000)["ports"]
        return None if any(port["usage"] is None for port in ports) else ports


@pytest.fixture(scope="module")
def sending(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    with ExitStack() as stack:
        fabric, controller = stack.enter_context(
            measured_fat_tree(framework, tmp_path_factory.mktemp("allocator"), POLICY)
        )
        target = fabric.address("h16")
        with network_of(fabric.pid("h16")):
            server = subprocess.Popen(["iperf", "-s", "-u"], stdout=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.kill)
        fabric.run_on("h1", "ping", "-c", "1", "-W", "5", target)
        words = ["iperf", "-u", "-c", target, "-b", str(int(RATE_BPS)), "-l", "1200", "-t", "600"]
        with network_of(fabric.pid("h1")):
            client = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        stack.callback(client.wait)
        stack.callback(client.kill)
        yield Fabric(fabric, controller)


def run(capsys: pytest.CaptureFixture[str], socket: Path, *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main(["allocate", *words, "--json", "--socket", str(socket)])
    return code, json.loads(capsys.readouterr().out)


def test_before_the_first_period_ends_ports_say_so(sending: Fabric):
    uplinks = sending.controller.wait_for(sending.uplinks, "uplinks are known", 60.0)
    early = ("first averaging period", "provisional", "never measured", "no utilisation")
    for port in uplinks.values():
        assert port["measurement"].startswith(early)
    answer = sending.ask("allocate", count=1, reserve=False, ports={"node": sending.tor, "role": "trunk"})
    assert len(answer["ports"]) == 1
    assert {each["id"] for each in answer["unmeasured"]} == set(uplinks)


def test_failure_domains_are_those_of_the_fat_tree(sending: Fabric):
    ports = sending.ask("allocate-watch", role="trunk", count=1000)["ports"]
    planes: dict[str, set[str]] = {}
    pods: dict[str, set[str]] = {}
    for port in ports:
        parts = port["components"]
        assert parts["switch"] == port["id"].split(":")[0]
        planes.setdefault(parts["plane"], set()).add(parts["switch"])
        if port["type"] != "core":
            pods.setdefault(parts["pod"], set()).add(parts["switch"])
    tors = {port["components"]["switch"] for port in ports if port["type"] == "tor"}
    assert len(tors) == 8
    assert sorted(len(switches - tors) for switches in planes.values()) == [6, 6]
    assert sorted(map(len, pods.values())) == [4, 4, 4, 4]


def test_the_next_allocation_avoids_the_loaded_uplink_and_explain_says_why(
    sending: Fabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    loaded = sending.controller.wait_for(sending.loaded, "the first period is over and one uplink is loaded", 90.0)
    (free,) = set(sending.uplinks()) - {loaded}
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"count": 1, "levels": ["switch"], "ports": [loaded, free]}))
    socket = sending.controller.socket
    code, answer = run(capsys, socket, "ports", "--live", "--input", str(request))
    assert (code, answer["ports"]) == (0, [free])
    assert "least usage" in answer["steps"][0]["reason"]
    code, told = run(capsys, socket, "explain", "--live", "--port", loaded)
    assert (code, told["chosen"]) == (0, False)
    (step,) = told["steps"]
    assert step["chosen"] == free
    assert step["reason"].startswith("usage ") and f"; {free} has 0 %" in step["reason"]
    assert told["port_percent_busy"] == pytest.approx(100 * RATE_BPS * 1242 / 1200 / CAPACITY_BPS, rel=0.35)


def test_a_pod_is_chosen_whose_uplinks_carry_nothing(sending: Fabric, capsys: pytest.CaptureFixture[str]):
    loaded = sending.controller.wait_for(sending.loaded, "one uplink is loaded", 90.0)
    sending.controller.wait_for(sending.measured, "every uplink is measured", 60.0)
    words = ("pool", "--live", "--type", "tor", "--role", "trunk", "--count", "2", "--size-pct", "50")
    code, answer = run(capsys, sending.controller.socket, *words)
    assert code == 0
    pods = {pod["id"]: pod for pod in answer["pools"]}
    (busy,) = {port["components"]["pod"] for name, port in sending.uplinks().items() if name == loaded}
    assert len(pods) == 4
    assert [pod["ports"] for pod in pods.values()] == [4, 4, 4, 4]
    assert pods[answer["pool"]]["metric"] < 1 < LEAST_PCT / 4 <= pods[busy]["metric"]
    assert len(answer["ports"]) == 4


def test_on_idle_ports_every_request_gets_another_one(sending: Fabric):
    sending.controller.wait_for(sending.loaded, "one uplink is loaded", 90.0)
    ports = sending.controller.wait_for(sending.measured, "every uplink is measured", 60.0)
    idle = sorted(port["id"] for port in ports if port["usage"] < MOST_IDLE_PCT and not port["proposals"])
    assert len(idle) >= 8, [(port["id"], port["usage"], port["proposals"]) for port in ports]
    taken = [sending.ask("allocate", count=1, ports=idle, size_pct=1)["ports"] for _ in idle]
    assert sorted(name for names in taken for name in names) == idle


def test_trees_leave_the_loaded_uplink_to_its_load(sending: Fabric):
    loaded = sending.controller.wait_for(sending.loaded, "one uplink is loaded", 90.0)
    (free,) = set(sending.uplinks()) - {loaded}
    far = next(dpid for dpid in sending.tors if dpid != sending.tor)
    sending.controller.wait_for(
        lambda: sending.uplinks()[loaded]["told_pct"] > LEAST_PCT, "trees know the metric", 60.0
    )
    for group in GROUPS:
        for place in (sending.tor, far):
            sending.ask("static-member-add", dpid=place, port_no=EDGE_PORT, group=group)
    spine = int(sending.uplinks()[free]["components"]["neighbour"])
    trees = {found["group"]: found["links"] for found in sending.controller.show("groups")}
    ways = [link for group in GROUPS for link in trees[group] if sending.tor in link]
    assert ways == [sorted((sending.tor, spine))] * len(GROUPS)


def test_metrics_are_there_at_once_after_a_restart(sending: Fabric):
    loaded = sending.controller.wait_for(sending.loaded, "one uplink is loaded", 90.0)
    sending.controller.wait_for(lambda: _kept(sending, loaded), "the metric is on disk", 60.0)
    sending.controller.restart()
    sending.controller.wait_for(sending.controller.socket.exists, "the controller answers", 60.0)
    sending.controller.wait_for(lambda: sending.tor in _dpids(sending), "the switch is back", 60.0)
    port = next(port for port in sending.ask("allocate-watch", count=1000)["ports"] if port["id"] == loaded)
    assert port["usage"] > LEAST_PCT


def _kept(sending: Fabric, name: str) -> bool:
    """Tell whether the database has the average of a whole period of a port."""
    path = sending.ask("allocate-watch", count=1)["state"]["path"]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        row = database.execute("SELECT emaPercentBusy FROM ports WHERE name = ?", (name,)).fetchone()
    return row is not None and row[0] is not None


def _dpids(sending: Fabric) -> set[int]:
    found = sending.ask("allocate-watch", count=1000)["ports"]
    return {int(port["id"].split(":")[0]) for port in found}
