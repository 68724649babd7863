"""When the link-scope entries of switches follow what becomes of switches, links and ports."""

from __future__ import annotations

from controller.effects import Effect
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.flood import FloodPlane
from controller.multicast.groups import GroupPlane
from controller.multicast.returning import ReturningLinks
from controller.multicast.switch_ports import SwitchPorts, with_legs
from controller.multicast.switches import Switches
from topology.events import PortRole
from topology.live import LiveFabric

FLOOD_SETTLE_S = 0.02
"""Topology changes that come close together lead to one change of the link-scope entries."""

FLOOD_SETTLE_PER_SWITCH_S, FLOOD_SETTLE_LONGEST_S = 0.005, 2.0
"""The more switches the last change concerned, the longer the next one waits: while a fabric comes up, the spanning
tree changes with every link. A switch takes up to 1 ms, so that flooding has a fifth of a processor at most."""

PORTS_AT_ONCE = 2048
"""Ports that are looked at in one turn, and those of one more switch, for what flooding has to know of them."""


class FloodSchedule:
    """Has the link-scope entries brought up to date, some time after the last change and some switches at a time.

    `due_s` is when that goes on, None for never.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        switches: Switches,
        vlan_ports: VlanPorts,
        plane: GroupPlane,
        returning: ReturningLinks,
        flood: FloodPlane,
    ) -> None:
        self.due_s: float | None = None
        self._fabric = fabric
        self._switches = switches
        self._vlan_ports = vlan_ports
        self._plane = plane
        self._returning = returning
        self._flood = flood
        self._earliest_s = float("-inf")
        self._is_again = False
        self._ports: dict[int, SwitchPorts] = {}
        self._touched: set[int] = set()
        self._looked_at: set[int] = set()

    def switch_disconnected(self, dpid: int) -> None:
        """Have it known at the next change that a switch cannot be told anything for now."""
        self._touched.add(dpid)

    def disinherit(self, dpid: int, now: float) -> None:
        """Close what ports of a switch are still left as an earlier run had them."""
        if self._switches.inherited.pop(dpid, None):
            self.soon(now, dpid)

    def soon(self, now: float, *touched: int) -> None:
        """Have the link-scope entries brought up to date; the ports of `touched` switches may have changed."""
        self._touched.update(touched)
        self._is_again = True
        if self.due_s is None:
            self.due_s = max(now, self._earliest_s)

    def on_deadline(self, now: float) -> list[Effect]:
        """Bring the link-scope entries up to date if that is due."""
        if self.due_s is None or now < self.due_s:
            return []
        flood = self._flood
        effects: list[Effect] = []
        if flood.is_behind:
            effects = flood.advance(now)
        elif self._look_at_touched():
            looked_at, self._looked_at, self._is_again = self._looked_at, set(), False
            effects = flood.refresh(self._plane.forest.graph, self._ports, now, looked_at)
        if flood.is_behind or self._looked_at:
            self.due_s = now
            return effects
        settle_s = FLOOD_SETTLE_S + flood.brought_count * FLOOD_SETTLE_PER_SWITCH_S
        self._earliest_s = now + min(settle_s, FLOOD_SETTLE_LONGEST_S)
        self.due_s = self._earliest_s if self._is_again else None
        return effects

    def _look_at_touched(self) -> bool:
        """Look at the ports of some of the switches that may have changed, and tell whether these were all."""
        port_count = 0
        while self._touched and port_count < PORTS_AT_ONCE:
            dpid = self._touched.pop()
            self._looked_at.add(dpid)
            if dpid in self._switches.versions:
                port_count += len(self._switches.ports(dpid))
                self._ports[dpid] = self._ports_for_flooding(dpid)
        return not self._touched

    def switch_ports(self) -> dict[int, SwitchPorts]:
        """Return what flooding has to know of each switch, computed from nothing."""
        return {dpid: self._ports_for_flooding(dpid) for dpid in self._switches.versions}

    def _ports_for_flooding(self, dpid: int) -> SwitchPorts:
        fabric, switches = self._fabric, self._switches
        roles = fabric.roles(dpid)
        inherited = switches.inherited.get(dpid, ())
        closed = [
            port
            for port in switches.ports(dpid)
            if (roles.get(port) not in (PortRole.EDGE, PortRole.TRUNK) and port not in inherited)
            or (dpid, port) in self._returning.shut
        ]
        routers = self._plane.routers.at(dpid)
        edges, connected = fabric.edge_ports(dpid), dpid in switches.connected
        vlan_ports = self._vlan_ports
        vlans = vlan_ports.at(dpid) if vlan_ports.is_used else None
        known = SwitchPorts(switches.versions[dpid], edges, tuple(sorted(closed)), connected, routers, vlans)
        if vlan_ports.passes_double_tagged:
            known = known._replace(passes_double_tagged=True)
        if self._plane.aliases.is_used:
            known = known._replace(counts_stale_versions=True)
        return with_legs(known, fabric, dpid) if fabric.aggregations.is_used else known
