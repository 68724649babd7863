"""Large flows to one host in a FatTree: the second one on a link goes elsewhere, and is let go when it has ended."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations

import pytest

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from apps.status_client import query
from controller.rules.pipeline import LOCATION, PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY, UNICAST
from fat_tree import measured_fat_tree

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

CAPACITY_BPS = 3e6
RATE_BPS = 0.9e6
POLICY = f"""\
version: 1
discovery: {{link_capacity_bps: {CAPACITY_BPS}}}
monitor:
  interval_s: 1
  port_capacity_bps: {CAPACITY_BPS}
  prometheus: {{enabled: false}}
aliases: {{mode: dynamic, unicast: true}}
default: allow
"""
HOST_ENTRY = re.compile(r"dl_dst=(?P<mac>[0-9a-f:]{17}) actions=set_field:(?P<location>[0-9a-f:]{17})->eth_dst,goto")
LABEL_ENTRY = re.compile(r"dl_dst=(?P<label>[0-9a-f:]{8}):00:00:00/ff:ff:ff:00:00:00 actions=output:(?P<port>\d+)")


@dataclass
class Edge:
    """The switch of h1 and h2, and what it sends by which of its uplinks."""

    fabric: EmulatedFabric
    controller: ControllerProcess

    def __post_init__(self) -> None:
        (self.tor,) = self.fabric.graph.neighbours("h1")
        above = [node for node in self.fabric.graph.neighbours(self.tor) if node not in self.fabric.graph.hosts()]
        self.uplinks = [self.fabric.graph.port(self.tor, node) for node in above]

    def dump(self, switch: str, *fields: str) -> str:
        return self.fabric.ofctl("dump-flows", switch, ",".join(fields), "--no-stats")

    def pinned(self) -> list[str]:
        """All entries of flows with ways of their own, in all switches."""
        priorities = f"priority={PRIORITY_PINNED_FLOW},", f"priority={PRIORITY_PINNED_WAY},"
        lines = [line for node in self.fabric.graph.switches() for line in self.dump(node).splitlines()]
        return [line for line in lines if any(priority in line for priority in priorities)]

    def colliding(self) -> tuple[str, str]:
        """Two hosts at different switches to which this one sends by one uplink."""
        located = {entry["mac"]: entry["location"][:8] for entry in HOST_ENTRY.finditer(self.told(UNICAST))}
        ports = {entry["label"]: int(entry["port"]) for entry in LABEL_ENTRY.finditer(self.told(LOCATION))}
        by_port = defaultdict(list)
        for host in self.fabric.graph.hosts():
            if (label := located.get(self.mac(host))) in ports:
                by_port[ports[label]].append(host)
        pairs = (pair for found in by_port.values() for pair in combinations(found, 2))
        at = self.fabric.graph.neighbours
        return next((one, other) for one, other in pairs if at(one) != at(other))

    def mac(self, host: str) -> str:
        return str(self.fabric.node(host).MAC())

    def told(self, table: int) -> str:
        return self.dump(self.tor, f"table={table}")

    def sent_bytes(self) -> dict[int, int]:
        """What each uplink has sent."""
        found = {}
        for port_no in self.uplinks:
            told = self.fabric.ofctl("dump-ports", self.tor, str(port_no))
            found[port_no] = int(re.search(r"tx pkts=\d+, bytes=(\d+)", told)[1])
        return found


@pytest.fixture(scope="module")
def edge(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    with measured_fat_tree(framework, tmp_path_factory.mktemp("large"), POLICY) as (fabric, controller):
        found = Edge(fabric, controller)
        for host in fabric.graph.hosts():
            if fabric.graph.neighbours(host) != (found.tor,):
                fabric.run_on("h1", "ping", "-c", "1", "-W", "5", fabric.address(host))
        yield found


def stream(stack: ExitStack, edge: Edge, source: str, target: str) -> None:
    words = ["iperf", "-u", "-c", edge.fabric.address(target), "-b", str(int(RATE_BPS)), "-l", "1200", "-t", "600"]
    with network_of(edge.fabric.pid(source)):
        client = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(client.wait)
    stack.callback(client.kill)


def test_the_second_of_two_flows_on_a_link_goes_elsewhere_until_it_ends(edge: Edge):
    assert edge.pinned() == []
    targets = edge.colliding()
    with ExitStack() as stack:
        for source, target in zip(("h1", "h2"), targets, strict=True):
            stream(stack, edge, source, target)
        edge.controller.wait_for(edge.pinned, "a flow has a way of its own", 90.0)
        before = edge.sent_bytes()

        def both_carry() -> bool:
            return all(sent - before[port_no] > 100_000 for port_no, sent in edge.sent_bytes().items())

        edge.controller.wait_for(both_carry, "each uplink carries a flow", 60.0)
        told = query(edge.controller.socket, {"changes": {"events": 0}})["sections"]["events"]
        events = [event for section in told.values() for event in section["put"].values()]
        (placed, *_) = [event for event in events if event["kind"] == "large-flow"]
        assert edge.mac(targets[0]) in placed["text"] or edge.mac(targets[1]) in placed["text"]
        for target in targets:
            edge.fabric.run_on("h1", "ping", "-c", "3", "-i", "0.2", "-W", "5", edge.fabric.address(target))
    edge.controller.wait_for(lambda: not edge.pinned(), "its entries are gone", 90.0)


def test_no_switch_holds_an_entry_more_with_nothing_to_move(edge: Edge):
    assert edge.pinned() == []
    edge.controller.wait_until("status", lambda answer: answer["in_sync"])
