"""Discovery and unicast together on strict switches, and hosts in VLANs that hear what leaves the fabric."""

from __future__ import annotations

import random
from collections import Counter, deque

from controller.config.marking import Marking
from controller.config.terms import SwitchPort
from controller.config.vlans import PortVlans, VlanEntry, Vlans
from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.effects import ApplyEdits, EntriesLost, Notice, SendPacket, WriteJournal
from controller.events import (
    CheckRequested,
    DeadlineReached,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.rules.evaluate import Fields
from controller.rules.fake import FakeSwitch
from controller.rules.model import OFPP_CONTROLLER
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.wire.addresses import BROADCAST_MAC, group_mac, solicited_node
from controller.wire.arp import encode_arp
from controller.wire.dscp import with_dscp
from controller.wire.ethernet import ETHERTYPE_LLDP, with_tag, without_tag
from controller.wire.frame import decode
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Neighbour, UnicastPacket
from controller.wire.udp import encode_udp
from topology.events import TOPOLOGY_EVENTS

CABLES = [(1, 1, 2, 1), (2, 2, 3, 1), (3, 2, 1, 2)]
ACCESS_10, ACCESS_20, OWN = PortVlans(10, frozenset()), PortVlans(20, frozenset()), PortVlans(0, frozenset())
TRUNK, NATIVE = PortVlans(None, frozenset((10, 20))), PortVlans(10, frozenset((20,)))
PORTS = {
    **{(1, 5): ACCESS_10, (1, 6): ACCESS_20, (1, 7): TRUNK, (1, 8): OWN},
    **{(2, 5): ACCESS_10, (2, 6): NATIVE, (2, 7): OWN},
    **{(3, 5): TRUNK, (3, 6): ACCESS_20, (3, 8): OWN},
}
LLDP = ETHERTYPE_LLDP.to_bytes(2, "big")
MAC = b"\x02\0\0\0\0\x31"


def vlans_of(ports, passes_double_tagged=False):
    entries = tuple(VlanEntry(port, ports=(SwitchPort(*end),)) for end, port in ports.items())
    return Vlans(entries=entries, passes_double_tagged=passes_double_tagged)


def fields_of(frame):
    tag, plain = without_tag(frame) or (None, frame)
    eth_type, tags = int.from_bytes(plain[12:14], "big"), () if tag is None else (tag,)
    if eth_type == 0x0800:
        addresses = plain[26:30], plain[30:34]
        return Fields(plain[:6], plain[6:12], eth_type, plain[23], *addresses, None, tags, plain[15] >> 2)
    if eth_type == 0x86DD:
        kind = plain[54] if plain[20] == 58 else None
        dscp = (plain[14] & 0x0F) << 2 | plain[15] >> 6
        return Fields(plain[:6], plain[6:12], eth_type, plain[20], plain[22:38], plain[38:54], kind, tags, dscp)
    return Fields(plain[:6], plain[6:12], eth_type, vlan_ids=tags)


class Network:
    """Messages are queued and each core takes its own in order, but nobody knows which core is first."""

    passes_double_tagged = False
    marking = Marking()

    def __init__(self, seed=0, ports=PORTS, versions=None, cables=CABLES):
        self.random = random.Random(seed)
        self.ports = dict(ports)
        self.cables = {}
        for a, a_port, b, b_port in cables:
            self.cables[a, a_port], self.cables[b, b_port] = (b, b_port), (a, a_port)
        self.versions = {dpid: (versions or {}).get(dpid, 4) for dpid, _ in self.cables}
        self.switches = {dpid: FakeSwitch(dpid, version) for dpid, version in self.versions.items()}
        self.hosts: dict[tuple[bytes, tuple[int, int]], bytes] = {}
        for vlan_id in (0, 10, 20):
            ends = sorted(end for end, port in ports.items() if vlan_id in port.vlans())
            for number, end in enumerate(ends, 1):
                self.plug(number, vlan_id, end)
        self.heard: list[tuple[tuple[int, int], int, bytes]] = []
        self.received = Counter()
        self.caches: dict[tuple[bytes, tuple[int, int]], dict[bytes, bytes]] = {}
        self.notices = []
        self.steps = 0
        self.now = 1.0
        self.start()

    def start(self):
        """Begin with new cores and the switches as they are."""
        vlans = vlans_of(self.ports, self.passes_double_tagged)
        self.cores = [
            DiscoveryCore(DiscoverySettings(vlans=vlans), bytes(32)),
            UnicastCore(UnicastSettings(vlans=vlans, marking=self.marking)),
        ]
        self.queues = [deque(), deque()]
        for dpid in self.switches:
            numbers = sorted(port_no for at, port_no in {*self.cables, *self.ports} if at == dpid)
            described = tuple(Port(port_no, "", bytes(6), True, 1e9) for port_no in numbers)
            self.tell(SwitchConnected(dpid, self.versions[dpid], described))
        self.run(3.0)

    def plug(self, number, vlan_id, end):
        """Plug in host `number` of a domain: it has the same addresses in every domain."""
        mac, address = b"\x02\0\0\0\0" + bytes((number,)), b"\x0a\0\0" + bytes((number,))
        self.hosts[in_domain(mac, vlan_id), end] = address
        return in_domain(mac, vlan_id), end

    def tell(self, event, to=(0, 1)):
        for index in to:
            self.queues[index].append(event)

    def settle(self):
        while any(self.queues):
            index = self.random.choice([n for n in (0, 1) if self.queues[n]])
            event = self.queues[index].popleft()
            for output in self.cores[index].handle(event, self.now):
                self.perform(index, output)

    def perform(self, index, output):
        if isinstance(output, SendPacket):
            for port_no in output.ports:
                self.leave((output.dpid, port_no), output.data)
        elif isinstance(output, TOPOLOGY_EVENTS):
            self.tell(output, (1,))
        elif isinstance(output, Notice):
            self.notices.append(output)
        elif isinstance(output, EntriesLost):
            self.tell(CheckRequested(output.dpid), (1 - index,))
        elif not isinstance(output, WriteJournal):
            switch = self.switches[output.dpid]
            for answer in switch.respond(output, self.now):
                self.tell(answer, (index,))
            if isinstance(output, ApplyEdits):
                assert switch.refused == []

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

    def policy(self, **changes):
        """Load a policy that says something else of ports, p15 for port 1:5; the cores take it in any order."""
        self.ports.update({(int(name[1]), int(name[2])): port for name, port in changes.items()})
        vlans = vlans_of(self.ports, self.passes_double_tagged)
        self.tell(DiscoveryChanged(DiscoverySettings(vlans=vlans)), (0,))
        self.tell(UnicastChanged(UnicastSettings(vlans=vlans, marking=self.marking)), (1,))
        self.run(1.0)

    # Frames

    def leave(self, end, frame):
        if end in self.cables:
            self.enter(self.cables[end], frame)
        elif frame[12:14] != LLDP:
            self.hear(end, frame)

    def enter(self, end, frame):
        """A frame comes in at a port of a switch, with the tag that it has."""
        self.steps += 1
        assert self.steps < 1_000_000, "a frame goes round"
        dpid, in_port = end
        plain = (without_tag(frame) or (0, frame))[1]
        for port_no, eth_dst, tags, dscp, _ in self.switches[dpid].process(fields_of(frame), in_port).sent:
            assert len(tags) <= 1
            copy = with_dscp(eth_dst + plain[6:], dscp)
            copy = with_tag(copy, tags[0]) if tags else copy
            if port_no == OFPP_CONTROLLER:
                self.tell(PacketReceived(dpid, in_port, copy))
            elif port_no == 0xFFFFFFF8:
                self.leave(end, copy)
            elif port_no != in_port:
                self.leave((dpid, port_no), copy)

    def hear(self, end, frame):
        tag, plain = without_tag(frame) or (None, frame)
        vlan_id = self.ports[end].domain(tag) if tag != self.ports[end].untagged else None
        assert vlan_id is not None, f"port {end} heard a frame with tag {tag}, which it may not have"
        self.heard.append((end, vlan_id, plain))
        packet = decode(plain)
        for (name, at), address in list(self.hosts.items()):
            if at == end and domain_of(name) == vlan_id:
                self.take(name, end, address, packet)

    def take(self, name, end, address, packet):
        mac = address_of(name)
        if isinstance(packet, Arp) and packet.eth_dst in (mac, BROADCAST_MAC):
            if packet.operation == 1 and packet.target_ip == address:
                answer = Arp(mac, packet.eth_src, 2, mac, address, packet.sender_mac, packet.sender_ip)
                self.say((name, end), encode_arp(answer))
            elif packet.operation == 2:
                self.caches.setdefault((name, end), {})[packet.sender_ip] = packet.sender_mac
        elif isinstance(packet, Neighbour) and packet.solicitation and packet.target == v6(mac):
            advertisement = Neighbour(mac, packet.eth_src, v6(mac), packet.source, False, v6(mac), mac)
            self.say((name, end), encode_neighbour(advertisement))
        elif isinstance(packet, Neighbour) and not packet.solicitation:
            self.caches.setdefault((name, end), {})[packet.target] = packet.mac
        elif isinstance(packet, UnicastPacket) and packet.eth_dst == mac:
            self.received[name, end, packet.source] += 1

    # Hosts

    def say(self, host, frame):
        name, end = host
        vlan_id = domain_of(name)
        self.enter(end, with_tag(frame, vlan_id) if vlan_id != self.ports[end].untagged and vlan_id else frame)

    def ask(self, host, address):
        mac = address_of(host[0])
        self.say(host, encode_arp(Arp(mac, BROADCAST_MAC, 1, mac, self.hosts[host], bytes(6), address)))
        self.run(0.05)

    def solicit(self, host, target):
        mac = address_of(host[0])
        group = solicited_node(target)
        self.say(host, encode_neighbour(Neighbour(mac, group_mac(group), v6(mac), group, True, target, mac)))
        self.run(0.05)

    def send(self, host, eth_dst, address):
        """Send a packet; return who received it, with how many copies."""
        before = Counter(self.received)
        self.say(host, encode_udp(address_of(host[0]), self.hosts[host], address, b"x", eth_dst=eth_dst))
        self.run(0.05)
        return {(name, end): n for (name, end, _), n in (self.received - before).items()}

    def domain_ends(self, vlan_id):
        return {end for end, port in self.ports.items() if vlan_id in port.vlans()}

    def rules(self):
        return {dpid: dict(switch.rules) for dpid, switch in self.switches.items()}


def v6(mac):
    return b"\xfe\x80" + bytes(12) + mac[4:]


def meet(network):
    """Have every host ask for every other of its domain."""
    for one in network.hosts:
        for other, address in network.hosts.items():
            if one != other and domain_of(one[0]) == domain_of(other[0]):
                network.ask(one, address)


def check_all(network):
    """Every host reaches every other of its domain by what it learnt, once, and nobody else hears of it."""
    for one in network.hosts:
        for other, address in network.hosts.items():
            vlan_id = domain_of(one[0])
            if one == other or one[1] == other[1] or vlan_id != domain_of(other[0]):
                continue
            network.heard.clear()
            network.ask(one, address)
            assert network.caches[one][address] == address_of(other[0]), "the answer is of its own domain"
            assert network.send(one, network.caches[one][address], address) == {other: 1}
            assert {heard[1] for heard in network.heard} == {vlan_id}
