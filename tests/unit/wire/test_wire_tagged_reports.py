"""Plain reports of hosts in VLANs are read with their tag as without, to the last bit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.wire.encode import encode
from controller.wire.ethernet import with_tag
from controller.wire.igmp import (
    PLAIN_REPORT_BYTES,
    TAGGED_REPORT,
    TAGGED_REPORT_BYTES,
    decode_plain_report,
)
from controller.wire.packets import GroupRecord, RecordType, Report

REPORT = Report(
    4,
    3,
    bytes.fromhex("020000000001"),
    bytes((10, 0, 0, 1)),
    (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, bytes((239, 1, 2, 3)), ()),),
)


def read_tagged(frame: bytes, vlan_id: int) -> Report | None:
    tagged = with_tag(frame, vlan_id)
    assert len(tagged) >= TAGGED_REPORT_BYTES == PLAIN_REPORT_BYTES + 4
    return decode_plain_report(tagged, TAGGED_REPORT)


@given(st.sampled_from(list(RecordType)), st.integers(1, 4094))
def test_a_plain_report_is_read_behind_any_tag(kind: RecordType, vlan_id: int) -> None:
    report = REPORT._replace(records=(GroupRecord(kind, bytes((239, 1, 2, 3)), ()),))
    assert read_tagged(encode(report), vlan_id) == decode_plain_report(encode(report))


@given(st.integers(0, PLAIN_REPORT_BYTES * 8 - 1), st.integers(1, 4094))
def test_no_bit_that_is_seen_without_the_tag_goes_unseen_with_it(bit: int, vlan_id: int) -> None:
    frame = bytearray(encode(REPORT))
    frame[bit // 8] ^= 1 << bit % 8
    assert read_tagged(bytes(frame), vlan_id) == decode_plain_report(bytes(frame))


@given(st.binary(min_size=PLAIN_REPORT_BYTES, max_size=80), st.integers(1, 4094))
def test_any_bytes_are_read_alike(frame: bytes, vlan_id: int) -> None:
    assert read_tagged(frame, vlan_id) == decode_plain_report(frame)
