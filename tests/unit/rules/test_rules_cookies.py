"""Cookies: stable, of an app, and one for each group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.rules.cookies import cookie_of, group_cookie
from controller.rules.pipeline import SENDER_COOKIE_BIT


def test_cookies_are_stable_and_carry_the_tag():
    cookie = cookie_of(0x5602, ("group", b"\xef\1\2\3"))
    assert f"{cookie:#x}" == "0x5602214aece72b7d"
    assert cookie == cookie_of(0x5602, ("group", b"\xef\1\2\3"))
    assert cookie != cookie_of(0x5602, ("group", b"\xef\1\2\4"))


def test_the_cookie_of_a_group_is_its_own_and_leaves_the_bit_of_senders_alone():
    assert f"{group_cookie(0x5602, bytes((239, 1, 2, 3))):#x}" == "0x5602022f2905c3d0"
    names = (b"\xef\1\2\3", b"\xef\1\2\4", b"\xef\1\2\3\x81\0\7", b"\xff\x3e" + bytes(13) + b"\1")
    cookies = [group_cookie(0x5602, name) for name in names]
    assert len(set(cookies)) == len(names)
    assert all(cookie >> 48 == 0x5602 and not cookie & SENDER_COOKIE_BIT for cookie in cookies)


@given(st.integers(0, 0xFFFF), st.binary(max_size=18))
def test_a_groups_cookie_is_that_of_its_origin(app_tag, group):
    assert group_cookie(app_tag, group) == cookie_of(app_tag, "group", group) & ~SENDER_COOKIE_BIT
