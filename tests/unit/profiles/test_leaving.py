"""Which packets may have a host leave a group: never less than decoding tells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.events import PacketReceived
from controller.probes.static_points import STATIC_POINTS
from controller.profiles.leaving import may_leave
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report

GROUPS = {4: parse_ip("239.1.1.1"), 16: parse_ip("ff15::1")}
SOURCES = {4: parse_ip("10.0.0.1"), 16: parse_ip("fe80::1")}
(LEAVES,) = STATIC_POINTS["leave"].sources


def report(size: int, *kinds: RecordType, sources: tuple[bytes, ...] = ()) -> bytes:
    records = tuple(GroupRecord(kind, GROUPS[size], sources) for kind in kinds)
    family, version = (4, 3) if size == 4 else (6, 2)
    return encode(Report(family, version, parse_mac("02:00:00:00:00:01"), SOURCES[size], records))


def leaves(frame: bytes) -> bool:
    return bool(list(LEAVES.derive(PacketReceived(1, 1, frame), None)))


def in_vlan(frame: bytes) -> bytes:
    return frame[:12] + b"\x81\x00\x00\x0a" + frame[12:]


@given(st.sampled_from([4, 16]), st.lists(st.sampled_from(list(RecordType)), min_size=1, max_size=4), st.booleans())
def test_no_leave_is_missed(size: int, kinds: list[RecordType], has_sources: bool) -> None:
    frame = report(size, *kinds, sources=(SOURCES[size],) if has_sources else ())
    for each in (frame, in_vlan(frame)):
        assert may_leave(each) or not leaves(each)


def test_a_join_of_one_group_is_told_from_a_leave_at_a_look() -> None:
    assert not may_leave(report(4, RecordType.CHANGE_TO_EXCLUDE))
    assert not may_leave(in_vlan(report(4, RecordType.MODE_IS_EXCLUDE)))
    assert may_leave(report(4, RecordType.CHANGE_TO_INCLUDE))


@given(st.binary(max_size=80))
def test_any_octets_are_looked_at(frame: bytes) -> None:
    for each in (frame, bytes(12) + b"\x08\x00" + frame, bytes(12) + b"\x81\x00\x00\x01\x08\x00" + frame):
        assert may_leave(each) or not leaves(each)
