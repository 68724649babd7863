from __future__ import annotations

import pytest

from controller.cluster.reports import REPORTS_BOUND, Reports, is_report
from controller.events import PacketReceived

IPV4 = bytes(12) + bytes.fromhex("0800") + bytes(9)
IPV6 = bytes(12) + bytes.fromhex("86dd") + bytes(6)
TAG = bytes(12) + bytes.fromhex("8100 0007")


def of_ipv6(*headers: int, kind: int) -> bytes:
    """An IPv6 frame with extension headers of 8 bytes, then ICMPv6."""
    following = [*headers, 58]
    chain = b"".join(bytes((after, 0, 0, 0, 0, 0, 0, 0)) for after in following[1:])
    return IPV6 + bytes((following[0], 1)) + bytes(32) + chain + bytes((kind, 0, 0, 0))


@pytest.mark.parametrize(
    ("frame", "is_one"),
    [
        (IPV4 + b"\x02" + bytes(30), True),
        (IPV4 + b"\x11" + bytes(30), False),
        (TAG + IPV4[12:] + b"\x02" + bytes(30), True),
        (of_ipv6(0, kind=143), True),
        (of_ipv6(0, kind=131), True),
        (of_ipv6(kind=132), True),
        (of_ipv6(0, kind=135), False),
        (bytes(12) + bytes.fromhex("0806") + bytes(40), False),
        (b"", False),
        (IPV4, False),
        (IPV6, False),
        (of_ipv6(0, kind=143)[:55], False),
    ],
)
def test_reports_are_told_from_other_frames(frame: bytes, is_one: bool):
    assert is_report(frame) == is_one


def test_reports_are_bounded_and_handed_out_once():
    reports = Reports()
    for number in range(REPORTS_BOUND + 5):
        reports.take(PacketReceived(1 + number % 2, number, IPV4 + b"\x02"), 1.0)
    assert len(reports) == REPORTS_BOUND
    found = reports.hand_out((1,), 2.0)
    assert [event.in_port for event in found[:2]] == [6, 8]
    assert len(found) + len(reports.hand_out((2,), 2.0)) == REPORTS_BOUND
    assert reports.hand_out((1,), 2.0) == ()
