"""UDP datagrams (RFC 768), as senders of multicast data put them on the wire."""

from __future__ import annotations

from struct import Struct

from controller.wire.addresses import group_mac, is_multicast_ip
from controller.wire.checksum import upper_layer_checksum
from controller.wire.ipv4 import PROTOCOL_UDP, encode_ipv4
from controller.wire.ipv6 import encode_ipv6

_HEADER = Struct("!HHHH")


def encode_udp(
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    payload: bytes,
    *,
    eth_dst: bytes | None = None,
    source_port: int = 5001,
    destination_port: int = 5001,
    ttl: int = 16,
) -> bytes:
    """Return the frame of a UDP datagram over IPv4 or IPv6, after the length of its addresses.

    Parameters
    ----------
    eth_dst : bytes, optional
        Needed for a unicast destination; a group's own address where absent.

    Raises
    ------
    ValueError
        For a unicast destination without `eth_dst`, addresses of a wrong length or too long a payload.
    """
    if eth_dst is None:
        if not is_multicast_ip(destination):
            raise ValueError("a unicast destination needs its MAC address")
        eth_dst = group_mac(destination)
    length = 8 + len(payload)
    if length > 0xFFFF:
        raise ValueError("the payload is too long for UDP")
    header = _HEADER.pack(source_port, destination_port, length, 0)
    checksum = upper_layer_checksum(source, destination, PROTOCOL_UDP, header + payload) or 0xFFFF
    message = _HEADER.pack(source_port, destination_port, length, checksum) + payload
    if len(destination) == 4:
        return encode_ipv4(eth_dst, eth_src, source, destination, PROTOCOL_UDP, message, ttl=ttl, tos=0)
    return encode_ipv6(eth_dst, eth_src, source, destination, PROTOCOL_UDP, message, hop_limit=ttl)
