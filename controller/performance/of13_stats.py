"""Multipart requests and replies of OpenFlow 1.3 (specification 1.3.5, 7.3.5)."""

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

VERSION = 4
OFPT_MULTIPART_REQUEST, OFPT_MULTIPART_REPLY = 18, 19
HEADER_BYTES = 16
OFPP_MAX = 0xFFFFFF00
"""Highest number of a physical port."""

_ANY = 0xFFFFFFFF
_GROUP_ALL = 0xFFFFFFFC
_DURATION = [("duration_s", ">u4"), ("duration_ns", ">u4")]

LAYOUTS: Mapping[int, Layout] = MappingProxyType(
    {
        StatKind.PORT: Layout(
            np.dtype([("port_no", ">u4"), ("pad", "V4"), ("counters", ">u8", (12,)), *_DURATION]),
            ("port_no",),
            COUNTERS,
        ),
        StatKind.QUEUE: Layout(
            np.dtype([("port_no", ">u4"), ("queue_id", ">u4"), ("counters", ">u8", (3,)), *_DURATION]),
            ("port_no", "queue_id"),
            ("tx_bytes", "tx_packets", "tx_errors"),
        ),
        StatKind.GROUP: Layout(
            np.dtype(
                [
                    *(("length", ">u2"), ("pad", "V2"), ("group_id", ">u4"), ("references", ">u4"), ("pad2", "V4")),
                    *(("counters", ">u8", (2,)), *_DURATION),
                ]
            ),
            ("group_id",),
            ("packets", "bytes"),
            ("references",),
        ),
        StatKind.METER: Layout(
            np.dtype(
                [
                    *(("meter_id", ">u4"), ("length", ">u2"), ("pad", "V6"), ("flows", ">u4")),
                    *(("counters", ">u8", (2,)), *_DURATION),
                ]
            ),
            ("meter_id",),
            ("packets_in", "bytes_in"),
            ("flows",),
        ),
        StatKind.FLOW: Layout(
            np.dtype(
                [
                    *(("length", ">u2"), ("table_id", "u1"), ("pad", "V1"), *_DURATION, ("priority", ">u2")),
                    *(("timeouts", "V4"), ("flags", "V2"), ("pad2", "V4"), ("cookie", ">u8")),
                    ("counters", ">u8", (2,)),
                ]
            ),
            ("table_id", "priority", "cookie", "match"),
            ("packets", "bytes"),
            match_at=48,
        ),
        StatKind.TABLE: Layout(
            np.dtype([("table_id", "u1"), ("pad", "V3"), ("active", ">u4"), ("counters", ">u8", (2,))]),
            ("table_id",),
            ("lookups", "matches"),
            ("active",),
        ),
    }
)

_BODIES = {
    StatKind.PORT: Struct("!I4x").pack(_ANY),
    StatKind.QUEUE: Struct("!II").pack(_ANY, _ANY),
    StatKind.GROUP: Struct("!I4x").pack(_GROUP_ALL),
    StatKind.METER: Struct("!I4x").pack(_ANY),
    StatKind.FLOW: Struct("!B3xII4xQQHH4x").pack(0xFF, _ANY, _ANY, 0, 0, 1, 4),
    StatKind.TABLE: b"",
}


def encode_request(kind: StatKind, xid: int) -> bytes:
    """Return a request for all entries of a kind."""
    body = _BODIES[kind]
    header = HEADER.pack(VERSION, OFPT_MULTIPART_REQUEST, HEADER_BYTES + len(body), xid, kind, 0)
    return header + bytes(4) + body


def read_reply(message: bytes) -> Reply | MalformedReply:
    """Take a multipart reply apart."""
    return read_header(message, HEADER_BYTES)


def decode(kind: int, body: bytes) -> Entries | MalformedReply:
    """Return the entries of a reply's body."""
    return read_entries(LAYOUTS, kind, body)
