"""The codecs against the packet libraries of both frameworks: same fields, same bytes."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from controller.wire.addresses import format_ip, format_mac, parse_ip, parse_mac
from controller.wire.arp import arp_request
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.lldp import encode_lldp
from controller.wire.nd import neighbour_advertisement, neighbour_solicitation
from controller.wire.packets import Data, GroupRecord, Query, RecordType, Report
from controller.wire.udp import encode_udp

MODULES = ("packet", "ethernet", "ipv4", "ipv6", "igmp", "icmpv6", "arp", "lldp", "udp")
MAC = parse_mac("02:00:00:00:00:01")
HOST, SOURCES = parse_ip("10.0.0.1"), (parse_ip("10.0.0.8"), parse_ip("10.0.0.9"))
GROUP = parse_ip("239.1.2.3")
HOST6, SOURCES6 = parse_ip("fe80::1"), (parse_ip("2001:db8::8"), parse_ip("2001:db8::9"))
GROUP6 = parse_ip("ff1e::1234")


@pytest.fixture(params=["ryu", "os_ken"])
def library(request: pytest.FixtureRequest) -> SimpleNamespace:
    """The packet modules of one framework."""
    pytest.importorskip(f"{request.param}.lib.packet")
    return SimpleNamespace(**{name: import_module(f"{request.param}.lib.packet.{name}") for name in MODULES})


def layer(library: SimpleNamespace, frame: bytes, kind: Any) -> Any:
    found = library.packet.Packet(frame).get_protocol(kind)
    assert found is not None, f"no {kind.__name__} in {frame.hex()}"
    return found


def reference_frame(library: SimpleNamespace, *protocols: Any) -> bytes:
    packet = library.packet.Packet()
    for protocol in protocols:
        packet.add_protocol(protocol)
    packet.serialize()
    return bytes(packet.data)


def ip4(library: SimpleNamespace, destination: bytes, protocol: int = 2) -> list[Any]:
    return [
        library.ethernet.ethernet("01:00:5e:00:00:16", format_mac(MAC), 0x0800),
        library.ipv4.ipv4(
            src=format_ip(HOST),
            dst=format_ip(destination),
            header_length=6,
            proto=protocol,
            ttl=1,
            option=b"\x94\x04\0\0",
        ),
    ]


def mld_frame(library: SimpleNamespace, destination: bytes, message: Any) -> bytes:
    """The library's frame of an MLD message.

    The message is serialised apart: behind an extension header the library sums the wrong protocol number.
    """
    alert = library.ipv6.hop_opts(nxt=58, data=[library.ipv6.option(5, 2, b"\0\0"), library.ipv6.option(1, 0, None)])
    addresses = {"src": format_ip(HOST6), "dst": format_ip(destination)}
    body = message.serialize(bytearray(), library.ipv6.ipv6(nxt=58, **addresses))
    return reference_frame(
        library,
        library.ethernet.ethernet("33:33:00:00:00:16", format_mac(MAC), 0x86DD),
        library.ipv6.ipv6(nxt=0, hop_limit=1, ext_hdrs=[alert], **addresses),
        bytes(body),
    )


@pytest.mark.parametrize("kind", list(RecordType))
def test_library_reads_our_igmp_report(library: SimpleNamespace, kind: RecordType) -> None:
    report = Report(
        4, 3, MAC, HOST, (GroupRecord(kind, GROUP, SOURCES), GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP))
    )
    read = layer(library, encode(report), library.igmp.igmpv3_report)
    assert [(r.type_, r.address, r.srcs) for r in read.records] == [
        (kind, "239.1.2.3", ["10.0.0.8", "10.0.0.9"]),
        (2, "239.1.2.3", []),
    ]


@pytest.mark.parametrize("kind", list(RecordType))
def test_we_read_the_librarys_igmp_report(library: SimpleNamespace, kind: RecordType) -> None:
    record = library.igmp.igmpv3_report_group(
        type_=int(kind), num=2, address=format_ip(GROUP), srcs=[format_ip(source) for source in SOURCES]
    )
    message = library.igmp.igmpv3_report(record_num=1, records=[record])
    frame = reference_frame(library, *ip4(library, parse_ip("224.0.0.22")), message)
    assert decode(frame) == Report(4, 3, MAC, HOST, (GroupRecord(kind, GROUP, SOURCES),))


@pytest.mark.parametrize(("kind", "version", "record"), [
    (0x12, 1, RecordType.MODE_IS_EXCLUDE),
    (0x16, 2, RecordType.MODE_IS_EXCLUDE),
    (0x17, 2, RecordType.CHANGE_TO_INCLUDE),
])  # fmt: skip
def test_older_igmp_reports_agree(library: SimpleNamespace, kind: int, version: int, record: RecordType) -> None:
    report = Report(4, version, MAC, HOST, (GroupRecord(record, GROUP),))
    read = layer(library, encode(report), library.igmp.igmp)
    assert (read.msgtype, read.address) == (kind, "239.1.2.3")
    frame = reference_frame(library, *ip4(library, GROUP), library.igmp.igmp(kind, 0, 0, format_ip(GROUP)))
    assert decode(frame) == report


def test_igmp_queries_agree(library: SimpleNamespace) -> None:
    query = Query(4, 3, MAC, HOST, GROUP, SOURCES, 10.0, True, 2, 125.0)
    read = layer(library, encode(query), library.igmp.igmpv3_query)
    assert (read.address, read.s_flg, read.qrv, read.qqic, read.srcs) == (
        "239.1.2.3",
        1,
        2,
        125,
        ["10.0.0.8", "10.0.0.9"],
    )
    message = library.igmp.igmpv3_query(
        maxresp=100, address=format_ip(GROUP), s_flg=1, qrv=2, qqic=125, num=2, srcs=["10.0.0.8", "10.0.0.9"]
    )
    assert decode(reference_frame(library, *ip4(library, GROUP), message)) == query
    general = Query(4, 2, MAC, HOST, None, (), 10.0, False, None, None)
    message = library.igmp.igmp(0x11, 100, 0, "0.0.0.0")
    assert decode(reference_frame(library, *ip4(library, parse_ip("224.0.0.1")), message)) == general


def test_mld_reports_agree(library: SimpleNamespace) -> None:
    report = Report(6, 2, MAC, HOST6, (GroupRecord(RecordType.ALLOW_NEW_SOURCES, GROUP6, SOURCES6),))
    read = layer(library, encode(report), library.icmpv6.icmpv6).data
    assert [(r.type_, r.address, r.srcs) for r in read.records] == [(5, "ff1e::1234", ["2001:db8::8", "2001:db8::9"])]
    record = library.icmpv6.mldv2_report_group(
        type_=5, num=2, address="ff1e::1234", srcs=["2001:db8::8", "2001:db8::9"]
    )
    message = library.icmpv6.icmpv6(143, 0, 0, library.icmpv6.mldv2_report(record_num=1, records=[record]))
    assert decode(mld_frame(library, parse_ip("ff02::16"), message)) == report


@pytest.mark.parametrize(("kind", "destination", "record"), [
    (131, GROUP6, RecordType.MODE_IS_EXCLUDE),
    (132, parse_ip("ff02::2"), RecordType.CHANGE_TO_INCLUDE),
])  # fmt: skip
def test_older_mld_reports_agree(library: SimpleNamespace, kind: int, destination: bytes, record: RecordType) -> None:
    report = Report(6, 1, MAC, HOST6, (GroupRecord(record, GROUP6),))
    read = layer(library, encode(report), library.icmpv6.icmpv6)
    assert (read.type_, read.data.address) == (kind, "ff1e::1234")
    message = library.icmpv6.icmpv6(kind, 0, 0, library.icmpv6.mld(0, "ff1e::1234"))
    assert decode(mld_frame(library, destination, message)) == report


def test_mld_queries_agree(library: SimpleNamespace) -> None:
    query = Query(6, 2, MAC, HOST6, GROUP6, SOURCES6, 10.0, False, 2, 125.0)
    read = layer(library, encode(query), library.icmpv6.icmpv6).data
    assert (read.maxresp, read.address, read.qrv, read.qqic, read.num) == (10000, "ff1e::1234", 2, 125, 2)
    message = library.icmpv6.mldv2_query(
        maxresp=10000, address="ff1e::1234", qrv=2, qqic=125, num=2, srcs=["2001:db8::8", "2001:db8::9"]
    )
    frame = mld_frame(library, GROUP6, library.icmpv6.icmpv6(130, 0, 0, message))
    assert decode(frame) == query


def test_arp_and_neighbours_agree(library: SimpleNamespace) -> None:
    read = layer(library, encode(arp_request(MAC, HOST, SOURCES[0])), library.arp.arp)
    assert (read.opcode, read.src_mac, read.src_ip, read.dst_ip) == (1, format_mac(MAC), "10.0.0.1", "10.0.0.8")
    question = neighbour_solicitation(MAC, HOST6, SOURCES6[0])
    read = layer(library, encode(question), library.icmpv6.icmpv6)
    assert (read.type_, read.data.dst, read.data.option.hw_src) == (135, "2001:db8::8", format_mac(MAC))
    answer = neighbour_advertisement(question, MAC)
    read = layer(library, encode(answer), library.icmpv6.icmpv6)
    assert (read.type_, read.data.res, read.data.option.hw_src) == (136, 0b011, format_mac(MAC))
    option = library.icmpv6.nd_option_tla(hw_src=format_mac(MAC))
    frame = reference_frame(
        library,
        library.ethernet.ethernet(format_mac(MAC), format_mac(MAC), 0x86DD),
        library.ipv6.ipv6(src=format_ip(answer.source), dst=format_ip(HOST6), nxt=58, hop_limit=255),
        library.icmpv6.icmpv6(136, 0, 0, library.icmpv6.nd_neighbor(res=3, dst="2001:db8::8", option=option)),
    )
    assert decode(frame) == answer


def test_discovery_frame_is_lldp(library: SimpleNamespace) -> None:
    chassis, port, ttl, organisation, end = layer(library, encode_lldp(0xAB, 17, b"proof"), library.lldp.lldp).tlvs
    assert (chassis.subtype, chassis.chassis_id) == (7, b"dpid:00000000000000ab")
    assert (port.subtype, port.port_id) == (7, b"00000011")
    assert ttl.ttl == 120
    assert (organisation.oui, organisation.subtype, organisation.info) == (b"\x02VS", 1, b"proof")
    assert end.tlv_type == 0


@pytest.mark.parametrize("payload", [b"", b"odd", b"even"])
def test_datagrams_agree(library: SimpleNamespace, payload: bytes) -> None:
    for source, group in ((HOST, GROUP), (SOURCES6[0], GROUP6)):
        frame = encode_udp(MAC, source, group, payload, source_port=4000, destination_port=5000)
        assert isinstance(decode(frame), Data)
        read = layer(library, frame, library.udp.udp)
        assert (read.src_port, read.dst_port, read.total_length) == (4000, 5000, 8 + len(payload))
        checksum, read.csum = read.csum, 0
        outer = layer(library, frame, library.ipv4.ipv4 if len(source) == 4 else library.ipv6.ipv6)
        assert read.serialize(bytearray(payload), outer)[6:8] == checksum.to_bytes(2, "big")
