"""Ethernet II framing."""

from __future__ import annotations

MIN_FRAME_BYTES = 60
ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_ARP = 0x0806
ETHERTYPE_VLAN = 0x8100
ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_QINQ = 0x88A8
ETHERTYPE_LLDP = 0x88CC
ETHERTYPE_EXPERIMENTAL = 0x88B5
"""IEEE 802, local experimental EtherType 1."""


def encode_ethernet(eth_dst: bytes, eth_src: bytes, ethertype: int, payload: bytes) -> bytes:
    """Return a frame without its check sequence, padded to 60 bytes; ValueError for a MAC that is not 6 bytes."""
    if len(eth_dst) != 6 or len(eth_src) != 6:
        raise ValueError("a MAC address has 6 bytes")
    return (eth_dst + eth_src + ethertype.to_bytes(2, "big") + payload).ljust(MIN_FRAME_BYTES, b"\0")
