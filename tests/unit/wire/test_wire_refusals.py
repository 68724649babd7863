"""Every reason for refusing or ignoring a frame has a frame that meets it, and only that one fault."""

from __future__ import annotations

import pytest

from controller.wire.addresses import ALL_NODES_V6, ALL_ROUTERS_V6, MLDV2_ROUTERS, parse_ip, solicited_node
from controller.wire.ethernet import encode_ethernet
from controller.wire.frame import decode
from controller.wire.ipv4 import ROUTER_ALERT
from controller.wire.lacp import encode_lacpdu
from controller.wire.packets import (
    Arp,
    Data,
    GroupRecord,
    Ignored,
    Lacpdu,
    LacpEnd,
    Lldp,
    Malformed,
    Neighbour,
    PimHello,
    RecordType,
    Report,
)
from controller.wire.reasons import IGNORED_REASONS, REASONS
from controller.wire.udp import encode_udp
from wire_frames import (
    ALL_SYSTEMS,
    ARP_FRAME,
    DATA,
    DATA6,
    FRAGMENT_FIRST,
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
    lldp,
    mld,
    mld1,
    mld2,
    mld_query,
    nd,
    patched,
    pim,
    pim6,
    record,
    tlv,
    v2,
    v3,
)

LACPDU = encode_lacpdu(Lacpdu(MAC, LacpEnd(1, MAC, 1, 1, 1, 0x3D), LacpEnd(1, PEER, 1, 1, 2, 0x3D)))

MALFORMED: list[tuple[str, str, bytes]] = [
    ("eth-truncated", "nothing", b""),
    ("eth-truncated", "13 bytes", V3_FRAME[:13]),
    ("eth-source", "group address", patched(V3_FRAME, 6, b"\x01")),
    ("eth-source", "group address in a short frame", patched(LLDP_FRAME, 6, b"\x03")[:30]),
    ("ipv4-truncated", "header cut", DATA[:33]),
    ("ipv4-truncated", "options cut", V3_FRAME[:37]),
    ("ipv4-truncated", "IGMP cut", V3_FRAME[:53]),
    ("ipv4-truncated", "PIM cut", HELLO[:43]),
    ("ipv4-version", "version 5", fixed(patched(V3_FRAME, 14, b"\x56"))),
    ("ipv4-length", "header of 16 bytes", patched(DATA, 14, b"\x44")),
    ("ipv4-length", "total below header", fixed(patched(V3_FRAME, 16, b"\0\x17"))),
    ("ipv4-checksum", "report", patched(V3_FRAME, 24, b"\xab\xcd")),
    ("ipv4-checksum", "data", patched(DATA, 24, b"\xab\xcd")),
    ("ipv4-options", "length 0", igmp(v3(JOIN), V3_ROUTERS, options=b"\x94\0\0\0")),
    ("ipv4-options", "length 1", igmp(v3(JOIN), V3_ROUTERS, options=b"\x01\x01\x94\x01")),
    ("ipv4-options", "past the header", igmp(v3(JOIN), V3_ROUTERS, options=b"\x01\x94\x04\0")),
    ("ipv4-options", "no length", igmp(v3(JOIN), V3_ROUTERS, options=b"\x01\x01\x01\x94")),
    ("ipv4-source", "loopback", encode_udp(MAC, parse_ip("127.0.0.1"), GROUP, b"")),
    ("ipv4-source", "group", encode_udp(MAC, GROUP, GROUP, b"")),
    ("ipv4-source", "broadcast", fixed(patched(V3_FRAME, 26, b"\xff" * 4))),
    ("ipv6-truncated", "header cut", DATA6[:53]),
    ("ipv6-truncated", "fewer bytes than an IPv4 header", DATA6[:20]),
    ("ipv6-truncated", "MLD cut", MLD_FRAME[:-1]),
    ("ipv6-truncated", "ND cut", ND_FRAME[:-1]),
    ("ipv6-truncated", "PIM cut", pim6(HOST6)[:63]),
    ("ipv6-version", "version 4", patched(DATA6, 14, b"\x40")),
    ("ipv6-source", "group", encode_udp(MAC, GROUP6, GROUP6, b"")),
    ("ipv6-source", "loopback", encode_udp(MAC, parse_ip("::1"), GROUP6, b"")),
    ("ipv6-extension", "chain past the payload", extensions(b"\x11\x09" + bytes(6), 60)),
    ("ipv6-extension", "header cut short", extensions(b"\x11\0\0\0", 60)),
    ("ipv6-extension", "empty payload", extensions(b"", 0)),
    ("ipv6-extension", "router alert past the payload", patched(MLD_FRAME, 18, b"\0\x04")),
    ("ipv6-extension", "hop-by-hop second", extensions(b"\0\0" + bytes(6) + b"\x11\0" + bytes(6) + bytes(8), 60)),
    ("ipv6-extension", "nine of them", extensions((b"\x3c\0" + bytes(6)) * 8 + b"\x11\0" + bytes(14), 60)),
    ("ipv6-options", "past the header", mld(mld2(JOIN6), hop_by_hop=b"\x05\x09\0\0\0\0")),
    ("ipv6-options", "no length", mld(mld2(JOIN6), hop_by_hop=b"\0\0\0\0\0\x05")),
    ("igmp-fragment", "first", igmp(v3(JOIN), V3_ROUTERS, fragment=0x2000)),
    ("igmp-fragment", "later", igmp(v3(JOIN), V3_ROUTERS, fragment=0x0002)),
    ("igmp-truncated", "7 bytes", igmp(v2()[:7], GROUP)),
    ("igmp-truncated", "record missing", igmp(v3(JOIN, count=2), V3_ROUTERS)),
    ("igmp-truncated", "record cut", igmp(v3(JOIN[:7]), V3_ROUTERS)),
    ("igmp-truncated", "source missing", igmp(v3(record(5, GROUP, HOST, count=2)), V3_ROUTERS)),
    ("igmp-truncated", "source count alone", igmp(v3(record(5, GROUP, count=1)), V3_ROUTERS)),
    ("igmp-truncated", "auxiliary data missing", igmp(v3(b"\x04\x01\0\0" + GROUP), V3_ROUTERS)),
    ("igmp-truncated", "query source missing", igmp(igmp_query(GROUP, HOST, count=2), GROUP)),
    ("igmp-checksum", "v3", patched(V3_FRAME, 40, b"\x12\x34")),
    ("igmp-checksum", "v2", patched(V2_FRAME, 40, b"\x12\x34")),
    ("igmp-checksum", "zero", patched(V2_FRAME, 40, b"\0\0")),
    ("igmp-checksum", "trailing bytes count", fixed(patched(V2_FRAME, 16, b"\0\x22"))[:46] + b"\x12\x34" + bytes(12)),
    ("igmp-ttl", "v3", igmp(v3(JOIN), V3_ROUTERS, ttl=2)),
    ("igmp-ttl", "v2", igmp(v2(), GROUP, ttl=64)),
    ("igmp-ttl", "v1", igmp(v2(0x12), GROUP, ttl=0, options=b"")),
    ("igmp-ttl", "query", igmp(v2(0x11, bytes(4)), ALL_SYSTEMS, ttl=255)),
    ("igmp-router-alert", "v3", igmp(v3(JOIN), V3_ROUTERS, options=b"")),
    ("igmp-router-alert", "v2", igmp(v2(), GROUP, options=b"")),
    ("igmp-router-alert", "leave", igmp(v2(0x17), parse_ip("224.0.0.2"), options=b"")),
    ("igmp-router-alert", "v2 query", igmp(b"\x11\x64\0\0\0\0\0\0", ALL_SYSTEMS, options=b"")),
    ("igmp-router-alert", "v3 query", igmp(igmp_query(bytes(4)), ALL_SYSTEMS, options=b"")),
    ("igmp-router-alert", "behind the end of options", igmp(v2(), GROUP, options=b"\0\0\0\0" + ROUTER_ALERT)),
    ("igmp-router-alert", "another value", igmp(v2(), GROUP, options=b"\x94\x04\0\x05")),
    ("igmp-length", "9 bytes", igmp(v2(0x11, bytes(4)) + b"\0", ALL_SYSTEMS)),
    ("igmp-length", "11 bytes", igmp(v2(0x11, bytes(4)) + b"\0\0\0", ALL_SYSTEMS)),
    ("igmp-destination", "v3 to the group", igmp(v3(JOIN), GROUP)),
    ("igmp-destination", "v2 to another group", igmp(v2(), parse_ip("239.1.2.4"))),
    ("igmp-destination", "v2 to a host", igmp(v2(), parse_ip("10.0.0.2"))),
    ("igmp-destination", "v1 to all systems", igmp(v2(0x12), ALL_SYSTEMS, options=b"")),
    ("igmp-destination", "leave to all systems", igmp(v2(0x17), ALL_SYSTEMS)),
    ("igmp-destination", "general query to a group", igmp(igmp_query(bytes(4)), GROUP)),
    ("igmp-destination", "group query to another", igmp(igmp_query(GROUP), parse_ip("239.1.2.4"))),
    ("igmp-group", "v3", igmp(v3(JOIN, record(4, parse_ip("10.1.1.1"))), V3_ROUTERS)),
    ("igmp-group", "v3, one record", igmp(v3(record(4, parse_ip("240.0.0.1"))), V3_ROUTERS)),
    ("igmp-group", "v3 with sources", igmp(v3(record(4, HOST, HOST)), V3_ROUTERS)),
    ("igmp-group", "v2", igmp(v2(group=HOST), HOST)),
    ("igmp-group", "query", igmp(igmp_query(HOST), HOST)),
    ("igmp-sources", "group", igmp(v3(record(5, GROUP, HOST, GROUP)), V3_ROUTERS)),
    ("igmp-sources", "zero", igmp(v3(record(5, GROUP, bytes(4))), V3_ROUTERS)),
    ("igmp-sources", "loopback", igmp(v3(record(5, GROUP, parse_ip("127.0.0.1"))), V3_ROUTERS)),
    ("igmp-sources", "broadcast", igmp(v3(record(5, GROUP, b"\xff" * 4)), V3_ROUTERS)),
    ("igmp-sources", "query", igmp(igmp_query(GROUP, GROUP), GROUP)),
    ("igmp-sources", "general query", igmp(igmp_query(bytes(4), HOST), ALL_SYSTEMS)),
    ("icmpv6-fragment", "MLD", extensions(FRAGMENT_FIRST + mld2(JOIN6), 44)),
    ("icmpv6-fragment", "ND, atomic", extensions(b"\x3a\0\0\0\0\0\0\x07" + b"\x88" + bytes(23), 44)),
    ("icmpv6-checksum", "MLD", patched(MLD_FRAME, 64, b"\x12\x34")),
    ("icmpv6-checksum", "ND", patched(ND_FRAME, 56, b"\x12\x34")),
    ("icmpv6-checksum", "ND of odd length", patched(nd(136, options=b"\x0e"), 56, b"\x12\x34")),
    ("mld-truncated", "v2 head", mld(mld2()[:7])),
    ("mld-truncated", "v1", mld(mld1()[:23], GROUP6)),
    ("mld-truncated", "record missing", mld(mld2(JOIN6, count=2))),
    ("mld-truncated", "source missing", mld(mld2(record(5, GROUP6, GLOBAL6, count=2)))),
    ("mld-truncated", "auxiliary data missing", mld(mld2(b"\x04\x01\0\0" + GROUP6))),
    ("mld-truncated", "query source missing", mld(mld_query(GROUP6, count=1), GROUP6)),
    ("mld-hop-limit", "64", mld(mld2(JOIN6), hop_limit=64)),
    ("mld-hop-limit", "query", mld(mld_query(UNSPECIFIED6), ALL_NODES_V6, hop_limit=255)),
    ("mld-router-alert", "no extension", mld(mld2(JOIN6), hop_by_hop=b"")),
    ("mld-router-alert", "padding alone", mld(mld2(JOIN6), hop_by_hop=b"\x01\x04\0\0\0\0")),
    ("mld-router-alert", "for RSVP", mld(mld2(JOIN6), hop_by_hop=b"\x05\x02\0\x01\x01\0")),
    ("mld-source", "global", mld(mld2(JOIN6), source=GLOBAL6)),
    ("mld-source", "query from ::", mld(mld_query(UNSPECIFIED6), ALL_NODES_V6, source=UNSPECIFIED6)),
    ("mld-code", "report", mld(mld2(JOIN6, code=1))),
    ("mld-length", "25 bytes", mld(mld1(130, UNSPECIFIED6) + b"\0", ALL_NODES_V6)),
    ("mld-length", "27 bytes", mld(mld1(130, UNSPECIFIED6) + b"\0\0\0", ALL_NODES_V6)),
    ("mld-destination", "v2 to the group", mld(mld2(JOIN6), GROUP6)),
    ("mld-destination", "v1 to all routers", mld(mld1(), ALL_ROUTERS_V6)),
    ("mld-destination", "done to the group", mld(mld1(132), GROUP6)),
    ("mld-destination", "general query to a group", mld(mld_query(UNSPECIFIED6), GROUP6)),
    ("mld-destination", "group query to another", mld(mld_query(GROUP6), MLDV2_ROUTERS)),
    ("mld-group", "v2", mld(mld2(record(4, GLOBAL6)))),
    ("mld-group", "v2 with sources", mld(mld2(record(4, GLOBAL6, GLOBAL6)))),
    ("mld-group", "v1", mld(mld1(group=GLOBAL6), GLOBAL6)),
    ("mld-group", "query", mld(mld_query(GLOBAL6), GLOBAL6)),
    ("mld-sources", "group", mld(mld2(record(5, GROUP6, GLOBAL6, GROUP6)))),
    ("mld-sources", "unspecified", mld(mld2(record(5, GROUP6, UNSPECIFIED6)))),
    ("mld-sources", "query", mld(mld_query(GROUP6, parse_ip("::1")), GROUP6)),
    ("mld-sources", "general query", mld(mld_query(UNSPECIFIED6, GLOBAL6), ALL_NODES_V6)),
    ("nd-truncated", "23 bytes", nd(135, GLOBAL6[:15])),
    ("nd-truncated", "option without length", nd(135, options=b"\x01")),
    ("nd-truncated", "option cut", nd(135, options=b"\x01\x01" + MAC[:5])),
    ("nd-hop-limit", "254", nd(135, hop_limit=254)),
    ("nd-code", "code 1", nd(136, code=1)),
    ("nd-target", "group", nd(135, GROUP6)),
    ("nd-source", "probe with an option", nd(135, options=b"\x01\x01" + MAC, source=UNSPECIFIED6)),
    ("nd-source", "probe to a host", nd(135, source=UNSPECIFIED6, destination=GLOBAL6)),
    ("nd-destination", "solicited, to all nodes", nd(136, destination=ALL_NODES_V6, flags=0x40)),
    ("nd-options", "length 0", nd(135, options=b"\x01\0" + MAC)),
    ("nd-options", "length 2", nd(136, options=b"\x02\x02" + MAC + bytes(8))),
    ("nd-options", "group address", nd(136, options=b"\x02\x01\x01" + MAC[1:])),
    ("arp-truncated", "41 bytes", ARP_FRAME[:41]),
    ("arp-truncated", "20 bytes", ARP_FRAME[:20]),
    ("arp-format", "hardware type", patched(ARP_FRAME, 14, b"\0\x06")),
    ("arp-format", "protocol type", patched(ARP_FRAME, 16, b"\x86\xdd")),
    ("arp-format", "sizes", patched(ARP_FRAME, 18, b"\x08\x04")),
    ("arp-sender", "group MAC", patched(ARP_FRAME, 22, b"\x01")),
    ("arp-sender", "group IP", patched(ARP_FRAME, 28, GROUP)),
    ("arp-sender", "loopback", patched(ARP_FRAME, 28, parse_ip("127.0.0.1"))),
    ("pim-truncated", "3 bytes", fixed(patched(HELLO, 16, b"\0\x17"))),
    ("pim-truncated", "option head", pim(b"\x20\0\0\0\0\x01\0")),
    ("pim-truncated", "option value", pim(b"\x20\0\0\0\0\x01\0\x02\0")),
    ("pim-fragment", "first", pim(b"\x20\0\0\0", fragment=0x2000)),
    ("pim-fragment", "IPv6", extensions(b"\x67\0\0\x01\0\0\0\x07" + bytes(8), 44, parse_ip("ff02::d"))),
    ("pim-checksum", "IPv4", patched(HELLO, 36, b"\x12\x34")),
    ("pim-checksum", "IPv6", patched(pim6(HOST6), 56, b"\x12\x34")),
    ("pim-ttl", "IPv4", pim(b"\x20\0\0\0", ttl=64)),
    ("pim-ttl", "IPv6", pim6(HOST6, hop_limit=64)),
    ("pim-options", "DR priority of 2 bytes", pim(b"\x20\0\0\0\0\x13\0\x02\0\0")),
    ("pim-options", "holdtime of 4 bytes", pim(b"\x20\0\0\0\0\x01\0\x04\0\0\0\x69")),
    ("pim-address", "another family's neighbour", pim(b"\x23\0\0\0" + b"\x02\0" + HOST)),
    ("pim-group", "a host as a group", pim(b"\x23\0\0\0" + b"\x01\0" + HOST + b"\0\x01\0\xd2\x01\0\0\x20" + HOST)),
    ("pim-source", "IPv4", pim(b"\x20\0\0\0", source=bytes(4))),
    ("pim-source", "IPv6", pim6(GLOBAL6)),
    ("lldp-tlv", "value past the end", lldp(b"\x02\x7f\x07")),
    ("lldp-vlan", "reserved", lldp(tlv(1, b"\x04" + MAC), tlv(127, b"\x00\x80\xc2\x01\x0f\xff"), tlv(0, b""))),
    ("lldp-vlan", "one byte", lldp(tlv(1, b"\x04" + MAC), tlv(127, b"\x00\x80\xc2\x01\x0a"), tlv(0, b""))),
    ("lldp-tlv", "head cut", LLDP_FRAME[:15]),
    ("lacp-truncated", "ends within the partner", LACPDU[:55]),
    ("lacp-tlv", "two partners", LACPDU[:16] + LACPDU[36:56] + LACPDU[36:]),
]

IGNORED: list[tuple[str, bytes]] = [
    ("eth-802.3", encode_ethernet(b"\x01\x80\xc2\0\0\0", MAC, 38, b"\x42\x42\x03" + bytes(35))),
    ("ethertype", encode_ethernet(PEER, MAC, 0x0806 + 1, bytes(46))),
    ("ethertype", encode_ethernet(PEER, MAC, 0x8847, bytes(46))[:20]),
    *(
        ("vlan-tagged", frame[:12] + tags + frame[12:])
        for frame in (V3_FRAME, MLD_FRAME, DATA, DATA6, ARP_FRAME, ND_FRAME, LLDP_FRAME)
        for tags in (b"\x81\0\x20\x05", b"\x81\0\0\0", b"\x88\xa8\0\x01", b"\x88\xa8\0\x01\x81\0\0\x02")
    ),
    ("vlan-tagged", V3_FRAME[:12] + b"\x81\0\0\x01\x08"),
    ("ip-broadcast", encode_udp(MAC, HOST, b"\xff" * 4, b"", eth_dst=b"\xff" * 6)),
    ("ip-broadcast", encode_udp(MAC, HOST, parse_ip("10.0.0.255"), b"", eth_dst=b"\xff" * 6)),
    ("ip-broadcast", encode_udp(MAC, GLOBAL6, parse_ip("2001:db8::2"), b"", eth_dst=b"\x33\x33\0\0\0\x02")),
    ("igmp-type", igmp(v2(0x13), parse_ip("224.0.0.4"))),
    ("igmp-type", igmp(v2(0x1F), HOST)),
    ("pim-type", pim(b"\x25\0\0\0")),
    ("pim-type", pim(b"\x10\0\0\0")),
    ("pim-type", pim(b"\x20\0\0\0", destination="239.1.1.1")),
    ("arp-operation", patched(ARP_FRAME, 20, b"\0\x03")),
    ("lldp-foreign", lldp(tlv(1, b"\x04" + MAC), tlv(2, b"\x05eth0"), tlv(3, b"\0\x78"), tlv(0, b""))),
    ("lldp-foreign", lldp(tlv(1, b"\x07dpid:0000000000000007"), tlv(2, b"\x02\0\0\0\x03"), tlv(0, b""))),
    ("lldp-foreign", lldp(tlv(1, b"\x07dpid:000000000000000G"), tlv(2, b"\x0700000003"), tlv(127, b"\x02VS\x01t"))),
    ("lldp-foreign", lldp(tlv(1, b"\x07dpid:0000000000000007"), tlv(2, b"\x0700000003"), tlv(127, b"\x02VS\x01"))),
    ("lldp-foreign", lldp(tlv(127, b"\x02VS\x01" + bytes(65)))),
    ("lldp-foreign", lldp()),
    ("slow-protocol", LACPDU[:14] + b"\x02" + LACPDU[15:]),
]


@pytest.mark.parametrize(("reason", "case", "frame"), MALFORMED, ids=[f"{r}: {c}" for r, c, _ in MALFORMED])
def test_faulty_frame_is_malformed_for_its_reason(reason: str, case: str, frame: bytes) -> None:
    assert decode(frame) == Malformed(reason)


@pytest.mark.parametrize(("reason", "frame"), IGNORED)
def test_frame_of_no_interest_is_ignored(reason: str, frame: bytes) -> None:
    assert decode(frame) == Ignored(reason)


def test_every_reason_has_a_case() -> None:
    assert {reason for reason, _, _ in MALFORMED} == set(REASONS)
    assert {reason for reason, _ in IGNORED} == set(IGNORED_REASONS)


def test_the_frames_behind_the_faulty_ones_are_sound() -> None:
    join = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP)
    join6 = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP6)
    assert decode(V3_FRAME) == Report(4, 3, MAC, HOST, (join,))
    assert decode(V2_FRAME) == Report(4, 2, MAC, HOST, (GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP),))
    assert decode(MLD_FRAME) == Report(6, 2, MAC, HOST6, (join6,))
    assert decode(DATA) == Data(4, MAC, HOST, GROUP, 28 + 21)
    assert decode(DATA6) == Data(6, MAC, GLOBAL6, GROUP6, 48 + 21)
    assert decode(ND_FRAME) == Neighbour(MAC, PEER, HOST6, solicited_node(GLOBAL6), True, GLOBAL6, MAC)
    assert isinstance(decode(ARP_FRAME), Arp)
    assert decode(HELLO) == PimHello(4, MAC, HOST, 105.0)
    assert decode(pim6(HOST6)) == PimHello(6, MAC, HOST6, 105.0)
    assert decode(LLDP_FRAME) == Lldp(7, 3, b"token")
