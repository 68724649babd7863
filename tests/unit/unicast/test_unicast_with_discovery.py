"""Discovery and unicast together, with hosts that ask, answer and send through the entries that the two made."""

from __future__ import annotations

import random
from collections import deque

import pytest

from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoverySettings
from controller.effects import ApplyEdits, EntriesLost, Notice, Put, RequestFlows, SendPacket, WriteJournal
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER, FlowEntry, FlowKey, Goto, Match, Output
from controller.rules.openflow import FlowCounter
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import encode_arp
from controller.wire.frame import decode
from controller.wire.packets import Arp, UnicastPacket
from controller.wire.udp import encode_udp


def matches(match: Match, in_port: int, frame: bytes) -> bool:
    eth_type = int.from_bytes(frame[12:14], "big")
    if match.in_port not in (None, in_port) or match.eth_type not in (None, eth_type):
        return False
    if match.tagged and eth_type not in (0x8100, 0x88A8):
        return False
    if match.eth_dst not in (None, frame[:6]):
        return False
    if match.ip_proto is not None and frame[20 if eth_type == 0x86DD else 23] != match.ip_proto:
        return False
    if match.icmpv6_type is not None and frame[54] != match.icmpv6_type:
        return False
    if match.ip_dst is None:
        return True
    start, bits = (30, 32) if len(match.ip_dst) == 4 else (38, 128)
    shift = bits - (match.ip_dst_prefix or bits)
    found = int.from_bytes(frame[start : start + bits // 8], "big")
    return found >> shift == int.from_bytes(match.ip_dst, "big") >> shift


class Network:
    """Messages are queued and each core takes its own in order, but nobody knows which core is first."""

    def __init__(self, cables, ends, seed, version=4):
        self.random = random.Random(seed)
        self.version = version
        self.cables = {}
        for a, a_port, b, b_port in cables:
            self.cables[a, a_port], self.cables[b, b_port] = (b, b_port), (a, a_port)
        self.hosts = {
            end: (b"\x02\0\0\0" + n.to_bytes(2, "big"), b"\x0a\0" + n.to_bytes(2, "big"))
            for n, end in enumerate(ends, 1)
        }
        self.caches = {end: {} for end in ends}
        self.received = []
        self.notices = []
        self.copies = 0
        ports = sorted({*self.cables, *ends})
        self.rules: dict[int, dict[FlowKey, FlowEntry]] = {dpid: {} for dpid, _ in ports}
        self.cores = [DiscoveryCore(DiscoverySettings(), bytes(32)), UnicastCore(UnicastSettings())]
        self.queues = [deque(), deque()]
        self.now = 1.0
        for dpid in self.rules:
            described = tuple(Port(n, "", bytes(6), True, 1e9) for d, n in ports if d == dpid)
            self.tell(SwitchConnected(dpid, version, described))

    def tell(self, event, to=(0, 1)):
        for index in to:
            self.queues[index].append(event)

    def settle(self):
        """Let every queued message take effect, in any interleaving of the two cores."""
        while any(self.queues):
            index = self.random.choice([n for n in (0, 1) if self.queues[n]])
            event = self.queues[index].popleft()
            for output in self.cores[index].handle(event, self.now):
                self.perform(index, output)

    def perform(self, index, output):
        if isinstance(output, ApplyEdits):
            for edit in output.edits:
                if isinstance(edit, Put):
                    self.rules[output.dpid][edit.rule.key] = edit.rule
                else:
                    self.rules[output.dpid].pop(edit.key, None)
            self.tell(BarrierReplied(output.dpid, output.first_xid + len(output.edits)), (index,))
        elif isinstance(output, RequestFlows):
            lowering = LOWERINGS[self.version]
            told = [rule for rule in self.rules[output.dpid].values() if rule.cookie >> 48 == output.cookie >> 48]
            entries = b"".join(lowering.encode_flow_stats_entry(FlowCounter(rule, 0, 0, 0.0)) for rule in told)
            message = lowering.encode_flow_stats_reply(output.xid, False, entries)
            self.tell(FlowStatsReceived(output.dpid, self.version, output.xid, message), (index,))
        elif isinstance(output, SendPacket):
            for port_no in output.ports:
                self.leave((output.dpid, port_no), output.data)
        elif isinstance(output, EntriesLost):
            self.tell(CheckRequested(output.dpid), (1 - index,))
        elif isinstance(output, Notice):
            self.notices.append((index, self.now, output))
        elif not isinstance(output, WriteJournal):
            assert index == 0
            self.tell(output, (1,))

    def run(self, seconds):
        until = self.now + seconds
        self.settle()
        while True:
            due = [(core.next_deadline(), n) for n, core in enumerate(self.cores)]
            due = [(at, n) for at, n in due if at is not None and at <= until]
            if not due:
                break
            at, index = min(due)
            self.now = max(self.now, at)
            self.tell(DeadlineReached(), (index,))
            self.settle()
        self.now = until

    def leave(self, end, frame):
        """A frame leaves a switch at a port."""
        if end in self.hosts:
            self.hear(end, frame)
        elif end in self.cables:
            self.enter(self.cables[end], frame)

    def enter(self, end, frame):
        """A frame comes in at a port of a switch and goes through its tables."""
        self.copies += 1
        assert self.copies < 100_000, "a frame goes round"
        dpid, in_port = end
        table = 0
        while True:
            found = [
                r for key, r in self.rules[dpid].items() if key.table == table and matches(key.match, in_port, frame)
            ]
            if not found:
                return
            rule = max(found, key=lambda rule: rule.key.priority)
            table = None
            for action in rule.actions:
                if isinstance(action, Goto):
                    table = action.table
                elif isinstance(action, Output) and action.port_no == OFPP_CONTROLLER:
                    self.tell(PacketReceived(dpid, in_port, frame))
                elif isinstance(action, Output) and action.port_no != in_port:
                    self.leave((dpid, action.port_no), frame)
            if table is None:
                return

    def hear(self, end, frame):
        mac, address = self.hosts[end]
        packet = decode(frame)
        if isinstance(packet, Arp) and packet.eth_dst in (mac, BROADCAST_MAC):
            if packet.operation == 1 and packet.target_ip == address:
                self.enter(
                    end, encode_arp(Arp(mac, packet.eth_src, 2, mac, address, packet.sender_mac, packet.sender_ip))
                )
            elif packet.operation == 2:
                self.caches[end][packet.sender_ip] = packet.sender_mac
                self.send(end, packet.sender_ip)
        elif isinstance(packet, UnicastPacket) and packet.eth_dst == mac:
            self.received.append((packet.source, packet.destination))

    def ask(self, end, address):
        mac, own = self.hosts[end]
        self.enter(end, encode_arp(Arp(mac, BROADCAST_MAC, 1, mac, own, bytes(6), address)))

    def send(self, end, address):
        mac, own = self.hosts[end]
        self.enter(end, encode_udp(mac, own, address, b"ping", eth_dst=self.caches[end][address]))


@pytest.mark.parametrize("version", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_every_host_finds_every_other_at_the_first_attempt(make_fattree, seed, version):
    """What `pingall` does on a k = 4 FatTree right after its start: the first packet arrives, and once."""
    cables, ends = make_fattree(4)
    network = Network(cables, ends, seed, version)
    network.run(1.5)
    assert len(list(network.cores[0].fabric.graph.links())) == 32
    assert sum(len(network.cores[0].fabric.edge_ports(dpid)) for dpid in network.rules) == 16
    expected = []
    for one in ends:
        for other in ends:
            if one != other:
                network.ask(one, network.hosts[other][1])
                network.run(0.02)
                expected.append((network.hosts[one][1], network.hosts[other][1]))
    answered = set(network.received)
    assert answered == set(expected)
    assert len(network.received) <= 1.1 * len(expected), "an answer now and then comes twice, no packet does"
    assert network.cores[1].counters["unicast-unknown"] == 0
    assert {host.addresses for host in network.cores[1].fabric.hosts()} == {
        (ip,) for _mac, ip in network.hosts.values()
    }


@pytest.mark.parametrize("version", [1, 4])
def test_a_switch_that_lost_its_whole_table_has_that_of_both_back_as_soon_as_one_knows(make_fattree, version):
    """Unicast's own turn to look comes much later."""
    cables, ends = make_fattree(4)
    network = Network(cables, ends, 1, version)
    network.tell(UnicastChanged(UnicastSettings(check_interval_s=6000.0)), (1,))
    network.run(3.0)
    network.ask(ends[0], network.hosts[ends[-1]][1])
    network.run(1.0)
    dpid = ends[0][0]
    whole = dict(network.rules[dpid])
    assert len({rule.cookie >> 48 for rule in whole.values()}) == 2
    network.rules[dpid].clear()
    network.run(DiscoverySettings().check_interval_s)
    assert network.rules[dpid] == whole
    told = [told for told in network.notices if told[2].kind == "entries-repaired"]
    (discovery, first_s, one), (unicast, second_s, other) = told
    assert (discovery, unicast) == (0, 1)
    assert first_s == second_s
    assert dict(one.fields)["dpid"] == dict(other.fields)["dpid"] == dpid


def test_a_second_wire_of_a_host_network_makes_no_storm(make_fattree):
    """Two edge ports that lead to one unmanaged switch: what is relayed to one comes back at the other."""
    cables, ends = make_fattree(4)
    network = Network(cables, ends, 1)
    network.run(1.5)
    first, second = ends[0], ends[5]
    hear = network.hear

    def bridged(end, frame):
        hear(end, frame)
        if end in (first, second) and frame[:6] == BROADCAST_MAC:
            network.enter(second if end == first else first, frame)

    network.hear = bridged
    network.copies = 0
    for n in range(20):
        network.ask(ends[2], b"\x0a\x63\0" + bytes((n,)))
        network.run(0.05)
    network.enter(ends[2], encode_udp(b"\x02\x99\0\0\0\1", bytes(4), b"\xff" * 4, b"discover", eth_dst=BROADCAST_MAC))
    network.run(5.0)
    assert network.copies < 1500
