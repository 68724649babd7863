"""The entries that give what hosts send to other hosts its code point and queue (OpenFlow 1.3).

Where it enters they go by who sends; at further switches its queue follows from the code point that it has got there.

They stand behind all else in ADMIT and VLAN_ADMIT, and go on as those tables do: senders of groups have entries of
their own. Entries of a port give what anybody there has, best effort where no class is about the port; one of a host,
or of an address that it holds, comes before them where the host's own is another. The queue is that of the ports by
which packets leave this switch.

An address counts only for the host that is known to hold it, at the port where that is known to be. A port that led
to hosts keeps its own entries while it is not known what it leads to, so that nobody gains by taking it down.

The entries by code point are for any port and come last, so that what a port to hosts sends meets the port's first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from controller.admission.host import Host
from controller.admission.marks import Mark, Marks
from controller.config.marking import Marking
from controller.effects import Edit, Put, Remove
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.kernel.ports import End
from controller.kernel.vlan_ports import VlanPorts
from controller.rules.cookies import cookie_of
from controller.rules.model import Action, FlowEntry, FlowKey, Goto, Match, SetDscp, SetQueue
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    OPENFLOW_1_0,
    PRIORITY_MARK_ADDRESS,
    PRIORITY_MARK_HOST,
    PRIORITY_MARK_PORT,
    PRIORITY_QUEUE_ONWARD,
    UNICAST_TAG,
    VLAN_ADMIT,
    VLAN_FORWARD,
)
from controller.wire.dscp import with_dscp
from topology.events import HostGone, HostLearnt, PortRole
from topology.live import LiveFabric

Stage: TypeAlias = list[tuple[int, Edit]]
Actions: TypeAlias = tuple[Action, ...]

_ETH_TYPES = (ETH_TYPE_IPV4, ETH_TYPE_IPV6)

_NOBODY = b""
"""Stands for the MAC address of a host of which its port alone is known."""


class UnicastMarks:
    """The entries of every port to hosts; none where the policy marks nothing."""

    def __init__(self, marking: Marking, fabric: LiveFabric, vlan_ports: VlanPorts) -> None:
        self._marks = Marks(marking)
        self._fabric = fabric
        self._vlan_ports = vlan_ports
        self._held: dict[int, dict[int, dict[FlowKey, FlowEntry]]] = {}
        self._onward: dict[int, dict[FlowKey, FlowEntry]] = {}
        self._places: dict[bytes, End] = {}
        self._hosts_of: dict[int, set[bytes]] = {}

    def host_learnt(self, host: HostLearnt) -> Stage:
        """Return the edits that follow from where a host is and what it holds now, and is and does no more."""
        end = (host.dpid, host.port_no)
        before = self._forget(host.mac) or end
        self._places[host.mac] = end
        self._hosts_of.setdefault(host.dpid, set()).add(host.mac)
        left = [] if self._fabric.is_one_port(before, end) else self.port_changed(before)
        return left + self.port_changed(end)

    def host_gone(self, event: HostGone) -> Stage:
        """Return the edits that follow from a host that is gone from a port."""
        self._forget(event.mac)
        return self.port_changed((event.dpid, event.port_no))

    def port_changed(self, end: End) -> Stage:
        """Return the edits that follow from what a port leads to now, and from who is there, by all legs of it."""
        if not self._marks.are_used:
            return []
        return [edit for leg in self._fabric.aggregations.legs(end) for edit in self._follow(leg)]

    def switch_up(self, dpid: int) -> Stage:
        """Return the edits for a switch that became part of the fabric."""
        if not self._marks.are_used:
            return []
        stage = self._follow_onward(dpid)
        return stage + [edit for port_no in self._fabric.edge_ports(dpid) for edit in self._follow((dpid, port_no))]

    def switch_down(self, dpid: int) -> Stage:
        """Return the edits for a switch that is no part of the fabric any more, nor are the hosts at it."""
        for mac in tuple(self._hosts_of.get(dpid, ())):
            self._forget(mac)
        gone = self._held.pop(dpid, {})
        stage: Stage = [(dpid, Remove(key)) for held in (*gone.values(), self._onward.pop(dpid, {})) for key in held]
        legs = {leg for port_no in gone for leg in self._fabric.aggregations.legs((dpid, port_no))}
        return stage + [edit for leg in sorted(legs) if leg[0] != dpid for edit in self._follow(leg)]

    def replace(self, marking: Marking) -> Stage:
        """Go by another policy, which ports may be in other VLANs by too, and return the edits that follow."""
        if not self._marks.replace(marking) and not self._marks.are_used:
            return []
        ends = {(dpid, port_no) for dpid, held in self._held.items() for port_no in held}
        for dpid in self._fabric.switches() if self._marks.are_used else ():
            ends |= {(dpid, port_no) for port_no in self._fabric.edge_ports(dpid)}
        onward = [edit for dpid in self._fabric.switches() for edit in self._follow_onward(dpid)]
        return onward + [edit for end in sorted(ends) for edit in self._follow(end)]

    def marked(self, end: End, frame: bytes, vlan_id: int) -> bytes:
        """Return an untagged frame of a domain, which the controller hands on, as entries of its port mark it."""
        if not self._marks.are_used or self._fabric.role(*end) is not PortRole.EDGE:
            return frame
        eth_type = int.from_bytes(frame[12:14], "big")
        if eth_type == ETH_TYPE_IPV4 and len(frame) >= 34:
            address = frame[26:30]
        elif eth_type == ETH_TYPE_IPV6 and len(frame) >= 54:
            address = frame[22:38]
        else:
            return frame
        dscp = self._marks.of_unicast(self._sender(end, frame[6:12], address, vlan_id)).dscp
        return frame if dscp is None else with_dscp(frame, dscp)

    def _sender(self, end: End, mac: bytes, address: bytes, vlan_id: int) -> Host:
        """Return a sender by what it is known to have of the addresses that it uses."""
        fabric, home = self._fabric, self._fabric.aggregations.home(end)
        host = fabric.host_near(in_domain(mac, vlan_id), end[0])
        if host is None or not fabric.is_one_port((host.dpid, host.port_no), end):
            return Host(_NOBODY, None, *home)
        return Host(mac, address if in_domain(address, vlan_id) in host.addresses else None, *home)

    def _forget(self, mac: bytes) -> End | None:
        """Forget where a host was; return where that is."""
        end = self._places.pop(mac, None)
        if end is not None:
            at_switch = self._hosts_of[end[0]]
            at_switch.remove(mac)
            if not at_switch:
                del self._hosts_of[end[0]]
        return end

    def _follow(self, end: End) -> Stage:
        dpid, port_no = end
        had = self._held.get(dpid, {}).get(port_no, {})
        wanted = {rule.key: rule for rule in self._wanted(end, was_edge=bool(had))}
        if wanted:
            self._held.setdefault(dpid, {})[port_no] = wanted
        elif had:
            del self._held[dpid][port_no]
        stage: Stage = [(dpid, Put(rule)) for key, rule in wanted.items() if had.get(key) != rule]
        return stage + [(dpid, Remove(key)) for key in had if key not in wanted]

    def _follow_onward(self, dpid: int) -> Stage:
        """Bring a switch to the queues that packets from other switches wait in by their code points."""
        had = self._onward.get(dpid, {})
        is_able = self._fabric.ofp_version(dpid) not in (None, OPENFLOW_1_0)
        wanted = {rule.key: rule for rule in self._by_dscp()} if is_able else {}
        if wanted:
            self._onward[dpid] = wanted
        else:
            self._onward.pop(dpid, None)
        stage: Stage = [(dpid, Put(rule)) for key, rule in wanted.items() if had.get(key) != rule]
        return stage + [(dpid, Remove(key)) for key in had if key not in wanted]

    def _by_dscp(self) -> Iterator[FlowEntry]:
        for dscp, queue_id in self._marks.queues_onward().items():
            for table in (ADMIT, VLAN_ADMIT) if self._vlan_ports.is_used else (ADMIT,):
                for eth_type in _ETH_TYPES:
                    match = Match(eth_type=eth_type, ip_dscp=dscp)
                    yield _rule(table, PRIORITY_QUEUE_ONWARD, match, (SetQueue(queue_id),))

    def _wanted(self, end: End, *, was_edge: bool) -> Iterator[FlowEntry]:
        fabric, home = self._fabric, self._fabric.aggregations.home(end)
        version, role = fabric.ofp_version(end[0]), fabric.role(*end)
        is_edge = role is PortRole.EDGE or (was_edge and role is not PortRole.TRUNK)
        if version in (None, OPENFLOW_1_0) or not is_edge:
            return
        of_port = _actions(self._marks.of_unicast(Host(_NOBODY, None, *home)))
        if not of_port:
            return
        for table in (ADMIT, VLAN_ADMIT) if self._vlan_ports.is_used else (ADMIT,):
            for eth_type in _ETH_TYPES:
                yield _rule(table, PRIORITY_MARK_PORT, Match(end[1], eth_type=eth_type), of_port)
        for leg in fabric.aggregations.legs(end):
            for host in fabric.hosts_at(*leg):
                yield from self._of_host(host, home, end[1], of_port)

    def _of_host(self, host: HostLearnt, home: End, port_no: int, of_port: Actions) -> Iterator[FlowEntry]:
        mac = address_of(host.mac)
        vlan_id = domain_of(host.mac)
        table = VLAN_ADMIT if vlan_id else ADMIT
        match = Match(port_no, eth_src=mac, vlan_id=vlan_id or None)
        by_mac = _actions(self._marks.of_unicast(Host(mac, None, *home)))
        if by_mac != of_port:
            for eth_type in _ETH_TYPES:
                yield _rule(table, PRIORITY_MARK_HOST, match._replace(eth_type=eth_type), by_mac)
        for address in map(address_of, host.addresses):
            by_address = _actions(self._marks.of_unicast(Host(mac, address, *home)))
            if by_address != by_mac:
                eth_type = ETH_TYPE_IPV4 if len(address) == 4 else ETH_TYPE_IPV6
                of_address = match._replace(eth_type=eth_type, ip_src=address, ip_src_prefix=8 * len(address))
                yield _rule(table, PRIORITY_MARK_ADDRESS, of_address, by_address)


def _actions(mark: Mark) -> Actions:
    """Return what gives packets a mark, nothing where they are left as they are."""
    dscp = () if mark.dscp is None else (SetDscp(mark.dscp),)
    return dscp if mark.queue_id is None else (*dscp, SetQueue(mark.queue_id))


def _rule(table: int, priority: int, match: Match, marked: Actions) -> FlowEntry:
    onward = Goto(FORWARD if table == ADMIT else VLAN_FORWARD)
    return FlowEntry(FlowKey(table, priority, match), (*marked, onward), cookie_of(UNICAST_TAG, ("mark", table)))
