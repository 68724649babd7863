"""The hosts of a simulated fabric: they announce themselves, join, leave, send, and answer queries and ARP."""

from __future__ import annotations

from collections import Counter
from itertools import count

from apps.simulated_fabric.fabric import End, SimulatedFabric
from apps.simulated_fabric.frames import LLDP
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import REPLY, REQUEST
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import Arp, Data, GroupRecord, Query, RecordType, Report, UnicastPacket
from controller.wire.udp import encode_udp

REPORT_AGAIN_S = 0.5
"""Within the unsolicited report interval of 1 s."""

_LINK_LOCAL = b"\xfe\x80" + bytes(8)


class SimulatedHost:
    """A host at a port, with its addresses and the groups that it has joined."""

    def __init__(self, end: End, number: int) -> None:
        self.end = end
        self.mac = b"\x02\x00" + number.to_bytes(4, "big")
        self.ip = ((10 << 24) + number).to_bytes(4, "big")
        self.link_local = _LINK_LOCAL + number.to_bytes(6, "big")
        self.groups: dict[bytes, None] = {}


class SimulatedHosts:
    """One host at each host port, silent until it is told to speak.

    Frames go through the tables of the host's switch; what comes out of a host port is `delivered`, by port
    and destination, of IP packets that are no queries or reports.
    """

    def __init__(self, fabric: SimulatedFabric) -> None:
        self.fabric = fabric
        self.by_end = {end: SimulatedHost(end, number) for number, end in enumerate(fabric.host_ports, 1)}
        self.all = list(self.by_end.values())
        self.delivered: Counter[tuple[End, bytes]] = Counter()
        self.answered = 0
        self._spread = count()
        fabric.reached_host = self.reached

    def _send(self, host: SimulatedHost, frame: bytes) -> None:
        dpid, port_no = host.end
        self.fabric.switches[dpid].arrive(port_no, frame)

    def speak(self, host: SimulatedHost) -> None:
        """Announce the host's address by gratuitous ARP."""
        self._send(host, encode(Arp(host.mac, BROADCAST_MAC, REQUEST, host.mac, host.ip, bytes(6), host.ip)))

    def join(self, host: SimulatedHost, group: bytes, *, again: bool = False) -> None:
        """Join a group, 4 or 16 bytes, for every source, by IGMPv3 or MLDv2.

        Hosts say so twice (RFC 9776, 6.1), in case the first report is lost; here only with `again`.
        """
        host.groups[group] = None
        self._report(host, [group], RecordType.CHANGE_TO_EXCLUDE)
        if again:
            self.fabric.at(self.fabric.now() + REPORT_AGAIN_S, lambda _now: self._report_again(host, group))

    def _report_again(self, host: SimulatedHost, group: bytes) -> None:
        if group in host.groups:
            self._report(host, [group], RecordType.CHANGE_TO_EXCLUDE)

    def leave(self, host: SimulatedHost, group: bytes, *, again: bool = False) -> None:
        """Leave a group; nothing where the host is no member, unless it says so `again`."""
        if host.groups.pop(group, True) is None or again:
            self._report(host, [group], RecordType.CHANGE_TO_INCLUDE)

    def send(self, host: SimulatedHost, group: bytes, payload: bytes = b"simulated") -> None:
        """Send one packet to a group."""
        source = host.ip if len(group) == 4 else host.link_local
        self._send(host, encode_udp(host.mac, source, group, payload))

    def send_to(self, host: SimulatedHost, other: SimulatedHost, payload: bytes = b"simulated") -> None:
        """Send one packet to another host."""
        self._send(host, encode_udp(host.mac, host.ip, other.ip, payload, eth_dst=other.mac))

    def _report(self, host: SimulatedHost, groups: list[bytes], kind: RecordType) -> None:
        for family, size in ((4, 4), (6, 16)):
            records = tuple(GroupRecord(kind, group) for group in groups if len(group) == size)
            if records:
                version, source = (3, host.ip) if family == 4 else (2, host.link_local)
                self._send(host, encode(Report(family, version, host.mac, source, records)))

    def reached(self, dpid: int, port_no: int, frame: bytes) -> None:
        """Have the host at a port take a frame in."""
        if frame[12:14] == LLDP:
            return
        host = self.by_end[dpid, port_no]
        packet = decode(frame)
        if isinstance(packet, Data):
            self.delivered[host.end, packet.group] += 1
        elif isinstance(packet, UnicastPacket):
            self.delivered[host.end, packet.destination] += 1
        elif isinstance(packet, Query):
            self._queried(host, packet)
        elif isinstance(packet, Arp) and packet.operation == REQUEST and packet.target_ip == host.ip:
            self.answered += 1
            reply = Arp(host.mac, packet.eth_src, REPLY, host.mac, host.ip, packet.sender_mac, packet.sender_ip)
            self.fabric.at(0.0, lambda _now: self._send(host, encode(reply)))

    def _queried(self, host: SimulatedHost, query: Query) -> None:
        """Answer in the time that the query allows, hosts spread over it."""
        size = 4 if query.family == 4 else 16
        asked = [group for group in host.groups if len(group) == size and query.group in (None, group)]
        if asked:
            self.answered += 1
            delay_s = query.max_response_s * (next(self._spread) % 61) / 61
            self.fabric.at(self.fabric.now() + delay_s, lambda _now: self._answer(host, asked))

    def _answer(self, host: SimulatedHost, asked: list[bytes]) -> None:
        self._report(host, [group for group in asked if group in host.groups], RecordType.MODE_IS_EXCLUDE)
