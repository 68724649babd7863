"""Interfaces of hosts on VLANs, for kernels with and without devices of their own for that.

As an agent one process serves the hosts of a whole network. Frames that come to an interface of a host with the tag
of a VLAN are handed on without it to a TAP device of the same host, and what the host sends there leaves with it.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
from contextlib import suppress
from typing import Any

from apps.emulation import processes, traffic
from apps.emulation.namespace import network_of
from apps.emulation.processes import EmulationError

BATCH_COUNT = 64
FRAME_BYTES = 2048
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


_NO_SUCH_DEVICES = "Unknown device type"
"""What the kernel says of devices for which it has no module, here 8021q."""


def make_kernel_device(interface: str, name: str, vlan_id: int) -> bool:
    """Make the kernel's own device of a VLAN on an interface of this network; False where the kernel has none."""
    try:
        processes.run("ip", "link", "add", "link", interface, "name", name, "type", "vlan", "id", str(vlan_id))
    except EmulationError as error:
        if _NO_SUCH_DEVICES in str(error):
            return False
        raise
    return True


class VlanDevices:
    """The TAP devices, by what can be read from: a host's interface, or the device of one of its VLANs."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self._parents: dict[tuple[int, str], socket.socket] = {}
        self._taps: dict[int, dict[int, int]] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._of_tap: dict[int, tuple[socket.socket, int]] = {}

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer the one request there is: `add`, with ``pid``, ``interface``, ``vlan_id`` and ``name``."""
        if request["do"] != "add":
            raise ValueError(f"unknown request {request['do']!r}")
        pid, interface = request["pid"], request["interface"]
        with network_of(pid):
            parent = self._parents.get((pid, interface))
            if parent is None:
                parent = self._parents[pid, interface] = traffic.open_wire(interface)
                self._sockets[parent.fileno()] = parent
                self.poll.register(parent.fileno(), select.EPOLLIN)
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            name = request["name"].encode()
            fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name, IFF_TAP | IFF_NO_PI))
        self._taps.setdefault(parent.fileno(), {})[request["vlan_id"]] = tap
        self._of_tap[tap] = parent, request["vlan_id"]
        self.poll.register(tap, select.EPOLLIN)
        return {}

    def step(self) -> None:
        """Wait for frames and hand them on, a bounded number of each device at a time."""
        for descriptor, _events in self.poll.poll():
            with suppress(BlockingIOError):
                if descriptor in self._sockets:
                    self._from_wire(descriptor)
                elif descriptor in self._of_tap:
                    self._from_host(descriptor)

    def _from_wire(self, descriptor: int) -> None:
        taps = self._taps[descriptor]
        for _ in range(BATCH_COUNT):
            frame, is_own = traffic.receive_frame(self._sockets[descriptor])
            tap = None if is_own else taps.get(traffic.vlan_id_of(frame))
            if tap is not None:
                with suppress(OSError):  # the device is down
                    os.write(tap, frame[:12] + frame[16:])

    def _from_host(self, tap: int) -> None:
        parent, vlan_id = self._of_tap[tap]
        for _ in range(BATCH_COUNT):
            frame = os.read(tap, FRAME_BYTES)
            parent.send(frame[:12] + struct.pack("!HH", traffic.TAG_PROTOCOL, vlan_id) + frame[12:])


if __name__ == "__main__":
    traffic.serve_devices(VlanDevices())
