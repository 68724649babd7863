"""Two fabrics of one controller on Open vSwitch: streams in both go on when a cable joins them and when it is cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.processes import EmulationError
from apps.status_client import query
from controller.snapshot.events import EVENTS_BOUND
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import Query
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, files, wait
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

RATE_BPS = 5e6  # 500 packets/s
BETWEEN = ("s2", "s3")


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    """Four ToRs in a row, with h1 to h3 at s1, h4 at s2, h5 at s3 and h6 to h8 at s4."""
    graph = Graph()
    for name in ("s1", "s2", "s3", "s4"):
        graph.add_node(name, NodeKind.TOR)
    for number in range(1, 9):
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link("s1" if number < 4 else "s4" if number > 5 else f"s{number - 2}", f"h{number}")
    for one, other in (("s1", "s2"), BETWEEN, ("s3", "s4")):
        graph.add_link(one, other)
    return graph, {}


@pytest.fixture
def halves(live: Any) -> Any:
    """The row cut in the middle: s1 and s2 are one fabric, s3 and s4 another."""
    live.fabric.link_down(*BETWEEN)
    live.wait_ready(links=2, fabrics=2)
    return live


def told(live: Any, kind: str) -> list[str]:
    """Return the texts of the events of a kind."""
    answer = query(live.controller.socket, {"changes": {"events": {"multicast": 0}}, "limit": EVENTS_BOUND})
    found = answer["sections"]["events"]["multicast"]["put"].values()
    return [event["text"] for event in found if event["kind"] == kind]


def test_streams_in_two_fabrics_do_not_notice_a_cable_between_them(halves: Any, group: str) -> None:
    own = {1: ("h1", "239.1.210.1", ("h2", "h4")), 2: ("h8", "239.1.210.2", ("h7", "h5"))}
    for number, (sender, address, members) in own.items():
        halves.join(address, *members)
        halves.stream(number, sender, address, RATE_BPS, pattern="constant")
    halves.join(group, "h3", "h6")
    halves.stream(3, "h1", group, RATE_BPS, pattern="constant")
    halves.halt()
    left = [f"h3 {group}"]
    halves.send(1, 0.5)
    for number, (_, address, members) in own.items():
        halves.assert_all_received(1, *(f"{member} {address}" for member in members), stream=number)
    halves.assert_all_received(1, *left, stream=3)
    assert halves.counts(1, f"h6 {group}", 3)[1] == 0, "no link leads there"
    splits = len(told(halves, "fabric-split"))
    for phase, connect, count in ((2, halves.fabric.link_up, 1), (4, halves.fabric.link_down, 2)):
        halves.fabric.send(phase)
        connect(*BETWEEN)
        halves.wait_ready(links=4 - count, fabrics=count)
        halves.halt()
        for number, (_, address, members) in own.items():
            halves.assert_all_received(phase, *(f"{member} {address}" for member in members), stream=number)
        halves.assert_all_received(phase, *left, stream=3)
        assert halves.counts(phase, f"h6 {group}", 3)[2] == 0, "no packet came twice"
        halves.send(phase + 1, 0.5)
        if count == 1:
            halves.assert_all_received(phase + 1, *left, f"h6 {group}", stream=3)
        else:
            halves.assert_all_received(phase + 1, *left, stream=3)
            assert halves.counts(phase + 1, f"h6 {group}", 3)[1] == 0
    wait(lambda: len(told(halves, "fabric-split")) > splits)


def test_hosts_of_two_fabrics_reach_each_other_only_by_a_cable(halves: Any, unanswered: Any) -> None:
    within, across = [("h1", "h4"), ("h5", "h8")], [("h1", "h5"), ("h8", "h4")]
    assert unanswered(halves, within) == []
    assert unanswered(halves, across) == across
    halves.fabric.link_up(*BETWEEN)
    halves.wait_ready(links=3, fabrics=1)
    assert unanswered(halves, within + across, rounds=5) == []


@pytest.fixture
def twin(halves: Any) -> Iterator[str]:
    """The address that h5, in one fabric, has with the MAC address from h4, which is in the other."""
    fabric, interface = halves.fabric, halves.fabric.interface("h5")

    def dress(mac: str, address: str, former: str) -> None:
        for words in (f"addr del {former}/8 dev", f"link set address {mac} dev", f"addr add {address}/8 dev"):
            fabric.run_on("h5", "ip", *words.split(), interface)

    own, shared = ((halves.mac(host), fabric.address(host)) for host in ("h5", "h4"))
    dress(*shared, own[1])
    yield shared[1]
    dress(*own, shared[1])


def test_one_mac_address_is_a_host_in_each_fabric_until_a_cable_joins_them(
    halves: Any, twin: str, group: str
) -> None:
    def answers(host: str) -> bool:
        try:
            halves.fabric.run_on(host, "ping", "-c", "1", "-W", "1", twin)
        except EmulationError:
            return False
        return True

    wait(lambda: answers("h1") and answers("h8"))
    halves.fabric.join("h4", group, name="one")
    halves.fabric.join("h5", group, name="other")
    wait(lambda: len(halves.document(group)["members"]) == 2)
    halves.stream(1, "h1", group, RATE_BPS, pattern="constant")
    halves.halt()
    halves.fabric.send(1)
    halves.fabric.link_up(*BETWEEN)
    halves.wait_ready(links=3, fabrics=1)
    halves.controller.wait_log("mac-in-both-fabrics")
    halves.halt()
    halves.assert_all_received(1, "one")
    wait(lambda: answers("h1"))


ROUTED = """\
version: 1
default: allow
multicast: {querier: {accept_others: true}, router_ports: {learn: true}}
"""
SEND = """\
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((sys.argv[1], 0))
wire.send(bytes.fromhex(sys.argv[2]))
"""


def ask(live: Any, host: str) -> None:
    """Have a host send a general query of IGMPv3."""
    mac, address = bytes.fromhex(live.mac(host).replace(":", "")), parse_ip(live.fabric.address(host))
    frame = encode(Query(4, 3, mac, address, None, (), 10.0, False, 2, 125.0))
    live.fabric.run_on(host, sys.executable, "-c", SEND, live.fabric.interface(host), frame.hex())


def test_each_fabric_has_a_querier_of_its_own_until_a_cable_joins_them(halves: Any) -> None:
    halves.set_policy(ROUTED)
    first, second = halves.fabric.address("h2"), halves.fabric.address("h7")

    def elected(*addresses: str | None) -> None:
        """Wait until these are the queriers of IPv4, None standing for the controller."""
        halves.controller.wait_until(
            "routers",
            lambda found: {one["address"] for one in found["queriers"] if one["family"] == 4} == {*addresses},
        )

    elected(None)
    ask(halves, "h2")
    elected(first, None)
    ask(halves, "h7")
    elected(first, second)
    halves.fabric.link_up(*BETWEEN)
    halves.wait_ready(links=3, fabrics=1)
    elected(first)
    ask(halves, "h7")
    elected(first)


def test_the_guide_is_followed(halves: Any, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
    environment["VSRT_SOCKET"] = str(halves.controller.socket)
    policy = files("several-fabrics.md")["fabrics.yaml"]
    (tmp_path / "fabrics.yaml").write_text(policy)
    (check,) = blocks("several-fabrics.md")
    with Reader(tmp_path, environment) as reader:
        reader.run(check)
        halves.set_policy(policy.replace("leaf2: {dpid: 2}", "leaf2: {dpid: 4}"))
        wait(lambda: "hall-b" in reader.run("vsrt show fabrics"))
        lines = [line.split() for line in reader.run("vsrt show fabrics").splitlines()]
        assert lines == [
            ["FABRIC", "SWITCHES", "CONNECTED", "IN", "SYNC"],
            *([f"hall-{x}", "2", "2", "2"] for x in "ab"),
        ]
        hosts = reader.run("vsrt show hosts --select fabric=hall-b --json")
        assert {host for host in ("h5", "h6", "h7", "h8") if halves.mac(host) in hosts} == {"h5", "h6", "h7", "h8"}
        assert all(halves.mac(host) not in hosts for host in ("h1", "h2", "h3", "h4"))
        halves.fabric.link_up(*BETWEEN)
        halves.wait_ready(links=3, fabrics=1)
        wait(lambda: "is the fabric hall-a" in reader.run("vsrt check || true"))
        text = "The names hall-a and hall-b of the policy file are of one fabric: it is called hall-a."
        wait(lambda: text in told(halves, "fabric-named-twice"))
