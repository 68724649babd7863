"""Which ports and switches are peers, from the live topology."""

from __future__ import annotations

from typing import NamedTuple

from controller.allocation.fabric_domains import FabricDomains
from controller.anomaly.live_events import WHOLE_SWITCH, MemberKey
from topology.events import PortRole, TopologyEvent
from topology.graph import NodeKind
from topology.live import LiveFabric

OF_POD = " of pod "
"""Stands between the name of a group and its pod, where each pod has groups of its own."""
_HEIGHT = {NodeKind.TOR: 1, NodeKind.AGGREGATION: 2, NodeKind.CORE: 3}


class Peers(NamedTuple):
    """The peer group of every member that has one, and the other end of every cable between switches."""

    groups: dict[MemberKey, str]
    far: dict[MemberKey, MemberKey]


class PeerGroups:
    """Follows the fabric; `of` tells who is whose peer.

    Ports of one role are peers: a tier's uplinks, its downlinks, its ports to hosts, and ports between switches of
    which the tier is not known; so are the switches of a tier. Ports without a role have no peers.
    """

    def __init__(self) -> None:
        self.fabric = LiveFabric()
        self.version = 0
        self._domains = FabricDomains(self.fabric)

    def apply(self, event: TopologyEvent) -> None:
        """Take in what happened to the fabric."""
        if self.fabric.apply(event):
            self.version += 1

    def of(self, by: str) -> Peers:
        """Return the groups of all members, of the whole tier or, `by` pod, of each pod."""
        groups: dict[MemberKey, str] = {}
        far: dict[MemberKey, MemberKey] = {}
        for link in self.fabric.graph.links():
            u, v, u_port, v_port = link.u, link.v, link.u_port, link.v_port
            if isinstance(u, int) and isinstance(v, int) and u_port is not None and v_port is not None:
                for near, near_port, other, other_port in ((u, u_port, v, v_port), (v, v_port, u, u_port)):
                    far[near, near_port] = (other, other_port)
                    groups[near, near_port] = self._trunk(near, other) + self._pod(by, near, near_port)
        for dpid in self.fabric.switches():
            kind = self._domains.kind(dpid)
            tier = f"{kind} switches" if kind is not NodeKind.SWITCH else "switches"
            groups[dpid, WHOLE_SWITCH] = tier + self._pod(by, dpid, WHOLE_SWITCH)
            for port_no in self.fabric.edge_ports(dpid):
                groups[dpid, port_no] = f"{kind} edge ports" + self._pod(by, dpid, port_no)
        return Peers(groups, far)

    def role(self, key: MemberKey) -> PortRole:
        """Return what is behind a port."""
        return self.fabric.role(*key)

    def _trunk(self, near: int, far: int) -> str:
        kind, other = self._domains.kind(near), self._domains.kind(far)
        here, there = _HEIGHT.get(kind, 0), _HEIGHT.get(other, 0)
        if here == there or not here * there:
            return f"{kind} trunks"
        return f"{kind} uplinks" if here < there else f"{kind} downlinks"

    def _pod(self, by: str, dpid: int, port_no: int) -> str:
        if by != "pod":
            return ""
        pod = self._domains.components(dpid, port_no, "").get("pod")
        return "" if pod is None else f"{OF_POD}{pod}"
