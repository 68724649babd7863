"""What flow entries look at in a frame."""

from __future__ import annotations

from controller.rules.evaluate import Fields
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, IPPROTO_ICMPV6

LLDP = b"\x88\xcc"
_TAGS = (0x8100, 0x88A8)
_HOP_BY_HOP = 0


def fields_of(frame: bytes) -> Fields:
    """Return the fields of a frame; addresses of IP packets alone are read, and of IPv6 what follows its options."""
    eth_type = int.from_bytes(frame[12:14], "big")
    tagged = eth_type in _TAGS
    start = 14
    if tagged:
        eth_type, start = int.from_bytes(frame[16:18], "big"), 18
    packet = frame[start:]
    ends = (frame[:6], frame[6:12], eth_type)
    if eth_type == ETH_TYPE_IPV4 and len(packet) >= 20:
        return Fields(*ends, packet[9], packet[12:16], packet[16:20], None, tagged)
    if eth_type == ETH_TYPE_IPV6 and len(packet) >= 48:
        protocol, at = packet[6], 40
        if protocol == _HOP_BY_HOP:
            protocol, at = packet[at], at + 8 + 8 * packet[at + 1]
        icmpv6_type = packet[at] if protocol == IPPROTO_ICMPV6 and len(packet) > at else None
        return Fields(*ends, protocol, packet[8:24], packet[24:40], icmpv6_type, tagged)
    return Fields(*ends, tagged=tagged)
