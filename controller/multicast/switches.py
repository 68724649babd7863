"""Switches as they told of themselves and as they are connected, and which of their ports lead to hosts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from controller.events import PortChanged, SwitchConnected
from controller.rules.pipeline import OPENFLOW_1_0
from topology.aggregations import Place
from topology.events import PortRole
from topology.live import LiveFabric

_LAST_PORT = {OPENFLOW_1_0: 0xFF00, 4: 0xFFFFFF00}
"""Highest physical port number by OpenFlow version (OFPP_MAX)."""


class Switches:
    """What is known of switches beside the fabric's graph.

    Attributes
    ----------
    versions
        The OpenFlow version that each datapath spoke last.
    connected
        The datapaths that can be told something.
    edges
        The ports that lead to hosts, of switches that are there.
    drained
        Switches that trees and link-scope flooding avoid.
    inherited
        Ports by switch that stay as an earlier run left them, since nothing was heard of them yet: trees of that run
        may use them.
    gone
        Switches that left the fabric, as last shown: they stay until they are back or the operator forgets them.
    """

    def __init__(self, fabric: LiveFabric) -> None:
        self._fabric = fabric
        self._ports: dict[int, set[int]] = {}
        self.versions: dict[int, int] = {}
        self.connected: set[int] = set()
        self.edges: set[Place] = set()
        self.drained: set[int] = set()
        self.inherited: dict[int, set[int]] = {}
        self.gone: dict[int, dict[str, Any]] = {}

    def ports(self, dpid: int) -> AbstractSet[int]:
        """Return the physical ports of a datapath as it told them last."""
        return self._ports.get(dpid, frozenset())

    def ofp_version(self, dpid: int) -> int | None:
        """Return the OpenFlow version that a datapath spoke last."""
        return self.versions.get(dpid)

    def leads_to_hosts(self, place: Place) -> bool:
        """Tell whether a port, or a leg of its link aggregation group, leads to hosts."""
        return place in self.edges or any(leg in self.edges for leg in self._fabric.aggregations.legs(place))

    def switch_connected(self, event: SwitchConnected, starting: bool) -> None:
        """Take in a datapath's version and ports; `starting` while an earlier run's trees may still be in use."""
        dpid, ofp_version, ports, _ = event
        is_new = dpid not in self.versions
        self.versions[dpid] = ofp_version
        self.connected.add(dpid)
        self._ports[dpid] = {port.port_no for port in ports if port.port_no <= _LAST_PORT[ofp_version]}
        if starting and is_new:
            role = self._fabric.role
            self.inherited[dpid] = {port for port in self._ports[dpid] if role(dpid, port) is PortRole.UNKNOWN}

    def port_changed(self, event: PortChanged) -> bool:
        """Take in that a port was added, changed or deleted; False for one that is none of a known switch."""
        ports = self._ports.get(event.dpid)
        if ports is None or event.port.port_no > _LAST_PORT[self.versions[event.dpid]]:
            return False
        if event.deleted:
            ports.discard(event.port.port_no)
        else:
            ports.add(event.port.port_no)
        return True
