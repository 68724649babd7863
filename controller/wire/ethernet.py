"""Ethernet II framing."""

from __future__ import annotations

MIN_FRAME_BYTES = 60
ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_VLAN = 0x8100
ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_SLOW = 0x8809
"""The slow protocols of IEEE 802.3, 57A: LACP is one."""

ETHERTYPE_QINQ = 0x88A8
ETHERTYPE_LLDP = 0x88CC
ETHERTYPE_EXPERIMENTAL = 0x88B5
"""IEEE 802, local experimental EtherType 1."""


_TAGS = frozenset(ethertype.to_bytes(2, "big") for ethertype in (ETHERTYPE_VLAN, ETHERTYPE_QINQ))


def is_tagged(frame: bytes) -> bool:
    """Tell whether a frame begins with a tag of 802.1Q or 802.1ad."""
    return frame[12:14] in _TAGS


def with_tag(frame: bytes, vlan_id: int) -> bytes:
    """Return a frame with an 802.1Q tag of a VLAN, priority 0, in front of its EtherType."""
    return frame[:12] + ETHERTYPE_VLAN.to_bytes(2, "big") + vlan_id.to_bytes(2, "big") + frame[12:]


def without_tag(frame: bytes) -> tuple[int, bytes] | None:
    """Return the VLAN id of a frame's outer tag and the frame without it; None where there is no whole one.

    Tags of 802.1Q and of 802.1ad are alike here, as they are to a match of OpenFlow.
    """
    if len(frame) < 18 or frame[12:14] not in _TAGS:
        return None
    return (frame[14] & 0x0F) << 8 | frame[15], frame[:12] + frame[16:]


def encode_ethernet(eth_dst: bytes, eth_src: bytes, ethertype: int, payload: bytes) -> bytes:
    """Return a frame without its check sequence, padded to 60 bytes; ValueError for a MAC that is not 6 bytes."""
    if len(eth_dst) != 6 or len(eth_src) != 6:
        raise ValueError("a MAC address has 6 bytes")
    return (eth_dst + eth_src + ethertype.to_bytes(2, "big") + payload).ljust(MIN_FRAME_BYTES, b"\0")
