"""A Linux bridge cabled to two switches of ours makes no loop, with a spanning tree of its own or without."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.namespace import network_of
from apps.status_client import query
from topology.graph import Graph

pytestmark = pytest.mark.emulation

BRIDGE = "foreign"
TORS = ("s1", "s2")
FRAMES_COUNT = 20
QUIET_S = 1.0
FOUND_S = 25
"""In which time a host that moved in silence is found: a packet to it has it looked for, once a second."""


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


@contextmanager
def bridge_between_tors(live: Any, spanning_tree: bool) -> Iterator[None]:
    """Cable a bridge to both ToRs, and move h4 from its ToR to the bridge; all forward on return."""
    ((port, _),) = live.fabric.node("s2").connectionsTo(live.fabric.node("h4"))
    number = live.fabric.node("s2").ports[port]
    options = ("stp_state", str(int(spanning_tree)), "forward_delay", "200", "mcast_snooping", "0")
    processes.run("ip", "link", "add", BRIDGE, "type", "bridge", *options)
    try:
        processes.run("ip", "link", "set", BRIDGE, "up")
        processes.run("ovs-vsctl", "del-port", port.name)
        members = [port.name, *(f"x-{tor}" for tor in TORS)]
        for tor in TORS:
            processes.run("ip", "link", "add", f"x-{tor}", "type", "veth", "peer", "name", f"{tor}-x")
        for member in members:
            processes.run("ip", "link", "set", member, "master", BRIDGE, "up")
        for tor in TORS:
            processes.run("sysctl", "-qw", f"net.ipv6.conf.{tor}-x.disable_ipv6=1")
            processes.run("ip", "link", "set", f"{tor}-x", "up")
            processes.run("ovs-vsctl", "add-port", tor, f"{tor}-x")
        while not all(_forwards(member) for member in members):
            time.sleep(0.05)
        yield
    finally:
        for tor in TORS:
            processes.run("ovs-vsctl", "--if-exists", "del-port", f"{tor}-x")
            processes.run("ip", "link", "delete", f"x-{tor}")
        processes.run("ip", "link", "delete", BRIDGE)
        processes.run(
            "ovs-vsctl", "add-port", "s2", port.name, "--", "set", "Interface", port.name, f"ofport_request={number}"
        )


def _forwards(member: str) -> bool:
    (link,) = json.loads(processes.run("ip", "-j", "-d", "link", "show", member))
    return link["linkinfo"]["info_slave_data"]["state"] == "forwarding"


def to_everybody(mac: bytes, number: int, mdns: bool) -> bytes:
    """A numbered broadcast, or a packet to 224.0.0.251, from 10.0.0.4; UDP without a checksum."""
    group = bytes((224, 0, 0, 251)) if mdns else b"\xff" * 4
    payload = struct.pack("!HHHHI", 9999, 9999, 60, 0, number) + bytes(48)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 1, 17, 0, bytes((10, 0, 0, 4)), group)
    total = sum(struct.unpack("!10H", header))
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    header = header[:10] + struct.pack("!H", checksum) + header[12:]
    eth_dst = b"\x01\x00\x5e\x00\x00\xfb" if mdns else b"\xff" * 6
    return eth_dst + mac + b"\x08\x00" + header + payload


def seen_at(live: Any, bystander: str, sender: str, frames: list[bytes]) -> list[int]:
    """How often each frame that one host sends reaches another until it is quiet there."""
    with network_of(live.fabric.pid(bystander)):
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        listener.bind((live.fabric.interface(bystander), 0))
    with network_of(live.fabric.pid(sender)):
        speaker = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        speaker.bind((live.fabric.interface(sender), 0))
    counts = [0] * len(frames)
    with listener, speaker:
        listener.settimeout(QUIET_S)
        for frame in frames:
            speaker.send(frame)
        deadline = time.monotonic() + 5.0
        try:
            while time.monotonic() < deadline:
                heard = listener.recv(2048)
                for number, frame in enumerate(frames):
                    counts[number] += heard == frame
        except TimeoutError:
            pass
    return counts


def section(live: Any, name: str) -> Any:
    """All that is told in a section."""
    return query(live.controller.socket, {"changes": {name: 0}})["sections"][name]


def alarms(live: Any) -> str:
    """All that is said of alarms that are open."""
    return json.dumps(section(live, "alarms"))


def assert_reaches(live: Any, one: str, other: str) -> None:
    """Once both hosts are found, every packet from one to the other is answered."""
    address = live.fabric.address(other)
    live.fabric.run_on(one, "ping", "-n", "-c", "1", "-w", str(FOUND_S), address)
    live.wait_ready()
    assert " 5 received" in live.fabric.run_on(one, "ping", "-n", "-c", "5", "-i", "0.2", "-W", "2", address)


@pytest.mark.parametrize("spanning_tree", [False, True])
def test_a_bridge_between_two_tors_makes_no_storm(live: Any, group: str, spanning_tree: bool) -> None:
    before = live.controller.log().count("segment-looped")
    with bridge_between_tors(live, spanning_tree):
        live.controller.wait_log("segment-looped", count=before + 1)
        live.wait_ready()
        assert "lead to one segment" in alarms(live)
        for one, other in (("h4", "h1"), ("h1", "h4"), ("h4", "h3"), ("h3", "h4")):
            assert_reaches(live, one, other)
        hosts = section(live, "hosts")["multicast"]["put"].values()
        (home,) = (host for host in hosts if host["mac"] == live.mac("h4"))
        port_in_use = int(processes.run("ovs-vsctl", "get", "Interface", f"{TORS[0]}-x", "ofport"))
        assert (home["dpid"], home["port_no"]) == (live.fabric.dpid(TORS[0]), port_in_use)
        mac = bytes.fromhex(live.mac("h4").replace(":", ""))
        frames = [to_everybody(mac, number, number % 2 == 0) for number in range(FRAMES_COUNT)]
        assert seen_at(live, "h2", "h4", frames) == [1] * FRAMES_COUNT
        live.join(group, "h4")
        live.stream(1, "h1", group)
        live.send(1, 0.5)
        live.assert_all_received(1, f"h4 {group}")
    live.controller.wait_until("status", lambda _: "lead to one segment" not in alarms(live))
