"""The single entry of the decoders: a frame's bytes in, one frozen record out, whatever the bytes."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from controller.wire.addresses import BROADCAST_V4, LOOPBACK_V6
from controller.wire.arp import decode_arp
from controller.wire.ethernet import (
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    ETHERTYPE_LLDP,
    ETHERTYPE_QINQ,
    ETHERTYPE_SLOW,
    ETHERTYPE_VLAN,
)
from controller.wire.igmp import PLAIN_REPORT_BYTES, decode_igmp, decode_plain_report
from controller.wire.ipv4 import PROTOCOL_IGMP, PROTOCOL_PIM
from controller.wire.ipv6 import (
    AUTHENTICATION,
    EXTENSION_HEADERS,
    FRAGMENT,
    HOP_BY_HOP,
    ICMPV6,
    MAX_EXTENSION_HEADERS,
    MLD_ROUTER_ALERT,
)
from controller.wire.lacp import decode_slow
from controller.wire.lldp import decode_lldp
from controller.wire.mld import MLD_TYPES, decode_mld
from controller.wire.nd import ND_TYPES, decode_neighbour
from controller.wire.packets import Data, Packet, UnicastPacket
from controller.wire.pim import decode_pim
from controller.wire.reasons import ignored, malformed

_ETH_TRUNCATED = malformed("eth-truncated")
_ETH_SOURCE = malformed("eth-source")
_IPV4_TRUNCATED = malformed("ipv4-truncated")
_IPV4_VERSION = malformed("ipv4-version")
_IPV4_LENGTH = malformed("ipv4-length")
_IPV4_CHECKSUM = malformed("ipv4-checksum")
_IPV4_SOURCE = malformed("ipv4-source")
_IPV6_TRUNCATED = malformed("ipv6-truncated")
_IPV6_VERSION = malformed("ipv6-version")
_IPV6_SOURCE = malformed("ipv6-source")
_IPV6_EXTENSION = malformed("ipv6-extension")
_PIM_FRAGMENT = malformed("pim-fragment")
_ICMPV6_FRAGMENT = malformed("icmpv6-fragment")
_ETHERTYPE = ignored("ethertype")
_LENGTH_FIELD = ignored("eth-802.3")
_VLAN_TAGGED = ignored("vlan-tagged")
_BROADCAST = ignored("ip-broadcast")

_MLD_HOP_BY_HOP = bytes((ICMPV6, 0)) + MLD_ROUTER_ALERT
"""The hop-by-hop header of the usual MLD message."""

_ETHERNET_BYTES = 14
_IPV4_BYTES = 34
_IPV6_BYTES = 54
_read_start = Struct("!6sHBxH2xHBB2x4s4s").unpack_from
_read_ipv6 = Struct("!6s2xB3xHBB16s16s").unpack_from
_new = tuple.__new__
_number = int.from_bytes


def decode(frame: bytes | bytearray | memoryview) -> Packet:
    """Decode one Ethernet frame without its check sequence.

    A frame with a VLAN tag is not looked into, whatever it carries: who serves VLANs takes it off. Bytes behind the
    length that the IP header gives are padding. A frame that ends before that length (a switch may hand over only its
    beginning) is still `Data` or `UnicastPacket`; messages that are read whole are then malformed.

    Returns
    -------
    Packet
        Never raises for any bytes: a frame that breaks its protocol is a `Malformed` with a reason from
        `controller.wire.reasons.REASONS`, a sound one of no interest an `Ignored`.
    """
    if frame.__class__ is not bytes:
        frame = bytes(frame)
    size = len(frame)
    if size >= PLAIN_REPORT_BYTES and frame[23] == PROTOCOL_IGMP:
        report = decode_plain_report(frame)
        if report is not None:
            return report
    if size < _IPV4_BYTES:
        return _decode_short(frame, size)
    eth_src, ethertype, version, total, fragment, ttl, protocol, source, destination = _read_start(frame, 6)
    if eth_src[0] & 1:
        return _ETH_SOURCE
    if ethertype != ETHERTYPE_IPV4:
        return _decode_other(frame, size, ethertype)
    if version >> 4 != 4:
        return _IPV4_VERSION
    header_bytes = (version & 15) << 2
    start = 14 + header_bytes
    end = 14 + total
    if header_bytes < 20 or end < start:
        return _IPV4_LENGTH
    if start > size:
        return _IPV4_TRUNCATED
    if _number(frame[14:start], "big") % 0xFFFF:
        return _IPV4_CHECKSUM
    first = source[0]
    if first >= 224 or first == 127:
        return _IPV4_SOURCE
    if protocol == PROTOCOL_IGMP:
        if end > size:
            return _IPV4_TRUNCATED
        return decode_igmp(frame, start, end, eth_src, source, destination, ttl, fragment)
    if destination[0] >> 4 == 14:
        if protocol == PROTOCOL_PIM:
            if fragment & 0x3FFF:
                return _PIM_FRAGMENT
            if end > size:
                return _IPV4_TRUNCATED
            return decode_pim(frame, start, end, eth_src, source, destination, ttl)
        return _new(Data, (4, eth_src, source, destination, total))
    if destination == BROADCAST_V4 or frame[0] & 1:
        return _BROADCAST
    return _new(UnicastPacket, (4, eth_src, frame[:6], source, destination))


decode_once = lru_cache(maxsize=64)(decode)
"""`decode`, for frames at which several cores look one after the other: each at all that came together."""


def _decode_short(frame: bytes, size: int) -> Packet:
    """Decode a frame that cannot hold an IPv4 header."""
    if size < _ETHERNET_BYTES:
        return _ETH_TRUNCATED
    if frame[6] & 1:
        return _ETH_SOURCE
    ethertype = frame[12] << 8 | frame[13]
    if ethertype == ETHERTYPE_IPV4:
        return _IPV4_TRUNCATED
    return _decode_other(frame, size, ethertype)


def _decode_other(frame: bytes, size: int, ethertype: int) -> Packet:
    """Decode a frame of an EtherType other than IPv4's."""
    if ethertype == ETHERTYPE_IPV6:
        return _decode_ipv6(frame, size)
    if ethertype == ETHERTYPE_ARP:
        return decode_arp(frame)
    if ethertype == ETHERTYPE_LLDP:
        return decode_lldp(frame)
    if ethertype == ETHERTYPE_SLOW:
        return decode_slow(frame)
    if ethertype in (ETHERTYPE_VLAN, ETHERTYPE_QINQ):
        return _VLAN_TAGGED
    return _ETHERTYPE if ethertype >= 0x0600 else _LENGTH_FIELD


def _decode_ipv6(frame: bytes, size: int) -> Packet:
    if size < _IPV6_BYTES:
        return _IPV6_TRUNCATED
    eth_src, version, length, following, hop_limit, source, destination = _read_ipv6(frame, 6)
    if version >> 4 != 6:
        return _IPV6_VERSION
    if source[0] == 0xFF or source == LOOPBACK_V6:
        return _IPV6_SOURCE
    start = 54
    end = 54 + length
    options = b""
    fragmented = False
    if following == HOP_BY_HOP and frame[54:62] == _MLD_HOP_BY_HOP and end > 62:
        following, start, options = ICMPV6, 62, MLD_ROUTER_ALERT
    elif following in EXTENSION_HEADERS:
        chain = walk_extensions(frame, following, min(end, size))
        if chain is None:
            if end <= size:
                return _IPV6_EXTENSION
        else:
            following, start, options, fragmented = chain
    if following == ICMPV6 and start < end and start < size:
        kind = frame[start]
        membership = kind in MLD_TYPES
        if membership or kind in ND_TYPES:
            if fragmented:
                return _ICMPV6_FRAGMENT
            if end > size:
                return _IPV6_TRUNCATED
            if membership:
                return decode_mld(frame, start, end, eth_src, source, destination, hop_limit, options)
            return decode_neighbour(frame, start, end, eth_src, source, destination, hop_limit)
    if destination[0] == 0xFF:
        if following == PROTOCOL_PIM:
            if fragmented:
                return _PIM_FRAGMENT
            if end > size:
                return _IPV6_TRUNCATED
            return decode_pim(frame, start, end, eth_src, source, destination, hop_limit)
        return _new(Data, (6, eth_src, source, destination, 40 + length))
    if frame[0] & 1:
        return _BROADCAST
    return _new(UnicastPacket, (6, eth_src, frame[:6], source, destination))


def walk_extensions(frame: bytes, following: int, end: int) -> tuple[int, int, bytes, bool] | None:
    """Follow the extension headers of the packet whose payload is ``frame[54:end]``.

    Returns
    -------
    tuple of (int, int, bytes, bool) or None
        The upper-layer protocol, where its header starts, the hop-by-hop options, and whether there is a fragment
        header; behind a later fragment's header no more is read, and the protocol is told as 59 (no next header).
        None where a header is out of place or runs past the end, or where there are more than 8.
    """
    position = 54
    options = b""
    fragmented = False
    for index in range(MAX_EXTENSION_HEADERS):
        if position + 8 > end or (following == HOP_BY_HOP and index):
            return None
        units = frame[position + 1]
        if following == FRAGMENT:
            length_bytes = 8
            fragmented = True
            if frame[position + 2] or frame[position + 3] & 0xF8:
                return 59, position + 8, options, True
        elif following == AUTHENTICATION:
            length_bytes = (units + 2) << 2
        else:
            length_bytes = (units + 1) << 3
        if position + length_bytes > end:
            return None
        if following == HOP_BY_HOP:
            options = frame[position + 2 : position + length_bytes]
        following = frame[position]
        position += length_bytes
        if following not in EXTENSION_HEADERS:
            return following, position, options, fragmented
    return None
