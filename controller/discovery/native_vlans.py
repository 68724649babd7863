"""Native VLANs: whether two ends of a cable, or of a segment, take frames without a tag for those of one VLAN.

A neighbour that is no switch of the fabric says which VLAN that is at its port in the port VLAN ID TLV of its LLDP
(IEEE 802.1Q, D.2.1). Ports of the fabric are in the VLANs of the policy, and may be joined by somebody else's switch.
Of the fabric's own domain, which has no VLAN id, nothing can be said to a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.config.vlans import PortVlans, Vlans
from controller.kernel.ports import End
from controller.wire.addresses import format_mac
from controller.wire.packets import ForeignLldp

NATIVE_VLAN_MISMATCH = "native-vlan-mismatch"
"""The counter and notice of ends that take frames without a tag for those of different VLANs."""


def unlike_neighbour(vlans: Vlans, own: PortVlans, heard: ForeignLldp) -> str | None:
    """Return what a port does whose neighbour has another VLAN without a tag; None where both have the same."""
    if not own.untagged or own.untagged == heard.port_vlan_id:
        return None
    port = f"port {heard.port_id} of " if heard.port_id else ""
    return (
        f"is in VLAN {vlans.name(own.untagged)} without a tag, and leads to {port}{format_mac(heard.eth_src)}, whose"
        f" LLDP says VLAN {vlans.name(heard.port_vlan_id)}: what one sends without a tag is in the other VLAN there"
    )


def unlike_segment(vlans: Vlans, own: PortVlans, low: End, others: PortVlans) -> str | None:
    """Return what a port does that is held beside another, `low`, of other VLANs; None where both have the same."""
    if own.untagged is None or others.untagged is None or own.untagged == others.untagged:
        return None
    return (
        f"is {_untagged(vlans, own)}, and leads to one segment behind a foreign switch with port {low[0]}:{low[1]},"
        f" which is {_untagged(vlans, others)}: it is held discarding, so that nothing gets from one into the other"
    )


def unlike_cable(vlans: Vlans, end: End, peers: Iterable[End]) -> str | None:
    """Return what the lower port of a cable does of whose ends the policy names different VLANs; None otherwise."""
    own = vlans.said_of(*end)
    for peer in peers:
        others = vlans.said_of(*peer)
        if end < peer and own is not None and others is not None and own.untagged != others.untagged:
            return (
                f"is {_untagged(vlans, own)} by the policy, and is cabled to port {peer[0]}:{peer[1]} of the fabric,"
                f" which is {_untagged(vlans, others)}: between switches every VLAN has its tag, and neither counts"
            )
    return None


def _untagged(vlans: Vlans, port: PortVlans) -> str:
    """Return in which VLAN a port is without a tag, as words."""
    if port.untagged is None:
        return "in no VLAN without a tag"
    return f"in VLAN {vlans.name(port.untagged)} without a tag" if port.untagged else "in the fabric's own domain"
