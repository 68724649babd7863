"""IPv6 headers (RFC 8200) and the hop-by-hop router alert option (RFC 2711)."""

from __future__ import annotations

from struct import Struct

from controller.wire.checksum import upper_layer_checksum
from controller.wire.ethernet import ETHERTYPE_IPV6, encode_ethernet

ICMPV6 = 58
HOP_BY_HOP = 0
ROUTING = 43
FRAGMENT = 44
AUTHENTICATION = 51
DESTINATION_OPTIONS = 60
EXTENSION_HEADERS = frozenset((HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS))
MAX_EXTENSION_HEADERS = 8
MLD_ROUTER_ALERT = b"\x05\x02\x00\x00\x01\x00"

_PAD1 = 0
_ALERT_OPTION = b"\x05\x02\x00\x00"
_HEADER = Struct("!IHBB16s16s")


def has_mld_router_alert(options: bytes) -> bool | None:
    """Tell whether hop-by-hop options hold a router alert for MLD; None where an option runs past the end."""
    position, end, found = 0, len(options), False
    while position < end:
        if options[position] == _PAD1:
            position += 1
            continue
        if position + 2 > end:
            return None
        following = position + 2 + options[position + 1]
        if following > end:
            return None
        found = found or options[position:following] == _ALERT_OPTION
        position = following
    return found


def is_link_local(address: bytes) -> bool:
    """Tell whether an IPv6 address is in fe80::/10."""
    return address[0] == 0xFE and address[1] & 0xC0 == 0x80


def encode_ipv6(
    eth_dst: bytes,
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    protocol: int,
    payload: bytes,
    *,
    hop_limit: int = 1,
    hop_by_hop: bytes = b"",
) -> bytes:
    """Return an Ethernet frame with one IPv6 packet.

    Parameters
    ----------
    hop_by_hop : bytes
        Options of a hop-by-hop header, 8 n + 6 bytes; no header where empty.

    Raises
    ------
    ValueError
        For addresses or options of another length, or more than 65535 bytes in all.
    """
    if len(source) != 16 or len(destination) != 16:
        raise ValueError("an IPv6 address has 16 bytes")
    following = protocol
    if hop_by_hop:
        if len(hop_by_hop) % 8 != 6:
            raise ValueError("hop-by-hop options have 8 n + 6 bytes")
        payload = bytes((protocol, len(hop_by_hop) >> 3)) + hop_by_hop + payload
        following = HOP_BY_HOP
    if len(payload) > 0xFFFF:
        raise ValueError("the payload is too long for IPv6")
    header = _HEADER.pack(6 << 28, len(payload), following, hop_limit, source, destination)
    return encode_ethernet(eth_dst, eth_src, ETHERTYPE_IPV6, header + payload)


def encode_icmpv6(
    eth_dst: bytes,
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    message: bytes,
    *,
    hop_limit: int,
    hop_by_hop: bytes = b"",
) -> bytes:
    """Return an Ethernet frame with an ICMPv6 message; the checksum field, zero in `message`, is filled in here."""
    checksum = upper_layer_checksum(source, destination, ICMPV6, message)
    message = message[:2] + checksum.to_bytes(2, "big") + message[4:]
    return encode_ipv6(
        eth_dst, eth_src, source, destination, ICMPV6, message, hop_limit=hop_limit, hop_by_hop=hop_by_hop
    )
