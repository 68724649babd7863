"""How many entries a switch says that each flow table has room for: table statistics of 1.0, table features of 1.3.

OpenFlow Switch Specification 1.0.0, 5.3.5, and 1.3.5, 7.3.5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from controller.rules.openflow import HEADER, REPLY_MORE
from controller.rules.pipeline import OPENFLOW_1_0, TABLE_COUNT

BOUNDLESS = 1_000_000
"""What a switch says, or more, that has no bound: Open vSwitch tells so many where no `flow_limit` is set."""

_REQUEST, _REPLY = {OPENFLOW_1_0: 16, 4: 18}, {OPENFLOW_1_0: 17, 4: 19}
TABLE_KINDS = {OPENFLOW_1_0: 3, 4: 12}
"""What is asked for, by OpenFlow version: OFPST_TABLE, OFPMP_TABLE_FEATURES."""

_STATS = Struct("!B3x32sIIIQQ")
"""table_id, name, wildcards, max_entries, active_count, lookup_count, matched_count."""
_FEATURES = Struct("!HB5x32sQQII")
"""length, table_id, name, metadata_match, metadata_write, config, max_entries; properties follow."""
_KIND = Struct("!HH")
_BODY = {OPENFLOW_1_0: 12, 4: 16}


class TableCapacities(NamedTuple):
    """A reply: entries that tables have room for, by number; `more` replies of the same `xid` may follow.

    Tables of which a switch says nothing that may be so are left out, as are those that this controller does not use.
    Where the bytes make no sense `fault` says why, and `entries` are those before the fault.
    """

    xid: int
    more: bool
    entries: Mapping[int, int]
    fault: str | None = None


def encode_tables_request(ofp_version: int, xid: int) -> bytes:
    """Ask how many entries each table has room for."""
    body = _KIND.pack(TABLE_KINDS[ofp_version], 0) + bytes(_BODY[ofp_version] - HEADER.size - _KIND.size)
    return HEADER.pack(ofp_version, _REQUEST[ofp_version], HEADER.size + len(body), xid) + body


def encode_tables_reply(ofp_version: int, xid: int, entries: Mapping[int, int], *, more: bool = False) -> bytes:
    """Build a reply to `encode_tables_request`, as a switch does."""
    parts = []
    for table_id, count in entries.items():
        if ofp_version == OPENFLOW_1_0:
            parts.append(_STATS.pack(table_id, b"table", 0, count, 0, 0, 0))
        else:
            parts.append(_FEATURES.pack(_FEATURES.size, table_id, b"table", 0, 0, 0, count))
    head = _KIND.pack(TABLE_KINDS[ofp_version], int(more)) + bytes(_BODY[ofp_version] - HEADER.size - _KIND.size)
    body = head + b"".join(parts)
    return HEADER.pack(ofp_version, _REPLY[ofp_version], HEADER.size + len(body), xid) + body


def decode_tables(message: bytes) -> TableCapacities:
    """Read a reply; never raises, see `TableCapacities.fault`."""
    xid = int.from_bytes(message[4:8], "big")
    version = message[0] if message else 0
    kind = TABLE_KINDS.get(version)
    if kind is None or len(message) < _BODY[version] or message[1] != _REPLY[version]:
        return TableCapacities(xid, False, {}, "no reply about tables")
    told, flags = _KIND.unpack_from(message, HEADER.size)
    if told != kind:
        return TableCapacities(xid, False, {}, "no reply about tables")
    found: dict[int, int] = {}
    more, at, length = bool(flags & REPLY_MORE), _BODY[version], int.from_bytes(message[2:4], "big")
    if length > len(message):
        return TableCapacities(xid, more, {}, "the message is cut short")
    try:
        while at < length:
            if version == OPENFLOW_1_0:
                (table_id, _, _, entries, *_), size = _STATS.unpack_from(message, at), _STATS.size
            else:
                size, table_id, _, _, _, _, entries = _FEATURES.unpack_from(message, at)
            if size < (_STATS.size if version == OPENFLOW_1_0 else _FEATURES.size) or at + size > length:
                raise ValueError("a table does not fit")
            if table_id < (1 if version == OPENFLOW_1_0 else TABLE_COUNT) and 0 < entries < BOUNDLESS:
                found[table_id] = entries
            at += size
    except (struct_error, ValueError) as fault:
        return TableCapacities(xid, more, found, str(fault))
    return TableCapacities(xid, more, found)
