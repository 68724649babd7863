"""Captures are read frame by frame, and where one is cut or damaged is told to the byte."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_files import block, data, interface, packet, pcap, section
from controller.captures.capture_file import CHUNK_BYTES, CaptureDamaged, CapturedFrame, CaptureReader

AT_NS = 1_700_000_000_123_456_000
FRAME = data("239.1.1.1")


def read(content: bytes) -> list[CapturedFrame]:
    return list(CaptureReader(io.BytesIO(content).read).frames())


def damage(content: bytes) -> tuple[str, int, int, int]:
    """Return why, where and at which frame a file cannot be read on, and how many frames were read before."""
    reader = CaptureReader(io.BytesIO(content).read)
    frames = []
    with pytest.raises(CaptureDamaged) as caught:
        frames += reader.frames()
    return caught.value.reason, caught.value.offset_bytes, caught.value.frame_number, reader.frame_count


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_of_either_byte_order_and_unit(order: str, nanoseconds: bool) -> None:
    content = pcap([(AT_NS, FRAME), (AT_NS + 5000, b"x" * 60)], order=order, nanoseconds=nanoseconds)
    assert read(content) == [
        CapturedFrame(1, AT_NS, FRAME, len(FRAME)),
        CapturedFrame(2, AT_NS + 5000, b"x" * 60, 60),
    ]


def test_frames_captured_in_part_keep_the_length_that_they_had() -> None:
    reader = CaptureReader(io.BytesIO(pcap([(AT_NS, FRAME)], snap=40)).read)
    assert list(reader.frames()) == [CapturedFrame(1, AT_NS, FRAME[:40], len(FRAME))]
    assert reader.shortened_count == 1


def test_a_capture_larger_than_a_chunk_is_read_in_parts() -> None:
    frames = [(AT_NS + 1000 * number, bytes([number % 256]) * 1400) for number in range(2 * CHUNK_BYTES // 1400)]
    assert [(frame.at_ns, frame.data) for frame in read(pcap(frames))] == frames


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_with_sections_interfaces_and_resolutions(order: str) -> None:
    resolution = struct.pack(f"{order}HHB3x", 9, 1, 9)
    binary = struct.pack("<HHB3x", 9, 1, 0x80 | 20)
    shifted = struct.pack("<HHq", 14, 8, 1000)
    content = b"".join(
        (
            *(section(order), interface(order), interface(order, options=resolution + bytes(4))),
            *(block(5, b"counters of it", order), packet(AT_NS // 1000, FRAME, order)),
            packet(AT_NS, b"y" * 61, order, 1),
            *(section("<"), interface("<", options=binary), interface("<", options=shifted)),
            *(packet(3 << 20, FRAME), packet(2_000_000, FRAME, index=1)),
        )
    )
    assert [(frame.at_ns, frame.data) for frame in read(content)] == [
        (AT_NS, FRAME),
        (AT_NS, b"y" * 61),
        (3_000_000_000, FRAME),
        (1002_000_000_000, FRAME),
    ]


def test_cooked_and_raw_captures_become_ethernet_frames() -> None:
    ip, sender = FRAME[14:], FRAME[6:12]
    cooked = struct.pack("!HHH", 2, 1, 6) + sender + b"\0\0" + b"\x08\x00" + ip
    cooked_2 = struct.pack("!HHIHBB", 0x0800, 0, 3, 1, 2, 6) + sender + b"\0\0" + ip
    for link_type, frame, expected_sender in ((113, cooked, sender), (276, cooked_2, sender), (101, ip, bytes(6))):
        (found,) = read(pcap([(AT_NS, frame)], link_type=link_type))
        assert (found.data[6:12], found.data[12:14], found.data[14:]) == (expected_sender, b"\x08\x00", ip)
        assert found.wire_bytes == len(FRAME)


def test_a_file_that_is_cut_tells_where() -> None:
    content = pcap([(AT_NS, FRAME), (AT_NS, FRAME)])
    second = 24 + 16 + len(FRAME)
    assert damage(content[:-1]) == (
        f"the file is cut: {len(FRAME):,} bytes of a frame wanted, {len(FRAME) - 1:,} there",
        *(second + 16, 2, 1),
    )
    assert damage(content[: second + 5])[1:] == (second, 2, 1)
    assert damage(content[:10])[1:] == (4, 1, 0)
    assert damage(b"")[1:] == (0, 1, 0)
    assert len(read(content[:second])) == 1


def test_pcapng_that_is_cut_or_damaged_tells_where() -> None:
    head = section() + interface()
    whole = head + packet(1, FRAME) + packet(2, FRAME)
    second = len(head) + len(packet(1, FRAME))
    assert damage(whole[:-3])[1:] == (second + 8, 2, 1)
    broken = bytearray(whole)
    broken[-1] ^= 1
    reason, *place = damage(bytes(broken))
    assert "at its begin and" in reason
    assert place == [second, 2, 1]
    assert damage(head + packet(1, FRAME, index=3))[:2] == ("a frame of interface 3, which the section has not", 48)
    assert damage(head + block(3, b"\1\0\0\0x"))[0] == "a frame without a time (simple packet block)"
    assert damage(head + block(6, b"\0\0"))[0] == "a block of type 6 that is too short"
    assert damage(section()[:8] + b"abcd")[0] == "a section without byte order: 61626364"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\xd4\xc3", "the file is cut: 4 bytes of its beginning wanted, 2 there"),
        (b"PAR1\0\0\0\0", "no capture, neither pcap nor pcapng: it begins with 50415231"),
        (b"\x28\xb5\x2f\xfdabcd", "compressed by zstd: unpack it first"),
        (pcap([], link_type=105), "link type 105 is none of 1 (Ethernet)"),
    ],
)
def test_what_is_no_capture_is_told(content: bytes, said: str) -> None:
    assert said in damage(content)[0]


def test_a_header_that_no_frame_has_is_damage_and_takes_no_memory() -> None:
    start = pcap([(AT_NS, FRAME)])
    reason, *place = damage(start + struct.pack("<IIII", 1, 2, 0x7FFFFFFF, 60) + b"x" * 60)
    assert reason.startswith("no frame's header: it says 2,147,483,647 bytes")
    assert place == [len(start), 2, 1]


WHOLE = (pcap([(AT_NS, FRAME)] * 3), section() + interface() + packet(1, FRAME) * 3)


@given(st.sampled_from(WHOLE), st.integers(0, 400), st.binary(min_size=1, max_size=8), st.integers(0, 400))
def test_whatever_bytes_there_are_only_damage_is_told(whole: bytes, at: int, wrong: bytes, cut: int) -> None:
    content = (whole[:at] + wrong + whole[at + len(wrong) :])[: len(whole) - cut]
    reader = CaptureReader(io.BytesIO(content).read)
    try:
        for frame in reader.frames():
            assert len(frame.data) <= frame.wire_bytes
    except CaptureDamaged as told:
        assert 0 <= told.offset_bytes <= len(content)
        assert told.frame_number == reader.frame_count + 1
