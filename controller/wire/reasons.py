"""The stable keys under which refused and ignored frames are counted."""

from __future__ import annotations

from typing import Final

from controller.wire.packets import Ignored, Malformed

REASONS: Final[dict[str, str]] = {
    "eth-truncated": "the frame ends within its Ethernet header",
    "eth-source": "the source MAC address is a group address",
    "ipv4-truncated": "the frame ends within its IPv4 header, or before the end of a message that is read whole",
    "ipv4-version": "the version field is not 4",
    "ipv4-length": "the header length is below 20 bytes or the total length below the header length",
    "ipv4-checksum": "the IPv4 header checksum is wrong",
    "ipv4-options": "an IPv4 option has an impossible length",
    "ipv4-source": "the source address is loopback, multicast, reserved or broadcast",
    "ipv6-truncated": "the frame ends within its IPv6 header, or before the end of a message that is read whole",
    "ipv6-version": "the version field is not 6",
    "ipv6-source": "the source address is multicast or loopback",
    "ipv6-extension": "an extension header is out of place or runs past the payload, or there are too many of them",
    "ipv6-options": "a hop-by-hop option has an impossible length",
    "igmp-fragment": "a fragment that carries IGMP",
    "igmp-truncated": "the message ends before its fields, records or sources do",
    "igmp-checksum": "the IGMP checksum is wrong",
    "igmp-ttl": "the TTL is not 1",
    "igmp-router-alert": "no router alert option in a version 2 or 3 message",
    "igmp-length": "a query of 9 to 11 bytes",
    "igmp-destination": "the destination address is not the one that the message type calls for",
    "igmp-group": "the group address is not a multicast address",
    "igmp-sources": "a listed source is not a unicast address, or a general query lists sources",
    "icmpv6-fragment": "a membership or neighbour discovery message in fragments, or behind a fragment header",
    "icmpv6-checksum": "the ICMPv6 checksum is wrong",
    "mld-truncated": "the message ends before its fields, records or sources do",
    "mld-hop-limit": "the hop limit is not 1",
    "mld-router-alert": "no hop-by-hop router alert option for MLD",
    "mld-source": "the source address is not link-local (a report may also come from ::)",
    "mld-code": "the ICMPv6 code is not 0",
    "mld-length": "a query of 25 to 27 bytes",
    "mld-destination": "the destination address is not the one that the message type calls for",
    "mld-group": "the group address is not a multicast address",
    "mld-sources": "a listed source is not a unicast address, or a general query lists sources",
    "nd-truncated": "the message ends before its fields or options do",
    "nd-hop-limit": "the hop limit is not 255",
    "nd-code": "the ICMPv6 code is not 0",
    "nd-target": "the target is a multicast address",
    "nd-source": "a solicitation from :: that is not sent to a solicited-node group or names a link-layer address",
    "nd-destination": "a solicited advertisement that is sent to a group",
    "nd-options": "an option has length 0, or a link-layer address option is not of Ethernet's size or names a group",
    "arp-truncated": "the frame ends within the ARP packet",
    "arp-format": "a hardware or protocol type or size other than Ethernet's and IPv4's",
    "arp-sender": "the sender's MAC or IP address is a group, loopback or broadcast address",
    "pim-truncated": "the message ends before its fields, options or addresses do",
    "pim-fragment": "a fragment that carries PIM",
    "pim-checksum": "the PIM checksum is wrong",
    "pim-ttl": "the TTL or hop limit of a message to all routers is not 1",
    "pim-options": "a holdtime option that is not two bytes long, or a DR priority option that is not four",
    "pim-source": "the source address is not a host's, or not link-local in IPv6",
    "pim-address": "an address of a join or prune is of another family or encoding, a group's, or a prefix",
    "pim-group": "the group of a join or prune is no multicast address, or has an impossible prefix",
    "lldp-tlv": "a TLV runs past the end of the frame",
    "lldp-vlan": "the VLAN of a port is above 4094, or has not two bytes",
    "lacp-truncated": "the data unit ends before what it says of both ends",
    "lacp-tlv": "the first two TLVs are not those of actor and partner, or not of their size",
}
"""Every reason of a `Malformed`, with what it means. Keys never change their meaning."""

IGNORED_REASONS: Final[dict[str, str]] = {
    "eth-802.3": "a length in place of an EtherType (spanning tree and the like)",
    "ethertype": "an EtherType that is not read",
    "slow-protocol": "a slow protocol other than LACP, such as its marker protocol",
    "vlan-tagged": "a VLAN tag (802.1Q, 802.1ad), a priority tag too, where no VLAN is expected",
    "ip-broadcast": "an IP packet to everybody: the broadcast address, or a unicast address in a group frame",
    "igmp-type": "an IGMP type that is no membership message (DVMRP, mtrace, PIMv1)",
    "pim-type": "a PIM message to a group that is no version 2 hello, join or prune",
    "arp-operation": "an ARP operation other than request and reply",
    "lldp-foreign": "an LLDP frame of another sender",
}
"""Every reason of an `Ignored`, with what it means."""


def malformed(reason: str) -> Malformed:
    """Return the record of a reason in `REASONS`; KeyError for any other."""
    REASONS[reason]
    return Malformed(reason)


def ignored(reason: str) -> Ignored:
    """Return the record of a reason in `IGNORED_REASONS`; KeyError for any other."""
    IGNORED_REASONS[reason]
    return Ignored(reason)
