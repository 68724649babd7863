"""LACP data units: those of the standard's format as they are on the wire, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire.ethernet import encode_ethernet
from controller.wire.frame import decode
from controller.wire.lacp import (
    ACTIVITY,
    AGGREGATION,
    COLLECTING,
    DISTRIBUTING,
    SLOW_PROTOCOLS_MAC,
    SYNCHRONIZATION,
    encode_lacpdu,
)
from controller.wire.packets import Ignored, Lacpdu, LacpEnd, Malformed

SOURCE = bytes.fromhex("020000000a01")
CAPTURED = bytes.fromhex(
    "0180c2000002" "020000000a01" "8809" "01" "01"
    "0114" "ffff" "020000000a00" "0009" "00ff" "0001" "3d" "000000"
    "0214" "8000" "025633445566" "0001" "8000" "0002" "3f" "000000"
    "0310" "0000" + "00" * 12 + "0000" + "00" * 50
)  # fmt: skip
"""A frame as a Linux bond sends it, field by field of 802.1AX, figure 6-7."""

ACTOR = LacpEnd(0xFFFF, bytes.fromhex("020000000a00"), 9, 0xFF, 1, 0x3D)
PARTNER = LacpEnd(0x8000, bytes.fromhex("025633445566"), 1, 0x8000, 2, 0x3F)
ENDS = st.builds(
    LacpEnd,
    st.integers(0, 0xFFFF),
    st.binary(min_size=6, max_size=6),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFF),
)


def test_a_frame_is_read_field_by_field():
    assert len(CAPTURED) == 124
    assert decode(CAPTURED) == Lacpdu(SOURCE, ACTOR, PARTNER)
    assert ACTOR.state == ACTIVITY | AGGREGATION | SYNCHRONIZATION | COLLECTING | DISTRIBUTING


def test_a_frame_is_written_as_the_standard_has_it():
    assert encode_lacpdu(Lacpdu(SOURCE, ACTOR, PARTNER)) == CAPTURED


@given(ENDS, ENDS)
def test_what_is_written_is_read(actor: LacpEnd, partner: LacpEnd):
    pdu = Lacpdu(SOURCE, actor, partner)
    assert decode(encode_lacpdu(pdu)) == pdu


def test_a_later_version_is_read_by_the_fields_of_the_first():
    later = CAPTURED[:15] + b"\x02" + CAPTURED[16:]
    assert decode(later) == Lacpdu(SOURCE, ACTOR, PARTNER)


@pytest.mark.parametrize("size", [15, 16, 30, 55])
def test_what_ends_early_is_malformed(size: int):
    assert decode(CAPTURED[:size]) == Malformed("lacp-truncated")


@pytest.mark.parametrize(("at", "value"), [(16, 3), (17, 19), (36, 1), (37, 21)])
def test_other_tlvs_are_malformed(at: int, value: int):
    assert decode(CAPTURED[:at] + bytes((value,)) + CAPTURED[at + 1 :]) == Malformed("lacp-tlv")


def test_other_slow_protocols_are_of_no_interest():
    marker = encode_ethernet(SLOW_PROTOCOLS_MAC, SOURCE, 0x8809, b"\x02\x01")
    assert decode(marker) == Ignored("slow-protocol")
