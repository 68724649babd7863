"""Cookies: stable, of an app, and one for each group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.kernel.domains import in_domain
from controller.rules.cookies import SHARED_COOKIE, STALE_VERSION_COOKIE, cookie_of, group_cookie
from controller.rules.pipeline import MULTICAST_TAG, SENDER_COOKIE_BIT


def test_cookies_are_stable_and_carry_the_tag():
    cookie = cookie_of(0x5602, ("group", b"\xef\1\2\3"))
    assert f"{cookie:#x}" == "0x5602214aece72b7d"
    assert cookie == cookie_of(0x5602, ("group", b"\xef\1\2\3"))
    assert cookie != cookie_of(0x5602, ("group", b"\xef\1\2\4"))


def test_the_cookie_of_a_group_is_its_own_and_leaves_the_bit_of_senders_alone():
    assert f"{group_cookie(0x5602, bytes((239, 1, 2, 3))):#x}" == "0x56020000ef010203"
    assert f"{group_cookie(0x5602, in_domain(bytes((239, 1, 2, 3)), 7)):#x}" == "0x56020007ef010203"
    assert f"{group_cookie(0x5602, in_domain(bytes((239, 1, 2, 3)), 4094)):#x}" == "0x56020ffeef010203"
    v6 = b"\xff\x3e" + bytes(13) + b"\1"
    addresses = (b"\xef\1\2\3", b"\xef\1\2\4", v6)
    names = [in_domain(address, vlan_id) for address in addresses for vlan_id in (0, 7, 4094)]
    cookies = [group_cookie(0x5602, name) for name in names]
    assert len(set(cookies)) == len(names)
    assert all(cookie >> 48 == 0x5602 and not cookie & SENDER_COOKIE_BIT for cookie in cookies)


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16), st.integers(0, 4094))
def test_no_ipv6_group_has_the_cookie_of_an_ipv4_group(v4, v6, vlan_id):
    of_v4, of_v6 = (group_cookie(MULTICAST_TAG, in_domain(address, vlan_id)) for address in (v4, v6))
    assert of_v4 < MULTICAST_TAG << 48 | 1 << 44 <= 1 << 46 | MULTICAST_TAG << 48 <= of_v6
    assert of_v6 == cookie_of(MULTICAST_TAG, "group", in_domain(v6, vlan_id)) & ~SENDER_COOKIE_BIT | 1 << 46


@pytest.mark.parametrize("cookie", [SHARED_COOKIE, STALE_VERSION_COOKIE])
def test_what_is_of_no_group_has_the_cookie_of_none(cookie):
    assert not 0xE0000000 <= cookie & 0xFFFFFFFF < 0xF0000000 or cookie >> 44 & 0xF
