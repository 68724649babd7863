"""Unicast beside multicast: everybody reaches everybody, whatever cable is pulled."""

from __future__ import annotations

import ipaddress
import json
import re
import signal
import socket
import subprocess
from itertools import permutations
from typing import Any

import pytest

from apps.emulation.namespace import network_of
from apps.status_client import query
from controller.rules.pipeline import LOCATION, UNICAST
from controller.unicast.locations import LABEL_COUNT
from controller.wire.udp import encode_udp
from topology.graph import Graph

pytestmark = pytest.mark.emulation


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def test_everybody_reaches_everybody(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2))) == []


def test_ipv6_pings_are_answered(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2)), ipv6=True) == []


UNICAST_COOKIE = "cookie=0x5603000000000000/0xffff000000000000"


def entries(live: Any, switch: str, table: int) -> list[str]:
    """What a switch holds of unicast in a table."""
    flows = live.fabric.ofctl("dump-flows", switch, f"table={table},{UNICAST_COOKIE}", "--no-stats")
    return [line.strip() for line in flows.splitlines() if f"table={table}" in line]


def test_only_switches_with_hosts_hold_entries_for_hosts(live: Any, unanswered: Any) -> None:
    hosts = live.fabric.graph.hosts()
    assert unanswered(live, list(permutations(hosts, 2))) == []
    macs = {live.mac(host) for host in hosts}
    for switch in ("s3", "s4"):
        told = entries(live, switch, UNICAST) + entries(live, switch, LOCATION)
        assert not [entry for entry in told if any(mac in entry for mac in macs)]
        assert len([entry for entry in told if "/ff:ff:ff:00:00:00" in entry]) == LABEL_COUNT * 2
    for switch in ("s1", "s2"):
        told = entries(live, switch, UNICAST)
        assert all(any(f"dl_dst={mac}" in entry for entry in told) for mac in macs)
        back = [entry for entry in entries(live, switch, LOCATION) if "set_field" in entry]
        assert len(back) == 2, "its own hosts get their own addresses back"


def test_a_host_cannot_send_by_location_address(live: Any, unanswered: Any) -> None:
    assert unanswered(live, [("h1", "h3"), ("h3", "h1")]) == []
    mac = live.mac("h3")
    (entry,) = (entry for entry in entries(live, "s2", LOCATION) if f"set_field:{mac}" in entry)
    location = re.search(r"dl_dst=([0-9a-f:]+)", entry)
    assert location is not None
    with network_of(live.fabric.pid("h3")):
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        listener.bind((live.fabric.interface("h3"), 0))
    with network_of(live.fabric.pid("h1")):
        speaker = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        speaker.bind((live.fabric.interface("h1"), 0))
    addresses = [ipaddress.ip_address(live.fabric.address(host)).packed for host in ("h1", "h3")]
    with listener, speaker:
        listener.settimeout(10.0)
        for number, eth_dst in enumerate((location[1], mac)):
            macs = [bytes.fromhex(text.replace(":", "")) for text in (live.mac("h1"), eth_dst)]
            speaker.send(encode_udp(macs[0], *addresses, b"frame %d" % number, eth_dst=macs[1]))
        while b"frame" not in (heard := listener.recv(2048)):
            pass
    assert b"frame 1" in heard


def test_pings_find_a_way_around_a_pulled_cable(live: Any, unanswered: Any) -> None:
    pairs = list(permutations(live.fabric.graph.hosts(), 2))
    assert unanswered(live, pairs) == []
    live.fabric.link_down("s1", "s3")
    live.wait_ready(links=3)
    assert unanswered(live, pairs, rounds=5) == []


def test_a_host_that_was_not_heard_of_is_found(live: Any, unanswered: Any) -> None:
    live.fabric.link_down("s2", "h4")
    live.wait_ready(hosts=3)
    live.fabric.link_up("s2", "h4")
    live.wait_ready(edge_ports=4)
    assert unanswered(live, [("h1", "h4")]) == []


def leads_to(live: Any, switch: str, other: str) -> list[str]:
    """The entries of a switch by which packets between hosts go to another switch."""
    told = query(live.controller.socket, {"changes": {"links": 0}})["sections"]["links"]["multicast"]["put"]
    ends = [dict(tuple(map(int, end.split(":"))) for end in link.split("-")) for link in told]
    at, to = live.fabric.dpid(switch), live.fabric.dpid(other)
    (port_no,) = (found[at] for found in ends if found.keys() == {at, to})
    there = entries(live, switch, UNICAST) + entries(live, switch, LOCATION)
    return [entry for entry in there if re.search(rf"output:\S*\b{port_no}$", entry)]


def test_packets_leave_a_drained_switch_and_come_back_without_loss(live: Any, unanswered: Any) -> None:
    assert unanswered(live, list(permutations(live.fabric.graph.hosts(), 2))) == []
    middle = next(switch for switch in ("s3", "s4") if leads_to(live, "s1", switch))
    drain = {"dpid": live.fabric.dpid(middle)}
    pings = []
    for one, other in (("h1", "h3"), ("h4", "h2")):
        command = ["mnexec", "-a", str(live.fabric.pid(one)), "ping", "-n", "-q", "-i", "0.01"]
        pings.append(subprocess.Popen([*command, live.fabric.address(other)], stdout=subprocess.PIPE, text=True))
    try:
        query(live.controller.socket, {"do": "switch-drain", **drain})
        live.controller.wait_until(
            "status", lambda _: not (leads_to(live, "s1", middle) or leads_to(live, "s2", middle))
        )
        query(live.controller.socket, {"do": "switch-undrain", **drain})
        live.controller.wait_until("status", lambda _: leads_to(live, "s1", middle))
        live.wait_ready()
    finally:
        for ping in pings:
            ping.send_signal(signal.SIGINT)
        told = [ping.communicate()[0] for ping in pings]
    for text in told:
        found = re.search(r"(\d+) packets transmitted, (\d+) received, ", text)
        assert found is not None, text
        sent, received = map(int, found.groups())
        assert sent > 0 and sent - received <= 1, "the last one may be under way"
        assert "duplicates" not in text, text


def known_addresses(live: Any) -> set[str]:
    told = query(live.controller.socket, {"changes": {"hosts": 0}})
    return {ip for host in told["sections"]["hosts"]["multicast"]["put"].values() for ip in host["ips"]}


def test_hosts_that_say_nothing_are_known_again_after_a_restart(live: Any) -> None:
    """Nobody asks for anybody's address: IPv4 addresses come from the journal and the hosts' answers to it alone."""
    hosts = live.fabric.graph.hosts()
    addresses = {live.fabric.address(host) for host in hosts}
    journal = live.controller.directory / "state" / "hosts.jsonl"

    def is_written(_status: Any) -> bool:
        lines = journal.read_text().splitlines() if journal.exists() else []
        last = {record["mac"]: record.get("ips", ()) for record in map(json.loads, lines) if "mac" in record}
        return addresses <= {address for ips in last.values() for address in ips}

    live.controller.wait_until("status", is_written)
    live.controller.stop()
    with journal.open("a") as file:
        file.write('{"mac":"00:00:00:00:0')
    live.controller.start()
    live.controller.wait_until("status", lambda _: addresses <= known_addresses(live))
    live.wait_ready(edge_ports=len(hosts))
    assert "hosts.jsonl" in live.controller.log(), "the torn line was told of"
