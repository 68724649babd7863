"""Multicast routers at the edge of the fabric: FRR's pimd, and a proxy, between its hosts and other subnets."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.namespace import network_of
from how_to import files
from router_edge import two_switches, wait
from topology.graph import Graph

pytestmark = pytest.mark.emulation

PAGE = "routers.md"
FRR = Path("/usr/lib/frr")
BEHIND = {"r1": "o1", "r2": "o2"}
"""Each router and the host in the subnet behind it; that is at s1 as well, but joins and sends there only."""

QUERY_INTERVAL_S = 2
PATIENT_INTERVAL_S = 10
"""A router forgets a group that it hears nothing of for twice this: longer than a controller takes to start."""

JOIN_INTERVAL_S = 5
"""The least that FRR has between PIM joins."""

FASTER = """\
ip pim join-prune-interval {join_interval_s}
interface {interface}
 ip igmp query-max-response-time 5
 ip igmp query-interval {query_interval_s}
 ip pim hello 2
"""
RATE_BPS = 2e6


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Switches s1 with h1, o1, o2 and r1, and s2 with h2 and r2; as in the guide r1 is 10.0.0.5, r2 10.0.0.6."""
    return two_switches({"h1": "s1", "h2": "s2", "o1": "s1", "o2": "s1", "r1": "s1", "r2": "s2"})


class Edge:
    """The routers of a fabric, each with a subnet behind it."""

    def __init__(self, live: Any, directory: Path, stack: ExitStack) -> None:
        self.live = live
        self.directory = directory
        self._stack = stack
        self._daemons: dict[str, list[subprocess.Popen[bytes]]] = {}
        for number, (router, host) in enumerate(BEHIND.items(), 1):
            pid, fabric = live.fabric.pid, live.fabric
            (directory / router).mkdir()
            shutil.chown(directory / router, "frr", "frr")
            ends = ("ip", "link", "add", f"{router}-out", "netns", str(pid(router)), "type", "veth", "peer", "name")
            processes.run(*ends, f"{host}-out", "netns", str(pid(host)))
            stack.callback(fabric.run_on, router, "ip", "link", "delete", f"{router}-out")
            for node, last in ((router, 1), (host, 2)):
                fabric.run_on(node, "ip", "address", "add", f"192.168.{number}.{last}/24", "dev", f"{node}-out")
                fabric.run_on(node, "ip", "link", "set", f"{node}-out", "up")
            settings = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
            fabric.run_on(router, "sysctl", "-qw", *settings, f"net.ipv4.conf.{fabric.interface(router)}.rp_filter=0")

    def configuration(self, router: str, name: str) -> str:
        """Return a file of the guide with the interfaces of a router here; r2's route leads to r1's subnet."""
        text = files(PAGE)[name].replace("eth1", f"{router}-out").replace("eth0", self.live.fabric.interface(router))
        if router == "r2":
            text = text.replace("192.168.2.0/24 10.0.0.6", "192.168.1.0/24 10.0.0.5")
        return text

    def route(self, router: str, query_interval_s: int = QUERY_INTERVAL_S) -> None:
        """Start FRR on a router, configured as in the guide, with timers that a test can wait for."""
        home = self.directory / router
        for daemon in ("zebra", "staticd", "pimd"):
            sockets = ("-z", str(home / "zserv.api"), "--vty_socket", str(home), "-i", str(home / f"{daemon}.pid"))
            self._start(router, [str(FRR / daemon), *sockets, "-f", "/dev/null", "-P", "0"])
            wait((home / f"{daemon}.vty").exists)
        faster = FASTER.format(
            interface=self.live.fabric.interface(router),
            query_interval_s=query_interval_s,
            join_interval_s=JOIN_INTERVAL_S,
        )
        # FRR waits for what it began to wait for, so that intervals are to be known before neighbours are.
        (home / "frr.conf").write_text(faster + self.configuration(router, "frr.conf"))
        processes.run("vtysh", "--vty_socket", str(home), "-f", str(home / "frr.conf"))

    def proxy(self, router: str, name: str) -> None:
        """Start igmpproxy on a router with a configuration of the guide."""
        (self.directory / router / name).write_text(self.configuration(router, name))
        self._start(router, ["igmpproxy", "-n", "-v", str(self.directory / router / name)])

    def _start(self, router: str, command: list[str]) -> None:
        with network_of(self.live.fabric.pid(router)):
            process = processes.start(command, log=self.directory / router / "log")
        self._daemons.setdefault(router, []).append(process)
        self._stack.callback(processes.stop, process)

    def kill(self, router: str) -> None:
        """End a router's daemons without a farewell."""
        for process in self._daemons.pop(router):
            process.kill()
            process.wait()

    def configure(self, router: str, *lines: str) -> None:
        """Have a router go by further lines of configuration."""
        commands = [word for line in ("configure terminal", *lines) for word in ("-c", line)]
        processes.run("vtysh", "--vty_socket", str(self.directory / router), *commands)

    def ask(self, router: str, command: str) -> Any:
        return json.loads(
            processes.run("vtysh", "--vty_socket", str(self.directory / router), "-c", f"{command} json")
        )

    def neighbours(self, router: str) -> list[str]:
        """Return the addresses of the PIM routers that a router knows in the fabric."""
        return list(self.ask(router, "show ip pim neighbor").get(self.live.fabric.interface(router), {}))

    def traffic(self, router: str) -> dict[str, int]:
        """Return how many PIM messages of each kind a router sent into the fabric and received from it."""
        return self.ask(router, "show ip pim interface traffic")[self.live.fabric.interface(router)]

    def wait_reached(self, *expected: tuple[str, int]) -> None:
        """Wait until sockets have had the last packets of streams that go on."""
        for name, stream in expected:
            before = received(self.live, name, stream, 0)
            wait(lambda name=name, stream=stream, before=before: received(self.live, name, stream, 0) > before + 20)


def received(live: Any, name: str, stream: int, phase: int) -> int:
    tally = live.fabric.received()[name]["streams"].get(f"{stream}:{phase}", {})
    return int(tally.get("received", 0))


@pytest.fixture
def edge(live: Any) -> Iterator[Edge]:
    # FRR gives up root's rights, and the run's own directory for temporary files is root's alone.
    directory = Path(tempfile.mkdtemp(prefix="vsrt-frr.", dir="/tmp"))
    try:
        directory.chmod(0o755)
        live.set_policy(files(PAGE)["routers.yaml"])
        with ExitStack() as stack:
            yield Edge(live, directory, stack)
    finally:
        shutil.rmtree(directory)


def routers(live: Any) -> list[str]:
    """Return the addresses of the routers that the controller knows."""
    return sorted(ip for port in live.controller.show("routers")["router_ports"] for ip in port["routers"])


def querier(live: Any) -> str | None:
    """Return the address of the querier of IPv4 hosts, None where that is the controller."""
    (found,) = (q for q in live.controller.show("routers")["queriers"] if q["family"] == 4)
    return None if found["ours"] else str(found["address"])


def begin_streams(live: Any, group: str) -> None:
    """o1 (stream 1) from beyond the fabric and h1 (stream 2) from inside send phase 0 until another phase."""
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.open_stream(2, "h1", group, RATE_BPS, ttl=8)
    live.fabric.send(0)


def assert_all_once(live: Any, duration_s: float, *expected: tuple[str, int]) -> None:
    live.send(1, duration_s)
    for name, stream in expected:
        live.assert_all_received(1, name, stream=stream)


def follow_joins(live: Any, edge: Edge) -> None:
    """Start r1, the designated router, and r2 at ports that get what is joined there."""
    on_join = f"{{on_join: true, pim_join_interval_s: {JOIN_INTERVAL_S}}}"
    live.set_policy(files(PAGE)["on-join.yaml"].replace("{on_join: true}", on_join))
    for router in BEHIND:
        edge.route(router)
    edge.configure("r1", f"interface {live.fabric.interface('r1')}", "ip pim drpriority 100")
    wait(lambda: (edge.neighbours("r1"), edge.neighbours("r2")) == (["10.0.0.6"], ["10.0.0.5"]))


def test_a_router_gets_the_sources_alone_that_it_joined(live: Any, edge: Edge) -> None:
    """The first here: hosts that have heard a querier of IGMPv2, as later, report no sources for minutes."""
    group, source = "232.1.2.3", "192.168.1.2"
    follow_joins(live, edge)
    live.fabric.join("o2", group, name="beyond", interface="o2-out", include=[source])
    live.fabric.join("h2", group, name="inside", include=[source])
    wait(lambda: group in joined(live, "10.0.0.6"))
    wait(lambda: asks_only(live, "10.0.0.6"))
    for router in BEHIND:
        live.fabric.tap(router)
    live.fabric.open_stream(2, "h1", group, RATE_BPS, ttl=8)
    live.fabric.send(0)
    wait(lambda: live.fabric.received()["tap r1"]["groups"].get(group, 0) > 100)
    assert group not in live.fabric.settled()["tap r2"]["groups"], "what another source sends"
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("beyond", 1), ("inside", 1))
    assert_all_once(live, 1.0, ("beyond", 1), ("inside", 1))


@pytest.mark.each_framework
def test_groups_reach_other_subnets_and_come_from_them(live: Any, edge: Edge, group: str) -> None:
    for router in BEHIND:
        edge.route(router)
    wait(lambda: routers(live) == ["10.0.0.5", "10.0.0.6"])
    wait(lambda: (edge.neighbours("r1"), edge.neighbours("r2")) == (["10.0.0.6"], ["10.0.0.5"]))
    live.fabric.join("h2", group, name="inside")
    live.fabric.join("o2", group, name="beyond", interface="o2-out")
    begin_streams(live, group)
    every = [(name, stream) for name in ("inside", "beyond") for stream in (1, 2)]
    edge.wait_reached(*every)
    assert_all_once(live, 1.0, *every)
    assert {sender["ip"] for sender in live.document(group)["senders"]} == {"192.168.1.2", "10.0.0.1"}


def test_queriers_are_elected_with_routers_and_followed_when_they_go(live: Any, edge: Edge, group: str) -> None:
    edge.route("r2")
    wait(lambda: querier(live) == "10.0.0.6")
    edge.route("r1")
    wait(lambda: querier(live) == "10.0.0.5")
    live.fabric.join("h2", group)
    live.stream(2, "h1", group, RATE_BPS)
    edge.kill("r1")
    wait(lambda: querier(live) == "10.0.0.6")
    edge.kill("r2")
    wait(lambda: querier(live) is None)
    assert_all_once(live, 0.5, (f"h2 {group}", 2))


def test_messages_between_routers_are_not_lost(live: Any, edge: Edge, group: str) -> None:
    for router in BEHIND:
        edge.route(router)
    wait(lambda: edge.neighbours("r1") and edge.neighbours("r2"))
    before = {router: edge.traffic(router) for router in BEHIND}
    for number in range(10):
        live.fabric.join("o2", f"239.77.{number}.1", name=f"{number}", interface="o2-out")
    for number in range(5):
        live.fabric.leave("o2", f"239.77.{number}.1", name=f"{number}")

    def exchanged() -> dict[str, tuple[int, int]]:
        now = {router: edge.traffic(router) for router in BEHIND}
        return {
            f"{kind} from {here}": (
                now[here][f"{kind}Tx"] - before[here][f"{kind}Tx"],
                now[there][f"{kind}Rx"] - before[there][f"{kind}Rx"],
            )
            for here, there in (("r1", "r2"), ("r2", "r1"))
            for kind in ("hello", "join")
        }

    def is_complete() -> bool:
        counts = exchanged()
        return all(sent == came for sent, came in counts.values()) and counts["hello from r1"][0] >= 3

    wait(lambda: exchanged()["join from r2"][0] > 0)
    wait(is_complete)


def test_a_proxy_with_receivers_beyond_it_gets_what_they_join_alone(live: Any, edge: Edge, group: str) -> None:
    edge.proxy("r1", "receivers-beyond.conf")
    live.fabric.join("o1", group, name="beyond", interface="o1-out")
    live.wait_members(group, {"r1"})
    live.fabric.join("h2", "239.78.1.1")
    live.wait_members("239.78.1.1", {"h2"})
    live.fabric.tap("r1")
    live.stream(1, "h1", group, RATE_BPS)
    live.stream(2, "h1", "239.78.1.1", RATE_BPS)
    edge.wait_reached(("beyond", 1))
    assert_all_once(live, 0.5, ("beyond", 1), ("h2 239.78.1.1", 2))
    assert set(live.fabric.settled()["tap r1"]["groups"]) == {group}
    assert not routers(live)
    live.fabric.leave("o1", group, name="beyond")
    live.wait_members(group, set())


@pytest.mark.parametrize("on_request", [True, False])
def test_a_proxy_with_senders_beyond_it_asks_and_gets_nothing_where_that_is_said(
    live: Any, edge: Edge, group: str, on_request: bool
) -> None:
    other, text = "239.79.1.1", files(PAGE)["on-request.yaml"]
    live.set_policy(text if on_request else text.replace("on_request: true", "on_request: false"))
    edge.proxy("r1", "senders-beyond.conf")
    wait(lambda: routers(live) == ["10.0.0.5"])
    live.fabric.join("h2", group, name="inside")
    live.fabric.join("h2", other, name="other")
    live.fabric.tap("r1")
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.open_stream(2, "h1", other, RATE_BPS, ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("inside", 1), ("other", 2))
    assert_all_once(live, 0.5, ("inside", 1), ("other", 2))
    assert set(live.fabric.settled()["tap r1"]["groups"]) == (set() if on_request else {other})


def proxied(live: Any) -> None:
    """Have the controller report for the hosts, as in the guide."""
    live.set_policy(files(PAGE)["proxied.yaml"])


def reported(live: Any, router: str) -> dict[str, Any]:
    """Return what the controller says that it reports to a router, by its address."""
    ports = live.controller.show("routers")["router_ports"]
    return next((port["reported"] for port in ports if router in port["routers"]), None) or {}


def groups_at(edge: Edge, router: str) -> dict[str, Any]:
    """Return the groups that a router of FRR has at the fabric, with what it knows of each."""
    interface = edge.live.fabric.interface(router)
    found = edge.ask(router, "show ip igmp groups").get(interface, {}).get("groups", [])
    return {entry["group"]: entry for entry in found if not entry["group"].startswith("224.0.0.")}


def test_a_router_hears_one_host_in_place_of_many_and_has_no_gap(live: Any, edge: Edge, group: str) -> None:
    proxied(live)
    for router in BEHIND:
        edge.route(router)
    wait(lambda: routers(live) == ["10.0.0.5", "10.0.0.6"])
    wait(lambda: (edge.neighbours("r1"), edge.neighbours("r2")) == (["10.0.0.6"], ["10.0.0.5"]))
    assert querier(live) is None
    live.fabric.join("h1", group, name="one")
    live.fabric.join("h2", group, name="two")
    for router in BEHIND:
        wait(lambda router=router: group in groups_at(edge, router))
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("one", 1), ("two", 1))
    live.fabric.leave("h1", group, name="one")
    live.wait_members(group, {"h2"})

    def queries_sent() -> int:
        return int(edge.ask("r1", "show ip igmp statistics")["global"]["generalQueriesSent"])

    before = queries_sent()
    wait(lambda: queries_sent() > before)
    assert_all_once(live, 2.5 * QUERY_INTERVAL_S, ("two", 1))
    told = reported(live, "10.0.0.5")
    assert (told["version"], group in told["groups"]) == (3, True)
    live.fabric.leave("h2", group, name="two")
    wait(lambda: all(group not in groups_at(edge, router) for router in BEHIND))


def test_a_router_of_an_older_version_is_told_in_that(live: Any, edge: Edge, group: str) -> None:
    proxied(live)
    edge.route("r1")
    edge.configure("r1", f"interface {live.fabric.interface('r1')}", "ip igmp version 2")
    live.fabric.join("h2", group)
    wait(lambda: reported(live, "10.0.0.5").get("version") == 2)
    wait(lambda: groups_at(edge, "r1").get(group, {}).get("version") == 2)
    live.fabric.leave("h2", group)
    wait(lambda: group not in groups_at(edge, "r1"))


def test_a_proxy_with_senders_beyond_it_hears_of_the_members(live: Any, edge: Edge, group: str) -> None:
    proxied(live)
    edge.proxy("r1", "senders-beyond.conf")
    wait(lambda: routers(live) == ["10.0.0.5"])
    live.fabric.join("h2", group, name="inside")
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("inside", 1))
    assert_all_once(live, 0.5, ("inside", 1))


def test_a_controller_that_starts_anew_leaves_no_gap_at_a_router(live: Any, edge: Edge, group: str) -> None:
    proxied(live)
    edge.route("r1", PATIENT_INTERVAL_S)
    live.fabric.join("h2", group, name="inside")
    wait(lambda: group in groups_at(edge, "r1"))
    live.fabric.open_stream(1, "o1", group, RATE_BPS, interface="o1-out", ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("inside", 1))
    live.fabric.send(1)
    live.controller.restart()
    wait(lambda: group in reported(live, "10.0.0.5").get("groups", ()))
    before = received(live, "inside", 1, 1)
    wait(lambda: received(live, "inside", 1, 1) > before + 20)
    live.fabric.send(2)
    live.assert_all_received(1, "inside", stream=1)


def joined(live: Any, router: str) -> list[str]:
    """Return the groups that a router is known to have joined by PIM, or to be asked for."""
    ports = live.controller.show("routers")["router_ports"]
    return next((port["joined"]["groups"] for port in ports if router in port["routers"] and port["joined"]), [])


def asks_only(live: Any, router: str) -> bool:
    """Tell whether the port of a router is past the time in which it gets every group."""
    ports = live.controller.show("routers")["router_ports"]
    return any(port["routers"] == [router] and port["on_request"] for port in ports)


def test_a_router_gets_the_groups_that_it_joined_of_another_one(live: Any, edge: Edge, group: str) -> None:
    other = "239.80.1.1"
    follow_joins(live, edge)
    live.fabric.join("o2", group, name="beyond", interface="o2-out")
    live.fabric.join("h2", other, name="inside")
    # What routers joined in the tests before may not be over yet.
    wait(lambda: all(group in joined(live, router) for router in ("10.0.0.5", "10.0.0.6")))
    assert other not in joined(live, "10.0.0.6")
    wait(lambda: asks_only(live, "10.0.0.6"))
    live.fabric.open_stream(1, "h1", group, RATE_BPS, ttl=8)
    live.fabric.open_stream(2, "h1", other, RATE_BPS, ttl=8)
    live.fabric.send(0)
    edge.wait_reached(("beyond", 1), ("inside", 2))
    live.fabric.tap("r2")
    assert_all_once(live, 1.0, ("beyond", 1), ("inside", 2))
    assert set(live.fabric.settled()["tap r2"]["groups"]) == {group}
    live.fabric.leave("o2", group, name="beyond")
    wait(lambda: group not in joined(live, "10.0.0.6"))
