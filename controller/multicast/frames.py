"""Frames that hosts and routers sent: which of them count, within which budget, and what they are handed on to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from controller.effects import Effect, SendPacket
from controller.events import PacketReceived
from controller.membership.core import MembershipCore
from controller.multicast.fabric import FabricFollower
from controller.multicast.flood_guard import FloodGuard
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.guard import PortBuckets
from controller.multicast.journal import Journal
from controller.multicast.places import EarlyReport, HostPlaces
from controller.multicast.queries import passed_on
from controller.multicast.senders import SenderTable
from controller.multicast.tagged import VLAN_TAGGED
from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6, is_link_scope_group
from controller.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6
from controller.wire.frame import decode_once, walk_extensions
from controller.wire.ipv4 import PROTOCOL_IGMP, PROTOCOL_PIM
from controller.wire.ipv6 import EXTENSION_HEADERS, ICMPV6
from controller.wire.mld import MLD_TYPES
from controller.wire.packets import Data, Ignored, Malformed, PimHello, Query, Report
from topology.events import PortRole
from topology.live import LiveFabric

_IPV4, _IPV6 = ETHERTYPE_IPV4.to_bytes(2, "big"), ETHERTYPE_IPV6.to_bytes(2, "big")
_IPV4_BYTES, _IPV6_BYTES = 34, 54

QUERIES_PER_S, QUERIES_BURST = 10.0, 20.0
"""Queries of another router that are passed on from one port."""


class Owner(Protocol):
    """What the intake of frames asks the core around it."""

    counters: Counter[str]
    fabric: LiveFabric
    topology: FabricFollower
    plane: GroupPlane
    places: HostPlaces
    membership: MembershipCore
    gate: Gate
    senders: SenderTable
    journal: Journal
    flood_guard: FloodGuard

    def perform(self, effects: Iterable[Effect]) -> None:
        """Take effects that followed from a frame."""


class FrameIntake:
    """Decodes what a switch sent to the controller and hands it to membership, senders and routers.

    Only frames of edge ports count; every other one is counted under its reason. `apply` takes what the membership
    core answers.
    """

    def __init__(self, owner: Owner, apply: Callable[[Iterable[Any], float], None]) -> None:
        self._owner = owner
        self._apply = apply
        self._counters = owner.counters
        self._queries = PortBuckets(QUERIES_PER_S, QUERIES_BURST)
        self._handlers: dict[type, Callable[[int, int, Any, bytes, float], None]] = {
            Report: self._report_received,
            Query: self._query_received,
            PimHello: self._pim_hello_received,
            Data: self._data_received,
            Malformed: self._malformed_received,
            Ignored: self._ignored,
        }

    def packet_received(self, event: PacketReceived, now: float) -> None:
        """Take one frame; nothing in it raises."""
        dpid, port_no, frame, _ = event
        family = _control_family(frame)
        if family:
            is_read, effects = self._owner.flood_guard.take(dpid, port_no, family, now)
            if effects:
                self._owner.perform(effects)
            if not is_read:
                return
        packet = decode_once(frame)
        if not family and type(packet) is not Data and (dpid, port_no) in self._owner.topology.edges:
            self._owner.perform(self._owner.senders.unreadable(dpid, port_no, _data_family(frame), now))
        handler = self._handlers.get(type(packet))
        if handler is not None:
            handler(dpid, port_no, packet, frame, now)

    def port_removed(self, dpid: int, port_no: int) -> None:
        """Forget the budgets of a port that leads to hosts no more."""
        self._queries.forget(dpid, port_no)

    def _report_received(self, dpid: int, port_no: int, report: Report, frame: bytes, now: float) -> None:
        owner, mac = self._owner, report.eth_src
        if (dpid, port_no) not in owner.topology.edges:
            self._counters["report-not-at-edge"] += 1
            if owner.fabric.role(dpid, port_no) is PortRole.UNKNOWN:
                owner.places.keep(mac, EarlyReport(dpid, port_no, frame, now))
            return
        host = owner.fabric.host(mac)
        if host is None:
            owner.places.note(mac, dpid, port_no)
        elif host.port_no != port_no or host.dpid != dpid:
            self._counters["report-elsewhere"] += 1
            owner.places.keep(mac, EarlyReport(dpid, port_no, frame, now))
            return
        if not owner.plane.has_routers:
            effects = owner.membership.report_received(dpid, port_no, report, now)
            if effects:
                self._apply(effects, now)
            return
        is_admitted = owner.membership.is_admitted
        before = {record.group for record in report.records if is_admitted(dpid, port_no, mac, record.group)}
        self._apply(owner.membership.report_received(dpid, port_no, report, now), now)
        if owner.gate.is_spoofed(mac, report.source, dpid, port_no):
            return
        if all(r.group in before or is_admitted(dpid, port_no, mac, r.group) for r in report.records):
            owner.perform(
                SendPacket(to_dpid, (to_port,), frame)
                for to_dpid, to_port in owner.plane.router_ports(report.family, [r.group for r in report.records])
                if (to_dpid, to_port) != (dpid, port_no)
            )

    def _query_received(self, dpid: int, port_no: int, query: Query, frame: bytes, now: float) -> None:
        owner = self._owner
        if (dpid, port_no) not in owner.topology.edges:
            self._counters["query-not-at-edge"] += 1
            return
        self._apply(owner.membership.query_received(dpid, port_no, query, now), now)
        _, _, *querier = owner.membership.querier(query.family)[:6]
        if querier != [query.source, query.eth_src, dpid, port_no]:
            return
        owner.journal.routers_touched(now)
        if self._queries.take(dpid, port_no, now):
            owner.perform(passed_on(owner.plane, owner.fabric, dpid, port_no, query, frame))
        else:
            self._counters["queries-over-limit"] += 1

    def _pim_hello_received(self, dpid: int, port_no: int, hello: PimHello, frame: bytes, now: float) -> None:
        owner, family = self._owner, hello.family
        if (dpid, port_no) not in owner.topology.edges:
            return
        known = owner.plane.is_router_port(dpid, port_no, family)
        self._apply(owner.membership.pim_hello_received(dpid, port_no, hello, now), now)
        if not known and owner.plane.is_router_port(dpid, port_no, family):
            # The switch passes on what routers say from now on; this one it only gave to the controller.
            owner.perform(
                SendPacket(to_dpid, (to_port,), frame)
                for to_dpid, to_port in owner.plane.router_ports(family)
                if (to_dpid, to_port) != (dpid, port_no)
            )

    def _data_received(self, dpid: int, port_no: int, data: Data, frame: bytes, now: float) -> None:
        owner = self._owner
        if is_link_scope_group(data.group) or (dpid, port_no) not in owner.topology.edges:
            self._counters["data-not-expected"] += 1
            return
        owner.perform(owner.senders.data_received(dpid, port_no, data, frame, now))

    def _malformed_received(self, _dpid: int, _port_no: int, packet: Malformed, _frame: bytes, _now: float) -> None:
        self._counters[packet.reason] += 1

    def _ignored(self, _dpid: int, _port_no: int, packet: Ignored, _frame: bytes, _now: float) -> None:
        if packet.reason == VLAN_TAGGED:
            self._counters[VLAN_TAGGED] += 1


def _control_family(frame: bytes) -> int:
    """Return the family of what switches hand over as IGMP, MLD or PIM, sound or not; 0 for anything else.

    They look behind extension headers, and so must whoever counts what they hand over.
    """
    size, ethertype = len(frame), frame[12:14]
    if ethertype == _IPV4 and size >= _IPV4_BYTES:
        protocol = frame[23]
        return (
            4 if protocol == PROTOCOL_IGMP or (protocol == PROTOCOL_PIM and frame[30:34] == ALL_PIM_ROUTERS_V4) else 0
        )
    if ethertype != _IPV6 or size <= _IPV6_BYTES:
        return 0
    following, start = frame[20], _IPV6_BYTES
    if following in EXTENSION_HEADERS:
        chain = walk_extensions(frame, following, size)
        if chain is None:
            return 6
        following, start = chain[:2]
    if following == PROTOCOL_PIM:
        return 6 if frame[38:54] == ALL_PIM_ROUTERS_V6 else 0
    return 6 if following == ICMPV6 and size > start and frame[start] in MLD_TYPES else 0


def _data_family(frame: bytes) -> int:
    """Return the family of a frame that switches hand over as data of a group; 0 for anything else."""
    if frame[12:14] == _IPV4:
        return 4 if len(frame) >= _IPV4_BYTES and frame[30] >> 4 == 14 else 0
    return 6 if frame[12:14] == _IPV6 and len(frame) >= _IPV6_BYTES and frame[38] == 0xFF else 0
