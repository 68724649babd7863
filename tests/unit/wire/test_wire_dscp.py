"""Code points of packets are changed, and nothing else of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire.checksum import internet_checksum
from controller.wire.dscp import with_dscp
from controller.wire.udp import encode_udp

MAC = bytes.fromhex("020000000001")
V4 = encode_udp(MAC, b"\x0a\0\0\1", b"\xef\1\2\3", b"data")
V6 = encode_udp(MAC, b"\xfd" + bytes(14) + b"\1", b"\xff\x0e" + bytes(13) + b"\1", b"data")


def of_class(frame, traffic_class):
    """A frame whose packet has this traffic class, with a checksum that is right."""
    changed = bytearray(frame)
    if frame[12:14] == b"\x08\x00":
        changed[15] = traffic_class
        changed[24:26] = bytes(2)
        changed[24:26] = internet_checksum(bytes(changed[14:34])).to_bytes(2, "big")
    else:
        changed[14] = 0x60 | traffic_class >> 4
        changed[15] = (traffic_class & 0xF) << 4 | frame[15] & 0xF
    return bytes(changed)


@pytest.mark.parametrize("frame", [V4, V6], ids=["IPv4", "IPv6"])
@given(before=st.integers(0, 255), dscp=st.integers(0, 63))
def test_the_code_point_is_another_and_all_else_stays(frame, before, dscp):
    assert with_dscp(of_class(frame, before), dscp) == of_class(frame, dscp << 2 | before & 3)


@pytest.mark.parametrize("frame", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_header_that_is_cut_short_is_left_alone(frame):
    for length in range(34 if frame is V4 else 54):
        assert with_dscp(frame[:length], 46) == frame[:length]


def test_what_is_no_ip_packet_is_left_alone():
    arp = V4[:12] + b"\x08\x06" + V4[14:]
    assert with_dscp(arp, 46) == arp
