"""What frames of captures begin with, by link type, and how they become Ethernet frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_NOBODY = bytes(6)
_ETHERTYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}


class Framing(NamedTuple):
    """A link type: `to_ethernet` turns data and length on the wire into those of an Ethernet frame, None as it is."""

    name: str
    to_ethernet: Callable[[bytes, int], tuple[bytes, int]] | None


def _of_cooked(data: bytes, wire_bytes: int) -> tuple[bytes, int]:
    """Linux cooked (``tcpdump -i any``): its 16 bytes end with the sender's address of 8 bytes and the EtherType."""
    return _NOBODY + data[6:12] + data[14:], wire_bytes - 2


def _of_cooked_2(data: bytes, wire_bytes: int) -> tuple[bytes, int]:
    """Linux cooked, version 2: 20 bytes that begin with the EtherType and end with the sender's address."""
    return _NOBODY + data[12:18] + data[:2] + data[20:], wire_bytes - 6


def _of_ip(data: bytes, wire_bytes: int) -> tuple[bytes, int]:
    """Packets without a frame: their version says which they are."""
    return 2 * _NOBODY + _ETHERTYPES.get(data[0] >> 4 if data else 0, b"\0\0") + data, wire_bytes + 14


LINK_TYPES = {
    1: Framing("Ethernet", None),
    101: Framing("raw IP", _of_ip),
    113: Framing("Linux cooked", _of_cooked),
    276: Framing("Linux cooked v2", _of_cooked_2),
}
"""Link types that are read, by their number (tcpdump.org, "Link-layer header types")."""
