"""Which packets may have a host leave a group: looked at before one is decoded."""

from __future__ import annotations

_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_IGMP = 2
_V2_LEAVE, _V3_REPORT = 0x17, 0x22
_NO_LEAVES = frozenset((1, 2, 4, 5))
"""Types of group records by which nothing is wanted no more (RFC 9776, 4.2.13)."""


def may_leave(frame: bytes) -> bool:
    """Tell whether a frame may be a report of a host that wants a group, or sources of it, no more.

    Most packets are told at a look; what is not, such as a report of several groups, may be one.
    """
    at = 12
    if frame[at : at + 2] == _VLAN.to_bytes(2, "big"):
        at += 4
    kind = int.from_bytes(frame[at : at + 2], "big")
    if kind == _IPV6:
        return True
    if kind != _IPV4 or len(frame) < at + 22:
        return False
    ip = at + 2
    if frame[ip + 9] != _IGMP:
        return False
    igmp = ip + 4 * (frame[ip] & 0xF)
    said = frame[igmp : igmp + 9]
    if not said or said[0] == _V2_LEAVE:
        return bool(said)
    if said[0] != _V3_REPORT or len(said) < 9:
        return False
    return int.from_bytes(said[6:8], "big") > 1 or said[8] not in _NO_LEAVES
