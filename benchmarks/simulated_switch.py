"""A switch that speaks just enough OpenFlow 1.3 to load a controller: no data path, only messages."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 10, 13, 14, 18, 19
BARRIER_REQUEST, BARRIER_REPLY = 20, 21
PORT_DESC = 13
ACTION = 1  # OFPR_ACTION: an entry sent the frame


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def packet_in(in_port: int, frame: bytes) -> bytes:
    match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, in_port)
    body = struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), ACTION, 0, 0) + match + bytes(2) + frame
    return message(PACKET_IN, 0, body)


class SimulatedSwitch:
    """One connection to a controller; counts what it is told and answers what must be answered."""

    def __init__(self, dpid: int, ports: int, address: tuple[str, int]) -> None:
        self.dpid = dpid
        self.ports = ports
        self.received: Counter[int] = Counter()
        self.last_flow_mod_s = 0.0
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._in = bytearray()
        self._out = bytearray(message(HELLO, 1, struct.pack("!HHI", 1, 8, 1 << 4)))

    def close(self) -> None:
        self.socket.close()

    def send(self, messages: Iterable[bytes]) -> None:
        for entry in messages:
            self._out += entry

    @property
    def unsent_bytes(self) -> int:
        return len(self._out)

    def poll(self, timeout_s: float) -> None:
        """Write what is queued and take in what has come, waiting at most `timeout_s`."""
        readable, writable, _ = select.select([self.socket], [self.socket] if self._out else [], [], timeout_s)
        if readable:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the controller closed the connection")
            self._in += data
            self._take()
        if writable:
            sent = self.socket.send(memoryview(self._out)[: 1 << 18])
            del self._out[:sent]

    def poll_until(self, condition, timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.poll(min(left, 0.05))
        return True

    def poll_for(self, duration_s: float) -> None:
        self.poll_until(lambda: False, duration_s)

    def _take(self) -> None:
        buffer, offset = self._in, 0
        while len(buffer) - offset >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", buffer, offset)
            if len(buffer) - offset < length:
                break
            self.received[kind] += 1
            if kind == FLOW_MOD:
                self.last_flow_mod_s = time.perf_counter()
            elif kind == BARRIER_REQUEST:
                self._out += message(BARRIER_REPLY, xid)
            elif kind == ECHO_REQUEST:
                self._out += message(ECHO_REPLY, xid, bytes(buffer[offset + 8 : offset + length]))
            elif kind == FEATURES_REQUEST:
                self._out += message(FEATURES_REPLY, xid, struct.pack("!QIBB2xII", self.dpid, 0, 254, 0, 0x4F, 0))
            elif kind == MULTIPART_REQUEST:
                self._answer_multipart(xid, bytes(buffer[offset + 8 : offset + length]))
            offset += length
        del buffer[:offset]

    def _answer_multipart(self, xid: int, body: bytes) -> None:
        (kind,) = struct.unpack_from("!H", body)
        reply = b""
        if kind == PORT_DESC:
            for port_no in range(1, self.ports + 1):
                mac = b"\x0a\x00" + struct.pack("!I", port_no)
                name = f"p{port_no}".encode()
                reply += struct.pack(
                    "!I4x6s2x16sIIIIIIII", port_no, mac, name, 0, 4, 0, 0, 0, 0, 10_000_000, 10_000_000
                )
        self._out += message(MULTIPART_REPLY, xid, struct.pack("!HH4x", kind, 0) + reply)
