"""Writes captures, as tcpdump and Wireshark do."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from controller.wire.addresses import parse_ip
from controller.wire.igmp import encode_igmp_report
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp

Frames = Iterable[tuple[int, bytes]]
"""Times in nanoseconds, and frames."""


def pcap(frames: Frames, *, order: str = "<", nanoseconds: bool = False, link_type: int = 1, snap: int = 0) -> bytes:
    """Return a pcap file; with `snap` only so much of a frame is captured."""
    magic, unit_ns = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for at_ns, frame in frames:
        second, rest_ns = divmod(at_ns, 1_000_000_000)
        kept = frame[:snap] if snap else frame
        parts.append(struct.pack(f"{order}IIII", second, rest_ns // unit_ns, len(kept), len(frame)) + kept)
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block of a pcapng file."""
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    """Return the block that begins a section."""
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", *, link_type: int = 1, options: bytes = b"") -> bytes:
    """Return the block that describes an interface."""
    return block(1, struct.pack(f"{order}HHI", link_type, 0, 0) + options, order)


def packet(units: int, frame: bytes, order: str = "<", index: int = 0) -> bytes:
    """Return the block of a frame, at a time in the units of its interface."""
    head = struct.pack(f"{order}IIIII", index, units >> 32, units & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, head + frame, order)


def mac(number: int) -> bytes:
    """Return the MAC address of the host of a number."""
    return bytes((0, 0, 0, 0, 0, number))


def data(group: str, number: int = 1, payload_bytes: int = 100) -> bytes:
    """Return a datagram to a group, of the host of a number."""
    source = f"10.0.0.{number}" if "." in group else f"fd00::{number:x}"
    return encode_udp(mac(number), parse_ip(source), parse_ip(group), bytes(payload_bytes))


def report(kind: RecordType, group: str, number: int, sources: Iterable[str] = (), version: int = 3) -> bytes:
    """Return a report of IGMP about one group, of the host of a number."""
    record = GroupRecord(kind, parse_ip(group), tuple(map(parse_ip, sources)))
    return encode_igmp_report(Report(4, version, mac(number), parse_ip(f"10.0.0.{number}"), (record,)))
