"""Which groups have one Ethernet address, against the encoder of these addresses, and how many a range has."""

from __future__ import annotations

import random

import pytest

from controller.config.terms import Prefix, parse_group_prefix
from controller.kernel.group_macs import first_usable, same_mac, usable_macs
from controller.wire.addresses import group_mac, is_multicast_ip, parse_ip

LINK_SCOPE = [parse_ip(f"224.0.0.{number}") for number in range(256)]


def macs_of(prefix: Prefix) -> set[bytes]:
    size, first = len(prefix.network), int.from_bytes(prefix.network, "big")
    numbers = range(first, first + (1 << 8 * size - prefix.length))
    return {group_mac(number.to_bytes(size, "big")) for number in numbers}


def test_thirty_two_groups_have_each_address():
    group = parse_ip("239.138.3.7")
    found = list(same_mac(group))
    assert len(set(found)) == 32
    assert group in found
    assert all(map(is_multicast_ip, found))
    assert {group_mac(other) for other in found} == {group_mac(group)}


def test_of_an_ipv6_group_only_itself_is_told():
    assert list(same_mac(parse_ip("ff05::1:7"))) == [parse_ip("ff05::1:7")]


@pytest.mark.parametrize("number", range(20))
def test_ranges_have_as_many_addresses_as_can_be_counted(number: int):
    draw = random.Random(number)
    prefixes = []
    for _ in range(draw.randint(1, 4)):
        length = draw.randint(20, 32)
        start = 0xE0000000 | draw.choice([0, 0x800000, 0x0F000000]) | draw.getrandbits(13)
        prefixes.append(Prefix((start >> 32 - length << 32 - length).to_bytes(4, "big"), length))
    counted = set().union(*map(macs_of, prefixes)) - set(map(group_mac, LINK_SCOPE))
    assert usable_macs(prefixes) == len(counted)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("239.0.0.0/24", 0),
        ("239.128.0.0/23", 256),
        ("239.0.0.0/8", (1 << 23) - 256),
        ("224.0.0.0/4", (1 << 23) - 256),
        ("ff05::1:0/112", 0),
        ("ff05::2:0/112", 1 << 16),
        ("ff15::/16", (1 << 32) - 0x20000 - (1 << 24)),
        ("ff15::ff00:0/104", 0),
    ],
)
def test_addresses_of_link_scope_groups_are_left_out(text: str, count: int):
    assert usable_macs([parse_group_prefix(text)]) == count


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("239.10.0.0", "239.10.0.0"),
        ("239.0.0.0", "239.0.1.0"),
        ("239.0.0.255", "239.0.1.0"),
        ("239.128.0.7", "239.128.1.0"),
        ("ff05::", "ff05::2:0"),
        ("ff05::fe00:0", "ff05::fe00:0"),
        ("ff05::ff00:0", "ff05::1:2:0"),
        ("ff05::ffff:ffff", "ff05::1:2:0"),
    ],
)
def test_the_next_address_that_can_be_given_is_found_at_once(start: str, found: str):
    address = parse_ip(start)
    number = first_usable(int.from_bytes(address, "big"), len(address))
    assert number.to_bytes(len(address), "big") == parse_ip(found)
    if len(address) == 4:
        assert group_mac(parse_ip(found)) not in set(map(group_mac, LINK_SCOPE))
