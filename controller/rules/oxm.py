"""The OpenFlow 1.3 match: a list of OXM fields (OpenFlow Switch Specification 1.3.5, 7.2.3)."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from controller.rules.group_match import GroupMatch
from controller.rules.model import Match
from controller.rules.openflow import MATCHES_CACHED, mask_prefix, match_problem, prefix_mask
from controller.rules.pipeline import ETH_TYPE_IPV4

OFPMT_OXM = 1

_U8, _U16, _U32, _HH = map(Struct, ("!B", "!H", "!I", "!HH"))


def _oxm(field: int, length: int) -> tuple[bytes, bytes]:
    exact = 0x8000 << 16 | field << 9 | length
    return _U32.pack(exact), _U32.pack(0x8000 << 16 | field << 9 | 0x100 | 2 * length)


IN_PORT, _ = _oxm(0, 4)
_ETH_DST, _ETH_DST_MASKED = _oxm(3, 6)
_ETH_SRC, _ = _oxm(4, 6)
_ETH_TYPE, _ = _oxm(5, 2)
VLAN_VID, _VLAN_VID_MASKED = _oxm(6, 2)
_IP_DSCP, _ = _oxm(8, 1)
_IP_PROTO, _ = _oxm(10, 1)
_SRC = {4: _oxm(11, 4), 16: _oxm(26, 16)}
_DST = {4: _oxm(12, 4), 16: _oxm(27, 16)}
_ICMPV6_TYPE, _ = _oxm(29, 1)

OFPVID_PRESENT = 0x1000
_VID_BITS = 0x1FFF
_ANY_TAG = _HH.pack(OFPVID_PRESENT, OFPVID_PRESENT)
"""Value and mask of vlan_vid for a tag of any VLAN, a priority tag too (1.3.5, 7.2.3.7, table 13)."""

_GROUP = Struct("!8s6s10s4s4x")
_GROUP_START = _HH.pack(OFPMT_OXM, 28) + _ETH_DST
_GROUP_MIDDLE = _ETH_TYPE + _U16.pack(ETH_TYPE_IPV4) + _DST[4][0]
"""A `GroupMatch` but for its two addresses."""

_VLAN_GROUP = Struct("!8s6s16s4s6x")
_VLAN_GROUP_START = _HH.pack(OFPMT_OXM, 34) + _ETH_DST
_VLAN_GROUP_MIDDLES = tuple(
    _ETH_TYPE + _U16.pack(ETH_TYPE_IPV4) + VLAN_VID + _U16.pack(OFPVID_PRESENT | vlan_id) + _DST[4][0]
    for vlan_id in range(1 << 12)
)
"""One that asks for a VLAN id too, which stands before the IP address."""

MATCHES: dict[Match, bytes] = {}
"""Encoded matches; `new_match_bytes` fills it."""
_decoded: dict[bytes, tuple[Match, bool]] = {}


def match_bytes(match: Match) -> bytes | str:
    """Return the encoded match with its padding, or why it cannot be said."""
    if type(match) is GroupMatch:
        return group_match_bytes(match)
    return MATCHES.get(match) or new_match_bytes(match)


def new_match_bytes(match: Match) -> bytes | str:
    """Return what `match_bytes` does, and keep the encoded match, which is not kept yet."""
    reason = match_problem(match)
    if reason is not None:
        return reason
    encoded = _encode(match)
    if len(MATCHES) >= MATCHES_CACHED:
        MATCHES.clear()
    MATCHES[match] = encoded
    return encoded


def group_match_bytes(match: GroupMatch) -> bytes:
    """Return what `match_bytes` does of such a match. Joins of new groups bring a new one each: none is kept."""
    vlan_id = match[12]
    if vlan_id is None:
        return _GROUP.pack(_GROUP_START, match[1], _GROUP_MIDDLE, match[7])
    return _VLAN_GROUP.pack(_VLAN_GROUP_START, match[1], _VLAN_GROUP_MIDDLES[vlan_id], match[7])


def _encode(match: Match) -> bytes:
    in_port, eth_dst, eth_src, eth_type, proto, ip_src, src_len, ip_dst, dst_len, icmp6, mask, tag, vlan, dscp = match
    fields = b""
    if in_port is not None:
        fields = IN_PORT + _U32.pack(in_port)
    if eth_dst is not None:
        fields += _ETH_DST + eth_dst if mask is None else _ETH_DST_MASKED + eth_dst + mask
    if eth_src is not None:
        fields += _ETH_SRC + eth_src
    if eth_type is not None:
        fields += _ETH_TYPE + _U16.pack(eth_type)
    if tag:
        fields += _VLAN_VID_MASKED + _ANY_TAG
    if vlan is not None:
        fields += VLAN_VID + _U16.pack(OFPVID_PRESENT | vlan)
    if dscp is not None:
        fields += _IP_DSCP + _U8.pack(dscp)
    if proto is not None:
        fields += _IP_PROTO + _U8.pack(proto)
    if ip_src is not None:
        fields += _address_field(_SRC, ip_src, src_len)  # type: ignore[arg-type]
    if ip_dst is not None:
        fields += _address_field(_DST, ip_dst, dst_len)  # type: ignore[arg-type]
    if icmp6 is not None:
        fields += _ICMPV6_TYPE + _U8.pack(icmp6)
    length = 4 + len(fields)
    return _HH.pack(OFPMT_OXM, length) + fields + bytes(-length & 7)


def _address_field(headers: dict[int, tuple[bytes, bytes]], address: bytes, prefix: int) -> bytes:
    size = len(address)
    exact, masked = headers[size]
    if prefix == 8 * size:
        return exact + address
    return masked + address + prefix_mask(8 * size, prefix)


def decode_match(message: bytes, offset: int, end: int) -> tuple[Match, bool]:
    """Return the match, and whether it has parts that the model cannot say; ValueError where fields do not fit."""
    fields = message[offset:end]
    decoded = _decoded.get(fields)
    if decoded is None:
        decoded = _decode(fields)
        if len(_decoded) >= MATCHES_CACHED:
            _decoded.clear()
        _decoded[fields] = decoded
    return decoded


def _decode(encoded: bytes) -> tuple[Match, bool]:
    fields: dict[str, object] = {}
    foreign = False
    offset, end = 0, len(encoded)
    while offset < end:
        header = encoded[offset : offset + 4]
        if len(header) < 4 or offset + 4 + header[3] > end:
            raise ValueError("a match field does not fit")
        start, offset = offset + 4, offset + 4 + header[3]
        reader = _FIELDS.get(header)
        if reader is None or not reader(fields, encoded[start:offset]):
            foreign = True
    match = Match(**fields)  # type: ignore[arg-type]
    return match, foreign or match_problem(match) is not None


def _number(name: str) -> Callable[[dict[str, object], bytes], bool]:
    def read(fields: dict[str, object], value: bytes) -> bool:
        fields[name] = int.from_bytes(value, "big")
        return True

    return read


def _address(name: str, masked: bool) -> Callable[[dict[str, object], bytes], bool]:
    def read(fields: dict[str, object], value: bytes) -> bool:
        size = len(value) // 2 if masked else len(value)
        prefix = mask_prefix(value[size:]) if masked else 8 * size
        if not prefix:
            return prefix is not None
        fields[name], fields[name + "_prefix"] = value[:size], prefix
        return True

    return read


def _read_eth_dst(fields: dict[str, object], value: bytes) -> bool:
    fields["eth_dst"] = value[:6]
    if len(value) == 12 and value[6:] != b"\xff" * 6:
        fields["eth_dst_mask"] = value[6:]
    return True


def _read_eth_src(fields: dict[str, object], value: bytes) -> bool:
    fields["eth_src"] = value
    return True


def _read_vlan_vid(fields: dict[str, object], value: bytes) -> bool:
    if value == _ANY_TAG:
        fields["tagged"] = True
        return True
    vlan_vid, mask = int.from_bytes(value[:2], "big"), int.from_bytes(value[2:] or b"\xff\xff", "big")
    fields["vlan_id"] = vlan_vid ^ OFPVID_PRESENT
    return mask & _VID_BITS == _VID_BITS


_FIELDS: dict[bytes, Callable[[dict[str, object], bytes], bool]] = {
    IN_PORT: _number("in_port"),
    _ETH_DST: _read_eth_dst,
    _ETH_DST_MASKED: _read_eth_dst,
    _ETH_SRC: _read_eth_src,
    _ETH_TYPE: _number("eth_type"),
    VLAN_VID: _read_vlan_vid,
    _VLAN_VID_MASKED: _read_vlan_vid,
    _IP_DSCP: _number("ip_dscp"),
    _IP_PROTO: _number("ip_proto"),
    _ICMPV6_TYPE: _number("icmpv6_type"),
}
for _name, _headers in (("ip_src", _SRC), ("ip_dst", _DST)):
    for _exact, _masked in _headers.values():
        _FIELDS[_exact] = _address(_name, masked=False)
        _FIELDS[_masked] = _address(_name, masked=True)
