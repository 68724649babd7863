"""The monitor in a FatTree with iperf load: what it shows, what trees make of it, and a second one beside."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import pytest

from apps.emulation import processes
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from topology.generators import make

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

CAPACITY_BPS = 10e6
RATE_BPS = 2e6
PAYLOAD_BYTES, HEADER_BYTES = 1470, 42
SECOND_PORT = 16654
POLICY = f"""\
version: 1
rules: [{{name: all, groups: [239.0.0.0/8], role: any, hosts: [any], action: allow}}]
discovery: {{link_capacity_bps: {CAPACITY_BPS}}}
monitor:
  interval_s: 1
  port_capacity_bps: {CAPACITY_BPS}
  prometheus: {{port: 0}}
  ovsdb: "unix:%s/db.sock"
"""
Port: TypeAlias = dict[str, Any]


class Watched:
    """A FatTree under all apps."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess) -> None:
        self.fabric = fabric
        self.controller = controller

    def ask(self, action: str, **asked: Any) -> Any:
        answer = query(self.controller.socket, {"do": f"perf-{action}", **asked})
        assert "error" not in answer, answer
        return answer

    def wait(self, reached: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
            time.sleep(0.1)

    def place(self, host: str) -> tuple[int, int]:
        """The switch and port that a host is at."""
        (switch,) = self.fabric.graph.neighbours(host)
        return self.fabric.dpid(switch), self.fabric.graph.port(switch, host)

    def ports(self) -> dict[tuple[int, int], Port]:
        return {(port["dpid"], port["port_no"]): port for port in self.ask("report")["ports"]}

    @contextmanager
    def iperf(self, source: str, target: str, duration_s: float) -> Iterator[Callable[[], float]]:
        """Send UDP at `RATE_BPS`; the function given waits for the end and returns what was sent, bit/s of frames."""
        address = self.fabric.address(target)
        size, rate = str(PAYLOAD_BYTES), str(int(RATE_BPS))
        with ExitStack() as stack:
            with network_of(self.fabric.pid(target)):
                server = subprocess.Popen(["iperf", "-s", "-u"], stdout=subprocess.DEVNULL)
            stack.callback(server.wait)
            stack.callback(server.kill)
            self.fabric.run_on(source, "ping", "-c", "1", "-W", "5", address)
            words = ["iperf", "-u", "-c", address, "-b", rate, "-l", size, "-t", str(duration_s), "-y", "C"]
            with network_of(self.fabric.pid(source)):
                client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            stack.callback(client.kill)

            def sent() -> float:
                output, _ = client.communicate(timeout=duration_s + 30)
                return float(output.splitlines()[0].split(",")[8]) * (PAYLOAD_BYTES + HEADER_BYTES) / PAYLOAD_BYTES

            yield sent


@pytest.fixture(scope="module")
def watched(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    policy = tmp_path_factory.mktemp("monitor") / "policy.yaml"
    apps = ("multicast", "unicast", "monitor")
    with ExitStack() as stack:
        fabric = stack.enter_context(EmulatedFabric(make("fattree", {"k": 4}), patch_links=True))
        processes.run("ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:enable-statistics=true")
        policy.write_text(POLICY % fabric.ovs.directory)
        controller = stack.enter_context(
            ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
        )
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= 16)
        watched = Watched(fabric, controller)
        watched.wait(lambda: all(p["tx_bps"] is not None for p in watched.ports().values()), "rates of all ports")
        yield watched


def test_every_port_is_watched_and_every_class_told(watched: Watched) -> None:
    switches = watched.fabric.graph.switches()
    assert len(watched.ports()) == 2 * watched.fabric.switch_link_count() + 16
    assert watched.ask("top")["down"] == []

    def classes() -> dict[str, int]:
        return {row["type"]: row["switches"] for row in watched.ask("report", by="type")["rows"]}

    watched.wait(lambda: classes() == {"tor": 8, "aggregation": 8, "core": 4}, "the class of every switch")
    assert sum(classes().values()) == len(switches)
    assert len(watched.ask("report", type="hosts")["ports"]) == 16


def test_cpu_and_memory_of_the_switches_are_told(watched: Watched) -> None:
    def told() -> bool:
        switches = watched.controller.show("perf")["switches"]
        cpu, memory = ([switch[name] for switch in switches] for name in ("cpu_pct", "memory_pct"))
        return None not in (*cpu, *memory) and all(0 < pct <= 100 for pct in (*cpu, *memory))

    watched.wait(told, "CPU and memory of every switch", 30.0)


def test_utilisation_is_what_iperf_sent(watched: Watched) -> None:
    source, target = watched.place("h1"), watched.place("h16")
    seen: list[tuple[float, float]] = []
    loaded: list[int] = []
    with watched.iperf("h1", "h16", 12.0) as sent:
        time.sleep(4.0)
        for _ in range(6):
            ports = watched.ports()
            seen.append((ports[source]["rx_utilisation_pct"], ports[target]["tx_utilisation_pct"]))
            loaded.append(sum(p["role"] == "trunk" and p["tx_utilisation_pct"] > 10 for p in ports.values()))
            time.sleep(1.0)
        expected_pct = 100 * sent() / CAPACITY_BPS
    assert expected_pct == pytest.approx(100 * RATE_BPS / CAPACITY_BPS, rel=0.1)
    for end in zip(*seen, strict=True):
        assert statistics.median(end) == pytest.approx(expected_pct, rel=0.05)
    assert statistics.median(loaded) == 4


def test_the_next_trees_avoid_what_unicast_loads(watched: Watched) -> None:
    fabric = watched.fabric
    with watched.iperf("h2", "h15", 120.0):  # its end is that of the block

        def loaded() -> set[int]:
            ports = watched.ports().values()
            busy = {p["dpid"] for p in ports if p["role"] == "trunk" and p["tx_utilisation_pct"] > 10}
            return {dpid for dpid in busy if fabric.graph.kind(fabric.switch_with_dpid(dpid)).value == "core"}

        watched.wait(lambda: len(loaded()) == 1, "one core carries the load")
        time.sleep(2.0)
        (core,) = loaded()
        for number in range(1, 5):
            group = f"239.7.{number}.1"
            fabric.join("h15", group)
            fabric.join("h2", group)
        documents = watched.controller.wait_until(
            "groups", lambda groups: sum(len(document["links"]) == 4 for document in groups) == 4
        )
        assert all(core not in {end for link in document["links"] for end in link} for document in documents)
    fabric.restore()


def test_a_switch_without_connection_is_down_until_it_is_back(watched: Watched) -> None:
    switch = watched.fabric.graph.switches()[0]
    dpid = watched.fabric.dpid(switch)
    watched.fabric.control_down(switch)
    watched.wait(lambda: watched.ask("top")["down"] == [dpid], "the switch is shown as down")
    watched.fabric.control_up(switch)
    watched.wait(lambda: watched.ask("top")["down"] == [], "no switch is shown as down")


@pytest.mark.each_framework
def test_a_second_monitor_reads_beside_the_controller(watched: Watched, framework: Framework, tmp_path: Any) -> None:
    fabric = watched.fabric
    policy = tmp_path / "second.yaml"
    policy.write_text("version: 1\nmonitor: {interval_s: 1, role: slave, prometheus: {enabled: false}}\n")
    bridges = processes.run("ovs-vsctl", "list-br").split()
    lasting = _lasting_entries(fabric)
    with ControllerProcess(SECOND_PORT, framework=framework, policy=policy, apps=("monitor",)) as second:
        for bridge in bridges:
            targets = [f"tcp:127.0.0.1:{port}" for port in (CONTROLLER_PORT, SECOND_PORT)]
            processes.run("ovs-vsctl", "set-controller", bridge, *targets)
        beside = Watched(fabric, second)
        wanted = len(watched.ports())

        def all_seen() -> bool:
            ports = beside.ports()
            return len(ports) == wanted and all(port["tx_bps"] is not None for port in ports.values())

        beside.wait(all_seen, "the second monitor knows every port")
        beside.wait(lambda: _roles(SECOND_PORT) == ["slave"] * len(bridges), "every switch has made it a slave")
        watched.controller.wait_discovered(fabric)
        assert _lasting_entries(fabric) == lasting
    for bridge in bridges:
        processes.run("ovs-vsctl", "set-controller", bridge, f"tcp:127.0.0.1:{CONTROLLER_PORT}")


def _roles(port: int) -> list[str]:
    """What Open vSwitch takes the controller at a port for, by switch; it says so every few seconds."""
    lines = processes.run("ovs-vsctl", "--columns=target,role", "--format=csv", "list", "controller").splitlines()
    return [line.rpartition(",")[2] for line in lines if str(port) in line]


def _lasting_entries(fabric: EmulatedFabric) -> dict[Any, list[str]]:
    """The entries that no traffic changes, by switch; every entry must be one of our apps'."""
    found: dict[Any, list[str]] = {}
    for switch in fabric.graph.switches():
        entries = [line.strip() for line in fabric.ofctl("dump-flows", switch, "--no-stats").splitlines()]
        assert all(entry.startswith(("cookie=0x5601", "cookie=0x5602", "cookie=0x5603")) for entry in entries)
        found[switch] = sorted(entry for entry in entries if entry.startswith("cookie=0x5601"))
        assert found[switch]
    return found
