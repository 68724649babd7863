"""Frames that hosts and routers sent: which of them count, within which budget, and what they are handed on to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from controller.effects import Notice
from controller.events import PacketReceived
from controller.kernel.domains import SUFFIXES, in_domain
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.settings import applies
from controller.multicast.callbacks import Apply, Perform
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.membership_policer import MembershipPolicer
from controller.multicast.memberships import Memberships
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.places import EarlyReport, HostPlaces
from controller.multicast.port_buckets import PortBuckets
from controller.multicast.proxy import MembershipProxy
from controller.multicast.queries import passed_on
from controller.multicast.registered import RegisteredGroups
from controller.multicast.senders import SenderTable
from controller.multicast.switches import Switches
from controller.multicast.tagged import VLAN_TAGGED
from controller.multicast.vlan_gate import VlanGate
from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6, is_link_scope_group
from controller.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, with_tag, without_tag
from controller.wire.frame import decode_once, walk_extensions
from controller.wire.igmp import TAGGED_REPORT, TAGGED_REPORT_BYTES, decode_plain_report
from controller.wire.ipv4 import PROTOCOL_IGMP, PROTOCOL_PIM
from controller.wire.ipv6 import EXTENSION_HEADERS, ICMPV6
from controller.wire.mld import MLD_TYPES
from controller.wire.packets import Data, Ignored, Malformed, PimHello, PimJoinPrune, Query, Report
from topology.aggregations import Place
from topology.events import PortRole
from topology.live import LiveFabric

_IPV4, _IPV6 = ETHERTYPE_IPV4.to_bytes(2, "big"), ETHERTYPE_IPV6.to_bytes(2, "big")
_IPV4_BYTES, _IPV6_BYTES = 34, 54
_TAGGED_PROTOCOL_AT = 27

VLAN_UNTAGGED = "vlan-untagged"
"""The counter of frames without a tag at ports whose frames must have one."""

QUERIES_PER_S, QUERIES_BURST = 10.0, 20.0
"""Queries of another router that are passed on from one port."""


class MulticastIntake:
    """Decodes what a switch sent to the controller and hands it to membership, senders and routers.

    Only frames of edge ports count; every other one is counted under its reason. `apply` takes what the membership
    cores answer. A frame of a VLAN has its tag when it comes, whether the host's or that of the port where it entered
    (`controller.rules.pipeline`), and is handled without it.
    """

    def __init__(
        self,
        counters: Counter[str],
        fabric: LiveFabric,
        switches: Switches,
        vlan_ports: VlanPorts,
        plane: GroupPlane,
        registered: RegisteredGroups,
        gate: Gate,
        memberships: Memberships,
        places: HostPlaces,
        senders: SenderTable,
        pending_writes: PendingWrites,
        membership_policer: MembershipPolicer,
        proxy: MembershipProxy,
        apply: Apply,
        perform: Perform,
    ) -> None:
        self._counters = counters
        self._fabric = fabric
        self._edges = switches.edges
        self._vlan_ports = vlan_ports
        self._plane = plane
        self._registered = registered
        self._gate = gate
        self._memberships = memberships
        self._own_membership, self._vlan_memberships = memberships.own, memberships.of_vlans
        self._places = places
        self._senders = senders
        self._pending_writes = pending_writes
        self._membership_policer = membership_policer
        self._budgets = membership_policer.budgets
        self._proxy = proxy
        self._apply = apply
        self._perform = perform
        self._routers_told: set[tuple[int, int]] = set()
        self._queries = PortBuckets(QUERIES_PER_S, QUERIES_BURST)
        self._handlers: dict[type, Callable[[int, int, Any, bytes, float, int], None]] = {
            Report: self._report_elsewhere,
            Query: self._query_received,
            PimHello: self._pim_hello_received,
            PimJoinPrune: self._pim_join_received,
            Data: self._data_received,
            Malformed: self._malformed_received,
            Ignored: self._ignored,
        }

    def packet_received(self, event: PacketReceived, now: float) -> None:
        """Take one frame; nothing in it raises."""
        dpid, port_no, frame, _ = event
        domain, vlan_ports = 0, self._vlan_ports
        if vlan_ports.is_used:
            vlan_id = vlan_ports.let_in.get((dpid, port_no, frame[12:16]))
            if vlan_id is None:
                found = self._in_domain(dpid, port_no, frame)
                if found is None:
                    return
                domain, frame = found
            else:
                if len(frame) >= TAGGED_REPORT_BYTES and frame[_TAGGED_PROTOCOL_AT] == PROTOCOL_IGMP:
                    report = decode_plain_report(frame, TAGGED_REPORT)
                    if report is not None:
                        if self._budgets[4].take(dpid, port_no, now):
                            self._report_at_edge(dpid, port_no, report, frame, now, vlan_id)
                        else:
                            self._perform(self._membership_policer.overdrawn(dpid, port_no, 4, now))
                        return
                domain, frame = vlan_id, frame[:12] + frame[16:]
        is_igmp = len(frame) >= _IPV4_BYTES and frame[23] == PROTOCOL_IGMP and frame[12:14] == _IPV4
        family = 4 if is_igmp else _control_family(frame)
        if family and not self._budgets[family].take(dpid, port_no, now):
            self._perform(self._membership_policer.overdrawn(dpid, port_no, family, now))
            return
        packet = decode_once(frame)
        if type(packet) is Report and (dpid, port_no) in self._edges:
            self._report_at_edge(dpid, port_no, packet, frame, now, domain)
            return
        if not family and type(packet) is not Data and (dpid, port_no) in self._edges:
            self._perform(self._senders.unreadable(dpid, port_no, _data_family(frame), now))
        handler = self._handlers.get(type(packet))
        if handler is not None:
            handler(dpid, port_no, packet, frame, now, domain)

    def _in_domain(self, dpid: int, port_no: int, frame: bytes) -> tuple[int, bytes] | None:
        """Return the VLAN id of a frame, 0 for the fabric's own domain, and the frame without its tag.

        None for one that its port may not send, which is counted.
        """
        vlan_ports = self._vlan_ports
        tag, untagged = without_tag(frame) or (None, frame)
        vlan_id = vlan_ports.of(dpid, port_no).domain(tag)
        if vlan_id is None:
            self._counters[VLAN_UNTAGGED if tag is None else VLAN_TAGGED] += 1
            return None
        if tag is not None and (dpid, port_no) in self._edges:
            vlan_ports.is_let_in(dpid, port_no, frame[12:16], vlan_id)
        return vlan_id, untagged

    def port_removed(self, dpid: int, port_no: int) -> None:
        """Forget the budgets of a port that leads to hosts no more."""
        self._queries.forget(dpid, port_no)
        self._routers_told.discard((dpid, port_no))

    def _report_elsewhere(
        self, dpid: int, port_no: int, report: Report, frame: bytes, now: float, vlan_id: int
    ) -> None:
        """Count a report of a port that leads to no hosts, as far as is known; it is kept where that is not known."""
        self._counters["report-not-at-edge"] += 1
        if self._fabric.role(dpid, port_no) is PortRole.UNKNOWN:
            self._keep_early(in_domain(report.eth_src, vlan_id), dpid, port_no, frame, now, vlan_id)

    def _report_at_edge(
        self, dpid: int, port_no: int, report: Report, frame: bytes, now: float, vlan_id: int
    ) -> None:
        """Take a report of a port to hosts; its frame may have the tag of its VLAN."""
        mac = report.eth_src
        if vlan_id:
            mac += SUFFIXES[vlan_id]
        leg = (dpid, port_no)
        fabric = self._fabric
        if leg in fabric.aggregations.homes:
            dpid, port_no = fabric.aggregations.home(leg)
        host = fabric.host_near(mac, dpid)
        if host is None:
            self._places.note(mac, dpid, port_no)
        elif (host.port_no != port_no or host.dpid != dpid) and not fabric.is_one_port(
            (host.dpid, host.port_no), leg
        ):
            self._counters["report-elsewhere"] += 1
            self._keep_early(mac, dpid, port_no, _untagged(frame), now, vlan_id)
            return
        membership = self._own_membership
        if vlan_id:
            membership = self._vlan_memberships.get(vlan_id) or self._memberships.of(vlan_id)
        if not self._plane.routed.has_ports:
            effects = membership.report_received(dpid, port_no, report, now)
            if effects:
                self._apply(effects, now, vlan_id=vlan_id)
            elif vlan_id:
                self._memberships.touched[vlan_id] = None
            return
        is_admitted, mac = membership.is_admitted, report.eth_src
        before = {record.group for record in report.records if is_admitted(dpid, port_no, mac, record.group)}
        self._apply(membership.report_received(dpid, port_no, report, now), now, vlan_id=vlan_id)
        gate = VlanGate(self._gate, vlan_id) if vlan_id else self._gate
        if gate.is_spoofed(mac, report.source, dpid, port_no):
            return
        if all(r.group in before or is_admitted(dpid, port_no, mac, r.group) for r in report.records):
            groups = [r.group for r in report.records if not self._comes_from_elsewhere(r.group, vlan_id)]
            for to_dpid, to_port in self._plane.routers.ports(report.family, groups, vlan_id):
                if not self._proxy.has(to_dpid, to_port, report.family, vlan_id):
                    self._tell_router((to_dpid, to_port), leg, _untagged(frame), vlan_id)

    def _tell_router(self, router: Place, origin: Place, frame: bytes, vlan_id: int) -> None:
        """Pass a frame on to a router of the fabric where it comes from, by one leg where the router has several."""
        fabric = self._fabric
        leg = fabric.flooded_leg(router)
        if leg is None or fabric.is_one_port(leg, origin) or not fabric.fabrics.is_one(leg[0], origin[0]):
            return
        self._perform(self._vlan_ports.sent(leg[0], (leg[1],), frame, vlan_id))

    def _comes_from_elsewhere(self, group: bytes, vlan_id: int) -> bool:
        """Tell whether receivers in a domain get a group from another, so that no router here is to fetch it."""
        registered = self._registered
        return registered.is_used and registered.registration(in_domain(group, vlan_id)) is not None

    def _keep_early(self, mac: bytes, dpid: int, port_no: int, frame: bytes, now: float, vlan_id: int) -> None:
        """Keep a report, as it came, until it is known what its port leads to, or where its host is."""
        came = with_tag(frame, vlan_id) if vlan_id else frame
        self._places.keep(mac, EarlyReport(dpid, port_no, came, now))

    def _query_received(self, dpid: int, port_no: int, query: Query, frame: bytes, now: float, vlan_id: int) -> None:
        membership = self._memberships.of(vlan_id)
        if (dpid, port_no) not in self._edges:
            self._counters["query-not-at-edge"] += 1
            return
        if self._is_refused_at_leg(dpid, port_no):
            return
        dpid, port_no = self._fabric.aggregations.home((dpid, port_no))
        self._apply(membership.query_received(dpid, port_no, query, now), now, vlan_id=vlan_id)
        _, _, *querier = membership.querier(query.family, dpid)[:6]
        if querier != [query.source, query.eth_src, dpid, port_no]:
            return
        self._pending_writes.routers_changed(now, vlan_id)
        if self._queries.take(dpid, port_no, now):
            place = (dpid, port_no)
            self._perform(passed_on(self._registered, self._fabric, self._vlan_ports, *place, query, frame, vlan_id))
        else:
            self._counters["queries-over-limit"] += 1

    def _is_refused_at_leg(self, dpid: int, port_no: int) -> bool:
        """Tell whether a port is a leg of a link aggregation group, behind which no router is taken for one.

        One that gets the groups alone that it asks for is: what it sends itself is left out for it as for any member.
        """
        leg, homes = (dpid, port_no), self._fabric.aggregations.homes
        if leg not in homes:
            return False
        settings, home = self._own_membership.router_ports.settings, homes[leg]
        others = (settings.proxied_router_ports, settings.router_ports_on_join)
        if applies(settings.router_ports_on_request, home) and not any(applies(other, home) for other in others):
            return False
        self._counters["router-at-aggregation"] += 1
        if leg not in self._routers_told:
            self._routers_told.add(leg)
            text = (
                f"Port {dpid}:{port_no} is a leg of a link aggregation group, and a multicast router or querier"
                " speaks there: it is not taken for one, unless multicast.router_ports.on_request names the port."
            )
            notice = Notice("router-at-aggregation", text, (("dpid", dpid), ("port_no", port_no)))
            self._perform([notice])
        return True

    def _pim_hello_received(
        self, dpid: int, port_no: int, hello: PimHello, frame: bytes, now: float, vlan_id: int
    ) -> None:
        family = hello.family
        if (dpid, port_no) not in self._edges or self._is_refused_at_leg(dpid, port_no):
            return
        leg = (dpid, port_no)
        dpid, port_no = self._fabric.aggregations.home(leg)
        known = self._plane.routers.has(dpid, port_no, family, vlan_id)
        membership = self._memberships.of(vlan_id)
        self._apply(membership.pim_hello_received(dpid, port_no, hello, now), now, vlan_id=vlan_id)
        if not known and self._plane.routers.has(dpid, port_no, family, vlan_id):
            # The switch passes on what routers say from now on; this one it only gave to the controller.
            for router in self._plane.routers.ports(family, vlan_id=vlan_id):
                self._tell_router(router, leg, frame, vlan_id)

    def _pim_join_received(
        self, dpid: int, port_no: int, message: PimJoinPrune, _frame: bytes, now: float, vlan_id: int
    ) -> None:
        if (dpid, port_no) in self._edges and not self._is_refused_at_leg(dpid, port_no):
            home = self._fabric.aggregations.home((dpid, port_no))
            self._apply(self._memberships.of(vlan_id).pim_join_received(*home, message, now), now, vlan_id=vlan_id)

    def _data_received(self, dpid: int, port_no: int, data: Data, frame: bytes, now: float, vlan_id: int) -> None:
        if vlan_id:
            data = data._replace(group=in_domain(data.group, vlan_id))
        if is_link_scope_group(data.group) or (dpid, port_no) not in self._edges:
            self._counters["data-not-expected"] += 1
            return
        self._perform(self._senders.data_received(dpid, port_no, data, frame, now))

    def _malformed_received(
        self, _dpid: int, _port_no: int, packet: Malformed, _frame: bytes, _now: float, _vlan_id: int
    ) -> None:
        self._counters[packet.reason] += 1

    def _ignored(self, _dpid: int, _port_no: int, packet: Ignored, _frame: bytes, _now: float, vlan_id: int) -> None:
        if packet.reason == VLAN_TAGGED and not (vlan_id and self._vlan_ports.passes_double_tagged):
            self._counters[VLAN_TAGGED] += 1


def _untagged(frame: bytes) -> bytes:
    found = without_tag(frame)
    return frame if found is None else found[1]


def _control_family(frame: bytes) -> int:
    """Return the family of what switches hand over as MLD or PIM, sound or not; 0 for anything else but IGMP.

    They look behind extension headers, and so must whoever counts what they hand over.
    """
    size, ethertype = len(frame), frame[12:14]
    if ethertype == _IPV4 and size >= _IPV4_BYTES:
        return 4 if frame[23] == PROTOCOL_PIM and frame[30:34] == ALL_PIM_ROUTERS_V4 else 0
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
