"""Multicast senders: paced UDP streams with sequence numbers, Poisson or at constant rate, from hosts' own sockets.

As an agent (no arguments) one process serves the hosts of a whole network: JSON requests on standard input, one
reply each on standard output. With ``--group`` it is one plain sender that prints its counts as JSON at the end.

A rate counts whole Ethernet frames without their checksum, as a switch's meter does.
"""

from __future__ import annotations

import argparse
import heapq
import random
import select
import signal
import sys
import time
from typing import Any

from apps.emulation import traffic

IDLE_S = 3600.0
LONGEST_BURST_COUNT = 32
LATE_NS = 10_000_000
"""A stream that the machine holds up for longer goes on from there: to catch up would be a burst nobody asked for."""


class PacedStream:
    """One paced flow of datagrams; its sequence numbers start at zero in each phase."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.number: int = request["stream"]
        self.group: str = request["group"]
        self.frame_bytes: int = request.get("frame_bytes", traffic.DEFAULT_FRAME_BYTES)
        self.poisson: bool = request.get("pattern", "poisson") == "poisson"
        self.random = random.Random(request.get("seed", 0) * 65537 + self.number)
        self.mean_gap_ns: float = self.frame_bytes * 8e9 / request["rate_bps"]
        self.phase = 0
        self.sequence = 0
        self.next_ns = 0.0
        self.end_ns = float("inf")
        self.max_lateness_ns = 0
        self.errors = 0
        self.sent: dict[int, dict[str, int]] = {}
        family = traffic.family_of(self.group)
        payload_bytes = self.frame_bytes - traffic.FRAME_OVERHEAD_BYTES[family]
        if payload_bytes < traffic.HEADER.size:
            raise ValueError(f"frame_bytes {self.frame_bytes} leaves no room for the header")
        self.padding = bytes(payload_bytes - traffic.HEADER.size)
        self.socket = traffic.open_sender(request)

    def begin(self, phase: int, end_ns: float, now_ns: int) -> None:
        """Start a phase, or go over to it in the flow's stride."""
        if self.next_ns == 0.0 or self.next_ns < now_ns - 1e9:
            self.next_ns = now_ns + self._gap_ns()
        self.phase, self.end_ns, self.sequence = phase, end_ns, 0
        self.sent[phase] = {"sent": 0, "first_ns": 0, "last_ns": 0, "held_up_ns": 0}

    def _gap_ns(self) -> float:
        factor = self.random.expovariate(1.0) if self.poisson else 1.0
        return factor * self.mean_gap_ns

    def send_due(self, now_ns: int) -> None:
        """Send what is due by `now_ns`, a bounded number at a time."""
        counts = self.sent[self.phase]
        lateness_ns = now_ns - int(self.next_ns)
        self.max_lateness_ns = max(self.max_lateness_ns, lateness_ns)
        if lateness_ns > LATE_NS:
            counts["held_up_ns"] += int(min(now_ns, self.end_ns) - self.next_ns)
            self.next_ns = float(now_ns)
        for _ in range(LONGEST_BURST_COUNT):
            if self.next_ns > now_ns or self.next_ns >= self.end_ns:
                return
            sent_ns = time.monotonic_ns()
            header = traffic.HEADER.pack(traffic.MAGIC, self.number, self.phase, 0, self.sequence)
            try:
                self.socket.send(header + self.padding)
            except OSError:
                self.errors += 1
            else:
                self.sequence += 1
                counts["sent"] += 1
                counts["first_ns"] = counts["first_ns"] or sent_ns
                counts["last_ns"] = sent_ns
            self.next_ns += self._gap_ns()

    def report(self) -> dict[str, Any]:
        """Return what was sent, by phase, and how long the machine held the stream up."""
        return {
            "group": self.group,
            "phases": {str(phase): counts for phase, counts in self.sent.items()},
            "frame_bytes": self.frame_bytes,
            "errors": self.errors,
            "max_lateness_ms": self.max_lateness_ns / 1e6,
        }


class PacedSender:
    """All streams of the process, in the order in which they are due."""

    def __init__(self) -> None:
        self.streams: dict[int, PacedStream] = {}
        self.due: list[tuple[float, int]] = []
        self.waiting = False

    def handle(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answer one request: open, phase, halt, wait, report or clear."""
        do = request["do"]
        if do == "open":
            stream = PacedStream(request)
            if stream.number in self.streams:
                raise ValueError(f"stream {stream.number} is in use")
            self.streams[stream.number] = stream
            return {}
        if do == "report":
            return {str(number): stream.report() for number, stream in self.streams.items()}
        if do == "wait":
            if not self.due:
                return {}
            self.waiting = True
            return None
        if do == "clear":
            for stream in self.streams.values():
                stream.socket.close()
            self.streams.clear()
            self.due.clear()
            return {}
        if do not in ("phase", "halt"):
            raise ValueError(f"unknown request {do!r}")
        now_ns = time.monotonic_ns()
        duration_s = request.get("duration_s")
        for number in request.get("streams") or list(self.streams):
            stream = self.streams[number]
            if do == "halt":
                stream.end_ns = now_ns
            else:
                stream.begin(
                    request["phase"], float("inf") if duration_s is None else now_ns + duration_s * 1e9, now_ns
                )
        self.due = [(s.next_ns, n) for n, s in self.streams.items() if s.sent and s.next_ns < s.end_ns]
        heapq.heapify(self.due)
        return {"at_ns": now_ns}

    def step(self) -> float:
        """Send what is due and return the seconds until the next datagram is."""
        due, streams = self.due, self.streams
        while due:
            now_ns = time.monotonic_ns()
            next_ns, number = due[0]
            if next_ns > now_ns:
                return (next_ns - now_ns) / 1e9
            stream = streams[number]
            stream.send_due(now_ns)
            if stream.next_ns < stream.end_ns:
                heapq.heapreplace(due, (stream.next_ns, number))
            else:
                heapq.heappop(due)
        if self.waiting:
            self.waiting = False
            traffic.emit({})
        return IDLE_S


def serve() -> None:
    """Answer requests, and send, until standard input ends."""
    sender = PacedSender()
    commands = traffic.Commands(sender.handle)
    while commands.open:
        wait_s = sender.step()
        if select.select([commands.descriptor], [], [], wait_s)[0]:
            commands.read()


def main(arguments: list[str] | None = None) -> int:
    """Run as an agent, or as one plain sender where a group is given."""
    parser = argparse.ArgumentParser(prog="python -m apps.emulation.sender", description=__doc__)
    parser.add_argument("--group", help="multicast group; without it, serve requests from standard input")
    parser.add_argument("--interface", help="interface to send from")
    parser.add_argument("--port", type=int, default=traffic.DEFAULT_PORT)
    parser.add_argument("--rate-bps", type=float, default=1e6)
    parser.add_argument("--frame-bytes", type=int, default=traffic.DEFAULT_FRAME_BYTES)
    parser.add_argument("--pattern", choices=("poisson", "constant"), default="poisson")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stream", type=int, default=0)
    parser.add_argument("--ttl", type=int, default=traffic.TTL)
    parser.add_argument("--duration-s", type=float, default=10.0)
    given = parser.parse_args(arguments)
    if given.group is None:
        serve()
        return 0
    if given.interface is None:
        parser.error("--group needs --interface")
    sender = PacedSender()
    sender.handle({**vars(given), "do": "open"})
    sender.handle({"do": "phase", "phase": 0, "duration_s": given.duration_s})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _signum, _frame: sender.handle({"do": "halt"}))
    while (wait_s := sender.step()) < IDLE_S:
        time.sleep(wait_s)
    traffic.emit(sender.handle({"do": "report"}) or {})
    return 0


if __name__ == "__main__":
    sys.exit(main())
