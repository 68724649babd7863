"""The comparison with peers in a FatTree: calm, nothing is raised; what is wrong with a cable is named first."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from topology.generators import make

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework]

CAPACITY_BPS = 100e6
PACKETS_PER_S = 625
PAYLOAD_BYTES = 600
BURST_S = 0.04
MOST_AT_ONCE = 60
"""Packets that a host sends one after the other, also after a while in which the machine did not let it."""
PORT = 5001
SINK = "lost"
LEARNING_WINDOWS = 12
POLICY = f"""\
version: 1
default: allow
monitor:
  interval_s: 1
  port_capacity_bps: {CAPACITY_BPS}
  prometheus: {{enabled: false}}
  history: {{enabled: false}}
anomaly:
  interval_s: 1
  smoothing_samples: 3
  window_samples: 8
  shift_samples: 1
  confirm_windows: 2
  least_windows: 6
  learning_windows: {LEARNING_WINDOWS}
  least_own_windows: {LEARNING_WINDOWS}
  hold_off_windows: 3
"""


OTHER_APP = 65000
"""Priority of an entry of somebody else's, above all that the controller has in table 0."""


class LossyCable:
    """A cable between two switches that passes a middle, in which packets can be lost on their way from `near`."""

    def __init__(self, fabric: EmulatedFabric, near: str, far: str, number: int) -> None:
        graph = fabric.graph
        ends = [(fabric.node(node).name, graph.port(node, other)) for node, other in ((near, far), (far, near))]
        self.port_no = ends[0][1]
        self.name = f"{fabric.dpid(near)}:{self.port_no}"
        self.ends = {self.name, f"{fabric.dpid(far)}:{ends[1][1]}"}
        self._middle = [f"mid{number}a", f"mid{number}b"]
        interfaces = [f"{name}-eth{port_no}" for name, port_no in ends]
        for (name, _), interface in zip(ends, interfaces, strict=True):
            processes.run("ovs-vsctl", "del-port", name, interface)
        processes.run("ip", "link", "del", interfaces[0])
        for (name, port_no), interface, middle in zip(ends, interfaces, self._middle, strict=True):
            processes.run("ip", "link", "add", interface, "type", "veth", "peer", "name", middle)
            for each in (interface, middle):
                processes.run("ip", "link", "set", each, "up")
            processes.run("tc", "qdisc", "add", "dev", middle, "ingress")
            number_wanted = ("set", "Interface", interface, f"ofport_request={port_no}")
            processes.run("ovs-vsctl", "add-port", name, interface, "--", *number_wanted)
        for here, there in (self._middle, reversed(self._middle)):
            self._redirect(here, there, "all", 10, "match", "u32", "0", "0")

    def lose(self) -> None:
        """From here on lose an eighth of the IPv4 packets, not LLDP: where a UDP checksum ends on three zeros."""
        self._redirect(self._middle[0], SINK, "ip", 1, "match", "u16", "0", "0x0007", "at", "26")

    def _redirect(self, here: str, there: str, protocol: str, priority: int, *match: str) -> None:
        filter_ = (
            "filter",
            "add",
            "dev",
            here,
            "parent",
            "ffff:",
            "protocol",
            protocol,
            "prio",
            str(priority),
            "u32",
        )
        processes.run("tc", *filter_, *match, "action", "mirred", "egress", "redirect", "dev", there)


class Compared:
    """A FatTree under monitor and anomaly, in which four hosts send, and cables at the first ToR can lose packets."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess, cables: list[LossyCable]) -> None:
        self.fabric = fabric
        self.controller = controller
        self.cables = cables

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.controller.show("anomalies")
        return found

    def events(self) -> list[dict[str, Any]]:
        """All that was raised and cleared so far."""
        answer = query(self.controller.socket, {"changes": {"events": {"anomaly": 0}}})
        return list(answer["sections"]["events"]["anomaly"]["put"].values())

    def windows(self) -> int:
        """How many windows the least experienced uplink has been learnt from."""
        groups = {group["peer_group"]: group for group in self.shown()["peer_groups"]}
        return int(groups.get("tor uplinks", {"windows_learnt": 0})["windows_learnt"])

    def kept(self) -> int:
        """How many open anomalies are on disk."""
        path = self.controller.directory / "state" / "anomaly.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM members WHERE opened IS NOT NULL").fetchone()[0])

    def ports(self) -> dict[str, dict[str, Any]]:
        """What the monitor last saw of each port."""
        answer = query(self.controller.socket, {"changes": {"ports": {"monitor": 0}}})
        found: dict[str, dict[str, Any]] = answer["sections"]["ports"]["monitor"]["put"]
        return found

    def by_load(self) -> list[LossyCable]:
        """The cables, that which carries most of what their ToR sends first."""
        ports = self.ports()
        return sorted(self.cables, key=lambda cable: -(ports[cable.name]["tx_bps"] or 0.0))

    def told(self) -> list[dict[str, Any]]:
        """The open anomalies, what to look at first before the others."""
        found: list[dict[str, Any]] = self.shown()["anomalies"]
        return sorted(found, key=lambda each: int(each["rank"]))

    def learn(self) -> None:
        """Have thresholds learnt anew, and wait until they are."""
        query(self.controller.socket, {"do": "anomaly-retrain"})
        self.controller.wait_for(lambda: self.windows() >= LEARNING_WINDOWS, "thresholds are learnt", 120.0)

    @contextmanager
    def moved(self, idle: LossyCable) -> Iterator[None]:
        """Have somebody else's entry send meanwhile what the first host sends by another cable of its ToR."""
        graph = self.fabric.graph
        (tor,) = graph.neighbours("h1")
        match = f"table=0,ip,in_port={graph.port(tor, 'h1')}"
        self.fabric.ofctl("add-flow", tor, f"priority={OTHER_APP},{match},actions=output:{idle.port_no}")
        try:
            yield
        finally:
            self.fabric.ofctl("del-flows", tor, match)


@pytest.fixture(scope="module")
def compared(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compared]:
    policy = tmp_path_factory.mktemp("anomaly") / "policy.yaml"
    policy.write_text(POLICY)
    apps = ("multicast", "unicast", "monitor", "anomaly")
    with ExitStack() as stack:
        fabric = stack.enter_context(EmulatedFabric(make("fattree", {"k": 4})))
        processes.run("ip", "link", "add", SINK, "type", "ifb")
        processes.run("ip", "link", "set", SINK, "up")
        (tor,) = fabric.graph.neighbours("h1")
        uplinks = [node for node in fabric.graph.neighbours(tor) if node not in fabric.graph.hosts()]
        cables = [LossyCable(fabric, tor, uplink, number) for number, uplink in enumerate(uplinks)]
        controller = stack.enter_context(
            ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
        )
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= 16)
        stack.enter_context(_sending(fabric, (("h1", "h16"), ("h5", "h12"), ("h9", "h4"), ("h13", "h8"))))
        yield Compared(fabric, controller, cables)


@contextmanager
def _sending(fabric: EmulatedFabric, pairs: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Have the first host of each pair send to the second meanwhile, several packets at a time.

    That wakes the switches as often as so many bursts, not as often as so many packets.
    """
    with ExitStack() as stack:
        senders = [_path(stack, fabric, source, target) for source, target in pairs]
        over = threading.Event()

        def send() -> None:
            begin_s, sent = time.monotonic(), 0
            while not over.wait(BURST_S):
                due = int((time.monotonic() - begin_s) * PACKETS_PER_S)
                for number in range(max(sent, due - MOST_AT_ONCE), due):
                    for sender in senders:
                        sender.send(number.to_bytes(PAYLOAD_BYTES, "little"))  # so that checksums differ
                sent = due

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _path(stack: ExitStack, fabric: EmulatedFabric, source: str, target: str) -> socket.socket:
    """Return a socket of a host whose packets go to one that takes them."""
    address = (fabric.address(target), PORT)
    ends = []
    for host in (source, target):
        with network_of(fabric.pid(host)):
            ends.append(stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
    ends[1].bind(address)
    fabric.run_on(source, "ping", "-c", "1", "-W", "5", address[0])
    ends[0].connect(address)
    return ends[0]


def test_a_calm_run_raises_nothing(compared: Compared):
    compared.controller.wait_for(compared.windows, "windows are judged", 60.0)
    compared.learn()
    assert compared.shown()["tally"]["windows"] > 500
    assert [event["text"] for event in compared.events() if event["state"] == "raised"] == []


def test_a_cable_that_fell_silent_is_named_before_those_that_took_over_what_it_carried(compared: Compared):
    silent, idle = compared.by_load()
    before = compared.ports()
    with compared.moved(idle):
        told = compared.controller.wait_for(lambda: _with_silence_of(silent, compared.told()), "it is seen", 60.0)
        after = compared.ports()
    fell_silent = [each["metric"] == "silent_pct" for each in told]
    assert fell_silent == sorted(fell_silent, reverse=True)
    named = [each["member"] for each, is_silent in zip(told, fell_silent, strict=True) if is_silent]
    assert len(silent.ends & set(named)) == 1
    assert {each["verdict"] for each in told} == {"load difference"}
    assert all(_carried_bps(after[port]) < _carried_bps(before[port]) / 5 for port in named)


def _with_silence_of(cable: LossyCable, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is told where both ends of a cable are told as one that is silent, else nothing."""
    ends = [{each["member"], each["other_end"]} for each in told if each["metric"] == "silent_pct"]
    return told if cable.ends in ends else []


def _carried_bps(port: dict[str, Any]) -> float:
    """What a port receives and sends."""
    return float((port["rx_bps"] or 0.0) + (port["tx_bps"] or 0.0))


def test_the_port_whose_cable_loses_packets_is_named(compared: Compared):
    compared.controller.wait_for(lambda: not compared.told(), "all is as before", 60.0)
    cable = compared.by_load()[0]
    cable.lose()
    wanted = compared.controller.wait_for(
        lambda: [found for found in compared.told() if found["metric"] == "lost_pct"], "the loss is seen", 60.0
    )
    assert [(found["member"], found["verdict"], found["peer_group"]) for found in wanted] == [
        (cable.name, "component fault", "tor uplinks")
    ]
    assert "lost on the cable" in wanted[0]["text"]
    assert wanted[0]["rank"] == 1


def test_open_anomalies_and_thresholds_outlast_a_restart(compared: Compared):
    (before,) = [found for found in compared.shown()["anomalies"] if found["metric"] == "lost_pct"]
    compared.controller.wait_for(compared.kept, "the anomaly is on disk", 60.0)
    compared.controller.restart()
    compared.controller.wait_for(compared.controller.socket.exists, "the controller answers", 60.0)
    shown = compared.shown()
    (after,) = [found for found in shown["anomalies"] if found["metric"] == "lost_pct"]
    assert (after["member"], after["since_s"]) == (before["member"], before["since_s"])
    assert compared.windows() >= LEARNING_WINDOWS
    assert shown["state"]["set_aside"] == ""
