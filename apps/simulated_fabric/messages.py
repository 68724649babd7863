"""OpenFlow 1.3 messages as a switch sends them (OpenFlow Switch Specification 1.3.5, section 7)."""

from __future__ import annotations

from struct import Struct

VERSION = 4
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
GET_CONFIG_REQUEST, GET_CONFIG_REPLY, PACKET_IN, PORT_STATUS, PACKET_OUT, FLOW_MOD = 7, 8, 10, 12, 13, 14
MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 18, 19, 20, 21
ROLE_REQUEST, ROLE_REPLY = 24, 25
NOCHANGE, EQUAL, MASTER, SLAVE = range(4)
STALE, IS_SLAVE = (11, 0), (1, 10)
GENERATION_SIGN, GENERATION_MASK = 1 << 63, (1 << 64) - 1

DESC, FLOW, PORT_STATS, PORT_DESC = 0, 1, 4, 13
MORE = 1

ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
ALL_TABLES, ANY = 0xFF, 0xFFFFFFFF
MATCH_ALL = b"\x00\x01\x00\x04\x00\x00\x00\x00"
CONTROLLER, IN_PORT = 0xFFFFFFFD, 0xFFFFFFF8

TABLE_FULL = (5, 1)
BAD_TABLE_ID = (5, 2)
BAD_MULTIPART = (1, 2)

HEADER = Struct("!BBHI")
U32 = Struct("!I")
U16 = Struct("!H")
ROLE = Struct("!I4xQ")
FLOW_MOD_BODY = Struct("!QQBBHHHIIIHxx")
"""Of a flow-mod, from byte 8 on: cookie, mask, table, command, idle and hard timeout, priority, buffer, port, group,
flags. The match is at byte 48."""

_ERROR = Struct("!BBHIHH")
_FEATURES = Struct("!BBHIQIBBxxII")
_CONFIG = Struct("!BBHIHH")
_PACKET_IN = Struct("!BBHIIHBBQ")
_PORT = Struct("!I4x6s2x16sIIIIIIII")
_STATUS = Struct("!BBHIB7x")
_MULTIPART = Struct("!BBHIHH4x")
_ENTRY = Struct("!HBxIIHHHH4xQQQ")
_MATCH_OF_PORT = Struct("!HHII4x2x")
_LONGEST = 60_000

PORT_STATUS_MODIFY = 2
_PORT_DOWN = _LINK_DOWN = 1
_LIVE = 4
_OXM_IN_PORT = 0x80000004


def hello() -> bytes:
    """Say that OpenFlow 1.3 alone is spoken."""
    return HEADER.pack(VERSION, HELLO, 16, 1) + b"\x00\x01\x00\x08" + U32.pack(1 << VERSION)


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """Build a message of a header and a body."""
    return HEADER.pack(VERSION, kind, 8 + len(body), xid) + body


def error(xid: int, kind: tuple[int, int], request: bytes) -> bytes:
    """Refuse a message, by type and code, with the first 64 bytes of it."""
    told = request[:64]
    return _ERROR.pack(VERSION, ERROR, 12 + len(told), xid, *kind) + told


def features(xid: int, dpid: int, tables: int) -> bytes:
    """Answer which switch this is."""
    return _FEATURES.pack(VERSION, FEATURES_REPLY, 32, xid, dpid, 0, tables, 0, 0x4F, 0)


def config(xid: int) -> bytes:
    """Answer that whole packets are sent to the controller."""
    return _CONFIG.pack(VERSION, GET_CONFIG_REPLY, 12, xid, 0, 0xFFFF)


def match_of_port(port_no: int) -> bytes:
    """Return the match of a packet-in with the padding before its frame."""
    return _MATCH_OF_PORT.pack(1, 12, _OXM_IN_PORT, port_no)


def packet_in(match: bytes, frame: bytes, table: int = 0, cookie: int = 0) -> bytes:
    """Send a frame to the controller; `match` is that of `match_of_port`."""
    size = len(frame)
    return _PACKET_IN.pack(VERSION, PACKET_IN, 42 + size, 0, ANY, size, 1, table, cookie) + match + frame


def port(dpid: int, port_no: int, up: bool, speed_kbps: int) -> bytes:
    """Describe a port."""
    mac = b"\x0a" + (dpid & 0xFFFFFF).to_bytes(3, "big") + port_no.to_bytes(2, "big")
    name = f"s{dpid}-eth{port_no}".encode()[:15]
    state = _LIVE if up else _LINK_DOWN
    return _PORT.pack(port_no, mac, name, 0, state, 0, 0, 0, 0, speed_kbps, speed_kbps)


def port_status(description: bytes) -> bytes:
    """Tell that a port has changed."""
    return _STATUS.pack(VERSION, PORT_STATUS, 16 + len(description), 0, PORT_STATUS_MODIFY) + description


def description(xid: int, dpid: int) -> bytes:
    """Answer what the switch is."""
    texts = ((b"simulated", 256), (b"simulated", 256), (b"1", 256), (str(dpid).encode(), 32), (b"s%d" % dpid, 256))
    return multipart(xid, DESC, [b"".join(text.ljust(size, b"\0") for text, size in texts)])


def entry(
    table: int, priority: int, times: tuple[int, int], cookie: int, counts: tuple[int, int], age_s: float, rest: bytes
) -> bytes:
    """Return an entry of flow statistics: `times` are idle and hard timeout, `rest` match and instructions."""
    whole_s = int(age_s)
    return (
        _ENTRY.pack(
            48 + len(rest), table, whole_s, int((age_s - whole_s) * 1e9), priority, *times, 0, cookie, *counts
        )
        + rest
    )


def multipart(xid: int, kind: int, pieces: list[bytes]) -> bytes:
    """Return as many replies as the pieces need; a piece is never divided."""
    messages = []
    at, count = 0, len(pieces)
    while True:
        size, first = 0, at
        while at < count and (size + len(pieces[at]) <= _LONGEST or at == first):
            size += len(pieces[at])
            at += 1
        more = MORE if at < count else 0
        head = _MULTIPART.pack(VERSION, MULTIPART_REPLY, 16 + size, xid, kind, more)
        messages.append(head + b"".join(pieces[first:at]))
        if not more:
            return b"".join(messages)
