"""MLD versions 1 and 2: RFC 2710, RFC 9777, and RFC 3590 for reports from the unspecified address."""

from __future__ import annotations

from struct import Struct

from controller.wire.addresses import (
    ALL_NODES_V6,
    ALL_ROUTERS_V6,
    LOOPBACK_V6,
    MLDV2_ROUTERS,
    UNSPECIFIED_V6,
    group_mac,
)
from controller.wire.checksum import upper_layer_intact
from controller.wire.codes import decode_code8, decode_code16, encode_code16
from controller.wire.igmp import PLAIN_HEADS, RECORD_TYPES
from controller.wire.ipv6 import ICMPV6, MLD_ROUTER_ALERT, encode_icmpv6, has_mld_router_alert, is_link_local
from controller.wire.membership_parts import QUERY_TAIL, check_query, encode_query_tail, encode_records
from controller.wire.packets import GroupRecord, Malformed, Query, RecordType, Report
from controller.wire.reasons import malformed

QUERY = 130
V1_REPORT = 131
DONE = 132
V2_REPORT = 143
MLD_TYPES = frozenset((QUERY, V1_REPORT, DONE, V2_REPORT))

_TRUNCATED = malformed("mld-truncated")
_CHECKSUM = malformed("icmpv6-checksum")
_HOP_LIMIT = malformed("mld-hop-limit")
_ROUTER_ALERT = malformed("mld-router-alert")
_OPTIONS = malformed("ipv6-options")
_SOURCE = malformed("mld-source")
_CODE = malformed("mld-code")
_LENGTH = malformed("mld-length")
_DESTINATION = malformed("mld-destination")
_GROUP = malformed("mld-group")
_SOURCES = malformed("mld-sources")

_EXCLUDE = RecordType.MODE_IS_EXCLUDE
_TO_INCLUDE = RecordType.CHANGE_TO_INCLUDE

_read_record = Struct("!I16s").unpack_from
_RECORD = Struct("!BBH16s")
_V1_MESSAGE = Struct("!BBHHH16s")
_V2_REPORT_HEAD = Struct("!BBHHH")
_new = tuple.__new__


def decode_mld(
    frame: bytes,
    start: int,
    end: int,
    eth_src: bytes,
    source: bytes,
    destination: bytes,
    hop_limit: int,
    options: bytes,
) -> Report | Query | Malformed:
    """Decode the MLD message in ``frame[start:end]``; its first byte is one of the four types.

    Parameters
    ----------
    options : bytes
        The options of the hop-by-hop header, empty where there is none.
    """
    if not upper_layer_intact(source, destination, ICMPV6, frame[start:end]):
        return _CHECKSUM
    kind = frame[start]
    if end - start < (8 if kind == V2_REPORT else 24):
        return _TRUNCATED
    if hop_limit != 1:
        return _HOP_LIMIT
    if frame[start + 1]:
        return _CODE
    if options != MLD_ROUTER_ALERT:
        alert = has_mld_router_alert(options)
        if not alert:
            return _OPTIONS if alert is None else _ROUTER_ALERT
    if not is_link_local(source) and (kind == QUERY or source != UNSPECIFIED_V6):
        return _SOURCE
    if kind == V2_REPORT:
        if destination != MLDV2_ROUTERS:
            return _DESTINATION
        return _decode_v2_report(frame, start, end, eth_src, source)
    group = frame[start + 8 : start + 24]
    if kind == QUERY:
        return _decode_query(frame, start, end, eth_src, source, destination, group)
    if group[0] != 0xFF:
        return _GROUP
    if destination != (ALL_ROUTERS_V6 if kind == DONE else group):
        return _DESTINATION
    record = _new(GroupRecord, (_TO_INCLUDE if kind == DONE else _EXCLUDE, group, ()))
    return _new(Report, (6, 1, eth_src, source, (record,)))


def _decode_v2_report(frame: bytes, start: int, end: int, eth_src: bytes, source: bytes) -> Report | Malformed:
    position = start + 8
    records = []
    for _ in range(frame[start + 6] << 8 | frame[start + 7]):
        following = position + 20
        if following > end:
            return _TRUNCATED
        head, group = _read_record(frame, position)
        record_type = PLAIN_HEADS.get(head)
        if record_type is not None:
            if group[0] != 0xFF:
                return _GROUP
            records.append(_new(GroupRecord, (record_type, group, ())))
            position = following
            continue
        sources_end = following + ((head & 0xFFFF) << 4)
        position = sources_end + ((head >> 16 & 0xFF) << 2)
        if position > end:
            return _TRUNCATED
        record_type = RECORD_TYPES.get(head >> 24)
        if record_type is None:
            continue
        if group[0] != 0xFF:
            return _GROUP
        sources = _addresses(frame, following, sources_end)
        if not _are_hosts(sources):
            return _SOURCES
        records.append(_new(GroupRecord, (record_type, group, sources)))
    return _new(Report, (6, 2, eth_src, source, tuple(records)))


def _decode_query(
    frame: bytes, start: int, end: int, eth_src: bytes, source: bytes, destination: bytes, group: bytes
) -> Query | Malformed:
    if group == UNSPECIFIED_V6:
        if destination != ALL_NODES_V6:
            return _DESTINATION
    elif group[0] != 0xFF:
        return _GROUP
    elif destination not in (group, ALL_NODES_V6):
        return _DESTINATION
    asked = None if group == UNSPECIFIED_V6 else group
    code = frame[start + 4] << 8 | frame[start + 5]
    if end - start == 24:
        return Query(6, 1, eth_src, source, asked, (), code / 1000, False, None, None)
    if end - start < 28:
        return _LENGTH
    flags, interval, count = QUERY_TAIL.unpack_from(frame, start + 24)
    first = start + 28
    if first + count * 16 > end:
        return _TRUNCATED
    sources = _addresses(frame, first, first + count * 16)
    if count and (asked is None or not _are_hosts(sources)):
        return _SOURCES
    return Query(
        6,
        2,
        eth_src,
        source,
        asked,
        sources,
        decode_code16(code) / 1000,
        bool(flags & 0x08),
        flags & 0x07,
        float(decode_code8(interval)),
    )


def _addresses(frame: bytes, first: int, end: int) -> tuple[bytes, ...]:
    return tuple([frame[at : at + 16] for at in range(first, end, 16)])


def _are_hosts(sources: tuple[bytes, ...]) -> bool:
    """Tell whether every address is one that a host can have: not ::, ::1 or multicast."""
    leading = [address[0] for address in sources]
    return 0xFF not in leading and UNSPECIFIED_V6 not in sources and LOOPBACK_V6 not in sources


def encode_mld_report(report: Report) -> bytes:
    """Return the frame of an MLD report or done.

    Version 1 carries one record: MODE_IS_EXCLUDE {} is a report, CHANGE_TO_INCLUDE {} a done.

    Raises
    ------
    ValueError
        Where the records cannot be said in that version.
    """
    if report.version == 2:
        head = _V2_REPORT_HEAD.pack(V2_REPORT, 0, 0, 0, len(report.records))
        return _encode(report.eth_src, report.source, MLDV2_ROUTERS, head + encode_records(report))
    if report.version != 1 or len(report.records) != 1 or report.records[0].sources:
        raise ValueError("a report of version 1 has one record without sources")
    record = report.records[0]
    if record.type == _TO_INCLUDE:
        kind, destination = DONE, ALL_ROUTERS_V6
    elif record.type == _EXCLUDE:
        kind, destination = V1_REPORT, record.group
    else:
        raise ValueError(f"{record.type.name} cannot be said in MLDv1")
    return _encode(report.eth_src, report.source, destination, _V1_MESSAGE.pack(kind, 0, 0, 0, 0, record.group))


def encode_mld_query(query: Query) -> bytes:
    """Return the frame of an MLD query; times that no code says exactly become the next shorter one.

    Raises
    ------
    ValueError
        For another version, a time or robustness out of range, or fields that the version does not have.
    """
    group = query.group or UNSPECIFIED_V6
    destination = query.group or ALL_NODES_V6
    check_query(query, "MLD", 2)
    milliseconds = round(query.max_response_s * 1000)
    if query.version == 1:
        if not 0 <= milliseconds <= 0xFFFF:
            raise ValueError("an MLDv1 query asks for answers within 0 to 65.535 s")
        return _encode(
            query.eth_src, query.source, destination, _V1_MESSAGE.pack(QUERY, 0, 0, milliseconds, 0, group)
        )
    message = _V1_MESSAGE.pack(QUERY, 0, 0, encode_code16(milliseconds), 0, group)
    return _encode(query.eth_src, query.source, destination, message + encode_query_tail(query))


def _encode(eth_src: bytes, source: bytes, destination: bytes, message: bytes) -> bytes:
    return encode_icmpv6(
        group_mac(destination), eth_src, source, destination, message, hop_limit=1, hop_by_hop=MLD_ROUTER_ALERT
    )
