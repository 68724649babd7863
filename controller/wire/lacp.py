"""LACP data units (IEEE 802.1AX, 6.4.2): who is at either end of a link that may be bundled, and how it fares."""

from __future__ import annotations

from struct import Struct

from controller.wire.ethernet import ETHERTYPE_SLOW, encode_ethernet
from controller.wire.packets import Ignored, Lacpdu, LacpEnd, Malformed
from controller.wire.reasons import ignored, malformed

SLOW_PROTOCOLS_MAC = b"\x01\x80\xc2\x00\x00\x02"

ACTIVITY, TIMEOUT, AGGREGATION, SYNCHRONIZATION = 0x01, 0x02, 0x04, 0x08
COLLECTING, DISTRIBUTING, DEFAULTED, EXPIRED = 0x10, 0x20, 0x40, 0x80
"""The bits of a state. `TIMEOUT` is set by who wants to be told of every second, and gives up after three."""

_SUBTYPE = 1
_VERSION = 1
_ACTOR, _PARTNER, _COLLECTOR = 1, 2, 3
_END_BYTES, _COLLECTOR_BYTES = 20, 16
_PDU_BYTES = 110
_END = Struct("!BBH6sHHHB3x")
_FIRST = 14 + 2

_TRUNCATED = malformed("lacp-truncated")
_TLV = malformed("lacp-tlv")
_OTHER = ignored("slow-protocol")


def decode_slow(frame: bytes) -> Lacpdu | Malformed | Ignored:
    """Decode a frame of the slow protocols; those of others than LACP are of no interest.

    A version above 1 has the fields of version 1 first (6.4.2.3).
    """
    if len(frame) > 14 and frame[14] != _SUBTYPE:
        return _OTHER
    if len(frame) < _FIRST + 2 * _END_BYTES:
        return _TRUNCATED
    ends = []
    for place, wanted in ((_FIRST, _ACTOR), (_FIRST + _END_BYTES, _PARTNER)):
        kind, size_bytes, *fields = _END.unpack_from(frame, place)
        if (kind, size_bytes) != (wanted, _END_BYTES):
            return _TLV
        ends.append(LacpEnd(*fields))
    return Lacpdu(frame[6:12], *ends)


def encode_lacpdu(pdu: Lacpdu) -> bytes:
    """Return a data unit as a frame of 124 bytes."""
    ends = b"".join(_END.pack(kind, _END_BYTES, *end) for kind, end in ((_ACTOR, pdu.actor), (_PARTNER, pdu.partner)))
    collector = bytes((_COLLECTOR, _COLLECTOR_BYTES)) + bytes(_COLLECTOR_BYTES - 2)
    payload = bytes((_SUBTYPE, _VERSION)) + ends + collector
    return encode_ethernet(SLOW_PROTOCOLS_MAC, pdu.eth_src, ETHERTYPE_SLOW, payload.ljust(_PDU_BYTES, b"\0"))
