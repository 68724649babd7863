"""Round trips of every record, and decoders that meet any bytes."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller.wire.addresses import group_mac, solicited_node
from controller.wire.arp import arp_reply, encode_arp
from controller.wire.checksum import internet_checksum, upper_layer_checksum, upper_layer_intact
from controller.wire.codes import decode_code8, decode_code16, encode_code8, encode_code16
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.igmp import encode_igmp_query, encode_igmp_report
from controller.wire.ipv4 import encode_ipv4
from controller.wire.ipv6 import encode_ipv6
from controller.wire.lldp import encode_lldp
from controller.wire.mld import encode_mld_query, encode_mld_report
from controller.wire.nd import neighbour_advertisement, neighbour_solicitation
from controller.wire.packets import (
    Arp,
    Data,
    GroupRecord,
    Ignored,
    Lldp,
    Malformed,
    Neighbour,
    Packet,
    PimGroup,
    PimHello,
    PimJoinPrune,
    PimSource,
    Query,
    RecordType,
    Report,
    UnicastPacket,
)
from controller.wire.pim import encode_pim_hello
from controller.wire.reasons import IGNORED_REASONS, REASONS
from controller.wire.udp import encode_udp

MAC = bytes.fromhex("020000000001")
FUZZ_ROUNDS = 100_000

macs = st.binary(min_size=6, max_size=6).map(lambda mac: bytes((mac[0] & 0xFE,)) + mac[1:])
hosts4 = st.tuples(st.integers(1, 223).filter(lambda first: first != 127), st.binary(min_size=3, max_size=3)).map(
    lambda parts: bytes((parts[0],)) + parts[1]
)
groups4 = st.tuples(st.integers(224, 239), st.binary(min_size=3, max_size=3)).map(
    lambda parts: bytes((parts[0],)) + parts[1]
)
hosts6 = st.tuples(st.sampled_from((0x20, 0xFD, 0xFE)), st.binary(min_size=15, max_size=15)).map(
    lambda parts: bytes((parts[0],)) + parts[1]
)
link_local = st.binary(min_size=8, max_size=8).map(lambda low: b"\xfe\x80" + bytes(6) + low)
groups6 = st.binary(min_size=15, max_size=15).map(lambda low: b"\xff" + low)
codes8 = st.integers(0, 255).map(decode_code8)


def records(
    groups: st.SearchStrategy[bytes], hosts: st.SearchStrategy[bytes]
) -> st.SearchStrategy[tuple[GroupRecord, ...]]:
    one = st.builds(GroupRecord, st.sampled_from(RecordType), groups, st.lists(hosts, max_size=6).map(tuple))
    return st.lists(one, max_size=6).map(tuple)


def plain(
    groups: st.SearchStrategy[bytes], kinds: tuple[RecordType, ...]
) -> st.SearchStrategy[tuple[GroupRecord, ...]]:
    return st.tuples(st.builds(GroupRecord, st.sampled_from(kinds), groups, st.just(())))


OLD_KINDS = (RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_INCLUDE)
igmp_hosts = st.one_of(hosts4, st.just(bytes(4)))
mld_hosts = st.one_of(link_local, st.just(bytes(16)))
reports = st.one_of(
    st.builds(Report, st.just(4), st.just(3), macs, igmp_hosts, records(groups4, hosts4)),
    st.builds(Report, st.just(4), st.just(2), macs, igmp_hosts, plain(groups4, OLD_KINDS)),
    st.builds(Report, st.just(4), st.just(1), macs, igmp_hosts, plain(groups4, OLD_KINDS[:1])),
    st.builds(Report, st.just(6), st.just(2), macs, mld_hosts, records(groups6, hosts6)),
    st.builds(Report, st.just(6), st.just(1), macs, mld_hosts, plain(groups6, OLD_KINDS)),
)


def queries(
    family: int,
    version: int,
    sources: st.SearchStrategy[bytes],
    groups: st.SearchStrategy[bytes],
    hosts: st.SearchStrategy[bytes],
    times: st.SearchStrategy[float],
    *,
    modern: bool,
) -> st.SearchStrategy[Query]:
    listed = st.lists(hosts, max_size=5).map(tuple) if modern else st.just(())
    asked = st.tuples(st.none(), st.just(())) | st.tuples(groups, listed)
    return st.builds(
        lambda eth_src, source, what, time_s, suppress, robustness, interval: Query(
            family,
            version,
            eth_src,
            source,
            *what,
            time_s,
            suppress and modern,
            robustness if modern else None,
            float(interval) if modern else None,
        ),
        macs,
        sources,
        asked,
        times,
        st.booleans(),
        st.integers(0, 7),
        codes8,
    )


any_query = st.one_of(
    queries(4, 1, igmp_hosts, groups4, hosts4, st.just(10.0), modern=False),
    queries(4, 2, igmp_hosts, groups4, hosts4, st.integers(1, 255).map(lambda code: code / 10), modern=False),
    queries(4, 3, igmp_hosts, groups4, hosts4, codes8.map(lambda value: value / 10), modern=True),
    queries(6, 1, link_local, groups6, hosts6, st.integers(0, 65535).map(lambda code: code / 1000), modern=False),
    queries(
        6, 2, link_local, groups6, hosts6, st.integers(0, 65535).map(lambda c: decode_code16(c) / 1000), modern=True
    ),
)
holdtimes = st.integers(0, 65534).map(float) | st.just(math.inf)
priorities = st.none() | st.integers(0, (1 << 32) - 1)
hellos = st.builds(PimHello, st.just(4), macs, hosts4, holdtimes, priorities) | st.builds(
    PimHello, st.just(6), macs, link_local, holdtimes, priorities
)
arps = st.builds(
    Arp, macs, st.binary(min_size=6, max_size=6), st.sampled_from((1, 2)), macs, igmp_hosts, macs, hosts4
)
solicitations = st.builds(neighbour_solicitation, macs, hosts6 | st.just(bytes(16)), hosts6)
neighbours = solicitations | st.builds(neighbour_advertisement, solicitations, macs)
lldps = st.builds(
    Lldp, st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1), st.binary(min_size=1, max_size=64)
)
packets = st.one_of(reports, any_query, hellos, arps, neighbours, lldps)


def assert_sound(packet: Packet) -> None:
    """A decoder's answer is one of its records, with a reason that is listed."""
    assert isinstance(
        packet,
        Report
        | Query
        | PimHello
        | PimJoinPrune
        | Data
        | Arp
        | Neighbour
        | UnicastPacket
        | Lldp
        | Ignored
        | Malformed,
    )
    if isinstance(packet, Malformed):
        assert packet.reason in REASONS
    elif isinstance(packet, Ignored):
        assert packet.reason in IGNORED_REASONS


@given(packets)
def test_decode_inverts_encode(packet: Packet) -> None:
    frame = encode(packet)  # type: ignore[arg-type]
    assert decode(frame) == packet
    assert len(frame) >= 60


@given(packets, st.data())
def test_one_changed_bit_never_yields_another_membership(packet: Packet, data: st.DataObject) -> None:
    """Both checksums cover every bit of a membership message and of the addresses that it is read with."""
    assume(isinstance(packet, Report | Query))
    frame = encode(packet)  # type: ignore[arg-type]
    assume(not isinstance(packet, Report) or packet.records)
    first = 26 if packet.family == 4 else 22
    last = (
        14 + int.from_bytes(frame[16:18], "big") if packet.family == 4 else 54 + int.from_bytes(frame[18:20], "big")
    )
    hop_by_hop = range(54, 62) if packet.family == 6 else range(0)
    at = data.draw(st.integers(first, last - 1).filter(lambda place: place not in hop_by_hop))
    changed = bytearray(frame)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not isinstance(decode(changed), Report | Query)


@given(macs, hosts4 | hosts6, st.binary(max_size=200), st.data())
def test_datagrams_are_data_or_unicast(mac: bytes, source: bytes, payload: bytes, data: st.DataObject) -> None:
    family, header_bytes = (4, 28) if len(source) == 4 else (6, 48)
    group = data.draw(groups4 if family == 4 else groups6)
    assert decode(encode_udp(mac, source, group, payload)) == Data(
        family, mac, source, group, header_bytes + len(payload)
    )
    host = data.draw(hosts4 if family == 4 else hosts6)
    assert decode(encode_udp(mac, source, host, payload, eth_dst=MAC)) == UnicastPacket(
        family, mac, MAC, source, host
    )


@given(st.binary(max_size=120))
def test_any_bytes_are_answered(frame: bytes) -> None:
    assert_sound(decode(frame))


@given(packets, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6), st.integers(0, 400))
def test_mutated_frames_are_answered(packet: Packet, changes: list[tuple[int, int]], length: int) -> None:
    frame = bytearray(encode(packet))  # type: ignore[arg-type]
    for at, value in changes:
        frame[at % len(frame)] = value
    assert_sound(decode(frame))
    assert_sound(decode(frame[: length % len(frame)]))


def _resealed(frame: bytearray) -> bytearray:
    """Put right the checksums that stand at their usual places, so that changes reach the fields behind them."""
    start = 14 + (frame[14] & 15) * 4
    if frame[12:14] == b"\x08\x00" and 34 <= start <= len(frame) - 8:
        frame[24:26] = b"\0\0"
        frame[24:26] = internet_checksum(frame[14:start]).to_bytes(2, "big")
        end = 14 + int.from_bytes(frame[16:18], "big")
        frame[start + 2 : start + 4] = b"\0\0"
        frame[start + 2 : start + 4] = internet_checksum(frame[start:end]).to_bytes(2, "big")
    elif frame[12:14] == b"\x86\xdd" and len(frame) >= 66:
        start, protocol = (62, frame[54]) if frame[20] == 0 else (54, frame[20])
        end = 54 + int.from_bytes(frame[18:20], "big")
        frame[start + 2 : start + 4] = b"\0\0"
        checksum = upper_layer_checksum(bytes(frame[22:38]), bytes(frame[38:54]), protocol, bytes(frame[start:end]))
        frame[start + 2 : start + 4] = checksum.to_bytes(2, "big")
    return frame


def _seeds() -> list[bytes]:
    """One frame of every kind."""
    host, group = bytes((10, 0, 0, 1)), bytes((239, 1, 2, 3))
    host6, group6 = bytes.fromhex("fe80" + 13 * "00" + "01"), bytes.fromhex("ff1e" + 12 * "00" + "1234")
    join, leave = GroupRecord(RecordType.MODE_IS_EXCLUDE, group), GroupRecord(RecordType.CHANGE_TO_INCLUDE, group)
    join6, leave6 = join._replace(group=group6), leave._replace(group=group6)
    allow = GroupRecord(RecordType.ALLOW_NEW_SOURCES, group, (host, host))
    allow6 = GroupRecord(RecordType.ALLOW_NEW_SOURCES, group6, (host6, host6))
    question = neighbour_solicitation(MAC, host6, bytes.fromhex("2001" + 13 * "00" + "01"))
    sound = [
        Report(4, 3, MAC, host, (join, allow, leave)),
        Report(4, 2, MAC, host, (join,)),
        Report(4, 2, MAC, host, (leave,)),
        Report(4, 1, MAC, host, (join,)),
        Report(6, 2, MAC, host6, (join6, allow6, leave6)),
        Report(6, 1, MAC, host6, (join6,)),
        Report(6, 1, MAC, host6, (leave6,)),
        Query(4, 3, MAC, host, group, (host,), 1.0, True, 2, 125.0),
        Query(4, 2, MAC, host, None, (), 10.0, False, None, None),
        Query(6, 2, MAC, host6, group6, (host6,), 1.0, True, 2, 125.0),
        Query(6, 1, MAC, host6, None, (), 10.0, False, None, None),
        PimHello(4, MAC, host, 105.0),
        PimHello(6, MAC, host6, 105.0, 1),
        PimJoinPrune(4, MAC, host, host, 210.0, (PimGroup(group, 32, (PimSource(host, True, True),), ()),)),
        PimJoinPrune(6, MAC, host6, host6, 210.0, (PimGroup(group6, 128, (), (PimSource(host6),)),)),
        Arp(MAC, MAC, 1, MAC, host, bytes(6), host),
        question,
        neighbour_advertisement(question, MAC),
        Lldp(1, 2, b"token"),
    ]
    frames = [encode(packet) for packet in sound]
    frames += [encode_udp(MAC, host, group, b"payload"), encode_udp(MAC, host6, group6, b"payload")]
    return frames + [frame[:12] + b"\x81\0\0\x05" + frame[12:] for frame in frames[:3]]


def test_a_hundred_thousand_random_and_mutated_frames_are_answered() -> None:
    generator = random.Random(9776)
    seeds = _seeds()
    seen: set[object] = set()
    for round_no in range(FUZZ_ROUNDS):
        if round_no % 8 == 0:
            frame = bytearray(generator.randbytes(generator.randrange(120)))
            if len(frame) >= 14:
                frame[6] &= 0xFE
                frame[12:14] = generator.choice(seeds)[12:14]
        else:
            frame = bytearray(generator.choice(seeds))
            for _ in range(generator.randrange(1, 4)):
                frame[generator.randrange(14, len(frame))] = generator.randrange(256)
            if round_no % 8 < 5:
                frame = _resealed(frame)
            if round_no % 8 > 6:
                del frame[generator.randrange(len(frame)) :]
        packet = decode(bytes(frame))
        seen.add(packet.reason if isinstance(packet, Malformed | Ignored) else type(packet))
        assert_sound(packet)
    assert {Report, Query, PimHello, PimJoinPrune, Arp, Neighbour, Lldp, Data, UnicastPacket} <= seen
    assert len(seen & set(REASONS)) >= 40


def test_largest_counts_over_short_frames_end_at_once() -> None:
    for seed in _seeds()[:11]:
        frame = bytearray(seed)
        start = 38 if frame[12] == 8 else 62
        for at in range(start + 4, len(frame) - 1):
            changed = bytearray(frame)
            changed[at : at + 2] = b"\xff\xff"
            assert_sound(decode(_resealed(changed)))


@given(st.integers(0, 255))
def test_codes_of_8_bits_round_trip(code: int) -> None:
    assert encode_code8(decode_code8(code)) == code


@given(st.integers(0, 65535))
def test_codes_of_16_bits_round_trip(code: int) -> None:
    assert encode_code16(decode_code16(code)) == code


@given(st.integers(0, 31744), st.integers(0, 8387584))
def test_codes_never_say_more_than_was_meant(small: int, large: int) -> None:
    assert small * 15 / 16 - 1 < decode_code8(encode_code8(small)) <= small
    assert large * 4095 / 4096 - 1 < decode_code16(encode_code16(large)) <= large


@pytest.mark.parametrize("value", [-1, 31745])
def test_values_that_8_bits_cannot_say(value: int) -> None:
    with pytest.raises(ValueError, match="31744"):
        encode_code8(value)


@pytest.mark.parametrize("value", [-1, 8387585])
def test_values_that_16_bits_cannot_say(value: int) -> None:
    with pytest.raises(ValueError, match="8387584"):
        encode_code16(value)


def _checksum_by_words(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(data[at] << 8 | data[at + 1] for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@given(st.binary(max_size=64) | st.lists(st.sampled_from((0, 0xFF)), max_size=20).map(bytes))
def test_checksum_equals_the_sum_word_by_word(data: bytes) -> None:
    assert internet_checksum(data) == _checksum_by_words(data)


@given(hosts6, groups6, st.binary(min_size=4, max_size=64), st.integers(0, 255))
def test_upper_layer_checksum_is_the_one_that_is_accepted(
    source: bytes, group: bytes, data: bytes, protocol: int
) -> None:
    blank = data[:2] + b"\0\0" + data[4:]
    pseudo = source + group + len(blank).to_bytes(4, "big") + bytes((0, 0, 0, protocol))
    checksum = upper_layer_checksum(source, group, protocol, blank)
    assert checksum == _checksum_by_words(pseudo + blank)
    sealed = blank[:2] + checksum.to_bytes(2, "big") + blank[4:]
    assert upper_layer_intact(source, group, protocol, sealed)
    wrong = blank[:2] + (checksum ^ 0x0100).to_bytes(2, "big") + blank[4:]
    assert not upper_layer_intact(source, group, protocol, wrong)


HOST, GROUP = bytes((10, 0, 0, 1)), bytes((239, 1, 2, 3))
HOST6, GROUP6 = b"\xfe\x80" + bytes(13) + b"\x01", b"\xff\x1e" + bytes(13) + b"\x01"
BLOCK = GroupRecord(RecordType.BLOCK_OLD_SOURCES, GROUP, (HOST,))
QUERY3 = Query(4, 3, MAC, HOST, GROUP, (HOST,), 1.0, False, 2, 125.0)
QUERY6 = Query(6, 2, MAC, HOST6, GROUP6, (HOST6,), 1.0, False, 2, 125.0)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: encode_igmp_report(Report(4, 2, MAC, HOST, (BLOCK,))),
        lambda: encode_igmp_report(Report(4, 1, MAC, HOST, (BLOCK._replace(sources=()),))),
        lambda: encode_igmp_report(Report(4, 2, MAC, HOST, ())),
        lambda: encode_mld_report(Report(6, 1, MAC, HOST6, (BLOCK._replace(group=GROUP6),))),
        lambda: encode_mld_report(Report(6, 1, MAC, HOST6, (BLOCK._replace(group=GROUP6, sources=()),))),
        lambda: encode_mld_report(Report(6, 3, MAC, HOST6, ())),
        lambda: encode_igmp_query(QUERY3._replace(version=2)),
        lambda: encode_igmp_query(QUERY3._replace(version=2, sources=(), max_response_s=26.0)),
        lambda: encode_igmp_query(QUERY3._replace(version=4, sources=())),
        lambda: encode_igmp_query(QUERY3._replace(group=None)),
        lambda: encode_igmp_query(QUERY3._replace(group=HOST)),
        lambda: encode_igmp_query(QUERY3._replace(robustness=8)),
        lambda: encode_igmp_query(QUERY3._replace(query_interval_s=40000.0)),
        lambda: encode_mld_query(QUERY6._replace(version=1)),
        lambda: encode_mld_query(QUERY6._replace(version=1, sources=(), max_response_s=70.0)),
        lambda: encode_mld_query(QUERY6._replace(version=3)),
        lambda: encode_mld_query(QUERY6._replace(group=HOST6)),
        lambda: encode_mld_query(QUERY6._replace(group=None)),
        lambda: encode_mld_query(QUERY6._replace(version=3, sources=())),
        lambda: encode_ipv4(MAC, MAC, HOST, HOST, 2, b"", options=bytes(41)),
        lambda: encode_ipv6(MAC, MAC, HOST6, HOST6, 58, b"", hop_by_hop=bytes(8)),
        lambda: encode_mld_query(QUERY6._replace(robustness=-1)),
        lambda: encode_pim_hello(PimHello(4, MAC, HOST, 65535.0)),
        lambda: encode_pim_hello(PimHello(4, MAC, HOST, 105.0, 1 << 32)),
        lambda: encode_arp(Arp(MAC, MAC, 1, MAC, HOST6, MAC, HOST)),
        lambda: encode_lldp(1 << 64, 1, b"t"),
        lambda: encode_lldp(1, 1 << 32, b"t"),
        lambda: encode_lldp(1, 1, b""),
        lambda: encode_lldp(1, 1, bytes(65)),
        lambda: encode_lldp(1, 1, b"t", b"short"),
        lambda: encode_udp(MAC, HOST, HOST, b""),
        lambda: encode_udp(MAC, HOST, GROUP6, b""),
        lambda: encode_udp(MAC, HOST6, GROUP, b""),
        lambda: encode_udp(MAC, HOST, GROUP, bytes(65528)),
        lambda: encode_udp(MAC, HOST, GROUP, bytes(65520)),
        lambda: encode_udp(MAC, HOST6, GROUP6, bytes(65528)),
    ],
)
def test_own_misuse_raises(misuse: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        misuse()  # type: ignore[operator]


@given(arps, macs)
def test_arp_answer_goes_back_to_who_asked(request: Arp, mac: bytes) -> None:
    answer = arp_reply(request, mac)
    assert (answer.target_mac, answer.target_ip, answer.eth_dst) == (
        request.sender_mac,
        request.sender_ip,
        request.sender_mac,
    )
    assert (answer.sender_mac, answer.sender_ip, answer.operation) == (mac, request.target_ip, 2)


@given(macs, hosts6, hosts6, macs)
def test_neighbour_answer_goes_back_to_who_asked(asker: bytes, source: bytes, target: bytes, mac: bytes) -> None:
    question = neighbour_solicitation(asker, source, target)
    assert (question.destination, question.eth_dst) == (solicited_node(target), group_mac(solicited_node(target)))
    answer = neighbour_advertisement(question, mac)
    assert (answer.destination, answer.eth_dst, answer.target, answer.mac) == (source, asker, target, mac)


def _v3_report(message: bytes, **header: object) -> bytes:
    fields = {"source": bytes((10, 0, 0, 1)), "destination": bytes((224, 0, 0, 22)), "eth_src": MAC, **header}
    checksum = internet_checksum(message).to_bytes(2, "big")
    source, destination, eth_src = fields.pop("source"), fields.pop("destination"), fields.pop("eth_src")
    payload = message[:2] + (b"\x12\x34" if fields.pop("spoils", False) else checksum) + message[4:]
    return encode_ipv4(group_mac(destination), eth_src, source, destination, 2, payload, **fields)


PLAIN_MESSAGE = bytes.fromhex("2200000000000001 04000000 ef010203")


@pytest.mark.parametrize(
    ("message", "header"),
    [
        (PLAIN_MESSAGE, {}),
        *((bytes((kind,)) + PLAIN_MESSAGE[1:], {}) for kind in (0x11, 0x12, 0x16, 0x17, 0x21)),
        *((PLAIN_MESSAGE[:8] + bytes((kind,)) + PLAIN_MESSAGE[9:], {}) for kind in range(8)),
        (PLAIN_MESSAGE[:9] + b"\1" + PLAIN_MESSAGE[10:], {}),
        (PLAIN_MESSAGE[:11] + b"\1" + PLAIN_MESSAGE[12:], {}),
        *((PLAIN_MESSAGE[:7] + bytes((count,)) + PLAIN_MESSAGE[8:], {}) for count in (0, 2)),
        *((PLAIN_MESSAGE[:12] + bytes((first,)) + PLAIN_MESSAGE[13:], {}) for first in (10, 223, 224, 232, 240)),
        (PLAIN_MESSAGE, {"spoils": True}),
        *((PLAIN_MESSAGE, {"ttl": ttl}) for ttl in (0, 2, 255)),
        *((PLAIN_MESSAGE, {"fragment": fragment}) for fragment in (0x4000, 0x2000, 0x0001)),
        *((PLAIN_MESSAGE, {"source": bytes((first, 0, 0, 1))}) for first in (0, 127, 223, 224, 255)),
        (PLAIN_MESSAGE, {"source": bytes(4)}),
        (PLAIN_MESSAGE, {"destination": bytes((224, 0, 0, 2))}),
        (PLAIN_MESSAGE, {"destination": bytes((239, 1, 2, 3))}),
        (PLAIN_MESSAGE, {"eth_src": b"\1" + MAC[1:]}),
        (PLAIN_MESSAGE, {"tos": 0}),
    ],
)
def test_a_report_of_one_record_is_read_as_the_same_behind_further_options(message, header):
    alone = decode(_v3_report(message, options=b"\x94\x04\0\0", **header))
    behind = decode(_v3_report(message, options=b"\x94\x04\0\0\1\1\1\1", **header))
    assert alone == behind


def test_no_bit_of_a_report_of_one_record_can_flip_unseen():
    frame = _v3_report(PLAIN_MESSAGE, options=b"\x94\x04\0\0")
    assert isinstance(decode(frame), Report)
    for position in range(14, 54):
        for bit in range(8):
            flipped = frame[:position] + bytes((frame[position] ^ 1 << bit,)) + frame[position + 1 :]
            assert not isinstance(decode(flipped), Report), (position, bit)
