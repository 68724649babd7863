"""What flow entries look at in a frame, and what they change."""

from __future__ import annotations

from zlib import crc32

from controller.rules.evaluate import Fields
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, IPPROTO_ICMPV6
from controller.wire.dscp import with_dscp

LLDP = b"\x88\xcc"
_TAGS = (b"\x81\x00", b"\x88\xa8")
_VID_BITS = 0xFFF
_HOP_BY_HOP = 0
_WITH_PORTS = (6, 17)


def fields_of(frame: bytes) -> Fields:
    """Return the fields of a frame; addresses of IP packets alone are read, and of IPv6 what follows its options."""
    tags = _tags(frame)
    vlan_ids = tuple([int.from_bytes(tag[2:], "big") & _VID_BITS for tag in tags])
    start = 12 + 4 * len(tags)
    eth_type, packet = int.from_bytes(frame[start : start + 2], "big"), frame[start + 2 :]
    ends = (frame[:6], frame[6:12], eth_type)
    if eth_type == ETH_TYPE_IPV4 and len(packet) >= 20:
        flow = _flow(packet[9], packet[12:20], packet[4 * (packet[0] & 0x0F) :])
        return Fields(*ends, packet[9], packet[12:16], packet[16:20], None, vlan_ids, packet[1] >> 2, None, flow)
    if eth_type == ETH_TYPE_IPV6 and len(packet) >= 48:
        protocol, at = packet[6], 40
        if protocol == _HOP_BY_HOP:
            protocol, at = packet[at], at + 8 + 8 * packet[at + 1]
        icmpv6_type = packet[at] if protocol == IPPROTO_ICMPV6 and len(packet) > at else None
        dscp = (packet[0] & 0x0F) << 2 | packet[1] >> 6
        flow = _flow(protocol, packet[8:40], packet[at:])
        return Fields(*ends, protocol, packet[8:24], packet[24:40], icmpv6_type, vlan_ids, dscp, None, flow)
    return Fields(*ends, vlan_ids=vlan_ids)


def _flow(protocol: int, addresses: bytes, segment: bytes) -> int:
    """Return a hash of what tells a flow from others: its addresses, and ports of TCP or UDP."""
    return crc32(addresses + segment[:4] if protocol in _WITH_PORTS else addresses)


def changed(frame: bytes, eth_dst: bytes, vlan_ids: tuple[int, ...], dscp: int) -> bytes:
    """Return a frame with another destination, VLANs and code point: the innermost tags stay but for their ids."""
    tags = _tags(frame)
    rest = with_dscp(frame[:12] + frame[12 + 4 * len(tags) :], dscp)[12:]
    for vlan_id in reversed(vlan_ids):
        tag = tags.pop() if tags else _TAGS[0] + bytes(2)
        priority = int.from_bytes(tag[2:], "big") & ~_VID_BITS
        rest = tag[:2] + (priority | vlan_id).to_bytes(2, "big") + rest
    return eth_dst + frame[6:12] + rest


def _tags(frame: bytes) -> list[bytes]:
    """Return the VLAN tags of a frame, outermost first, four bytes each."""
    tags = []
    at = 12
    while frame[at : at + 2] in _TAGS and len(frame) >= at + 4:
        tags.append(frame[at : at + 4])
        at += 4
    return tags
