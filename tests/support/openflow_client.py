"""A blocking OpenFlow connection to a bridge of Open vSwitch."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from controller.effects import ApplyEdits
from controller.rules.lowering import LOWERINGS
from controller.rules.openflow import HEADER, decode_error


class Client:
    """A blocking OpenFlow connection to one bridge, by its management socket."""

    def __init__(self, path: Path, version: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self.version = version
        bitmap = struct.pack("!HHI", 1, 8, 1 << version)
        self.send(HEADER.pack(version, 0, 8 + len(bitmap), 0) + bitmap)
        assert self.receive()[1] == 0

    def close(self) -> None:
        self._socket.close()

    def send(self, message: bytes) -> None:
        self._socket.sendall(message)

    def wait(self, timeout_s: float, take: Callable[[], None]) -> None:
        """Have what the switch sends within so long taken, if it does."""
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        if ready:
            take()

    def receive(self) -> bytes:
        head = self._exactly(8)
        return head + self._exactly(int.from_bytes(head[2:4], "big") - 8)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "Open vSwitch closed the connection"
            data += part
        return data

    def apply(self, batch: ApplyEdits) -> list[tuple[int, int, int]]:
        """Send a batch and return the errors that come before its barrier's reply."""
        lowering = LOWERINGS[self.version]
        self.send(lowering.encode_batch(batch))
        errors = []
        while True:
            message = self.receive()
            if message[1] == lowering.barrier_reply:
                assert int.from_bytes(message[4:8], "big") == batch.first_xid + len(batch.edits)
                return errors
            error = decode_error(message)
            if error is not None:
                errors.append(error)

    def counters(self, cookie: int = 0, mask: int = 0):
        lowering = LOWERINGS[self.version]
        self.send(lowering.encode_flow_stats_request(99, cookie, mask))
        entries = []
        while True:
            stats = lowering.decode_flow_stats(self.receive(), cookie, mask)
            assert (stats.xid, stats.fault) == (99, None)
            entries += stats.entries
            if not stats.more:
                return entries
