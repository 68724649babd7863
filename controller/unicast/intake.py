"""Frames that switches send to the controller: in which domain each is, and what a host's switch had no entry for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from controller.discovery.probes import link_local
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import OWN_DOMAIN, address_of, domain_of, in_domain
from controller.kernel.ports import End
from controller.kernel.vlan_ports import VlanPorts
from controller.unicast.marks import UnicastMarks
from controller.unicast.policer import Counted, PacketInPolicer
from controller.unicast.resolution import Resolver
from controller.unicast.routes import Routes
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import BROADCAST_MAC, UNSPECIFIED_V4
from controller.wire.arp import arp_request, encode_arp
from controller.wire.ethernet import ETHERTYPE_IPV4, is_tagged, without_tag
from controller.wire.frame import decode_once
from controller.wire.nd import encode_neighbour, neighbour_solicitation
from controller.wire.packets import Arp, Ignored, Malformed, Neighbour, Packet, UnicastPacket
from topology.events import PortRole
from topology.live import LiveFabric

_IPV4 = ETHERTYPE_IPV4.to_bytes(2, "big")
_IPV4_GROUP = b"\x01\x00\x5e"
_LLDP_GROUP = b"\x01\x80\xc2"
_IPV6_GROUP = b"\x33\x33"
_ICMPV6 = b"\x3a"
_HEADER_BYTES = 14


class IntakeSurroundings(Protocol):
    """What the intake needs of the core around it."""

    def send(self, end: End, data: bytes, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame of a domain out of one port."""

    def relay(self, origin: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Send a frame out of all edge ports of its domain but `origin`, as far as its bounds allow."""

    def asked_for(self, dpid: int, mac: bytes, now: float) -> None:
        """Have a switch hold an entry for a host of which one of its own wants something."""


class UnicastIntake:
    """Hands ARP and neighbour discovery on, relays broadcasts, and delivers what came before its entry.

    A frame of a VLAN has its tag when it comes, whether the host's or that of the port where it entered, and is
    handled without it; hosts are looked for in its domain alone.
    """

    def __init__(
        self,
        around: IntakeSurroundings,
        fabric: LiveFabric,
        settings: UnicastSettings,
        routes: Routes,
        resolver: Resolver,
        policer: PacketInPolicer,
        vlan_ports: VlanPorts,
        marks: UnicastMarks,
        counters: Counter[str],
        counted: Counted,
    ) -> None:
        self._around = around
        self._fabric = fabric
        self._settings = settings
        self._routes = routes
        self._resolver = resolver
        self._policer = policer
        self._vlan_ports = vlan_ports
        self._marks = marks
        self._counters = counters
        self._counted = counted
        self._searches: Deadlines[bytes] = Deadlines()
        self._searches_count = 0
        self.next_deadline: Callable[[], float | None] = self._searches.next

    def frame_received(self, end: End, data: bytes, now: float) -> None:
        """Decode what may concern unicast: neither membership nor the data of groups does."""
        first = data[:3]
        if first in (_IPV4_GROUP, _LLDP_GROUP):
            return
        vlan_id = OWN_DOMAIN
        if self._vlan_ports.is_used:
            tag, data = without_tag(data) or (None, data)
            is_trunk = self._fabric.role(*end) is PortRole.TRUNK
            found = tag or OWN_DOMAIN if is_trunk else self._vlan_ports.of(*end).domain(tag)
            if found is None:
                self._policer.allow_packet(end, now)
                return
            vlan_id = found
        if first[:2] == _IPV6_GROUP and data[20:21] != _ICMPV6:
            return
        self.packet_received(end, decode_once(data), data, now, vlan_id)

    def packet_received(self, end: End, packet: Packet, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> None:
        """Take in a packet of a domain, decoded and as it came, but without its tag."""
        if data[6:12] == self._settings.controller_mac:
            self._counters["own-frame"] += 1
            self._policer.allow_packet(end, now)
            return
        data = self._marks.marked(end, data, vlan_id)
        if isinstance(packet, Arp | Neighbour):
            self._resolver.received(end, packet, data, now, vlan_id)
        elif data[:6] == BROADCAST_MAC and data[12:14] == _IPV4:
            self._broadcast(end, data, now, vlan_id)
        elif isinstance(packet, UnicastPacket | Malformed | Ignored):
            self._missed(end, packet, data, now, vlan_id)

    def on_deadline(self, now: float) -> None:
        """Let unknown hosts be looked for once more."""
        for _address in self._searches.due(now):
            self._searches_count -= 1

    def _missed(self, end: End, packet: Packet, data: bytes, now: float, vlan_id: int) -> None:
        """Deliver what its switch had no entry for yet, or look for the host that it is meant for.

        Nobody is asked about what has a second tag behind that of its VLAN: all of the VLAN get it.
        """
        role = self._fabric.role(*end)
        if not self._policer.allow_packet(end, now) or role not in (PortRole.EDGE, PortRole.TRUNK):
            return
        if len(data) < _HEADER_BYTES or (data[0] | data[6]) & 1:
            return
        is_double_tagged = is_tagged(data)
        if is_double_tagged and not (vlan_id and self._vlan_ports.passes_double_tagged):
            return
        at_edge = role is PortRole.EDGE
        sender_mac, mac = in_domain(data[6:12], vlan_id), in_domain(data[:6], vlan_id)
        source = in_domain(packet.source, vlan_id) if isinstance(packet, UnicastPacket) else b""
        if at_edge and self._fabric.binding_conflict(sender_mac, source, *end):
            self._counted("unicast-spoofed", end, "receives packets with another host's addresses: they are dropped")
            return
        if not at_edge:
            mac = self._routes.host_of(data[:6]) or mac
        host = None
        if domain_of(mac) == vlan_id:
            host = self._fabric.host_near(mac, end[0]) or self._fabric.host(mac)
        if host is not None:
            is_reached = self._fabric.fabrics.is_one(host.dpid, end[0])
            self._counters["unicast-delivered" if is_reached else "unicast-other-fabric"] += 1
            if is_reached and not self._fabric.is_one_port((host.dpid, host.port_no), end):
                self._around.send((host.dpid, host.port_no), address_of(mac) + data[6:], vlan_id)
            sender = None if at_edge else self._fabric.host_near(sender_mac, end[0])
            if at_edge or sender is not None:
                self._around.asked_for(end[0] if sender is None else sender.dpid, host.mac, now)
        elif is_double_tagged:
            self._counters["double-tagged-relayed"] += 1
            if at_edge:
                self._around.relay(end, data, now, vlan_id)
        elif isinstance(packet, UnicastPacket):
            self._counters["unicast-unknown"] += 1
            destination = in_domain(packet.destination, vlan_id)
            if at_edge and self._fabric.host_by_ip(destination, end[0]) is None:
                self._search(end, destination, now)

    def _search(self, end: End, name: bytes, now: float) -> None:
        """Ask everywhere in a domain for the holder of an address, now and then."""
        if name in self._searches:
            return
        if self._searches_count >= self._settings.searches:
            self._counted(
                "search-limit", end, "receives packets to more unknown hosts than are looked for: they are dropped"
            )
            return
        self._searches_count += 1
        self._searches.set(name, now + self._settings.search_interval_s)
        mac, address = self._settings.controller_mac, address_of(name)
        if len(address) == 4:
            frame = encode_arp(arp_request(mac, UNSPECIFIED_V4, address))
        else:
            frame = encode_neighbour(neighbour_solicitation(mac, link_local(mac), address))
        self._around.relay(end, frame, now, domain_of(name))

    def _broadcast(self, end: End, data: bytes, now: float, vlan_id: int) -> None:
        if self._fabric.role(*end) is PortRole.EDGE and self._policer.allow_packet(end, now):
            self._around.relay(end, data, now, vlan_id)
