"""Interfaces of hosts on bonds, for kernels with and without a bonding driver of their own.

As an agent one process serves the hosts of a whole network. A bond is a TAP device of the host. What comes by one of
the host's interfaces that are its legs goes there; what the host sends leaves by one leg that works, each packet by
another (mode `static`, as Linux's balance-rr), or each flow by its own (`lacp`, as Linux's 802.3ad with layer3+4). In
mode `lacp` a leg works while the other end is in step by IEEE 802.1AX, and nothing is taken from one that does not.
In mode `active-backup` one leg works, the first that is up or the one that was asked for, and nothing is taken from
others; where another takes its place the bond announces its address there (gratuitous ARP), as Linux does.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import time
import zlib
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from apps.emulation import traffic
from apps.emulation.namespace import network_of

BATCH_COUNT = 64
FRAME_BYTES = 2048
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
SIOCETHTOOL, ETHTOOL_GLINK = 0x8946, 0x0A
LOOK_S = 0.01
"""How often carriers are looked at, as by Linux's miimon."""

SLOW_PROTOCOLS_MAC, SLOW_PROTOCOLS, LACP = b"\x01\x80\xc2\x00\x00\x02", 0x8809, 1
ACTIVE, SHORT, AGGREGATES, IN_SYNC, COLLECTS, DISTRIBUTES = 1, 2, 4, 8, 16, 32
END = struct.Struct("!BBH6sHHHB3x")
LACP_INTERVAL_S, LACP_TIMEOUT_S = 1.0, 3.0
KEY = 15

ARP, IPV4 = b"\x08\x06", b"\x08\x00"
ARP_REQUEST = b"\x00\x01\x08\x00\x06\x04\x00\x01"
"""Ethernet, IPv4, their sizes, and a request."""


@dataclass(slots=True)
class BondInterface:
    """An interface of a host: its socket, and in mode `lacp` what the other end said last, and when."""

    number: int
    interface: str
    wire: socket.socket
    is_up: bool = False
    is_working: bool = False
    other_end: bytes = bytes(15)
    knows_us: bool = False
    heard_s: float = float("-inf")
    sent_s: float = float("-inf")

    @property
    def other_state(self) -> int:
        """The state of the other end."""
        return self.other_end[-1]


@dataclass(slots=True)
class Bond:
    """A bond: its TAP device, its MAC address, which is its system's too, and its legs."""

    tap: int
    mac: bytes
    mode: str
    legs: list[BondInterface] = field(default_factory=list)
    next_leg: int = 0
    address: bytes = b""
    """IPv4 address that the host sent from last."""


class BondDevices:
    """The bonds, by what can be read from: an interface of a host, or the device of a bond."""

    def __init__(self) -> None:
        self.poll = select.epoll()
        self._bonds: list[Bond] = []
        self._of_tap: dict[int, Bond] = {}
        self._of_wire: dict[int, tuple[Bond, BondInterface]] = {}
        self._look_s = 0.0

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request.

        `add`, with ``pid``, ``interfaces``, ``name``, ``mac`` and ``mode``; `report`: the working legs, and when the
        other end of each was heard last by LACP, by the monotonic clock; `activate`, with ``mac`` and ``number``: use
        this leg, from 1, in mode `active-backup`.
        """
        if request["do"] == "activate":
            mac = bytes.fromhex(request["mac"].replace(":", ""))
            (bond,) = (bond for bond in self._bonds if bond.mac == mac)
            _activate(bond, bond.legs[request["number"] - 1])
            return {}
        if request["do"] == "report":
            working = [[leg for leg in bond.legs if leg.is_working] for bond in self._bonds]
            return {"working": [[(leg.interface, leg.heard_s) for leg in legs] for legs in working]}
        if request["do"] != "add":
            raise ValueError(f"unknown request {request['do']!r}")
        with network_of(request["pid"]):
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", request["name"].encode(), IFF_TAP | IFF_NO_PI))
            bond = Bond(tap, bytes.fromhex(request["mac"].replace(":", "")), request["mode"])
            for number, interface in enumerate(request["interfaces"], 1):
                bond.legs.append(BondInterface(number, interface, traffic.open_wire(interface)))
        self._bonds.append(bond)
        self._of_tap[tap] = bond
        self.poll.register(tap, select.EPOLLIN)
        for leg in bond.legs:
            self._of_wire[leg.wire.fileno()] = (bond, leg)
            self.poll.register(leg.wire.fileno(), select.EPOLLIN)
        return {}

    def step(self) -> None:
        """Wait for frames, for a moment at most, and hand them on, a bounded number of each device at a time."""
        for descriptor, _events in self.poll.poll(LOOK_S):
            with suppress(BlockingIOError):
                if descriptor in self._of_wire:
                    self._from_wire(*self._of_wire[descriptor])
                elif descriptor in self._of_tap:
                    self._from_host(self._of_tap[descriptor])
        now = time.monotonic()
        if now >= self._look_s + LOOK_S:
            self._look_s = now
            for bond in self._bonds:
                self._look(bond, now)

    def _from_wire(self, bond: Bond, leg: BondInterface) -> None:
        for _ in range(BATCH_COUNT):
            try:
                frame, is_own = traffic.receive_frame(leg.wire)
            except BlockingIOError:
                raise
            except OSError:  # the interface is down
                return
            if is_own:
                continue
            if int.from_bytes(frame[12:14], "big") == SLOW_PROTOCOLS:
                if bond.mode == "lacp":
                    self._heard(bond, leg, frame)
            elif leg.is_working and (frame[0] & 1 or frame[:6] == bond.mac):
                with suppress(OSError):  # the device is down
                    os.write(bond.tap, frame)

    def _from_host(self, bond: Bond) -> None:
        for _ in range(BATCH_COUNT):
            frame = os.read(bond.tap, FRAME_BYTES)
            if frame[12:14] in (ARP, IPV4):
                bond.address = frame[28:32] if frame[12:14] == ARP else frame[26:30]
            working = [leg for leg in bond.legs if leg.is_working]
            if not working:
                continue
            if bond.mode == "static":
                bond.next_leg += 1
                number = bond.next_leg
            else:
                number = zlib.crc32(frame[26:38])
            with suppress(OSError):  # the interface has just gone down
                working[number % len(working)].wire.send(frame)

    def _look(self, bond: Bond, now: float) -> None:
        """Find out which legs work, and tell the other ends by LACP."""
        if bond.mode == "active-backup":
            for leg in bond.legs:
                leg.is_up = _has_carrier(leg)
                leg.is_working &= leg.is_up
            up = [leg for leg in bond.legs if leg.is_up]
            if up and not any(leg.is_working for leg in up):
                _activate(bond, up[0])
            return
        for leg in bond.legs:
            leg.is_up = _has_carrier(leg)
            if bond.mode != "lacp":
                leg.is_working = leg.is_up
                continue
            if not leg.is_up:
                leg.heard_s = float("-inf")
            is_heard = now - leg.heard_s < LACP_TIMEOUT_S
            if not is_heard:
                leg.other_end, leg.knows_us = bytes(15), False
            was_working = leg.is_working
            leg.is_working = is_heard and leg.knows_us and bool(leg.other_state & IN_SYNC)
            if leg.is_up and (now - leg.sent_s >= LACP_INTERVAL_S or leg.is_working is not was_working):
                self._tell(bond, leg, now)

    def _heard(self, bond: Bond, leg: BondInterface, frame: bytes) -> None:
        """Take what the other end says: of itself behind the first TLV's head, then of us."""
        if len(frame) < 56 or frame[14] != LACP or frame[16:18] != b"\x01\x14" or frame[36:38] != b"\x02\x14":
            return
        now = time.monotonic()
        leg.heard_s, leg.other_end = now, frame[18:33]
        is_news = frame[38:53] != self._own_end(bond, leg)
        leg.knows_us = frame[38:52] == self._own_end(bond, leg)[:14]
        self._look(bond, now)
        if is_news:
            self._tell(bond, leg, now)

    def _own_end(self, bond: Bond, leg: BondInterface) -> bytes:
        state = ACTIVE | SHORT | AGGREGATES
        if any(leg.other_end):
            state |= IN_SYNC
        if leg.is_working:
            state |= COLLECTS | DISTRIBUTES
        return END.pack(1, 20, 0xFFFF, bond.mac, KEY, 0xFF, leg.number, state)[2:17]

    def _tell(self, bond: Bond, leg: BondInterface, now: float) -> None:
        leg.sent_s = now
        head = SLOW_PROTOCOLS_MAC + bond.mac + struct.pack("!HBB", SLOW_PROTOCOLS, LACP, 1)
        ends = b"\x01\x14" + self._own_end(bond, leg) + bytes(3) + b"\x02\x14" + leg.other_end + bytes(3)
        with suppress(OSError):  # the interface has just gone down
            leg.wire.send((head + ends + b"\x03\x10").ljust(124, b"\0"))


def _activate(bond: Bond, active: BondInterface) -> None:
    """Use a leg, and no other one, and announce the host's address there."""
    for leg in bond.legs:
        leg.is_working = leg is active
    if any(bond.address):
        sender = bond.mac + bond.address
        frame = b"\xff" * 6 + bond.mac + ARP + ARP_REQUEST + sender + bytes(6) + bond.address
        with suppress(OSError):  # the interface has just gone down
            active.wire.send(frame)


def _has_carrier(leg: BondInterface) -> bool:
    """Tell whether an interface is up and has a carrier, as its own network sees it."""
    answer = array("I", (ETHTOOL_GLINK, 0))
    try:
        fcntl.ioctl(leg.wire, SIOCETHTOOL, struct.pack("16sP16x", leg.interface.encode(), answer.buffer_info()[0]))
    except OSError:  # it is away, with its switch
        return False
    return bool(answer[1])


if __name__ == "__main__":
    traffic.serve_devices(BondDevices())
