"""Discovery frames: LLDP (IEEE 802.1AB) that says which port of which datapath it left, with a token as proof."""

from __future__ import annotations

from controller.wire.ethernet import ETHERTYPE_LLDP, MIN_FRAME_BYTES
from controller.wire.packets import ForeignLldp, Ignored, Lldp, Malformed
from controller.wire.reasons import ignored, malformed

NEAREST_BRIDGE_MAC = b"\x01\x80\xc2\x00\x00\x0e"
ECHO_MAC = b"\x02VSRT\x01"
"""Where echo frames go: a switch of ours sends them back to where they came from, as `NEAREST_BRIDGE_MAC`'s."""

MAX_TOKEN_BYTES = 64
TTL_S = 120
SEGMENT_MAC = b"\x03VSRT\x02"
"""Where segment frames go: a group address that bridges flood, as they do not those of IEEE 802.1D, table 7-10."""

TOUR_MAC = b"\x02VSRT\x03"
"""Where tour frames go that leave the switch of the tour: the next switch sends them back to its `return_mac`."""

_END, _CHASSIS_ID, _PORT_ID, _TTL, _ORGANISATION = 0, 1, 2, 3, 127
_LOCALLY_ASSIGNED = 7
_TOKEN_PREFIX = b"\x02VS\x01"
_CHASSIS_PREFIX = bytes((_LOCALLY_ASSIGNED,)) + b"dpid:"
_PORT_PREFIX = bytes((_LOCALLY_ASSIGNED,))
_PORT_VLAN_ID = b"\x00\x80\xc2\x01"
"""The port VLAN ID TLV: the identifier of IEEE 802.1, and subtype 1 (IEEE 802.1Q, D.2.1)."""
_RESERVED_VLAN_ID = 4095
_MAX_PORT_ID_BYTES = 64
_DPID_DIGITS = 16
_PORT_DIGITS = 8
_HEX_DIGITS = frozenset(b"0123456789abcdef")


def _tlv_head(kind: int, size_bytes: int) -> bytes:
    return (kind << 9 | size_bytes).to_bytes(2, "big")


_TOKEN_HEADS = tuple(_tlv_head(_ORGANISATION, len(_TOKEN_PREFIX) + size) for size in range(MAX_TOKEN_BYTES + 1))
_FRAME = b"".join(
    (
        b"%b%b",
        ETHERTYPE_LLDP.to_bytes(2, "big"),
        _tlv_head(_CHASSIS_ID, len(_CHASSIS_PREFIX) + _DPID_DIGITS) + _CHASSIS_PREFIX + b"%016x",
        _tlv_head(_PORT_ID, len(_PORT_PREFIX) + _PORT_DIGITS) + _PORT_PREFIX + b"%08x",
        _tlv_head(_TTL, 2) + TTL_S.to_bytes(2, "big"),
        b"%b" + _TOKEN_PREFIX + b"%b",
        _tlv_head(_END, 0),
    )
)
"""Destination and source addresses, datapath id, port number, head of the token's TLV, token."""

_TLV = malformed("lldp-tlv")
_VLAN = malformed("lldp-vlan")
_FOREIGN = ignored("lldp-foreign")


def decode_lldp(frame: bytes) -> Lldp | ForeignLldp | Malformed | Ignored:
    """Decode the LLDP data unit of an untagged frame; whether its token is right is for the caller to judge."""
    size = len(frame)
    position = 14
    dpid = port_no = token = None
    port_id, port_vlan_id = b"", 0
    while position < size:
        if position + 2 > size:
            return _TLV
        kind = frame[position] >> 1
        end = position + 2 + ((frame[position] & 1) << 8 | frame[position + 1])
        if end > size:
            return _TLV
        if kind == _END:
            break
        value = frame[position + 2 : end]
        if kind == _CHASSIS_ID:
            dpid = _number(value, _CHASSIS_PREFIX, _DPID_DIGITS)
        elif kind == _PORT_ID:
            port_no, port_id = _number(value, _PORT_PREFIX, _PORT_DIGITS), value[1:]
        elif kind == _ORGANISATION and value.startswith(_TOKEN_PREFIX):
            token = value[len(_TOKEN_PREFIX) :]
        elif kind == _ORGANISATION and value.startswith(_PORT_VLAN_ID):
            port_vlan_id = int.from_bytes(value[len(_PORT_VLAN_ID) :], "big")
            if len(value) != len(_PORT_VLAN_ID) + 2 or port_vlan_id >= _RESERVED_VLAN_ID:
                return _VLAN
        position = end
    if dpid is None or port_no is None or not token or len(token) > MAX_TOKEN_BYTES:
        return ForeignLldp(frame[6:12], _text(port_id), port_vlan_id) if port_vlan_id else _FOREIGN
    return Lldp(dpid, port_no, token)


def _text(port_id: bytes) -> str:
    """Return what a port is called, empty where that is no short text."""
    is_text = len(port_id) <= _MAX_PORT_ID_BYTES and all(0x20 < byte < 0x7F for byte in port_id)
    return port_id.decode("ascii") if is_text else ""


def _number(value: bytes, prefix: bytes, digits: int) -> int | None:
    """Return the hexadecimal number of `digits` digits behind `prefix`, None for any other text."""
    text = value[len(prefix) :]
    if not value.startswith(prefix) or len(text) != digits or not _HEX_DIGITS.issuperset(text):
        return None
    return int(text, 16)


def encode_lldp(
    dpid: int, port_no: int, token: bytes, eth_src: bytes | None = None, eth_dst: bytes = NEAREST_BRIDGE_MAC
) -> bytes:
    """Return the discovery frame that leaves `port_no` of datapath `dpid`.

    Parameters
    ----------
    token : bytes
        1 to 64 bytes, carried in an organisationally specific TLV under a locally administered identifier.
    eth_src : bytes, optional
        The port's own address; otherwise a locally administered one made of the datapath's number.
    eth_dst : bytes, optional
        Who is to take it: the nearest bridge, or `ECHO_MAC`, `SEGMENT_MAC` or `TOUR_MAC`.

    Raises
    ------
    ValueError
        For a number that does not fit its field (64 and 32 bits) or a token of another length.
    """
    if not 0 <= dpid < 1 << 64 or not 0 <= port_no < 1 << 32:
        raise ValueError("a dpid has 64 bits and a port number 32")
    if not 1 <= len(token) <= MAX_TOKEN_BYTES:
        raise ValueError(f"a token has 1 to {MAX_TOKEN_BYTES} bytes")
    if eth_src is None:
        eth_src = b"\x02" + dpid.to_bytes(8, "big")[3:]
    if len(eth_dst) != 6 or len(eth_src) != 6:
        raise ValueError("a MAC address has 6 bytes")
    frame = _FRAME % (eth_dst, eth_src, dpid, port_no, _TOKEN_HEADS[len(token)], token)
    return frame.ljust(MIN_FRAME_BYTES, b"\0")


def return_mac(dpid: int) -> bytes:
    """Return the address under which a switch sends tour frames back: locally administered, made of its number."""
    return b"\x06" + dpid.to_bytes(8, "big")[3:]
