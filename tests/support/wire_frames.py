"""Frames of every kind, sound ones and the means to damage them."""

from __future__ import annotations

from struct import pack
from zlib import crc32

from controller.rules.evaluate import Fields
from controller.wire.addresses import MLDV2_ROUTERS, parse_ip, parse_mac, solicited_node
from controller.wire.arp import arp_request, encode_arp
from controller.wire.checksum import internet_checksum, upper_layer_checksum
from controller.wire.ethernet import encode_ethernet
from controller.wire.ipv4 import ROUTER_ALERT, encode_ipv4
from controller.wire.ipv6 import MLD_ROUTER_ALERT, encode_icmpv6, encode_ipv6
from controller.wire.lldp import encode_lldp
from controller.wire.udp import encode_udp

MAC = parse_mac("02:00:00:00:00:01")
PEER = parse_mac("02:00:00:00:00:02")
HOST = parse_ip("10.0.0.1")
GROUP = parse_ip("239.1.2.3")
ALL_SYSTEMS = parse_ip("224.0.0.1")
V3_ROUTERS = parse_ip("224.0.0.22")
HOST6 = parse_ip("fe80::1")
GLOBAL6 = parse_ip("2001:db8::1")
GROUP6 = parse_ip("ff1e::1234")
UNSPECIFIED6 = bytes(16)


def igmp(message: bytes, destination: bytes, **options: object) -> bytes:
    """An IGMP message with its checksum put right."""
    blank = message[:2] + b"\0\0" + message[4:]
    message = blank[:2] + internet_checksum(blank).to_bytes(2, "big") + blank[4:]
    arguments = {"options": ROUTER_ALERT, **options}
    return encode_ipv4(b"\x01\x00\x5e\x00\x00\x16", MAC, HOST, destination, 2, message, **arguments)  # type: ignore[arg-type]


def record(kind: int, group: bytes, *sources: bytes, auxiliary: bytes = b"", count: int | None = None) -> bytes:
    number = len(sources) if count is None else count
    return pack("!BBH", kind, len(auxiliary) // 4, number) + group + b"".join(sources) + auxiliary


def v3(*records: bytes, count: int | None = None) -> bytes:
    return pack("!BBHHH", 0x22, 0, 0, 0, len(records) if count is None else count) + b"".join(records)


def v2(kind: int = 0x16, group: bytes = GROUP) -> bytes:
    return pack("!BBH", kind, 0, 0) + group


def igmp_query(group: bytes, *sources: bytes, count: int | None = None) -> bytes:
    return v2(0x11, group) + pack("!BBH", 2, 125, len(sources) if count is None else count) + b"".join(sources)


def mld(message: bytes, destination: bytes = MLDV2_ROUTERS, source: bytes = HOST6, **options: object) -> bytes:
    arguments = {"hop_limit": 1, "hop_by_hop": MLD_ROUTER_ALERT, **options}
    return encode_icmpv6(b"\x33\x33\0\0\0\x16", MAC, source, destination, message, **arguments)  # type: ignore[arg-type]


def mld2(*records: bytes, count: int | None = None, code: int = 0) -> bytes:
    return pack("!BBHHH", 143, code, 0, 0, len(records) if count is None else count) + b"".join(records)


def mld1(kind: int = 131, group: bytes = GROUP6) -> bytes:
    return pack("!BBHHH", kind, 0, 0, 0, 0) + group


def mld_query(group: bytes, *sources: bytes, count: int | None = None) -> bytes:
    return mld1(130, group) + pack("!BBH", 2, 125, len(sources) if count is None else count) + b"".join(sources)


def nd(
    kind: int,
    target: bytes = GLOBAL6,
    options: bytes = b"",
    *,
    source: bytes = HOST6,
    destination: bytes | None = None,
    flags: int = 0,
    code: int = 0,
    hop_limit: int = 255,
) -> bytes:
    message = pack("!BBHB3x", kind, code, 0, flags) + target + options
    to = solicited_node(GLOBAL6) if destination is None else destination
    return encode_icmpv6(PEER, MAC, source, to, message, hop_limit=hop_limit)


def pim(
    body: bytes, *, ttl: int = 1, source: bytes = HOST, destination: str = "224.0.0.13", fragment: int = 0
) -> bytes:
    blank = body[:2] + b"\0\0" + body[4:]
    message = blank[:2] + internet_checksum(blank).to_bytes(2, "big") + blank[4:]
    group = parse_ip(destination)
    return encode_ipv4(b"\x01\0\x5e\0\0\x0d", MAC, source, group, 103, message, ttl=ttl, fragment=fragment)


def pim6(source: bytes, hop_limit: int = 1, protocol: int = 103) -> bytes:
    group = parse_ip("ff02::d")
    blank = b"\x20\0\0\0\0\x01\0\x02\0\x69"
    message = blank[:2] + upper_layer_checksum(source, group, 103, blank).to_bytes(2, "big") + blank[4:]
    return encode_ipv6(b"\x33\x33\0\0\0\x0d", MAC, source, group, protocol, message, hop_limit=hop_limit)


def extensions(chain: bytes, first: int, destination: bytes = GROUP6) -> bytes:
    return encode_ipv6(b"\x33\x33\0\0\0\x01", MAC, GLOBAL6, destination, first, chain, hop_limit=8)


def patched(frame: bytes, at: int, new: bytes) -> bytes:
    return frame[:at] + new + frame[at + len(new) :]


def fixed(frame: bytes) -> bytes:
    """The frame with its IPv4 header checksum put right."""
    header = patched(frame[14 : 14 + (frame[14] & 15) * 4], 10, b"\0\0")
    return patched(frame, 24, internet_checksum(header).to_bytes(2, "big"))


def tlv(kind: int, value: bytes) -> bytes:
    return pack("!H", kind << 9 | len(value)) + value


def lldp(*tlvs: bytes) -> bytes:
    return encode_ethernet(b"\x01\x80\xc2\0\0\x0e", MAC, 0x88CC, b"".join(tlvs))


JOIN = record(4, GROUP)
JOIN6 = record(4, GROUP6)
V3_FRAME = igmp(v3(JOIN), V3_ROUTERS)
V2_FRAME = igmp(v2(), GROUP)
MLD_FRAME = mld(mld2(JOIN6))
DATA = encode_udp(MAC, HOST, GROUP, b"payload of a datagram")
DATA6 = encode_udp(MAC, GLOBAL6, GROUP6, b"payload of a datagram")
ND_FRAME = nd(135, options=b"\x01\x01" + MAC)
ARP_FRAME = encode_arp(arp_request(MAC, HOST, parse_ip("10.0.0.2")))
HELLO = pim(b"\x20\0\0\0\0\x01\0\x02\0\x69")
LLDP_FRAME = encode_lldp(7, 3, b"token")
MLD_EXTENSION = b"\x3a\0" + MLD_ROUTER_ALERT
FRAGMENT_FIRST = b"\x3a\0\0\x01\0\0\0\x07"


def fields_of(frame: bytes) -> Fields:
    """Return what a switch sees of a frame."""
    eth_type = int.from_bytes(frame[12:14], "big")
    if eth_type in (0x8100, 0x88A8):
        inner = fields_of(frame[:12] + frame[16:])
        return inner._replace(vlan_ids=(int.from_bytes(frame[14:16], "big") & 0xFFF, *inner.vlan_ids))
    if eth_type == 0x0800:
        own = Fields(frame[:6], frame[6:12], eth_type, frame[23], frame[26:30], frame[30:34])
        return own._replace(flow=crc32(frame[26:38])) if frame[23] == 17 else own
    proto = frame[20]
    start = 54
    if proto == 0:
        proto, start = frame[54], 62
    icmpv6_type = frame[start] if proto == 58 else None
    flow = crc32(frame[22:54] + frame[start : start + 4]) if proto == 17 else 0
    return Fields(frame[:6], frame[6:12], eth_type, proto, frame[22:38], frame[38:54], icmpv6_type, flow=flow)
