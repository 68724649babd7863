"""What operators are shown of queriers and multicast routers, and of fabrics: JSON-able documents."""

from __future__ import annotations

from controller.membership.querier import FAMILIES
from controller.multicast.fabric_names import FabricNames
from controller.multicast.memberships import Memberships
from controller.multicast.proxy import MembershipProxy
from controller.snapshot.log import Document
from controller.snapshot.names import Names
from controller.wire.addresses import format_ip
from topology.live import LiveFabric

JOINED_SHOWN = 64
"""Groups that are named of those joined at a port; the others are counted."""


class RouterView:
    """Queriers and ports with multicast routers, by domain, and what fabrics are called."""

    def __init__(
        self,
        fabric: LiveFabric,
        fabric_names: FabricNames,
        names: Names,
        memberships: Memberships,
        proxy: MembershipProxy,
    ) -> None:
        self._fabric = fabric
        self._fabric_names = fabric_names
        self._names = names
        self._memberships = memberships
        self._proxy = proxy

    def routers(self) -> Document:
        """Return who is the querier of each family, and the ports with multicast routers."""
        ports = [self.router_port(*key) for key in self.router_port_keys()]
        return {**self.queriers(), "router_ports": ports}

    def router_port_keys(self) -> list[tuple[int, int, int, int]]:
        """Return the (dpid, port number, family, VLAN id) of each port with a multicast router, in order."""
        all_of = self._memberships.all()
        return sorted((*key, vlan_id) for vlan_id, membership in all_of for key in membership.router_port_keys())

    def router_port(self, dpid: int, port_no: int, family: int, vlan_id: int) -> Document | None:
        """Return a port with a multicast router of a domain, None where there is none."""
        membership = self._memberships.of(vlan_id)
        entry = membership.router_ports.get(dpid, port_no, family)
        if entry is None:
            return None
        groups = None if entry.groups is None else sorted(str(allowed) for allowed in entry.groups)
        routers = sorted({format_ip(speaker.address) for speaker in entry.routers})
        place = {"dpid": dpid, "port_no": port_no, "family": family, "vlan": vlan_id or None}
        how = {"static": entry.static, "on_request": entry.on_request}
        reported = self._proxy.reported(dpid, port_no, family, vlan_id)
        joined = None
        if entry.on_join:
            addresses = sorted(membership.pim_joins.at((dpid, port_no), family))
            joined = {"group_count": len(addresses), "groups": list(map(format_ip, addresses[:JOINED_SHOWN]))}
        return {**place, **how, "routers": routers, "groups": groups, "reported": reported, "joined": joined}

    def queriers(self) -> Document:
        """Return who is the querier of each family; in VLANs, where that is not the controller.

        Where there are several fabrics each querier that is not the controller has the name of its own.
        """
        fabrics = self._fabric.fabrics
        places: list[int | None] = [fabric.dpid for fabric in fabrics] or [None]
        found = [
            (vlan_id, querier)
            for vlan_id, membership in self._memberships.all()
            for family in FAMILIES
            for querier in dict.fromkeys(membership.querier(family, place) for place in places)
            if not (vlan_id and querier.is_ours)
        ]
        return {
            "queriers": [
                {
                    "family": querier.family,
                    "vlan": vlan_id or None,
                    "ours": querier.is_ours,
                    "fabric": self.fabric_of(querier.dpid) if querier.dpid is not None and len(fabrics) > 1 else None,
                    "address": format_ip(querier.address) if querier.address is not None else None,
                    "dpid": querier.dpid,
                    "port_no": querier.port_no,
                    "robustness": querier.robustness,
                    "query_interval_s": querier.query_interval_s,
                    "version": querier.version,
                }
                for vlan_id, querier in found
            ],
        }

    def fabric_of(self, dpid: int) -> str | None:
        """Return what a switch's fabric is called: its name, else what its lowest switch is; None for no fabric."""
        fabric = self._fabric.fabrics.of(dpid)
        if fabric is None:
            return None
        return self._fabric_names.called(fabric.dpid).name or self._names.label(fabric.dpid)
