"""What arrives from switches: LLDP for the ports, and whatever tells which host is at a port, in which domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias

from controller.discovery.backup_legs import BackupLegs
from controller.discovery.hosts import HostTable
from controller.discovery.lacp_legs import LacpLegs
from controller.discovery.legs import HostLegs
from controller.discovery.port_table import PortTable
from controller.discovery.ports import PortState
from controller.discovery.settings import DiscoverySettings
from controller.discovery.vlan_access import VLAN_TAGGED, VlanAccess
from controller.effects import Effect, WriteJournal
from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.kernel.ports import End
from controller.wire.arp import REPLY
from controller.wire.ethernet import ETHERTYPE_LLDP, ETHERTYPE_SLOW, is_tagged
from controller.wire.frame import decode_once
from controller.wire.packets import (
    Arp,
    Data,
    ForeignLldp,
    Ignored,
    Lacpdu,
    Lldp,
    Malformed,
    Neighbour,
    Packet,
    PimHello,
    Query,
    Report,
    UnicastPacket,
)
from topology.events import PortRole, TopologyEvent

Output: TypeAlias = Effect | TopologyEvent | WriteJournal

_LLDP_FAULTS = {
    "lldp-forged": "an LLDP frame of our form with a wrong token arrived; somebody made it, or another run sent it",
    "lldp-replayed": "an LLDP frame of ours arrived a second time, or long after it was sent; it does not count",
}
_MISREAD = (
    "receives frames with two VLAN tags that its switch takes for frames with one: what they carry counts as the "
    "outer VLAN's until the switch looks behind one tag alone (in Open vSwitch other_config:vlan-limit is 1)"
)
_FROM_A_HOST = frozenset((Report, Query, PimHello, Data, UnicastPacket))
_GUARDED_REASONS = ("arp-", "nd-", "lldp-", "lacp-", "slow-", "icmpv6-", "vlan-")
_WITHOUT_DOMAIN = (ETHERTYPE_LLDP.to_bytes(2, "big"), ETHERTYPE_SLOW.to_bytes(2, "big"))


class IntakeOwner(Protocol):
    """What the intake of frames asks the core around it."""

    def outputs(self, now: float) -> tuple[Output, ...]:
        """Return what has followed since it was last asked."""

    def suspect_table(self, dpid: int, now: float) -> None:
        """Have a switch's flow entries looked at, which may be gone."""

    def guard(self, port: PortState, now: float) -> None:
        """Have a switch keep a port's LLDP, ARP and ND from the controller for a while."""


class DiscoveryIntake:
    """Learns from what switches send to the controller.

    `ports`, `table`, `hosts`, `vlans`, `legs`, `lacp_legs` and `backups` are the owner's, which takes `counters` and
    `counted` too. What names a host is named in the domain of its frame.
    """

    def __init__(
        self,
        owner: IntakeOwner,
        settings: DiscoverySettings,
        ports: Mapping[End, PortState],
        table: PortTable,
        hosts: HostTable,
        vlans: VlanAccess,
        legs: HostLegs,
        lacp_legs: LacpLegs,
        backups: BackupLegs,
        counters: Counter[str],
        counted: Callable[[str, End, str, float], None],
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._ports = ports
        self._table = table
        self._hosts = hosts
        self._host_states, self._challenges = hosts.hosts, hosts.challenges
        self._vlans = vlans
        self._home = legs.home
        self._lacp_legs = lacp_legs
        self._backups = backups
        self._counters = counters
        self._counted = counted

    def settings_changed(self, settings: DiscoverySettings) -> None:
        """Go by these settings from now on."""
        self._settings = settings

    def packets_received(self, events: Iterator[PacketReceived], now: float, effects: list[Output]) -> None:
        """Learn from frames that came together, as `frame_received` does from each, and add what is to be done."""
        for event in events:
            dpid, in_port, frame, unmatched = event
            if unmatched or self._vlans.is_used:
                effects += self.frame_received(event, now)
            else:
                effects += self.packet_received(dpid, in_port, decode_once(frame), now)

    def frame_received(self, event: PacketReceived, now: float) -> tuple[Output, ...]:
        """Learn from a frame that a switch sent to the controller; nothing in it raises."""
        if not event.unmatched:
            return self._received(event, now)
        self._owner.suspect_table(event.dpid, now)
        return (*self._owner.outputs(now), *self._received(event, now))

    def _received(self, event: PacketReceived, now: float) -> tuple[Output, ...]:
        frame = event.data
        if not self._vlans.is_used or frame[12:14] in _WITHOUT_DOMAIN:
            return self.packet_received(event.dpid, event.in_port, decode_once(frame), now)
        port = self._ports.get((event.dpid, event.in_port))
        if port is None or not port.up:
            return ()
        found = self._vlans.domain_of_frame(port, frame)
        if isinstance(found, str):
            self._counters[found] += 1
            self._count_towards_guard(port, now)
            return self._owner.outputs(now)
        vlan_id, untagged = found
        if vlan_id and is_tagged(untagged):
            self._double_tagged(port, untagged, now, vlan_id)
        return self.packet_received(event.dpid, event.in_port, decode_once(untagged), now, vlan_id)

    def _double_tagged(self, port: PortState, frame: bytes, now: float, vlan_id: int) -> None:
        """Learn whose a frame of a VLAN is that has a second tag, without which it comes here; nothing else of it.

        Where none passes, and of those to groups wherever they do, none gets here but from a switch that looks behind
        both tags.
        """
        if self._vlans.passes_double_tagged and not frame[0] & 1:
            if port.role is PortRole.EDGE:
                self._host_seen(port, in_domain(frame[6:12], vlan_id), None, now, False)
        elif port.role is PortRole.EDGE:
            self._counted("double-tagged-misread", port.end, _MISREAD, now)

    def packet_received(
        self, dpid: int, in_port: int, packet: Packet, now: float, vlan_id: int = 0
    ) -> tuple[Output, ...]:
        """Learn from a packet of a domain."""
        kind = type(packet)
        end = (dpid, in_port)
        if kind in _FROM_A_HOST:
            mac, address = packet.eth_src, packet.source  # type: ignore[union-attr]
            if vlan_id:
                mac, address = in_domain(mac, vlan_id), in_domain(address, vlan_id)
            host = self._host_states.get(mac)
            if (
                host is not None
                and host.end == self._home(end)
                and address in host.addresses
                and not self._challenges
                and end not in self._backups.legs
            ):
                host.use(address, now)
                return ()
            port = self._ports.get(end)
            if port is not None:
                self._host_seen(port, mac, address, now, False)
            return self._owner.outputs(now)
        port = self._ports.get(end)
        if port is None or not port.up:
            return ()
        if isinstance(packet, Lldp):
            fault = self._table.lldp_received(port, packet, now)
            if fault is not None:
                self._counted(fault, end, _LLDP_FAULTS[fault], now)
                self._count_towards_guard(port, now)
        elif isinstance(packet, ForeignLldp):
            self._counters["lldp-foreign"] += 1
            self._count_towards_guard(port, now)
            self._vlans.neighbour_heard(port, self._home(end), packet, now)
        elif isinstance(packet, Arp | Neighbour):
            self._count_towards_guard(port, now)
            self._resolution_received(port, packet, now, vlan_id)
        elif isinstance(packet, Lacpdu):
            self._count_towards_guard(port, now)
            self._lacp_legs.received(end, packet, now)
        elif isinstance(packet, Malformed) or (
            isinstance(packet, Ignored) and packet.reason.startswith(_GUARDED_REASONS)
        ):
            if not (vlan_id and packet.reason == VLAN_TAGGED and self._vlans.passes_double_tagged):
                self._counters[packet.reason] += 1
            self._count_towards_guard(port, now)
        return self._owner.outputs(now)

    def _resolution_received(self, port: PortState, packet: Arp | Neighbour, now: float, vlan_id: int) -> None:
        mac = packet.eth_src
        if isinstance(packet, Arp):
            claimed, address, answer = packet.sender_mac, packet.sender_ip, packet.operation == REPLY
        else:
            claimed = mac if packet.mac is None else packet.mac
            address = packet.source if packet.solicitation else packet.target
            answer = not packet.solicitation
        if claimed != mac:
            text = "receives ARP or ND that names another MAC address than its frame: it is ignored"
            self._counted("resolution-mac-mismatch", port.end, text, now)
            return
        if vlan_id:
            mac, address = in_domain(mac, vlan_id), in_domain(address, vlan_id)
        self._host_seen(port, mac, address, now, answer)

    def _host_seen(self, port: PortState, mac: bytes, address: bytes | None, now: float, answer: bool) -> None:
        settings = self._settings
        if mac.startswith(settings.controller_mac):
            self._counted(
                "own-frame",
                port.end,
                "receives a frame that the controller sent: something behind the port sends frames back",
                now,
            )
        elif port.role is PortRole.EDGE or self._backups.heard(port, now):
            host, home = self._host_states.get(mac), self._home(port.end)
            is_known = host is not None and host.end == home
            if host is not None and not is_known:
                self._table.segments.host_heard_elsewhere(port, now)
            self._hosts.seen(mac, address, home, now, answer)
            if not is_known:
                self._table.probing.host_heard(port, now)
        elif (
            port.role is PortRole.UNKNOWN
            and address is not None
            and not port.looped()
            and not port.held
            and len(port.early) < settings.early_per_port
        ):
            port.early[mac, address] = now

    def _count_towards_guard(self, port: PortState, now: float) -> None:
        if not port.guard.take(now) and now >= port.guarded_until_s:
            self._owner.guard(port, now)
