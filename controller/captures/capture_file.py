"""Reads captures, pcap and pcapng, frame by frame, in bounded memory.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng (IETF), link types as tcpdump.org lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from struct import error as StructError  # noqa: N812 - as exceptions are called
from typing import Literal, NamedTuple

from controller.captures.link_types import LINK_TYPES, Framing

CHUNK_BYTES = 1 << 20
LONGEST_FRAME_BYTES = 262_144
"""What tcpdump captures of a frame at most: who says more is damaged."""

LONGEST_BLOCK_BYTES = 1 << 26

_PCAP_MAGICS: dict[bytes, tuple[Literal["<", ">"], int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""The first bytes of a pcap file: its byte order, and nanoseconds for each unit of its times' fractions."""

_SECTION = b"\x0a\x0d\x0d\x0a"
_ORDERS: dict[bytes, Literal["<", ">"]] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_END_OF_OPTIONS, _RESOLUTION, _OFFSET = 0, 9, 14
MOST_INTERFACES = 65_536


class CaptureDamaged(ValueError):  # noqa: N818 - it names what is the case
    """A capture that cannot be read on: `offset_bytes` into it, at the frame `frame_number` counted from 1."""

    def __init__(self, reason: str, offset_bytes: int, frame_number: int) -> None:
        super().__init__(f"byte {offset_bytes:,}, frame {frame_number:,}: {reason}")
        self.reason = reason
        self.offset_bytes = offset_bytes
        self.frame_number = frame_number


class CapturedFrame(NamedTuple):
    """An Ethernet frame without its check sequence; `data` is its beginning where less of it was captured.

    `at_ns` is since 1970-01-01 UTC as the capture says, `wire_bytes` the length that it had on the wire.
    """

    number: int
    at_ns: int
    data: bytes
    wire_bytes: int


class _Interface(NamedTuple):
    framing: Framing
    units_per_s: int
    offset_s: int


class CaptureReader:
    """The frames of one capture, read by `read(size)`, which returns fewer bytes at the end alone.

    Attributes
    ----------
    frame_count
        Frames so far.
    shortened_count
        Frames of which less was captured than was on the wire.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = b""
        self._at = 0
        self._base_bytes = 0
        self.frame_count = 0
        self.shortened_count = 0

    @property
    def offset_bytes(self) -> int:
        """How far the capture has been read."""
        return self._base_bytes + self._at

    def frames(self) -> Iterator[CapturedFrame]:
        """Yield frame after frame; CaptureDamaged at the place where the file is cut, damaged or no capture."""
        magic = self._take(4, "its beginning", is_end_allowed=True)
        if not magic:
            raise CaptureDamaged("the file is empty", 0, 1)
        if magic in _PCAP_MAGICS:
            yield from self._pcap(*_PCAP_MAGICS[magic])
        elif magic == _SECTION:
            yield from self._pcapng()
        else:
            raise CaptureDamaged(_no_capture(magic), 0, 1)

    def _damaged(self, reason: str, offset_bytes: int) -> CaptureDamaged:
        return CaptureDamaged(reason, offset_bytes, self.frame_count + 1)

    def _take(self, size: int, what: str, *, is_end_allowed: bool) -> bytes:
        """Return so many bytes; none at the very end of the file where that may come here."""
        at = self._at
        end = at + size
        if end > len(self._buffer):
            kept = self._buffer[at:]
            self._base_bytes += at
            self._at = at = 0
            end = size
            parts, length = [kept], len(kept)
            while length < size:
                part = self._read(max(CHUNK_BYTES, size - length))
                if not part:
                    break
                parts.append(part)
                length += len(part)
            self._buffer = b"".join(parts)
            if length < size:
                if not length and is_end_allowed:
                    return b""
                raise self._damaged(
                    f"the file is cut: {size:,} bytes of {what} wanted, {length:,} there", self._base_bytes
                )
        self._at = end
        return self._buffer[at:end]

    # pcap

    def _pcap(self, order: str, unit_ns: int) -> Iterator[CapturedFrame]:
        major, _minor, _zone, _accuracy, _longest, kind = Struct(f"{order}HHiIII").unpack(
            self._take(20, "the header of the file", is_end_allowed=False)
        )
        if major != 2:
            raise self._damaged(f"a capture of version {major}, only 2 is known", 4)
        framing = self._framing(kind & 0xFFFF, 20)
        header = Struct(f"{order}IIII")
        read_header, take = header.unpack, self._take
        while True:
            offset_bytes = self._base_bytes + self._at
            start = take(16, "a frame's header", is_end_allowed=True)
            if not start:
                return
            seconds, fraction, captured_bytes, wire_bytes = read_header(start)
            if captured_bytes > LONGEST_FRAME_BYTES or fraction * unit_ns >= 1_000_000_000:
                said = f"{captured_bytes:,} bytes at {seconds}.{fraction} s"
                raise self._damaged(f"no frame's header: it says {said}", offset_bytes)
            data = take(captured_bytes, "a frame", is_end_allowed=False) if captured_bytes else b""
            yield self._frame(framing, seconds * 1_000_000_000 + fraction * unit_ns, data, wire_bytes)

    def _framing(self, kind: int, offset_bytes: int) -> Framing:
        framing = LINK_TYPES.get(kind)
        if framing is None:
            known = ", ".join(f"{number} ({each.name})" for number, each in LINK_TYPES.items())
            raise self._damaged(f"link type {kind} is none of {known}", offset_bytes)
        return framing

    def _frame(self, framing: Framing, at_ns: int, data: bytes, wire_bytes: int) -> CapturedFrame:
        self.frame_count += 1
        wire_bytes = max(wire_bytes, len(data))
        if wire_bytes > len(data):
            self.shortened_count += 1
        if framing.to_ethernet is not None:
            data, wire_bytes = framing.to_ethernet(data, wire_bytes)
        return CapturedFrame(self.frame_count, at_ns, data, wire_bytes)

    # pcapng

    def _pcapng(self) -> Iterator[CapturedFrame]:
        order = self._section(0)
        interfaces: list[_Interface] = []
        while True:
            offset_bytes = self.offset_bytes
            kind = self._take(4, "a block's type", is_end_allowed=True)
            if not kind:
                return
            if kind == _SECTION:
                order, interfaces = self._section(offset_bytes), []
                continue
            length = self._take(4, "a block's length", is_end_allowed=False)
            body = self._rest(order, length, 8, offset_bytes)
            (number,) = Struct(f"{order}I").unpack(kind)
            try:
                if number == _INTERFACE:
                    interfaces.append(self._interface(order, body, offset_bytes))
                    if len(interfaces) > MOST_INTERFACES:
                        raise self._damaged(f"more than {MOST_INTERFACES:,} interfaces", offset_bytes)
                elif number in (_PACKET, _OLD_PACKET):
                    yield self._packet(order, number, body, interfaces, offset_bytes)
                elif number == _SIMPLE_PACKET:
                    raise self._damaged("a frame without a time (simple packet block)", offset_bytes)
            except StructError:
                raise self._damaged(f"a block of type {number} that is too short", offset_bytes) from None

    def _section(self, offset_bytes: int) -> str:
        """Read the header of a section behind its type, and return the byte order of what follows."""
        length = self._take(4, "a section's length", is_end_allowed=False)
        magic = self._take(4, "a section's byte order", is_end_allowed=False)
        order = _ORDERS.get(magic)
        if order is None:
            raise self._damaged(f"a section without byte order: {magic.hex()}", offset_bytes)
        self._rest(order, length, 12, offset_bytes)
        return order

    def _rest(self, order: str, length: bytes, taken_bytes: int, offset_bytes: int) -> bytes:
        """Return what a block holds behind the bytes that were taken, its length at its end apart."""
        number = Struct(f"{order}I")
        (size,) = number.unpack(length)
        if size % 4 or not taken_bytes + 4 <= size <= LONGEST_BLOCK_BYTES:
            raise self._damaged(f"a block that says it has {size:,} bytes", offset_bytes)
        rest = self._take(size - taken_bytes, "a block", is_end_allowed=False)
        if rest[-4:] != length:
            (said,) = number.unpack(rest[-4:])
            raise self._damaged(
                f"a block that says it has {size:,} bytes at its begin and {said:,} at its end", offset_bytes
            )
        return rest[:-4]

    def _interface(self, order: str, body: bytes, offset_bytes: int) -> _Interface:
        kind, _reserved, _longest = Struct(f"{order}HHI").unpack_from(body)
        units_per_s, offset_s = 1_000_000, 0
        at, option = 8, Struct(f"{order}HH")
        while at + 4 <= len(body):
            code, size = option.unpack_from(body, at)
            value = body[at + 4 : at + 4 + size]
            if code == _END_OF_OPTIONS:
                break
            if code == _RESOLUTION and value:
                power = value[0] & 0x7F
                base = 2 if value[0] & 0x80 else 10
                if power > (63 if base == 2 else 19):
                    raise self._damaged(f"times in units of {base}^-{power} s", offset_bytes)
                units_per_s = base**power
            elif code == _OFFSET and len(value) == 8:
                (offset_s,) = Struct(f"{order}q").unpack(value)
            at += 4 + (size + 3) // 4 * 4
        return _Interface(self._framing(kind, offset_bytes), units_per_s, offset_s)

    def _packet(
        self, order: str, number: int, body: bytes, interfaces: list[_Interface], offset_bytes: int
    ) -> CapturedFrame:
        layout = "IIIII" if number == _PACKET else "HHIIII"
        fields = Struct(f"{order}{layout}").unpack_from(body)
        index, (high, low, captured_bytes, wire_bytes) = fields[0], fields[-4:]
        if index >= len(interfaces):
            raise self._damaged(f"a frame of interface {index}, which the section has not", offset_bytes)
        if captured_bytes > min(LONGEST_FRAME_BYTES, len(body) - 20):
            raise self._damaged(f"a frame that says it has {captured_bytes:,} bytes", offset_bytes)
        interface = interfaces[index]
        units = high << 32 | low
        at_ns = units * 1_000_000_000 // interface.units_per_s + interface.offset_s * 1_000_000_000
        return self._frame(interface.framing, at_ns, body[20 : 20 + captured_bytes], wire_bytes)


_OTHER_FILES = {
    b"\x1f\x8b": "compressed by gzip within gzip",
    b"\xfd7zX": "compressed by xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it first",
    b"BZh": "compressed by bzip2: unpack it first",
}


def _no_capture(magic: bytes) -> str:
    for start, what in _OTHER_FILES.items():
        if magic.startswith(start):
            return f"no capture, but {what}"
    return f"no capture, neither pcap nor pcapng: it begins with {magic.hex()}"
