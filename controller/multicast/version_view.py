"""What operators are shown of versions: of OpenFlow, IGMP and MLD at each switch, and what the switch says it is."""

from __future__ import annotations

from typing import NamedTuple

from controller.events import SwitchDescription
from controller.membership.querier import FAMILIES
from controller.multicast.memberships import Memberships
from controller.multicast.switches import Switches
from controller.snapshot.log import Document
from controller.wire.addresses import format_ip

DESCRIBED_BOUND = 65536
"""Switches whose description is remembered; beyond it the oldest goes."""

PROTOCOLS = {4: "igmp", 6: "mld"}


class OlderPort(NamedTuple):
    """A port of a switch with hosts that report in an older version, in a domain."""

    port_no: int
    vlan_id: int
    family: int
    version: int


class VersionView:
    """Which versions are in force at each switch, and what the switch says of itself."""

    def __init__(self, switches: Switches, memberships: Memberships) -> None:
        self._switches = switches
        self._memberships = memberships
        self._descriptions: dict[int, SwitchDescription] = {}
        self._older: dict[int, list[OlderPort]] = {}

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Take what a switch says of itself."""
        self._descriptions.pop(dpid, None)
        if len(self._descriptions) >= DESCRIBED_BOUND:
            del self._descriptions[next(iter(self._descriptions))]
        self._descriptions[dpid] = description

    def refresh(self, now: float) -> list[int]:
        """Look at which ports hosts report in older versions; return the switches at which that is otherwise."""
        older: dict[int, list[OlderPort]] = {}
        for vlan_id, membership in self._memberships.all():
            for dpid, port_no, family, version in membership.older.in_force(now):
                older.setdefault(dpid, []).append(OlderPort(port_no, vlan_id, family, version))
        before, self._older = self._older, older
        return [dpid for dpid in before.keys() | older.keys() if before.get(dpid) != older.get(dpid)]

    def version(self, dpid: int) -> Document:
        """Return the versions in force at a switch, and its description, null where it has not described itself."""
        description = self._descriptions.get(dpid)
        queriers = [
            (vlan_id, membership.querier(family, dpid))
            for vlan_id, membership in self._memberships.all()
            for family in FAMILIES
        ]
        told = [
            {
                "family": querier.family,
                "vlan": vlan_id or None,
                "ours": querier.is_ours,
                "address": None if querier.address is None else format_ip(querier.address),
                "version": querier.version,
            }
            for vlan_id, querier in queriers
            if not (vlan_id and querier.is_ours)
        ]
        return {
            "dpid": dpid,
            "ofp_version": self._switches.ofp_version(dpid),
            **{
                f"{PROTOCOLS[querier.family]}_version": querier.version
                for vlan_id, querier in queriers
                if not vlan_id
            },
            "queriers": told,
            "older_hosts": [
                {"port_no": port_no, "vlan": vlan_id or None, "family": family, "version": version}
                for port_no, vlan_id, family, version in self._older.get(dpid, ())
            ],
            **dict.fromkeys(SwitchDescription._fields),
            **({} if description is None else description._asdict()),
        }
