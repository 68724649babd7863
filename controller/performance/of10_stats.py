"""Statistics requests and replies of OpenFlow 1.0 (specification 1.0.0, 5.3.5), which has no groups and meters."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType

import numpy as np

from controller.performance.counters import COUNTERS
from controller.performance.poller_layout import (
    HEADER,
    Entries,
    Layout,
    MalformedReply,
    Reply,
    read_entries,
    read_header,
)
from controller.performance.schedule import StatKind

VERSION = 1
OFPT_STATS_REQUEST, OFPT_STATS_REPLY = 16, 17
HEADER_BYTES = 12
OFPP_MAX = 0xFF00
"""Highest number of a physical port."""

_PORT_ALL, _PORT_NONE = 0xFFFC, 0xFFFF
_QUEUE_ALL = 0xFFFFFFFF
_EVERYTHING = 0x003FFFFF
"""Wildcards of a match that matches every packet."""

LAYOUTS: Mapping[int, Layout] = MappingProxyType(
    {
        StatKind.PORT: Layout(
            np.dtype([("port_no", ">u2"), ("pad", "V6"), ("counters", ">u8", (12,))]), ("port_no",), COUNTERS
        ),
        StatKind.QUEUE: Layout(
            np.dtype([("port_no", ">u2"), ("pad", "V2"), ("queue_id", ">u4"), ("counters", ">u8", (3,))]),
            ("port_no", "queue_id"),
            ("tx_bytes", "tx_packets", "tx_errors"),
        ),
        StatKind.FLOW: Layout(
            np.dtype(
                [
                    *(("length", ">u2"), ("table_id", "u1"), ("pad", "V1"), ("match_fields", "V40")),
                    *(("duration_s", ">u4"), ("duration_ns", ">u4"), ("priority", ">u2"), ("timeouts", "V4")),
                    *(("pad2", "V6"), ("cookie", ">u8"), ("counters", ">u8", (2,))),
                ]
            ),
            ("table_id", "priority", "cookie", "match"),
            ("packets", "bytes"),
            match_at=4,
            match_bytes=40,
        ),
        StatKind.TABLE: Layout(
            np.dtype(
                [
                    *(("table_id", "u1"), ("pad", "V3"), ("name", "V32"), ("wildcards", ">u4")),
                    *(("capacity", ">u4"), ("active", ">u4"), ("counters", ">u8", (2,))),
                ]
            ),
            ("table_id",),
            ("lookups", "matches"),
            ("active",),
        ),
    }
)

_BODIES = {
    StatKind.PORT: Struct("!H6x").pack(_PORT_NONE),
    StatKind.QUEUE: Struct("!H2xI").pack(_PORT_ALL, _QUEUE_ALL),
    StatKind.FLOW: Struct("!I36xBxH").pack(_EVERYTHING, 0xFF, _PORT_NONE),
    StatKind.TABLE: b"",
}


def encode_request(kind: StatKind, xid: int) -> bytes:
    """Return a request for all entries of a kind; KeyError for one that OpenFlow 1.0 has not."""
    body = _BODIES[kind]
    return HEADER.pack(VERSION, OFPT_STATS_REQUEST, HEADER_BYTES + len(body), xid, kind, 0) + body


def read_reply(message: bytes) -> Reply | MalformedReply:
    """Take a statistics reply apart."""
    return read_header(message, HEADER_BYTES)


def decode(kind: int, body: bytes) -> Entries | MalformedReply:
    """Return the entries of a reply's body."""
    return read_entries(LAYOUTS, kind, body)
