"""ARP for IPv4 over Ethernet (RFC 826)."""

from __future__ import annotations

from struct import Struct

from controller.wire.addresses import BROADCAST_MAC
from controller.wire.ethernet import ETHERTYPE_ARP, encode_ethernet
from controller.wire.packets import Arp, Ignored, Malformed
from controller.wire.reasons import ignored, malformed

REQUEST = 1
REPLY = 2

_TRUNCATED = malformed("arp-truncated")
_FORMAT = malformed("arp-format")
_SENDER = malformed("arp-sender")
_OPERATION = ignored("arp-operation")

_FIXED = b"\x00\x01\x08\x00\x06\x04"
_BODY = Struct("!6sH6s4s6s4s")


def decode_arp(frame: bytes) -> Arp | Malformed | Ignored:
    """Decode the ARP packet of an untagged frame; the sender may be 0.0.0.0 (a probe, RFC 5227)."""
    if len(frame) < 42:
        return _TRUNCATED
    fixed, operation, sender_mac, sender_ip, target_mac, target_ip = _BODY.unpack_from(frame, 14)
    if fixed != _FIXED:
        return _FORMAT
    if operation not in (REQUEST, REPLY):
        return _OPERATION
    if sender_mac[0] & 1 or sender_ip[0] >= 224 or sender_ip[0] == 127:
        return _SENDER
    return Arp(frame[6:12], frame[:6], operation, sender_mac, sender_ip, target_mac, target_ip)


def encode_arp(arp: Arp) -> bytes:
    """Return the frame of an ARP packet; ValueError for addresses of a wrong length."""
    if (len(arp.sender_mac), len(arp.sender_ip), len(arp.target_mac), len(arp.target_ip)) != (6, 4, 6, 4):
        raise ValueError("ARP carries MAC addresses of 6 and IP addresses of 4 bytes")
    body = _BODY.pack(_FIXED, arp.operation, arp.sender_mac, arp.sender_ip, arp.target_mac, arp.target_ip)
    return encode_ethernet(arp.eth_dst, arp.eth_src, ETHERTYPE_ARP, body)


def arp_request(sender_mac: bytes, sender_ip: bytes, target_ip: bytes) -> Arp:
    """Return a broadcast request for the MAC address of `target_ip`."""
    return Arp(sender_mac, BROADCAST_MAC, REQUEST, sender_mac, sender_ip, bytes(6), target_ip)


def arp_reply(request: Arp, mac: bytes) -> Arp:
    """Return the answer to a request: its target is at `mac`."""
    return Arp(mac, request.sender_mac, REPLY, mac, request.target_ip, request.sender_mac, request.sender_ip)
