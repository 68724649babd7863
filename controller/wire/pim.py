"""PIM version 2 messages to all routers; hellos (RFC 7761, 4.9.2), which tell where multicast routers are."""

from __future__ import annotations

import math
from struct import Struct

from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6, UNSPECIFIED_V4, group_mac
from controller.wire.checksum import internet_checksum, upper_layer_checksum, upper_layer_intact
from controller.wire.ipv4 import PROTOCOL_PIM, encode_ipv4
from controller.wire.ipv6 import encode_ipv6, is_link_local
from controller.wire.packets import Ignored, Malformed, PimHello, PimJoinPrune
from controller.wire.pim_join_prune import JOIN_PRUNE, decode_join_prune
from controller.wire.reasons import ignored, malformed

DEFAULT_HOLDTIME_S = 105.0
HOLDTIME_FOREVER = 0xFFFF

_HELLO = 0x20
_HOLDTIME_OPTION = 1
_DR_PRIORITY_OPTION = 19

_TRUNCATED = malformed("pim-truncated")
_CHECKSUM = malformed("pim-checksum")
_TTL = malformed("pim-ttl")
_OPTIONS = malformed("pim-options")
_SOURCE = malformed("pim-source")
_OTHER_TYPE = ignored("pim-type")

_OPTION = Struct("!HH")


def decode_pim(
    frame: bytes, start: int, end: int, eth_src: bytes, source: bytes, destination: bytes, ttl: int
) -> PimHello | PimJoinPrune | Malformed | Ignored:
    """Decode the PIM message in ``frame[start:end]``, which goes to a group.

    A hello without a holdtime option holds for 105 s (RFC 7761, 4.11); one of 0xffff holds for ever (`math.inf`).
    """
    if end - start < 4:
        return _TRUNCATED
    if frame[start] not in (_HELLO, JOIN_PRUNE) or destination not in (ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6):
        return _OTHER_TYPE
    family = 4 if len(source) == 4 else 6
    if family == 4:
        # 0 is divisible whatever the padding of an odd last byte, for 256 has an inverse modulo 0xffff
        intact = int.from_bytes(frame[start:end], "big") % 0xFFFF == 0
    else:
        intact = upper_layer_intact(source, destination, PROTOCOL_PIM, frame[start:end])
    if not intact:
        return _CHECKSUM
    if ttl != 1:
        return _TTL
    if source == UNSPECIFIED_V4 if family == 4 else not is_link_local(source):
        return _SOURCE
    if frame[start] == JOIN_PRUNE:
        return decode_join_prune(frame, start + 4, end, family, eth_src, source)
    holdtime_s, dr_priority = DEFAULT_HOLDTIME_S, None
    position = start + 4
    while position < end:
        if position + 4 > end:
            return _TRUNCATED
        kind, length_bytes = _OPTION.unpack_from(frame, position)
        position += 4
        if position + length_bytes > end:
            return _TRUNCATED
        if kind == _HOLDTIME_OPTION:
            if length_bytes != 2:
                return _OPTIONS
            value = frame[position] << 8 | frame[position + 1]
            holdtime_s = math.inf if value == HOLDTIME_FOREVER else float(value)
        elif kind == _DR_PRIORITY_OPTION:
            if length_bytes != 4:
                return _OPTIONS
            dr_priority = int.from_bytes(frame[position : position + 4], "big")
        position += length_bytes
    return PimHello(family, eth_src, source, holdtime_s, dr_priority)


def encode_pim_hello(hello: PimHello) -> bytes:
    """Return the frame of a hello.

    Raises
    ------
    ValueError
        For a holdtime that is neither 0 to 65534 s nor infinite, and for a DR priority that has not 32 bits.
    """
    if math.isinf(hello.holdtime_s):
        value = HOLDTIME_FOREVER
    else:
        value = round(hello.holdtime_s)
        if not 0 <= value < HOLDTIME_FOREVER:
            raise ValueError("a holdtime is 0 to 65534 s or infinite")
    body = _OPTION.pack(_HOLDTIME_OPTION, 2) + value.to_bytes(2, "big")
    if hello.dr_priority is not None:
        if not 0 <= hello.dr_priority < 1 << 32:
            raise ValueError("a DR priority has 32 bits")
        body += _OPTION.pack(_DR_PRIORITY_OPTION, 4) + hello.dr_priority.to_bytes(4, "big")
    blank = bytes((_HELLO, 0, 0, 0)) + body
    if hello.family == 4:
        message = blank[:2] + internet_checksum(blank).to_bytes(2, "big") + body
        destination = ALL_PIM_ROUTERS_V4
        return encode_ipv4(group_mac(destination), hello.eth_src, hello.source, destination, PROTOCOL_PIM, message)
    destination = ALL_PIM_ROUTERS_V6
    message = (
        blank[:2] + upper_layer_checksum(hello.source, destination, PROTOCOL_PIM, blank).to_bytes(2, "big") + body
    )
    return encode_ipv6(group_mac(destination), hello.eth_src, hello.source, destination, PROTOCOL_PIM, message)
