"""A simulated fabric around a discovery core: cables carry LLDP, hosts answer probes, switches confirm edits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoverySettings
from controller.effects import (
    ApplyEdits,
    EntriesLost,
    JournalPart,
    Notice,
    Put,
    RequestFlows,
    SendPacket,
    WriteJournal,
)
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.kernel.domains import address_of
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_IN_PORT, FlowEntry, FlowKey, Match, Output, SetEthDst
from controller.rules.openflow import FlowCounter
from controller.wire.arp import encode_arp
from controller.wire.ethernet import ETHERTYPE_LLDP
from controller.wire.frame import decode
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC, TOUR_MAC
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Lldp, Neighbour
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)
from topology.live import LiveFabric

End = tuple[int, int]
EVENTS = (SwitchUp, SwitchDown, LinkUp, LinkDown, PortRoleChanged, HostLearnt, HostGone)
SECRET = bytes(range(32))


def tell_flows(request: RequestFlows, version: int, rules: Iterable[FlowEntry]) -> list[FlowStatsReceived]:
    """Return the replies of a switch that holds `rules`."""
    lowering = LOWERINGS[version]
    told = [rule for rule in rules if (rule.cookie ^ request.cookie) & request.cookie_mask == 0]
    pages = [told[first : first + 200] for first in range(0, len(told), 200)] or [[]]
    replies = []
    for number, page in enumerate(pages, 1):
        entries = b"".join(lowering.encode_flow_stats_entry(FlowCounter(rule, 0, 0, 0.0)) for rule in page)
        message = lowering.encode_flow_stats_reply(request.xid, number < len(pages), entries)
        replies.append(FlowStatsReceived(request.dpid, version, request.xid, message))
    return replies


class World:
    """Drives one core; `events` are the topology events since they were last taken, `fabric` what they add up to."""

    def __init__(self, settings: DiscoverySettings | None = None, secret: bytes = SECRET) -> None:
        self.settings = settings or DiscoverySettings()
        self.core = DiscoveryCore(self.settings, secret)
        self.now = 100.0
        self.cables: dict[End, End] = {}
        self.cut: set[End] = set()
        self.dead: set[int] = set()
        self.segments: list[set[End]] = []
        self.without_echo = self.deaf = self.mute = False
        self.tour_hops = 0
        self.hosts: dict[bytes, End] = {}
        self.addresses: dict[bytes, tuple[bytes, ...]] = {}
        self.ports: dict[int, dict[int, Port]] = {}
        self.connected: set[int] = set()
        self.versions: dict[int, int] = {}
        self.rules: dict[int, dict[FlowKey, FlowEntry]] = {}
        self.events: list[object] = []
        self.notices: list[Notice] = []
        self.expiring: list[tuple[float, int, FlowKey]] = []
        self.sent: list[SendPacket] = []
        self.lost: list[int] = []
        self.fabric = LiveFabric()
        self.journal: list[dict[str, Any]] = []
        self.new_journal: list[dict[str, Any]] | None = None

    def connect(
        self, dpid: int, ports: Iterable[int] = (1, 2, 3, 4), version: int = 4, down: Iterable[int] = ()
    ) -> None:
        down = set(down)
        described = {n: Port(n, f"s{dpid}-eth{n}", bytes(6), n not in down, 1e9) for n in ports}
        self.ports[dpid] = described
        self.connected.add(dpid)
        self.versions[dpid] = version
        self.rules.setdefault(dpid, {})
        self.feed(SwitchConnected(dpid, version, tuple(described.values())))

    def disconnect(self, dpid: int) -> None:
        self.connected.discard(dpid)
        self.perform(self.core.switch_disconnected(dpid, self.now))

    def cable(self, a: End, b: End) -> None:
        self.cables[a], self.cables[b] = b, a

    def unplug(self, a: End) -> None:
        self.cables.pop(self.cables.pop(a))

    def port(self, end: End, up: bool, deleted: bool = False, speed_bps: float = 1e9) -> list[object]:
        port = Port(end[1], "p", bytes(6), up, speed_bps)
        self.ports[end[0]][end[1]] = port
        before = len(self.events)
        self.perform(self.core.port_changed(end[0], port, deleted, self.now))
        return self.events[before:]

    def link(self, a: End, up: bool) -> None:
        """Let both ends of a cable notice that it broke or works again."""
        self.port(a, up)
        self.port(self.cables[a], up)

    def host(self, mac: bytes, end: End, *addresses: bytes) -> None:
        """Plug a host in that answers for its addresses; of those with one MAC address others have numbers."""
        self.hosts[mac] = end
        self.addresses[mac] = addresses

    def say(self, mac: bytes, address: bytes, end: End | None = None) -> list[object]:
        """Let a host send a gratuitous ARP or an unsolicited neighbour advertisement."""
        end, mac = end or self.hosts[mac], address_of(mac)
        if len(address) == 4:
            frame = encode_arp(Arp(mac, b"\xff" * 6, 1, mac, address, bytes(6), address))
        else:
            nodes = b"\xff\x02" + bytes(13) + b"\x01"
            frame = encode_neighbour(Neighbour(mac, b"\x33\x33\0\0\0\1", address, nodes, False, address, mac))
        return self.frame(end, frame)

    def frame(self, end: End, frame: bytes) -> list[object]:
        before = len(self.events)
        self.feed(PacketReceived(*end, frame))
        return self.events[before:]

    def feed(self, event: object) -> None:
        self.perform(self.core.handle(event, self.now))

    def perform(self, outputs: Iterable[object]) -> None:
        for output in outputs:
            if isinstance(output, EVENTS):
                self.events.append(output)
                self.fabric.apply(output)
            elif isinstance(output, Notice):
                self.notices.append(output)
            elif isinstance(output, EntriesLost):
                self.lost.append(output.dpid)
            elif isinstance(output, WriteJournal):
                self.write_journal(output)
            elif isinstance(output, SendPacket):
                self.sent.append(output)
                self.deliver(output)
            elif isinstance(output, RequestFlows):
                if output.dpid in self.connected:
                    for reply in tell_flows(output, self.versions[output.dpid], self.rules[output.dpid].values()):
                        self.feed(reply)
            elif isinstance(output, ApplyEdits) and output.dpid in self.connected - self.dead and not self.mute:
                for edit in output.edits:
                    if isinstance(edit, Put):
                        self.rules[output.dpid][edit.rule.key] = edit.rule
                        if edit.rule.hard_timeout_s:
                            self.expiring.append((self.now + edit.rule.hard_timeout_s, output.dpid, edit.rule.key))
                    else:
                        self.rules[output.dpid].pop(edit.key, None)
                self.take(BarrierReplied(output.dpid, output.first_xid + len(output.edits)))
            else:
                assert isinstance(output, ApplyEdits), output

    def write_journal(self, effect: WriteJournal) -> None:
        records = [json.loads(json.dumps(record)) for record in effect.records]
        if effect.part is JournalPart.BEGIN:
            self.new_journal = []
        if effect.part is JournalPart.APPEND:
            self.journal += records
        if self.new_journal is not None:
            self.new_journal += records
        if effect.part is JournalPart.FINISH:
            assert self.new_journal is not None
            self.journal, self.new_journal = self.new_journal, None

    def deliver(self, packet: SendPacket) -> None:
        for port_no in packet.ports:
            end = (packet.dpid, port_no)
            other = self.cables.get(end)
            if packet.dpid not in self.connected or end in self.cut:
                continue
            if other is not None:
                self.arrive(end, other, packet.data)
                continue
            for segment in self.segments:
                if end in segment and packet.data[:5] != NEAREST_BRIDGE_MAC[:5]:
                    self.cross(segment - {end}, packet.data)
            self.answer(end, packet.data)

    def cross(self, ends: Iterable[End], data: bytes) -> None:
        """Let somebody else's switch flood a frame to those of our ports that lead to it."""
        for other in sorted(ends):
            if other[0] in self.connected and self.ports[other[0]][other[1]].up:
                self.take(PacketReceived(*other, data))

    def arrive(self, end: End, other: End, data: bytes) -> None:
        """Let a frame cross a cable; the switch beyond sends it back, hands it to the controller, or does nothing."""
        up = self.ports[end[0]][end[1]].up and self.ports.get(other[0], {}).get(other[1])
        if not up or not up.up or other[0] in self.dead:
            return
        if data[:6] == TOUR_MAC and not self.without_echo:
            self.turn(end, other, data)
            return
        echo = next((rule for rule in self.rules[other[0]].values() if rule.key.match.eth_dst == ECHO_MAC), None)
        if echo is not None and not self.without_echo and data[:6] == ECHO_MAC:
            assert echo.actions == (SetEthDst(NEAREST_BRIDGE_MAC), Output(OFPP_IN_PORT))
            if other not in self.cut and end[0] in self.connected:
                self.take(PacketReceived(*end, NEAREST_BRIDGE_MAC + data[6:]))
        elif other[0] in self.connected and not self.deaf and any(map(_punts_lldp, self.rules[other[0]])):
            self.take(PacketReceived(*other, data))

    def turn(self, end: End, other: End, data: bytes) -> None:
        """Let the switch beyond a cable return a tour frame, and the one before send it on as its entries have it."""
        match = Match(eth_dst=TOUR_MAC, eth_type=0x88CC)
        turns = [rule for rule in self.rules[other[0]].values() if rule.key.match == match]
        if not turns or other in self.cut or end[0] in self.dead:
            return
        ((back, port),) = (rule.actions for rule in turns)
        assert port == Output(OFPP_IN_PORT)
        match = Match(in_port=end[1], eth_dst=back.mac, eth_type=0x88CC)
        onward = [rule for rule in self.rules[end[0]].values() if rule.key.match == match]
        if not onward:
            if end[0] in self.connected:
                self.take(PacketReceived(*end, back.mac + data[6:]))
            return
        ((_to, port),) = (rule.actions for rule in onward)
        self.tour_hops += 1
        beyond = self.cables.get((end[0], port.port_no))
        if beyond is not None and (end[0], port.port_no) not in self.cut:
            self.arrive((end[0], port.port_no), beyond, TOUR_MAC + data[6:])

    def take(self, event: object) -> None:
        """Hand what a switch says to the core."""
        self.feed(event)

    def answer(self, end: End, data: bytes) -> None:
        asked = decode(data)
        if isinstance(asked, Lldp):
            return
        for name, where in self.hosts.items():
            if where != end:
                continue
            mac, addresses = address_of(name), self.addresses[name]
            if isinstance(asked, Arp) and asked.eth_dst == mac and asked.target_ip in addresses:
                answer = Arp(mac, asked.eth_src, 2, mac, asked.target_ip, asked.sender_mac, asked.sender_ip)
                self.feed(PacketReceived(*end, encode_arp(answer)))
            if isinstance(asked, Neighbour) and asked.eth_dst == mac and asked.target in addresses:
                reply = Neighbour(mac, asked.eth_src, asked.target, asked.source, False, asked.target, mac)
                self.feed(PacketReceived(*end, encode_neighbour(reply)))

    def run(self, seconds: float) -> list[object]:
        """Let time pass, waking the core whenever it asks for it; return the topology events meanwhile."""
        before = len(self.events)
        until = self.now + seconds
        while (deadline := self.core.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.feed(DeadlineReached())
        self.now = until
        for at, dpid, key in self.expiring:
            if at <= until:
                self.rules.get(dpid, {}).pop(key, None)
        self.expiring = [expiring for expiring in self.expiring if expiring[0] > until]
        return self.events[before:]

    def links(self) -> set[tuple[int, int]]:
        return {(link.u, link.v) for link in self.fabric.graph.links()}


def _punts_lldp(key: FlowKey) -> bool:
    return key.match == Match(eth_type=ETHERTYPE_LLDP)


@pytest.fixture(scope="session")
def make_world() -> Callable[..., World]:
    return World
