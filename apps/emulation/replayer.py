"""Replays packets at their times: datagrams of hosts' own sockets, in the order and of the sizes that a file says.

An agent that serves JSON requests on standard input, one reply each on standard output. The file has a record of
`RECORD` for each packet; nothing of it is kept in memory.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from apps.emulation import traffic
from controller.time_bins import TimeBins

RECORD = struct.Struct("=QII")
"""Nanoseconds from the first packet, stream, and bytes of the whole Ethernet frame without its check sequence."""

RECORDS_READ = 4096
LARGEST_FRAME_BYTES = 1514
LATE_NS = 10_000_000
"""Who is held up for longer goes on from there: to catch up would be a burst that nobody captured."""

IDLE_S = 3600.0


def smallest_frame_bytes(family: socket.AddressFamily) -> int:
    """Return the size of the smallest frame that has room for what counts it."""
    return traffic.FRAME_OVERHEAD_BYTES[family] + traffic.HEADER.size


class ReplayedStream:
    """What one host sends to one group."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.number: int = request["stream"]
        self.group: str = request["group"]
        self.overhead_bytes = traffic.FRAME_OVERHEAD_BYTES[traffic.family_of(self.group)]
        self.sent = self.size_bytes = self.first_ns = self.last_ns = self.errors = 0
        self.socket = traffic.open_sender(request)

    def send(self, phase: int, frame_bytes: int, padding: memoryview) -> int:
        """Send one datagram, and return when."""
        sent_ns = time.monotonic_ns()
        header = traffic.HEADER.pack(traffic.MAGIC, self.number, phase, 0, self.sent)
        try:
            self.socket.sendmsg((header, padding[: frame_bytes - self.overhead_bytes - len(header)]))
        except OSError:
            self.errors += 1
        else:
            self.sent += 1
            self.size_bytes += frame_bytes
            self.first_ns = self.first_ns or sent_ns
            self.last_ns = sent_ns
        return sent_ns


class Replayer:
    """The packets of one file, sent by all streams of the process."""

    def __init__(self) -> None:
        self.streams: dict[int, ReplayedStream] = {}
        self.gap_errors = TimeBins()
        self.held_up_ns = 0
        self.max_lateness_ns = 0
        self.waiting = False
        self._phase = 0
        self._speed = 1.0
        self._file: BinaryIO | None = None
        self._records = b""
        self._at = 0
        self._begin_ns = 0
        self._before: tuple[int, int] | None = None
        self._padding = memoryview(bytes(LARGEST_FRAME_BYTES))

    def handle(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answer one request: open, replay, wait or report."""
        do = request["do"]
        if do == "open":
            stream = ReplayedStream(request)
            self.streams[stream.number] = stream
            return {}
        if do == "replay":
            self._phase, self._speed = request["phase"], request["speed"]
            self._file = Path(request["file"]).open("rb")  # noqa: SIM115 - open until its last record is sent
            self._records, self._at, self._before = b"", 0, None
            self._begin_ns = time.monotonic_ns()
            return {"at_ns": self._begin_ns}
        if do == "wait":
            if self._file is None:
                return {}
            self.waiting = True
            return None
        if do == "report":
            return self._report()
        raise ValueError(f"unknown request {do!r}")

    def step(self) -> float:
        """Send what is due and return the seconds until the next packet is."""
        while self._file is not None:
            if self._at >= len(self._records):
                self._records, self._at = self._file.read(RECORDS_READ * RECORD.size), 0
                if not self._records:
                    self._file.close()
                    self._file = None
                    break
            at_ns, number, frame_bytes = RECORD.unpack_from(self._records, self._at)
            planned_ns = int(at_ns / self._speed)
            now_ns = time.monotonic_ns()
            lateness_ns = now_ns - self._begin_ns - planned_ns
            if lateness_ns < 0:
                return -lateness_ns / 1e9
            self.max_lateness_ns = max(self.max_lateness_ns, lateness_ns)
            if lateness_ns > LATE_NS:
                self.held_up_ns += lateness_ns
                self._begin_ns += lateness_ns
            self._at += RECORD.size
            sent_ns = self.streams[number].send(self._phase, frame_bytes, self._padding)
            if self._before is not None:
                planned_gap_ns, gap_ns = planned_ns - self._before[0], sent_ns - self._before[1]
                self.gap_errors.count(abs(gap_ns - planned_gap_ns))
            self._before = planned_ns, sent_ns
        if self.waiting:
            self.waiting = False
            traffic.emit({})
        return IDLE_S

    def _report(self) -> dict[str, Any]:
        return {
            "streams": {
                str(number): {
                    "sent": stream.sent,
                    "bytes": stream.size_bytes,
                    "first_ns": stream.first_ns,
                    "last_ns": stream.last_ns,
                    "errors": stream.errors,
                }
                for number, stream in self.streams.items()
            },
            "gap_error": self.gap_errors.document(),
            "gap_errors": self.gap_errors.counts(),
            "held_up_ms": self.held_up_ns / 1e6,
            "max_lateness_ms": self.max_lateness_ns / 1e6,
        }


def be_punctual() -> None:
    """Have this process woken when it asks to be, whatever else the machine does; as far as it may."""
    with suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def main() -> None:
    """Answer requests, and send, until standard input ends."""
    be_punctual()
    replayer = Replayer()
    commands = traffic.Commands(replayer.handle)
    while commands.open:
        wait_s = replayer.step()
        if select.select([commands.descriptor], [], [], wait_s)[0]:
            commands.read()


if __name__ == "__main__":
    main()
