"""What the traffic tools share: the header of their datagrams, multicast socket options, and line-wise JSON.

Standard library only, so that a tool starts in a few tens of milliseconds inside a host's namespace.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from apps.emulation.namespace import network_of

MAGIC = b"VSRT"
HEADER = struct.Struct("!4sIHHI")
"""Magic, stream, phase, zero, sequence number within stream and phase: the shortest frame has room for it (IPv4)."""

DEFAULT_PORT = 5001
TTL = 16
DEFAULT_FRAME_BYTES = 1250
FRAME_OVERHEAD_BYTES = {socket.AF_INET: 14 + 20 + 8, socket.AF_INET6: 14 + 40 + 8}
BUFFER_BYTES = 8 << 20

SO_RCVBUFFORCE = 33
MCAST_JOIN_GROUP = 42
MCAST_BLOCK_SOURCE = 43
MCAST_UNBLOCK_SOURCE = 44
MCAST_JOIN_SOURCE_GROUP = 46
MCAST_LEAVE_SOURCE_GROUP = 47
IP_MULTICAST_ALL = 49
IPV6_MULTICAST_ALL = 29

TAG_PROTOCOL = 0x8100
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
_AUXDATA = struct.Struct("=IIIHHHH")
_FRAME_BYTES = 2048


def family_of(address: str) -> socket.AddressFamily:
    """Return the address family of a numeric address (ValueError where it is none)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(family, address)
    except OSError as error:
        raise ValueError(f"{address!r} is not an IP address") from error
    return family


def _storage(address: str) -> bytes:
    if family_of(address) is socket.AF_INET:
        packed = struct.pack("=HH", socket.AF_INET, 0) + socket.inet_pton(socket.AF_INET, address)
    else:
        packed = struct.pack("=HHI", socket.AF_INET6, 0, 0) + socket.inet_pton(socket.AF_INET6, address)
    return packed.ljust(128, b"\0")


def change_membership(
    sock: socket.socket, option: int, interface: str, group: str, source: str | None = None
) -> None:
    """Apply one of the protocol-independent options of RFC 3678 to a socket."""
    request = struct.pack("=I4x", socket.if_nametoindex(interface)) + _storage(group)
    if source is not None:
        request += _storage(source)
    level = socket.IPPROTO_IPV6 if family_of(group) is socket.AF_INET6 else socket.IPPROTO_IP
    sock.setsockopt(level, option, request)


def open_wire(interface: str) -> socket.socket:
    """Return a socket that never blocks, for whole frames of an interface of this network."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETH_P_ALL))
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.bind((interface, ETH_P_ALL))
    return sock


def open_sender(request: dict[str, Any]) -> socket.socket:
    """Return a socket that sends to the request's `group` by its `interface`, in the network of `pid` if given."""
    group: str = request["group"]
    family = family_of(group)
    with network_of(request.get("pid")):
        index = socket.if_nametoindex(request["interface"])
        sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        if family is socket.AF_INET:
            chosen = bytes(8) + index.to_bytes(4, sys.byteorder)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, request.get("ttl", TTL))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, request.get("ttl", TTL))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        if "source_port" in request:
            sock.bind(("", request["source_port"]))
        sock.connect((group, request.get("port", DEFAULT_PORT)))
    return sock


def receive_frame(sock: socket.socket) -> tuple[bytes, bool]:
    """Return a frame of `open_wire` as it is on the wire, and whether this host sent it; BlockingIOError if none.

    The kernel takes the tag of a VLAN off a frame before it shows it, and tells it beside.
    """
    frame, ancillary, _, address = sock.recvmsg(_FRAME_BYTES, socket.CMSG_SPACE(_AUXDATA.size))
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, *_, tag, protocol = _AUXDATA.unpack_from(data)
            if status & TP_STATUS_VLAN_VALID:
                protocol = protocol if status & TP_STATUS_VLAN_TPID_VALID else TAG_PROTOCOL
                frame = frame[:12] + struct.pack("!HH", protocol, tag) + frame[12:]
    return frame, address[2] == socket.PACKET_OUTGOING  # type: ignore[attr-defined,unused-ignore]


def vlan_id_of(frame: bytes) -> int:
    """Return the VLAN id of a frame's tag, 0 where it has none."""
    if len(frame) < 18 or int.from_bytes(frame[12:14], "big") != TAG_PROTOCOL:
        return 0
    return int.from_bytes(frame[14:16], "big") & 0xFFF


def answer_lines(handle: Callable[[dict[str, Any]], dict[str, Any] | None], data: bytes) -> bytes:
    """Give each complete line of `data` to `handle`, write its replies (None: later), return the rest."""
    *lines, rest = data.split(b"\n")
    for line in lines:
        request = json.loads(line)
        try:
            reply = handle(request)
        except (OSError, KeyError, ValueError) as error:
            reply = {"error": f"{request.get('do')}: {type(error).__name__}: {error}"}
        if reply is not None:
            emit(reply)
    return rest


def emit(document: dict[str, Any]) -> None:
    """Write one JSON line to standard output at once."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


class Commands:
    """Line-wise JSON requests on standard input, read without ever blocking."""

    def __init__(self, handle: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        self._handle = handle
        self._rest = b""
        self.open = True
        self.descriptor = sys.stdin.fileno()

    def read(self) -> None:
        """Answer what has arrived; `open` turns false at the end of input."""
        if not select.select([self.descriptor], [], [], 0)[0]:
            return
        data = os.read(self.descriptor, 1 << 16)
        if data:
            self._rest = answer_lines(self._handle, self._rest + data)
        else:
            self.open = False


class PolledDevices(Protocol):
    """Devices that are kept in step with what is asked on standard input."""

    poll: select.epoll

    def handle(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Carry out a request and return its reply."""

    def step(self) -> None:
        """Wait for frames or a request, and hand frames on."""


def serve_devices(devices: PolledDevices) -> None:
    """Answer requests and hand frames on until standard input ends."""
    commands = Commands(devices.handle)
    devices.poll.register(commands.descriptor, select.EPOLLIN)
    while commands.open:
        devices.step()
        commands.read()
