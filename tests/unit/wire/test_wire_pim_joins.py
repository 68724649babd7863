"""PIM join and prune messages: what is encoded is read again, and nothing that is broken is taken for one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.wire.addresses import ALL_PIM_ROUTERS_V4, parse_ip
from controller.wire.checksum import internet_checksum
from controller.wire.frame import decode
from controller.wire.ipv4 import PROTOCOL_PIM, encode_ipv4
from controller.wire.packets import Ignored, Malformed, PimGroup, PimJoinPrune, PimSource
from controller.wire.pim_join_prune import encode_pim_join_prune
from controller.wire.reasons import REASONS

MAC, ROUTER, UPSTREAM = bytes.fromhex("020000000001"), parse_ip("10.0.0.6"), parse_ip("10.0.0.5")
GROUP, SOURCE = parse_ip("239.1.2.3"), parse_ip("10.9.0.1")
ANY = PimSource(UPSTREAM, True, True)
JOIN = PimJoinPrune(4, MAC, ROUTER, UPSTREAM, 210.0, (PimGroup(GROUP, 32, (ANY,), ()),))

hosts4 = st.binary(min_size=3, max_size=3).map(lambda low: b"\x0a" + low)
groups4 = st.binary(min_size=3, max_size=3).map(lambda low: b"\xef" + low)
link_local = st.binary(min_size=8, max_size=8).map(lambda low: b"\xfe\x80" + bytes(6) + low)
hosts6 = st.binary(min_size=14, max_size=14).map(lambda low: b"\x20\x01" + low)
groups6 = st.binary(min_size=14, max_size=14).map(lambda low: b"\xff\x0e" + low)


def messages(family, routers, groups, hosts):
    listed = st.lists(st.builds(PimSource, hosts, st.booleans(), st.booleans()), max_size=4).map(tuple)
    longest = 32 if family == 4 else 128
    group = st.builds(PimGroup, groups, st.integers(4, longest), listed, listed)
    holdtimes = st.integers(0, 65534).map(float) | st.just(math.inf)
    of_groups = st.lists(group, max_size=5).map(tuple)
    return st.builds(PimJoinPrune, st.just(family), st.just(MAC), routers, routers, holdtimes, of_groups)


any_message = messages(4, hosts4, groups4, hosts4) | messages(6, link_local, groups6, hosts6)


def pim(body: bytes) -> bytes:
    """Return a frame with a PIM message whose checksum is right."""
    whole = body[:2] + internet_checksum(body).to_bytes(2, "big") + body[4:]
    return encode_ipv4(bytes.fromhex("01005e00000d"), MAC, ROUTER, ALL_PIM_ROUTERS_V4, PROTOCOL_PIM, whole)


def body_of(message: PimJoinPrune) -> bytes:
    """Return a message with a checksum of 0."""
    frame = encode_pim_join_prune(message)
    body = frame[34 : 14 + int.from_bytes(frame[16:18], "big")]
    return body[:2] + bytes(2) + body[4:]


@given(any_message)
def test_what_is_encoded_is_read_again(message):
    assert decode(encode_pim_join_prune(message)) == message


@given(messages(4, st.just(ROUTER), groups4, hosts4), st.binary(max_size=8))
def test_what_follows_the_last_group_is_padding(message, padding):
    assert decode(pim(body_of(message) + padding)) == message


@given(messages(4, hosts4, groups4, hosts4), st.data())
def test_a_message_that_ends_early_is_malformed(message, data):
    body = body_of(message)
    cut = data.draw(st.integers(4, len(body) - 1))
    assert decode(pim(body[:cut])) == Malformed("pim-truncated")


changes_of_bytes = st.lists(st.tuples(st.integers(4, 400), st.integers(0, 255)), max_size=6)


@settings(max_examples=500)
@given(messages(4, hosts4, groups4, hosts4), changes_of_bytes)
def test_no_byte_makes_the_reader_raise(message, changes):
    body = bytearray(body_of(message))
    for position, value in changes:
        body[4 + position % (len(body) - 4)] = value
    found = decode(pim(bytes(body)))
    assert isinstance(found, PimJoinPrune | Malformed | Ignored)
    if isinstance(found, Malformed):
        assert found.reason in REASONS
    if isinstance(found, PimJoinPrune):
        for group in found.groups:
            assert group.group[0] >> 4 == 14
            assert all(len(source.address) == 4 for source in group.joins + group.prunes)


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (4, 2, "pim-address"),  # the family of the upstream neighbour
        (5, 1, "pim-address"),  # its encoding
        (6, 239, "pim-address"),  # a group as a neighbour
        (14, 2, "pim-address"),  # the family of the group
        (17, 33, "pim-group"),  # its prefix
        (18, 10, "pim-group"),  # a host as a group
        (26, 2, "pim-address"),  # the family of the source
        (29, 31, "pim-address"),  # a prefix as a source
        (30, 239, "pim-address"),  # a group as a source
        (11, 2, "pim-truncated"),  # a second group that is not there
        (23, 2, "pim-truncated"),  # a second join that is not there
        (25, 1, "pim-truncated"),  # a prune that is not there
    ],
)
def test_what_is_wrong_is_told_by_its_reason(position, value, reason):
    body = bytearray(body_of(JOIN))
    body[position] = value
    assert decode(pim(bytes(body))) == Malformed(reason)


def test_attributes_of_a_source_are_passed_over():
    body = body_of(JOIN)
    with_attributes = body[:27] + b"\x01" + body[28:34] + b"\x01\x02ab\x41\x01c"
    assert decode(pim(with_attributes)) == JOIN
    assert decode(pim(with_attributes[:-1])) == Malformed("pim-truncated")


def test_a_wrong_checksum_and_a_ttl_above_1_are_refused():
    frame = encode_pim_join_prune(JOIN)
    assert decode(frame[:-1] + bytes((frame[-1] ^ 1,))) == Malformed("pim-checksum")
    far = encode_ipv4(frame[:6], MAC, ROUTER, ALL_PIM_ROUTERS_V4, PROTOCOL_PIM, frame[34:], ttl=2)
    assert decode(far) == Malformed("pim-ttl")


@pytest.mark.parametrize("holdtime_s", [-1.0, 65535.0])
def test_a_holdtime_that_cannot_be_said_is_an_error(holdtime_s):
    with pytest.raises(ValueError, match="65534"):
        encode_pim_join_prune(JOIN._replace(holdtime_s=holdtime_s))
