"""What IGMPv3 and MLDv2 messages have in common but for the size of addresses (RFC 9776, 4; RFC 9777, 5)."""

from __future__ import annotations

from struct import Struct

from controller.wire.addresses import is_multicast_ip
from controller.wire.codes import encode_code8
from controller.wire.packets import Query, Report

QUERY_TAIL = Struct("!BBH")
"""S flag and robustness, the code of the query interval, how many sources there are."""

_RECORD_HEAD = Struct("!BBH")


def check_query(query: Query, protocol: str, newest: int) -> None:
    """Raise ValueError where a query cannot be said in its version of a protocol, whose newest version is given."""
    if query.group is not None and not is_multicast_ip(query.group):
        raise ValueError("the group of a query is a multicast address")
    if query.sources and (query.version != newest or query.group is None):
        raise ValueError(f"only a group-specific query of version {newest} lists sources")
    if not 1 <= query.version <= newest:
        raise ValueError(f"there is no {protocol} version {query.version}")
    if query.version == newest and not 0 <= (query.robustness or 0) <= 7:
        raise ValueError("the robustness variable of a query is 0 to 7")


def encode_query_tail(query: Query) -> bytes:
    """Return what a query of the newest version has behind its group."""
    flags = 0x08 * query.suppress | (query.robustness or 0)
    interval = encode_code8(int(query.query_interval_s or 0))
    return QUERY_TAIL.pack(flags, interval, len(query.sources)) + b"".join(query.sources)


def encode_records(report: Report) -> bytes:
    """Return the group records of a report of the newest version."""
    return b"".join(
        _RECORD_HEAD.pack(record.type, 0, len(record.sources)) + record.group + b"".join(record.sources)
        for record in report.records
    )
