"""IPv6 neighbour solicitations and advertisements (RFC 4861, 4.3, 4.4 and 7.1)."""

from __future__ import annotations

from struct import Struct

from controller.wire.addresses import (
    ALL_NODES_V6,
    SOLICITED_NODE_PREFIX,
    UNSPECIFIED_V6,
    group_mac,
    is_multicast_ip,
    solicited_node,
)
from controller.wire.checksum import upper_layer_intact
from controller.wire.ipv6 import ICMPV6, encode_icmpv6
from controller.wire.packets import Malformed, Neighbour
from controller.wire.reasons import malformed

SOLICITATION = 135
ADVERTISEMENT = 136
ND_TYPES = frozenset((SOLICITATION, ADVERTISEMENT))
HOP_LIMIT = 255

_SOURCE_LINK_LAYER = 1
_TARGET_LINK_LAYER = 2
_SOLICITED = 0x40
_OVERRIDE = 0x20

_TRUNCATED = malformed("nd-truncated")
_CHECKSUM = malformed("icmpv6-checksum")
_HOP_LIMIT = malformed("nd-hop-limit")
_CODE = malformed("nd-code")
_TARGET = malformed("nd-target")
_SOURCE = malformed("nd-source")
_DESTINATION = malformed("nd-destination")
_OPTIONS = malformed("nd-options")

_MESSAGE = Struct("!BBHB3x16s")


def decode_neighbour(
    frame: bytes, start: int, end: int, eth_src: bytes, source: bytes, destination: bytes, hop_limit: int
) -> Neighbour | Malformed:
    """Decode the solicitation or advertisement in ``frame[start:end]``."""
    if not upper_layer_intact(source, destination, ICMPV6, frame[start:end]):
        return _CHECKSUM
    if end - start < 24:
        return _TRUNCATED
    if hop_limit != HOP_LIMIT:
        return _HOP_LIMIT
    kind, code, _, flags, target = _MESSAGE.unpack_from(frame, start)
    if code:
        return _CODE
    if target[0] == 0xFF:
        return _TARGET
    solicitation = kind == SOLICITATION
    wanted = _SOURCE_LINK_LAYER if solicitation else _TARGET_LINK_LAYER
    mac = None
    position = start + 24
    while position < end:
        if position + 2 > end:
            return _TRUNCATED
        length_bytes = frame[position + 1] << 3
        if length_bytes == 0:
            return _OPTIONS
        if position + length_bytes > end:
            return _TRUNCATED
        if frame[position] == wanted:
            if length_bytes != 8 or frame[position + 2] & 1:
                return _OPTIONS
            mac = frame[position + 2 : position + 8]
        position += length_bytes
    if solicitation and source == UNSPECIFIED_V6 and (mac or destination[:13] != SOLICITED_NODE_PREFIX):
        return _SOURCE
    if not solicitation and flags & _SOLICITED and destination[0] == 0xFF:
        return _DESTINATION
    return Neighbour(eth_src, frame[:6], source, destination, solicitation, target, mac)


def encode_neighbour(neighbour: Neighbour) -> bytes:
    """Return the frame of a solicitation or advertisement.

    An advertisement overrides what its reader has cached, and is marked as solicited where it goes to one host.
    """
    if neighbour.solicitation:
        kind, flags, option = SOLICITATION, 0, _SOURCE_LINK_LAYER
    else:
        solicited = 0 if is_multicast_ip(neighbour.destination) else _SOLICITED
        kind, flags, option = ADVERTISEMENT, _OVERRIDE | solicited, _TARGET_LINK_LAYER
    message = _MESSAGE.pack(kind, 0, 0, flags, neighbour.target)
    if neighbour.mac is not None:
        message += bytes((option, 1)) + neighbour.mac
    return encode_icmpv6(
        neighbour.eth_dst,
        neighbour.eth_src,
        neighbour.source,
        neighbour.destination,
        message,
        hop_limit=HOP_LIMIT,
    )


def neighbour_solicitation(mac: bytes, source: bytes, target: bytes) -> Neighbour:
    """Return the question of `source` at `mac` who has `target`; from :: it is a duplicate address probe."""
    destination = solicited_node(target)
    option = None if source == UNSPECIFIED_V6 else mac
    return Neighbour(mac, group_mac(destination), source, destination, True, target, option)


def neighbour_advertisement(solicitation: Neighbour, mac: bytes) -> Neighbour:
    """Return the answer to a solicitation: its target is at `mac`; a probe from :: is answered to all nodes."""
    target = solicitation.target
    if solicitation.source == UNSPECIFIED_V6:
        return Neighbour(mac, group_mac(ALL_NODES_V6), target, ALL_NODES_V6, False, target, mac)
    return Neighbour(mac, solicitation.eth_src, target, solicitation.source, False, target, mac)
