"""Multicast receivers: joins groups on hosts' own sockets and counts what arrives, packet by packet.

As an agent (no arguments) one process serves the hosts of a whole network: JSON requests on standard input, one
reply each on standard output. With ``--group`` it is a plain receiver: READY when joined, its counts as JSON at
the end (SIGTERM, Ctrl-C or ``--duration-s``).
"""

from __future__ import annotations

import argparse
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.emulation import traffic
from apps.emulation.namespace import network_of

GAP_S = 0.02
GAPS_KEPT = 1000
SEQUENCE_LIMIT = 1 << 24
BATCH_COUNT = 64
IGMP_VERSION_PATH = "/proc/sys/net/ipv4/conf/{}/force_igmp_version"


class StreamTally:
    """The datagrams of one stream and phase at one receiver."""

    __slots__ = (
        *("duplicates", "first_ns", "gaps", "last_ns", "last_sequence", "max_gap_ns", "payload_bytes", "received"),
        "seen",
    )

    def __init__(self) -> None:
        self.seen = bytearray(4096)
        self.received = self.duplicates = self.payload_bytes = 0
        self.first_ns = self.last_ns = self.max_gap_ns = 0
        self.last_sequence = -1
        self.gaps: list[dict[str, float]] = []

    def count(self, sequence: int, now_ns: int, payload_bytes: int) -> None:
        """Take note of one arrival."""
        seen = self.seen
        if sequence >= len(seen):
            seen.extend(bytes(max(len(seen), sequence + 1 - len(seen))))
        if seen[sequence]:
            self.duplicates += 1
            return
        seen[sequence] = 1
        self.received += 1
        self.payload_bytes += payload_bytes
        if not self.first_ns:
            self.first_ns = now_ns
        else:
            gap_ns = now_ns - self.last_ns
            if gap_ns > GAP_S * 1e9 and len(self.gaps) < GAPS_KEPT:
                self.gaps.append({"after": self.last_sequence, "before": sequence, "gap_s": gap_ns / 1e9})
            self.max_gap_ns = max(self.max_gap_ns, gap_ns)
        self.last_ns, self.last_sequence = now_ns, sequence

    def report(self, since_ns: int) -> dict[str, Any]:
        """Return the counts; the first packet's time counts from `since_ns`, the join call."""
        lowest, highest = self.seen.find(1), self.seen.rfind(1)
        return {
            "received": self.received,
            "duplicates": self.duplicates,
            "payload_bytes": self.payload_bytes,
            "lowest_sequence": lowest,
            "highest_sequence": highest,
            "missing_count": self.seen.count(0, lowest, highest + 1),
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "first_packet_ms": (self.first_ns - since_ns) / 1e6,
            "max_gap_s": self.max_gap_ns / 1e9,
            "gaps": self.gaps,
        }


class Subscription:
    """One socket that is a member of one group; `source` entries make it source-specific (or exclude them)."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.group: str = request["group"]
        self.interface: str = request["interface"]
        self.tallies: dict[tuple[int, int], StreamTally] = {}
        family = traffic.family_of(self.group)
        include, exclude = request.get("include") or [], request.get("exclude") or []
        self.pid: int | None = request.get("pid")
        self.igmp_version: int | None = request.get("igmp_version")
        with network_of(self.pid):
            if self.igmp_version is not None:
                Path(IGMP_VERSION_PATH.format(self.interface)).write_text(str(self.igmp_version))
            self.socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            try:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, f"{self.interface}\0".encode())
                with suppress(PermissionError):
                    self.socket.setsockopt(socket.SOL_SOCKET, traffic.SO_RCVBUFFORCE, traffic.BUFFER_BYTES)
                if family is socket.AF_INET:
                    self.socket.setsockopt(socket.IPPROTO_IP, traffic.IP_MULTICAST_ALL, 0)
                else:
                    self.socket.setsockopt(socket.IPPROTO_IPV6, traffic.IPV6_MULTICAST_ALL, 0)
                self.socket.bind((self.group, request.get("port", traffic.DEFAULT_PORT)))
                self.joined_ns = time.monotonic_ns()
                if include:
                    self.change(traffic.MCAST_JOIN_SOURCE_GROUP, include)
                else:
                    traffic.change_membership(self.socket, traffic.MCAST_JOIN_GROUP, self.interface, self.group)
                    self.change(traffic.MCAST_BLOCK_SOURCE, exclude)
            except OSError:
                self.socket.close()
                raise

    def change(self, option: int, sources: list[str]) -> None:
        """Edit the source filter."""
        for source in sources:
            traffic.change_membership(self.socket, option, self.interface, self.group, source)

    def close(self) -> None:
        """Leave the group; a version of IGMP that was forced on the interface is forced no longer."""
        self.socket.close()
        if self.igmp_version is not None:
            with network_of(self.pid):
                Path(IGMP_VERSION_PATH.format(self.interface)).write_text("0")

    def drain(self) -> None:
        """Count what has arrived, a bounded number at a time."""
        unpack, tallies = traffic.HEADER.unpack_from, self.tallies
        receive, size = self.socket.recv, traffic.HEADER.size
        try:
            for _ in range(BATCH_COUNT):
                data = receive(2048)
                if len(data) < size or data[:4] != traffic.MAGIC:
                    continue
                _magic, stream, phase, _zero, sequence = unpack(data)
                tally = tallies.get((stream, phase))
                if tally is None:
                    tally = tallies[stream, phase] = StreamTally()
                if sequence < SEQUENCE_LIMIT:
                    tally.count(sequence, time.monotonic_ns(), len(data))
        except BlockingIOError:
            pass

    def report(self) -> dict[str, Any]:
        """Return the counts by stream and phase."""
        return {
            "group": self.group,
            "joined_ns": self.joined_ns,
            "streams": {
                f"{stream}:{phase}": tally.report(self.joined_ns)
                for (stream, phase), tally in sorted(self.tallies.items())
            },
        }


class Tap:
    """Counts our datagrams on the wire of a host, whether or not the host is a member of their group."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.counts: dict[str, int] = {}
        self.wrong_destination_count = 0
        with network_of(request.get("pid")):
            self.socket = traffic.open_wire(request["interface"])

    def close(self) -> None:
        """End the tap."""
        self.socket.close()

    def drain(self) -> None:
        """Count what has arrived, a bounded number at a time."""
        try:
            for _ in range(BATCH_COUNT):
                frame, is_own = traffic.receive_frame(self.socket)
                if not is_own:
                    self._count(frame)
        except BlockingIOError:
            pass

    def _count(self, frame: bytes) -> None:
        vlan_id = traffic.vlan_id_of(frame)
        if vlan_id:
            frame = frame[:12] + frame[16:]
        if frame[12:14] == b"\x08\x00" and frame[42:46] == traffic.MAGIC:
            group = frame[30:34]
            expected = b"\x01\x00\x5e" + bytes((group[1] & 0x7F, group[2], group[3]))
        elif frame[12:14] == b"\x86\xdd" and frame[62:66] == traffic.MAGIC:
            group = frame[38:54]
            expected = b"\x33\x33" + group[12:]
        else:
            return
        name = socket.inet_ntop(socket.AF_INET if len(group) == 4 else socket.AF_INET6, group)
        name = f"{name}@{vlan_id}" if vlan_id else name
        self.counts[name] = self.counts.get(name, 0) + 1
        self.wrong_destination_count += frame[:6] != expected

    def report(self) -> dict[str, Any]:
        """Return the datagrams seen by group, with ``@`` and the VLAN id of their tag behind it where they had one.

        Beside it stands how many had another Ethernet destination than their group's.
        """
        return {"groups": self.counts, "wrong_destination_count": self.wrong_destination_count}


class Receiver:
    """All subscriptions and taps of the process."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.by_descriptor: dict[int, Subscription | Tap] = {}
        self.by_name: dict[str, Subscription | Tap] = {}

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request: join, change, leave, tap, report, forget or clear."""
        do = request["do"]
        if do == "report":
            return {name: item.report() for name, item in self.by_name.items()}
        if do == "forget":
            for item in self.by_name.values():
                if isinstance(item, Subscription):
                    item.tallies.clear()
                else:
                    item.counts.clear()
                    item.wrong_destination_count = 0
            return {}
        if do == "clear":
            for name in list(self.by_name):
                self._close(self.by_name.pop(name))
            return {}
        name = request["name"]
        if do in ("join", "tap"):
            before = self.by_name.get(name)
            if before is not None and before.socket.fileno() >= 0:
                raise ValueError(f"{name} is in use")
            return self._add(name, Subscription(request) if do == "join" else Tap(request))
        item = self.by_name[name]
        if do == "leave":
            at_ns = time.monotonic_ns()
            self._close(item)
            return {"at_ns": at_ns}
        if do == "change" and isinstance(item, Subscription):
            for option in ("allow", "unallow", "block", "unblock"):
                item.change(_CHANGES[option], request.get(option) or [])
            return {"at_ns": time.monotonic_ns()}
        raise ValueError(f"unknown request {do!r}")

    def _close(self, item: Subscription | Tap) -> None:
        if item.socket.fileno() >= 0:
            self.by_descriptor.pop(item.socket.fileno())
            self.poll.unregister(item.socket)
            item.close()

    def _add(self, name: str, item: Subscription | Tap) -> dict[str, Any]:
        self.by_name[name] = item
        self.by_descriptor[item.socket.fileno()] = item
        self.poll.register(item.socket, select.EPOLLIN)
        return {"at_ns": item.joined_ns if isinstance(item, Subscription) else time.monotonic_ns()}

    def step(self, timeout_s: float | None) -> None:
        """Wait for something to arrive and count it."""
        for descriptor, _events in self.poll.poll(timeout_s):
            item = self.by_descriptor.get(descriptor)
            if item is not None:
                item.drain()


_CHANGES = {
    "allow": traffic.MCAST_JOIN_SOURCE_GROUP,
    "unallow": traffic.MCAST_LEAVE_SOURCE_GROUP,
    "block": traffic.MCAST_BLOCK_SOURCE,
    "unblock": traffic.MCAST_UNBLOCK_SOURCE,
}


def serve() -> None:
    """Answer requests until standard input ends."""
    receiver = Receiver()
    commands = traffic.Commands(receiver.handle)
    receiver.poll.register(commands.descriptor, select.EPOLLIN)
    while commands.open:
        receiver.step(None)
        commands.read()


def main(arguments: list[str] | None = None) -> int:
    """Run as an agent, or as one plain receiver where a group is given."""
    parser = argparse.ArgumentParser(prog="python -m apps.emulation.receiver", description=__doc__)
    parser.add_argument("--group", help="multicast group; without it, serve requests from standard input")
    parser.add_argument("--interface", help="interface to join on")
    parser.add_argument("--source", action="append", help="receive from this source only (repeatable)")
    parser.add_argument("--port", type=int, default=traffic.DEFAULT_PORT)
    parser.add_argument("--igmp-version", type=int, choices=(1, 2, 3))
    parser.add_argument("--duration-s", type=float)
    given = parser.parse_args(arguments)
    if given.group is None:
        serve()
        return 0
    if given.interface is None:
        parser.error("--group needs --interface")
    receiver = Receiver()
    request = {**vars(given), "do": "join", "name": "receiver", "include": given.source}
    receiver.handle(request)
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _frame: stopped.append(signum))
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    end = time.monotonic() + (given.duration_s if given.duration_s is not None else float("inf"))
    while not stopped and time.monotonic() < end:
        receiver.step(0.05)
    traffic.emit(receiver.handle({"do": "report"})["receiver"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
