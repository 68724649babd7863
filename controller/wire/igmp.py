"""IGMP versions 1 to 3: RFC 1112, appendix I; RFC 2236; RFC 9776."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from controller.wire.addresses import (
    ALL_ROUTERS_V4,
    ALL_SYSTEMS_V4,
    IGMPV3_ROUTERS,
    UNSPECIFIED_V4,
    group_mac,
)
from controller.wire.checksum import internet_checksum
from controller.wire.codes import decode_code8, encode_code8
from controller.wire.ipv4 import PROTOCOL_IGMP, ROUTER_ALERT, encode_ipv4, has_router_alert
from controller.wire.membership_parts import QUERY_TAIL, check_query, encode_query_tail, encode_records
from controller.wire.packets import GroupRecord, Ignored, Malformed, Query, RecordType, Report
from controller.wire.reasons import ignored, malformed

QUERY = 0x11
V1_REPORT = 0x12
V2_REPORT = 0x16
LEAVE = 0x17
V3_REPORT = 0x22

V1_MAX_RESPONSE_S = 10.0

RECORD_TYPES = {int(member): member for member in RecordType}
"""The enumeration's members by number."""

PLAIN_HEADS = {member << 24: member for member in RecordType}
"""The record types by the first 32 bits of a record that has neither sources nor auxiliary data."""

_READ_FEW = tuple([Struct("4s" * count).unpack_from for count in range(65)])
"""Readers of so many addresses: four times as fast as slices."""

_TRUNCATED = malformed("igmp-truncated")
_CHECKSUM = malformed("igmp-checksum")
_FRAGMENT = malformed("igmp-fragment")
_TTL = malformed("igmp-ttl")
_ROUTER_ALERT = malformed("igmp-router-alert")
_OPTIONS = malformed("ipv4-options")
_LENGTH = malformed("igmp-length")
_DESTINATION = malformed("igmp-destination")
_GROUP = malformed("igmp-group")
_SOURCES = malformed("igmp-sources")
_OTHER_TYPE = ignored("igmp-type")

_REPORT_START = bytes((0x08, 0x00, 0x46))
"""EtherType, IP version and header length."""
_REPORT_TTL = 1 << 8 | PROTOCOL_IGMP
_REPORT_MIDDLE = IGMPV3_ROUTERS + ROUTER_ALERT + bytes((V3_REPORT,))
PLAIN_REPORT_BYTES, TAGGED_REPORT_BYTES = 54, 58
"""A frame with an IGMPv3 report of one record without sources, and one with a VLAN tag."""


class ReportLayout(NamedTuple):
    """Where a frame with a plain report has its parts: what reads it, where IP header and message begin, the end."""

    read: Callable[[bytes, int], tuple[Any, ...]]
    header_at: int
    message_at: int
    end: int


UNTAGGED_REPORT = ReportLayout(Struct("!6s3sxH2xHH2x4s9s5xHI4s").unpack_from, 14, 38, 54)
TAGGED_REPORT = ReportLayout(Struct("!6s4x3sxH2xHH2x4s9s5xHI4s").unpack_from, 18, 42, 58)
"""That of a frame with one VLAN tag, which is not looked at."""

_MEMBERSHIP_TYPES = frozenset((QUERY, V1_REPORT, V2_REPORT, LEAVE, V3_REPORT))
_HOST_FIRST_BYTES = bytes(first for first in range(1, 224) if first != 127)
_SOURCE_FIRST_BYTES = b"\0" + _HOST_FIRST_BYTES
"""A host without an address reports from 0.0.0.0 (RFC 9776, 4.2.14)."""
_EXCLUDE = RecordType.MODE_IS_EXCLUDE
_TO_INCLUDE = RecordType.CHANGE_TO_INCLUDE

_MESSAGE = Struct("!BBH4s")
_read_record = _MESSAGE.unpack_from
_PLAIN_RECORD = Struct("!I4s")
_each_plain = _PLAIN_RECORD.iter_unpack
_V3_REPORT_HEAD = Struct("!BBHHH")
_new = tuple.__new__
_number = int.from_bytes


def decode_plain_report(frame: bytes, layout: ReportLayout = UNTAGGED_REPORT) -> Report | None:
    """Decode an IGMPv3 report of one record without sources, which most messages of hosts are, in one go.

    None for any other frame of so many bytes at least, one that breaks its protocol included: `decode_igmp` says how.
    """
    read, header_at, message_at, end = layout
    eth_src, start, total, fragment, ttl, source, middle, count, head, group = read(frame, 6)
    if (
        middle != _REPORT_MIDDLE
        or start != _REPORT_START
        or total != 40
        or ttl != _REPORT_TTL
        or count != 1
        or head not in PLAIN_HEADS
        or group[0] >> 4 != 14
        or source[0] not in _SOURCE_FIRST_BYTES
        or eth_src[0] & 1
        or fragment & 0x3FFF
        or _number(frame[header_at:message_at], "big") % 0xFFFF
        or _number(frame[message_at:end], "big") % 0xFFFF
    ):
        return None
    return _new(Report, (4, 3, eth_src, source, (_new(GroupRecord, (PLAIN_HEADS[head], group, ())),)))


def decode_igmp(
    frame: bytes,
    start: int,
    end: int,
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    ttl: int,
    fragment: int,
) -> Report | Query | Malformed | Ignored:
    """Decode the IGMP message in ``frame[start:end]``, whose IPv4 header is known to be sound.

    Parameters
    ----------
    fragment : int
        Flags and fragment offset of the IPv4 header; IGMP in fragments is refused.
    """
    if fragment & 0x3FFF:
        return _FRAGMENT
    if end - start < 8:
        return _TRUNCATED
    kind = frame[start]
    if kind not in _MEMBERSHIP_TYPES:
        return _OTHER_TYPE
    if _number(frame[start:end], "big") % 0xFFFF:
        return _CHECKSUM
    if ttl != 1:
        return _TTL
    if kind != V1_REPORT and frame[34:start] != ROUTER_ALERT:
        alert = has_router_alert(frame[34:start])
        if alert is None:
            return _OPTIONS
        if not alert and (kind != QUERY or frame[start + 1] or end - start != 8):
            return _ROUTER_ALERT
    if kind == V3_REPORT:
        if destination != IGMPV3_ROUTERS:
            return _DESTINATION
        return _decode_v3_report(frame, start, end, eth_src, source)
    group = frame[start + 4 : start + 8]
    if kind == QUERY:
        return _decode_query(frame, start, end, eth_src, source, destination, group)
    if group[0] >> 4 != 14:
        return _GROUP
    if destination != group and (kind != LEAVE or destination != ALL_ROUTERS_V4):
        return _DESTINATION
    record = _new(GroupRecord, (_TO_INCLUDE if kind == LEAVE else _EXCLUDE, group, ()))
    return _new(Report, (4, 1 if kind == V1_REPORT else 2, eth_src, source, (record,)))


def _decode_v3_report(frame: bytes, start: int, end: int, eth_src: bytes, source: bytes) -> Report | Malformed:
    first = start + 8
    count = frame[start + 6] << 8 | frame[start + 7]
    if end - first == count << 3:
        records = []
        for head, group in _each_plain(frame[first:end]):
            if head not in PLAIN_HEADS or group[0] >> 4 != 14:
                break
            records.append(_new(GroupRecord, (PLAIN_HEADS[head], group, ())))
        else:
            return _new(Report, (4, 3, eth_src, source, tuple(records)))
    return _decode_records(frame, first, end, count, eth_src, source)


def _decode_records(
    frame: bytes, position: int, end: int, count: int, eth_src: bytes, source: bytes
) -> Report | Malformed:
    """Decode the `count` records of a version 3 report, of any kind, that begin at `position`."""
    records = []
    for _ in range(count):
        first = position + 8
        if first > end:
            return _TRUNCATED
        kind, auxiliary, source_count, group = _read_record(frame, position)
        sources_end = first + (source_count << 2)
        position = sources_end + (auxiliary << 2)
        if position > end:
            return _TRUNCATED
        record_type = RECORD_TYPES.get(kind)
        if record_type is None:
            continue
        if group[0] >> 4 != 14:
            return _GROUP
        if not _are_hosts(frame, first, sources_end):
            return _SOURCES
        records.append(_new(GroupRecord, (record_type, group, _addresses(frame, first, sources_end))))
    return _new(Report, (4, 3, eth_src, source, tuple(records)))


def _decode_query(
    frame: bytes, start: int, end: int, eth_src: bytes, source: bytes, destination: bytes, group: bytes
) -> Query | Malformed:
    if group == UNSPECIFIED_V4:
        if destination != ALL_SYSTEMS_V4:
            return _DESTINATION
    elif group[0] >> 4 != 14:
        return _GROUP
    elif destination not in (group, ALL_SYSTEMS_V4):
        return _DESTINATION
    asked = None if group == UNSPECIFIED_V4 else group
    code = frame[start + 1]
    if end - start == 8:
        if code == 0:
            return Query(4, 1, eth_src, source, asked, (), V1_MAX_RESPONSE_S, False, None, None)
        return Query(4, 2, eth_src, source, asked, (), code / 10, False, None, None)
    if end - start < 12:
        return _LENGTH
    flags, interval, count = QUERY_TAIL.unpack_from(frame, start + 8)
    first = start + 12
    sources_end = first + (count << 2)
    if sources_end > end:
        return _TRUNCATED
    if count and (asked is None or not _are_hosts(frame, first, sources_end)):
        return _SOURCES
    return Query(
        4,
        3,
        eth_src,
        source,
        asked,
        _addresses(frame, first, sources_end),
        decode_code8(code) / 10,
        bool(flags & 0x08),
        flags & 0x07,
        float(decode_code8(interval)),
    )


def _addresses(frame: bytes, first: int, end: int) -> tuple[bytes, ...]:
    count = end - first >> 2
    if count < len(_READ_FEW):
        return _READ_FEW[count](frame, first)
    return tuple([frame[at : at + 4] for at in range(first, end, 4)])


def _are_hosts(frame: bytes, first: int, end: int) -> bool:
    """Tell whether every address is one that a host can have: not 0/8, loopback, multicast or reserved."""
    return not frame[first:end:4].translate(None, _HOST_FIRST_BYTES)


def encode_igmp_report(report: Report) -> bytes:
    """Return the frame of an IGMP report or leave.

    Versions 1 and 2 carry one record: MODE_IS_EXCLUDE {} is a report, in version 2 CHANGE_TO_INCLUDE {} a leave.

    Raises
    ------
    ValueError
        Where the records cannot be said in that version.
    """
    if report.version == 3:
        head = _V3_REPORT_HEAD.pack(V3_REPORT, 0, 0, 0, len(report.records))
        return _encode(report.eth_src, report.source, IGMPV3_ROUTERS, head + encode_records(report))
    if len(report.records) != 1 or report.records[0].sources:
        raise ValueError("a report of version 1 or 2 has one record without sources")
    record = report.records[0]
    if record.type == _TO_INCLUDE and report.version == 2:
        kind, destination = LEAVE, ALL_ROUTERS_V4
    elif record.type == _EXCLUDE and report.version in (1, 2):
        kind, destination = V1_REPORT if report.version == 1 else V2_REPORT, record.group
    else:
        raise ValueError(f"{record.type.name} cannot be said in IGMPv{report.version}")
    options = b"" if report.version == 1 else ROUTER_ALERT
    return _encode(report.eth_src, report.source, destination, _MESSAGE.pack(kind, 0, 0, record.group), options)


def encode_igmp_query(query: Query) -> bytes:
    """Return the frame of an IGMP query; times that no code says exactly become the next shorter one.

    Raises
    ------
    ValueError
        For another version, a time or robustness out of range, or fields that the version does not have.
    """
    group = query.group or UNSPECIFIED_V4
    destination = query.group or ALL_SYSTEMS_V4
    check_query(query, "IGMP", 3)
    tenths = round(query.max_response_s * 10)
    if query.version == 1:
        return _encode(query.eth_src, query.source, destination, _MESSAGE.pack(QUERY, 0, 0, group), b"")
    if query.version == 2:
        if not 1 <= tenths <= 255:
            raise ValueError("an IGMPv2 query asks for answers within 0.1 to 25.5 s")
        return _encode(query.eth_src, query.source, destination, _MESSAGE.pack(QUERY, tenths, 0, group))
    message = _MESSAGE.pack(QUERY, encode_code8(tenths), 0, group)
    return _encode(query.eth_src, query.source, destination, message + encode_query_tail(query))


def _encode(
    eth_src: bytes, source: bytes, destination: bytes, message: bytes, options: bytes = ROUTER_ALERT
) -> bytes:
    message = message[:2] + internet_checksum(message).to_bytes(2, "big") + message[4:]
    return encode_ipv4(group_mac(destination), eth_src, source, destination, PROTOCOL_IGMP, message, options=options)
