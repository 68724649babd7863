"""Many switches in one process that answer port statistics, to load a monitor: no data path, only OpenFlow 1.3.

    python benchmarks/simulated_fabric.py --switches 2084 --ports 48 --port 6653

Runs until it is ended; counters of every port rise with time.
"""

from __future__ import annotations

import argparse
import json
import resource
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from simulated_switch import (
    BARRIER_REPLY,
    BARRIER_REQUEST,
    ECHO_REPLY,
    ECHO_REQUEST,
    FEATURES_REPLY,
    FEATURES_REQUEST,
    HELLO,
    MULTIPART_REPLY,
    MULTIPART_REQUEST,
    PORT_DESC,
    message,
)

PORT_STATS, MORE = 4, 1
ENTRY = np.dtype(
    [("port_no", ">u4"), ("pad", "V4"), ("counters", ">u8", (12,)), ("duration_s", ">u4"), ("duration_ns", ">u4")]
)
PORTS_PER_MESSAGE = 580
SPEED_KBPS = 10_000_000


class FabricSwitch:
    """One connection to a controller."""

    def __init__(self, dpid: int, ports: int, address: tuple[str, int], start_s: float) -> None:
        self.dpid = dpid
        self.replies = 0
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.out = bytearray(message(HELLO, 1, struct.pack("!HHI", 1, 8, 1 << 4)))
        self._in = bytearray()
        self._start_s = start_s
        self._entries = np.zeros(ports, ENTRY)
        self._entries["port_no"] = np.arange(1, ports + 1)
        generator = np.random.default_rng(dpid)
        self._per_s = generator.integers(0, 10_000_000, (ports, 12)).astype(np.uint64)
        self._per_s[:, 4:] = 0

    def take(self, data: bytes) -> None:
        """Answer what has come."""
        buffer, offset = self._in, 0
        buffer += data
        while len(buffer) - offset >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", buffer, offset)
            if len(buffer) - offset < length:
                break
            if kind == MULTIPART_REQUEST:
                self._answer(xid, struct.unpack_from("!H", buffer, offset + 8)[0])
            elif kind == ECHO_REQUEST:
                self.out += message(ECHO_REPLY, xid, bytes(buffer[offset + 8 : offset + length]))
            elif kind == BARRIER_REQUEST:
                self.out += message(BARRIER_REPLY, xid)
            elif kind == FEATURES_REQUEST:
                self.out += message(FEATURES_REPLY, xid, struct.pack("!QIBB2xII", self.dpid, 0, 254, 0, 0x4F, 0))
            offset += length
        del buffer[:offset]

    def _answer(self, xid: int, kind: int) -> None:
        bodies = [b""]
        if kind == PORT_STATS:
            self.replies += 1
            past_s = time.monotonic() - self._start_s
            self._entries["counters"] = self._per_s * np.uint64(past_s * 1000) // np.uint64(1000)
            self._entries["duration_s"], self._entries["duration_ns"] = int(past_s), int(past_s % 1 * 1e9)
            whole, step = self._entries.tobytes(), PORTS_PER_MESSAGE * ENTRY.itemsize
            bodies = [whole[start : start + step] for start in range(0, len(whole), step)]
        elif kind == PORT_DESC:
            described = [self._description(port_no) for port_no in range(1, len(self._entries) + 1)]
            bodies = [b"".join(described[start : start + 1000]) for start in range(0, len(described), 1000)]
        for number, body in enumerate(bodies, 1):
            head = struct.pack("!HH4x", kind, MORE if number < len(bodies) else 0)
            self.out += message(MULTIPART_REPLY, xid, head + body)

    def _description(self, port_no: int) -> bytes:
        mac = b"\x0a" + struct.pack("!BI", self.dpid & 255, port_no)
        speeds = (SPEED_KBPS, SPEED_KBPS)
        return struct.pack("!I4x6s2x16sIIIIIIII", port_no, mac, f"p{port_no}".encode(), 0, 4, 0, 0, 0, 0, *speeds)


def serve(switches: int, ports: int, address: tuple[str, int]) -> None:
    """Connect all switches, say so on standard output, and answer until the controller is gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, switches + 100), hard), hard))
    start_s = time.monotonic() - 1000.0
    with selectors.DefaultSelector() as selector:
        for dpid in range(1, switches + 1):
            switch = FabricSwitch(dpid, ports, address, start_s)
            selector.register(switch.socket, selectors.EVENT_READ, switch)
            _flush(selector, switch)
            _answer_all(selector, 0.0)
        print(json.dumps({"connected": switches}), flush=True)
        while selector.get_map():
            _answer_all(selector, 1.0)


def _answer_all(selector: selectors.BaseSelector, timeout_s: float) -> None:
    for key, events in selector.select(timeout_s):
        switch = key.data
        if events & selectors.EVENT_READ:
            try:
                data = switch.socket.recv(65536)
            except BlockingIOError:
                continue
            except ConnectionError:
                data = b""
            if not data:
                selector.unregister(switch.socket)
                continue
            switch.take(data)
        _flush(selector, switch)


def _flush(selector: selectors.BaseSelector, switch: FabricSwitch) -> None:
    try:
        while switch.out:
            sent = switch.socket.send(switch.out)
            del switch.out[:sent]
    except BlockingIOError:
        pass
    except ConnectionError:
        selector.unregister(switch.socket)
        return
    wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if switch.out else 0)
    if selector.get_key(switch.socket).events != wanted:
        selector.modify(switch.socket, wanted, switch)


@contextmanager
def simulated_fabric(switches: int, ports: int, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run the switches in a process of their own, connected to a controller on this machine."""
    command = [sys.executable, str(Path(__file__).resolve()), "--switches", str(switches), "--ports", str(ports)]
    with subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["connected"] == switches
            yield process
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--switches", type=int, default=100)
    parser.add_argument("--ports", type=int, default=48)
    parser.add_argument("--port", type=int, default=6653)
    args = parser.parse_args()
    serve(args.switches, args.ports, ("127.0.0.1", args.port))


if __name__ == "__main__":
    main()
