"""Odd but sound frames are read, and read right."""

from __future__ import annotations

from struct import pack

import pytest

from controller.wire.addresses import ALL_NODES_V6, parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.ipv4 import ROUTER_ALERT, encode_ipv4
from controller.wire.nd import neighbour_solicitation
from controller.wire.packets import (
    Data,
    GroupRecord,
    Malformed,
    PimHello,
    Query,
    RecordType,
    Report,
    UnicastPacket,
)
from controller.wire.udp import encode_udp
from wire_frames import (
    ALL_SYSTEMS,
    ARP_FRAME,
    DATA,
    DATA6,
    GLOBAL6,
    GROUP,
    GROUP6,
    HELLO,
    HOST,
    HOST6,
    JOIN,
    JOIN6,
    LLDP_FRAME,
    MAC,
    MLD_FRAME,
    ND_FRAME,
    PEER,
    UNSPECIFIED6,
    V2_FRAME,
    V3_FRAME,
    V3_ROUTERS,
    extensions,
    fixed,
    igmp,
    igmp_query,
    mld,
    mld1,
    mld2,
    mld_query,
    patched,
    pim,
    record,
    v2,
    v3,
)


def test_router_alert_is_found_among_other_options() -> None:
    for options in (b"\x01" + ROUTER_ALERT, b"\x44\x04\x05\x00" + ROUTER_ALERT, ROUTER_ALERT + b"\x00\xff\xff\xff"):
        assert isinstance(decode(igmp(v3(JOIN), V3_ROUTERS, options=options)), Report)
    for options in (b"\x01\x00\x05\x02\x00\x00", b"\x00\x00\x05\x02\x00\x00", b"\xc2\x04\0\0\0\0\x05\x02" + bytes(6)):
        assert isinstance(decode(mld(mld2(JOIN6), hop_by_hop=options)), Report)


def test_version_1_needs_no_router_alert() -> None:
    report, query = igmp(v2(0x12), GROUP, options=b""), igmp(v2(0x11, bytes(4)), ALL_SYSTEMS, options=b"")
    assert decode(report) == Report(4, 1, MAC, HOST, (GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP),))
    assert decode(query) == Query(4, 1, MAC, HOST, None, (), 10.0, False, None, None)


def test_leave_goes_to_all_routers_or_to_the_group() -> None:
    expected = Report(4, 2, MAC, HOST, (GroupRecord(RecordType.CHANGE_TO_INCLUDE, GROUP),))
    assert decode(igmp(v2(0x17), parse_ip("224.0.0.2"))) == expected
    assert decode(igmp(v2(0x17), GROUP)) == expected


def test_report_may_come_from_a_host_without_an_address() -> None:
    frame = fixed(patched(V3_FRAME, 26, bytes(4)))
    decoded = decode(frame)
    assert isinstance(decoded, Report)
    assert decoded.source == bytes(4)
    decoded = decode(mld(mld1(), GROUP6, source=UNSPECIFIED6))
    assert isinstance(decoded, Report)
    assert decoded.source == UNSPECIFIED6


def test_unknown_record_types_and_auxiliary_data_are_skipped() -> None:
    frame = igmp(
        v3(
            record(9, HOST, GROUP),
            record(1, GROUP, HOST, auxiliary=b"ABCDEFGH"),
            record(0, GROUP),
            record(6, GROUP, parse_ip("10.0.0.9")),
        )
        + b"further data",
        V3_ROUTERS,
    )
    assert decode(frame) == Report(
        4,
        3,
        MAC,
        HOST,
        (
            GroupRecord(RecordType.MODE_IS_INCLUDE, GROUP, (HOST,)),
            GroupRecord(RecordType.BLOCK_OLD_SOURCES, GROUP, (parse_ip("10.0.0.9"),)),
        ),
    )
    frame = mld(mld2(record(200, GLOBAL6), record(3, GROUP6, GLOBAL6, auxiliary=b"ABCD"), record(7, GROUP6)))
    expected = (GroupRecord(RecordType.CHANGE_TO_INCLUDE, GROUP6, (GLOBAL6,)),)
    assert decode(frame) == Report(6, 2, MAC, HOST6, expected)


def test_report_without_records_is_sound() -> None:
    assert decode(igmp(v3(), V3_ROUTERS)) == Report(4, 3, MAC, HOST, ())
    assert decode(mld(mld2())) == Report(6, 2, MAC, HOST6, ())


def test_messages_longer_than_their_fields_are_read() -> None:
    assert isinstance(decode(igmp(v2() + b"odd", GROUP)), Report)
    assert isinstance(decode(mld(mld1() + b"odd", GROUP6)), Report)


@pytest.mark.parametrize(
    ("code", "seconds"), [(0x7F, 12.7), (0x80, 12.8), (0x8F, 24.8), (0xF0, 1638.4), (0xFF, 3174.4)]
)
def test_response_codes_of_version_3_are_floating_point(code: int, seconds: float) -> None:
    query = igmp_query(bytes(4))
    decoded = decode(igmp(query[:1] + bytes((code,)) + query[2:9] + bytes((code,)) + query[10:], ALL_SYSTEMS))
    assert isinstance(decoded, Query)
    assert decoded.max_response_s == pytest.approx(seconds)
    assert decoded.query_interval_s == pytest.approx(seconds * 10)


def test_response_code_of_version_2_is_plain() -> None:
    decoded = decode(igmp(b"\x11\xff\0\0\0\0\0\0", ALL_SYSTEMS))
    assert decoded == Query(4, 2, MAC, HOST, None, (), 25.5, False, None, None)


@pytest.mark.parametrize(("code", "seconds"), [(0x7FFF, 32.767), (0x8000, 32.768), (0xFFFF, 8387.584)])
def test_response_codes_of_mld_2_are_floating_point(code: int, seconds: float) -> None:
    query = mld_query(UNSPECIFIED6)
    decoded = decode(mld(query[:4] + pack("!H", code) + query[6:], ALL_NODES_V6))
    assert isinstance(decoded, Query)
    assert decoded.max_response_s == pytest.approx(seconds)
    decoded = decode(mld(mld1(130, GROUP6)[:4] + pack("!HH", code, 0) + GROUP6, GROUP6))
    assert decoded == Query(6, 1, MAC, HOST6, GROUP6, (), code / 1000, False, None, None)


def test_group_query_may_go_to_all_systems() -> None:
    for frame in (igmp(igmp_query(GROUP), ALL_SYSTEMS), mld(mld_query(GROUP6), ALL_NODES_V6)):
        assert isinstance(decode(frame), Query)


def test_suppress_flag_robustness_and_reserved_bits() -> None:
    query = igmp_query(GROUP)
    decoded = decode(igmp(query[:8] + b"\xfb" + query[9:], GROUP))
    assert isinstance(decoded, Query)
    assert (decoded.suppress, decoded.robustness) == (True, 3)


def test_holdtimes_of_hellos() -> None:
    other = b"\0\x14\0\x04abcd"
    for body, seconds in (
        (b"", 105.0),
        (other + b"\0\x01\0\x02\0\0", 0.0),
        (b"\0\x01\0\x02\x01\0" + other, 256.0),
        (b"\0\x01\0\x02\xff\xff", float("inf")),
    ):
        assert decode(pim(b"\x20\0\0\0" + body)) == PimHello(4, MAC, HOST, seconds)


@pytest.mark.parametrize(
    "frame", [V3_FRAME, V2_FRAME, MLD_FRAME, DATA, DATA6, ND_FRAME, ARP_FRAME, HELLO, LLDP_FRAME]
)
def test_padding_and_the_kind_of_buffer_change_nothing(frame: bytes) -> None:
    decoded = decode(frame)
    assert not isinstance(decoded, Malformed)
    assert decode(frame + b"\xa5" * 13) == decoded
    assert decode(memoryview(frame)) == decoded
    assert decode(bytearray(frame)) == decoded


def test_beginning_of_a_data_packet_is_enough() -> None:
    peer = parse_ip("10.0.0.2")
    long = encode_udp(MAC, HOST, GROUP, bytes(1400))
    assert decode(long[:128]) == decode(long) == Data(4, MAC, HOST, GROUP, 1428)
    unicast = encode_udp(MAC, HOST, peer, bytes(1400), eth_dst=PEER)
    assert decode(unicast[:64]) == UnicastPacket(4, MAC, PEER, HOST, peer)
    long = encode_udp(MAC, GLOBAL6, GROUP6, bytes(1400))
    assert decode(long[:128]) == decode(long) == Data(6, MAC, GLOBAL6, GROUP6, 1448)
    chained = extensions(b"\x11\x09" + bytes(200), 60)
    assert decode(chained[:64]) == Data(6, MAC, GLOBAL6, GROUP6, 242)


@pytest.mark.parametrize(
    ("chain", "first"),
    [
        (b"\x11\0" + bytes(6) + bytes(8), 60),
        (b"\x3c\0" + bytes(6) + b"\x11\0" + bytes(6) + bytes(8), 0),
        (b"\x11\x04" + bytes(22) + bytes(8), 51),
        (b"\x11\0\0\x01\0\0\0\x07" + bytes(16), 44),
        (b"\x3a\0\x05\xa8\0\0\0\x07" + b"\x8f" + bytes(16), 44),
        (b"\x80\0\0\0" + bytes(8), 58),
        (b"", 58),
        (b"", 59),
    ],
)
def test_other_packets_to_a_group_are_data(chain: bytes, first: int) -> None:
    assert decode(extensions(chain, first)) == Data(6, MAC, GLOBAL6, GROUP6, 40 + len(chain))


def test_unicast_packets() -> None:
    peer = parse_ip("2001:db8::2")
    assert decode(encode_udp(MAC, GLOBAL6, peer, b"x", eth_dst=PEER)) == UnicastPacket(6, MAC, PEER, GLOBAL6, peer)
    pim_register = encode_ipv4(PEER, MAC, HOST, parse_ip("10.0.0.2"), 103, b"\x21\0\0\0", ttl=64)
    assert isinstance(decode(pim_register), UnicastPacket)


def test_duplicate_address_probe() -> None:
    probe = neighbour_solicitation(MAC, UNSPECIFIED6, GLOBAL6)
    assert probe.mac is None
    assert decode(encode(probe)) == probe
