"""The code point of an IP packet (RFC 2474)."""

from __future__ import annotations

from controller.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6

_ECN_BITS = 0x03


def with_dscp(frame: bytes, dscp: int) -> bytes:
    """Return an untagged frame whose IP packet has another code point, 0 to 63; one without a whole header as it is.

    The two bits of explicit congestion notification (RFC 3168) stay, and the checksum of IPv4 follows (RFC 1624).
    """
    ethertype = frame[12] << 8 | frame[13] if len(frame) > 14 else 0
    if ethertype == ETHERTYPE_IPV4 and len(frame) >= 34:
        traffic_class = dscp << 2 | frame[15] & _ECN_BITS
        checksum = 0xFFFF - int.from_bytes(frame[24:26], "big") + 0xFFFF - frame[15] + traffic_class
        while checksum > 0xFFFF:
            checksum = (checksum & 0xFFFF) + (checksum >> 16)
        return (
            frame[:15] + bytes((traffic_class,)) + frame[16:24] + (0xFFFF - checksum).to_bytes(2, "big") + frame[26:]
        )
    if ethertype == ETHERTYPE_IPV6 and len(frame) >= 54:
        traffic_class = dscp << 2 | frame[15] >> 4 & _ECN_BITS
        changed = bytes((frame[14] & 0xF0 | traffic_class >> 4, traffic_class << 4 & 0xF0 | frame[15] & 0x0F))
        return frame[:14] + changed + frame[16:]
    return frame
