"""The entries that give what hosts send to other hosts its code point, at the port where it enters (OpenFlow 1.3).

They stand behind all else in ADMIT and VLAN_ADMIT, and go on as those tables do: senders of groups have entries of
their own. An entry of a port has its packets be best effort; one of a host, or of an address that it holds, comes
before it where the host's class has a code point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from controller.admission.host import Host
from controller.admission.marks import UNMARKED_DSCP, Marks
from controller.config.marking import Marking
from controller.effects import Edit, Put, Remove
from controller.kernel.domains import address_of, domain_of
from controller.kernel.ports import End
from controller.kernel.vlan_ports import VlanPorts
from controller.rules.cookies import cookie_of
from controller.rules.model import Goto, Match, Rule, RuleKey, SetDscp
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    OPENFLOW_1_0,
    PRIORITY_MARK_ADDRESS,
    PRIORITY_MARK_HOST,
    PRIORITY_MARK_PORT,
    UNICAST_TAG,
    VLAN_ADMIT,
    VLAN_FORWARD,
)
from controller.wire.dscp import with_dscp
from topology.events import HostLearnt, PortRole
from topology.live import LiveFabric

Stage: TypeAlias = list[tuple[int, Edit]]

_ETH_TYPES = (ETH_TYPE_IPV4, ETH_TYPE_IPV6)


class UnicastMarks:
    """The entries of every port to hosts; none where the policy marks nothing."""

    def __init__(self, marking: Marking, fabric: LiveFabric, vlan_ports: VlanPorts) -> None:
        self._marks = Marks(marking)
        self._fabric = fabric
        self._vlan_ports = vlan_ports
        self._held: dict[int, dict[int, dict[RuleKey, Rule]]] = {}

    def port_changed(self, end: End) -> Stage:
        """Return the edits that follow from what a port leads to now, and from who is there, by all legs of it."""
        if not self._marks.are_used:
            return []
        return [edit for leg in self._fabric.aggregations.legs(end) for edit in self._follow(leg)]

    def switch_up(self, dpid: int) -> Stage:
        """Return the edits for a switch that became part of the fabric."""
        if not self._marks.are_used:
            return []
        return [edit for port_no in self._fabric.edge_ports(dpid) for edit in self._follow((dpid, port_no))]

    def switch_down(self, dpid: int) -> Stage:
        """Return the edits for a switch that is no part of the fabric any more."""
        return [(dpid, Remove(key)) for held in self._held.pop(dpid, {}).values() for key in held]

    def replace(self, marking: Marking) -> Stage:
        """Go by another policy, which ports may be in other VLANs by too, and return the edits that follow."""
        if not self._marks.replace(marking) and not self._marks.are_used:
            return []
        ends = {(dpid, port_no) for dpid, held in self._held.items() for port_no in held}
        for dpid in self._fabric.switches() if self._marks.are_used else ():
            ends |= {(dpid, port_no) for port_no in self._fabric.edge_ports(dpid)}
        return [edit for end in sorted(ends) for edit in self._follow(end)]

    def marked(self, end: End, frame: bytes) -> bytes:
        """Return a frame without its tag that the controller hands on, as the entries of its port would mark it."""
        if not self._marks.are_used or self._fabric.role(*end) is not PortRole.EDGE:
            return frame
        eth_type = int.from_bytes(frame[12:14], "big")
        if eth_type == ETH_TYPE_IPV4 and len(frame) >= 34:
            address = frame[26:30]
        elif eth_type == ETH_TYPE_IPV6 and len(frame) >= 54:
            address = frame[22:38]
        else:
            return frame
        dscp = self._marks.unicast_dscp(Host(frame[6:12], address, *self._fabric.aggregations.home(end)))
        return frame if dscp is None else with_dscp(frame, dscp)

    def _follow(self, end: End) -> Stage:
        dpid, port_no = end
        had = self._held.get(dpid, {}).get(port_no, {})
        wanted = {rule.key: rule for rule in self._wanted(end)}
        if wanted:
            self._held.setdefault(dpid, {})[port_no] = wanted
        elif had:
            del self._held[dpid][port_no]
        stage: Stage = [(dpid, Put(rule)) for key, rule in wanted.items() if had.get(key) != rule]
        return stage + [(dpid, Remove(key)) for key in had if key not in wanted]

    def _wanted(self, end: End) -> Iterator[Rule]:
        fabric, home = self._fabric, self._fabric.aggregations.home(end)
        version = fabric.ofp_version(end[0])
        if version in (None, OPENFLOW_1_0) or fabric.role(*end) is not PortRole.EDGE:
            return
        if not self._marks.marks_port(*home):
            return
        for table in (ADMIT, VLAN_ADMIT) if self._vlan_ports.is_used else (ADMIT,):
            for eth_type in _ETH_TYPES:
                yield _rule(table, PRIORITY_MARK_PORT, Match(end[1], eth_type=eth_type), UNMARKED_DSCP)
        for host in fabric.hosts_at(*home):
            yield from self._of_host(host, home, end[1])

    def _of_host(self, host: HostLearnt, home: End, port_no: int) -> Iterator[Rule]:
        mac = address_of(host.mac)
        vlan_id = domain_of(host.mac)
        table = VLAN_ADMIT if vlan_id else ADMIT
        match = Match(port_no, eth_src=mac, vlan_id=vlan_id or None)
        by_mac = self._marks.unicast_dscp(Host(mac, None, *home)) or UNMARKED_DSCP
        if by_mac != UNMARKED_DSCP:
            for eth_type in _ETH_TYPES:
                yield _rule(table, PRIORITY_MARK_HOST, match._replace(eth_type=eth_type), by_mac)
        for address in map(address_of, host.addresses):
            dscp = self._marks.unicast_dscp(Host(mac, address, *home)) or UNMARKED_DSCP
            if dscp != by_mac:
                eth_type = ETH_TYPE_IPV4 if len(address) == 4 else ETH_TYPE_IPV6
                of_address = match._replace(eth_type=eth_type, ip_src=address, ip_src_prefix=8 * len(address))
                yield _rule(table, PRIORITY_MARK_ADDRESS, of_address, dscp)


def _rule(table: int, priority: int, match: Match, dscp: int) -> Rule:
    onward = Goto(FORWARD if table == ADMIT else VLAN_FORWARD)
    return Rule(RuleKey(table, priority, match), (SetDscp(dscp), onward), cookie_of(UNICAST_TAG, ("mark", table)))
