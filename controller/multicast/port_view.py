"""What operators are shown of ports: their VLANs and link aggregation groups, JSON-able."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.callbacks import PolicyInForce
from controller.snapshot.log import Document
from topology.live import LiveFabric

VLANS_NAMED = 32
"""VLANs of a port that are shown by name, the lowest first."""


class PortView:
    """Ports as the policy has them."""

    def __init__(
        self,
        policy: PolicyInForce,
        fabric: LiveFabric,
        vlan_ports: VlanPorts,
    ) -> None:
        self._policy = policy
        self._fabric = fabric
        self._vlan_ports = vlan_ports

    def aggregation(self, dpid: int, port_no: int) -> Document | None:
        """Return the link aggregation group of a port, and which of its legs work; None where it is in none."""
        fabric, place = self._fabric, (dpid, port_no)
        home = fabric.aggregations.homes.get(place)
        if home is None:
            return None
        group = next(group for group in self._policy().link_aggregations if group.ports[0] == home)
        working = fabric.working_legs(place)
        legs = [
            {"dpid": leg[0], "port_no": leg[1], "works": leg in working} for leg in fabric.aggregations.legs(place)
        ]
        return {"name": group.name, "mode": group.mode, "legs": legs}

    def vlans(self, dpid: int, port_no: int) -> Document | None:
        """Return the VLANs of a port to hosts; None where no port of the fabric is in one."""
        if not self._vlan_ports.is_used:
            return None
        vlans, port = self._policy().vlans, self._vlan_ports.of(dpid, port_no)
        named = ((vlan_id, vlans.given_name(vlan_id)) for vlan_id in sorted(port.vlans()))
        names = islice(((str(vlan_id), name) for vlan_id, name in named if name is not None), VLANS_NAMED)
        return {"untagged": port.untagged, "tagged": in_ranges(sorted(port.tagged)), "names": dict(names)}


def in_ranges(vlan_ids: Sequence[int]) -> str:
    """Return ascending numbers as text, as ``20,30-35``."""
    ranges: list[list[int]] = []
    for vlan_id in vlan_ids:
        if ranges and ranges[-1][1] == vlan_id - 1:
            ranges[-1][1] = vlan_id
        else:
            ranges.append([vlan_id, vlan_id])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
