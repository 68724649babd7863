"""IPv4 headers (RFC 791) and the router alert option (RFC 2113)."""

from __future__ import annotations

from struct import Struct

from controller.wire.checksum import internet_checksum
from controller.wire.ethernet import ETHERTYPE_IPV4, encode_ethernet

PROTOCOL_IGMP = 2
PROTOCOL_UDP = 17
PROTOCOL_PIM = 103
ROUTER_ALERT = b"\x94\x04\x00\x00"
INTERNETWORK_CONTROL = 0xC0

_END_OF_OPTIONS = 0
_NO_OPERATION = 1
_HEADER = Struct("!BBHHHBBH4s4s")


def has_router_alert(options: bytes) -> bool | None:
    """Tell whether IPv4 options hold a router alert of value 0; None where an option's length is impossible."""
    position, end, found = 0, len(options), False
    while position < end:
        kind = options[position]
        if kind == _END_OF_OPTIONS:
            break
        if kind == _NO_OPERATION:
            position += 1
            continue
        length = options[position + 1] if position + 1 < end else 0
        if length < 2 or position + length > end:
            return None
        found = found or options[position : position + length] == ROUTER_ALERT
        position += length
    return found


def encode_ipv4(
    eth_dst: bytes,
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    protocol: int,
    payload: bytes,
    *,
    ttl: int = 1,
    tos: int = INTERNETWORK_CONTROL,
    options: bytes = b"",
    fragment: int = 0,
) -> bytes:
    """Return an Ethernet frame with one IPv4 packet.

    Parameters
    ----------
    options : bytes
        Whole options; padded here to a multiple of 4, at most 40 bytes.
    fragment : int
        The 16 bits of flags and fragment offset.

    Raises
    ------
    ValueError
        For addresses of another length, too long options or more than 65535 bytes in all.
    """
    if len(source) != 4 or len(destination) != 4:
        raise ValueError("an IPv4 address has 4 bytes")
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    header_bytes = 20 + len(options)
    total = header_bytes + len(payload)
    if header_bytes > 60 or total > 0xFFFF:
        raise ValueError("the options or the payload are too long for IPv4")
    fields = (0x40 | header_bytes >> 2, tos, total, 0, fragment, ttl, protocol)
    checksum = internet_checksum(_HEADER.pack(*fields, 0, source, destination) + options)
    header = _HEADER.pack(*fields, checksum, source, destination) + options
    return encode_ethernet(eth_dst, eth_src, ETHERTYPE_IPV4, header + payload)
