"""The section `pools`: ranges of groups, and every fault with its line."""

from __future__ import annotations

import json

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.policy import AddressPool
from controller.config.terms import parse_group_prefix


def fault_of(text: str) -> tuple[int, str, str]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    (error,) = caught.value.errors
    return error.line, error.field, error.message


def test_pools_have_their_ranges_in_order():
    policy = load_policy(
        "version: 1\npools:\n  video: [239.10.1.0/24, 239.10.0.0/24]\n  audio.2: ['ff15::2:0/112', 239.11.0.1]\n"
    )
    assert policy.pools == (
        AddressPool("video", (parse_group_prefix("239.10.1.0/24"), parse_group_prefix("239.10.0.0/24"))),
        AddressPool("audio.2", (parse_group_prefix("ff15::2:0/112"), parse_group_prefix("239.11.0.1"))),
    )
    assert policy.warnings == ()


@pytest.mark.parametrize(
    ("entry", "at", "message"),
    [
        ("video: []", "pools.video", "no ranges"),
        ("video: 239.10.0.0/24", "pools.video", "expected a list"),
        ("video: [10.0.0.0/8]", "pools.video[0]", "not within the multicast addresses"),
        ("video: [239.10.0.1/24]", "pools.video[0]", "host bits set"),
        ("video: [224.0.0.0/24]", "pools.video[0]", "link scope"),
        ("video: ['ff02::/16']", "pools.video[0]", "link scope"),
        ("video: ['ff00::/8']", "pools.video[0]", "never leave their link"),
        ("video: ['ff10::/12']", "pools.video[0]", "never leave their link"),
        ("video: [239.0.0.0/24]", "pools.video", "no address of it can be given"),
        ("video: [7]", "pools.video[0]", "expected a group or prefix"),
        ("7video: [239.10.0.0/24]", "pools.7video", "cannot name a pool"),
        ("video: [239.10.0.0/24, 239.10.0.0/24]", "pools.video[1]", "has addresses of 239.10.0.0/24 on line 3"),
        ("video: [239.10.0.0/24, 239.10.0.128/25]", "pools.video[1]", "has addresses of 239.10.0.0/24 on line 3"),
        ("video: [239.10.0.128/25, 239.10.0.0/24]", "pools.video[1]", "has addresses of 239.10.0.128/25 on line 3"),
    ],
)
def test_faults_have_their_line(entry: str, at: str, message: str):
    line, field, text = fault_of(f"version: 1\npools:\n  {entry}\n")
    assert (line, field) == (3, at)
    assert message in text


@pytest.mark.parametrize(
    ("section", "right"),
    [
        ("[239.10.0.0/24]", "{video: [239.10.0.0/24, 239.10.1.0/24]}"),
        ("\n  video: 239.9.0.0/24", "[239.9.0.0/24]"),
        ("\n  video: 'ff15::2:0/112'", '["ff15::2:0/112"]'),
        ("\n  video: 7", "[239.10.0.0/24, 239.10.1.0/24]"),
        ("\n  video: []", "[239.10.0.0/24, 239.10.1.0/24]"),
        ("\n  video: [10.0.0.0/8]", "239.10.0.0/24"),
        ("\n  video: [7]", "239.10.0.0/24"),
    ],
)
def test_a_fault_shows_what_is_right_and_that_is_taken(section: str, right: str):
    _line, _field, text = fault_of(f"version: 1\npools: {section}\n")
    assert f"such as {right}" in text
    entry = right if right.startswith("{") else "{video: %s}" % (right if right.startswith("[") else f"[{right}]")
    assert load_policy(f"version: 1\npools: {entry}\n").pools


def test_a_range_of_another_pool_is_refused_with_its_line():
    line, field, text = fault_of("version: 1\npools:\n  a: [239.10.0.0/16]\n  b: [239.10.7.0/24]\n")
    assert (line, field, text) == (4, "pools.b[0]", "239.10.7.0/24 has addresses of 239.10.0.0/16 on line 3")


def test_ranges_that_share_mac_addresses_are_warned_of():
    policy = load_policy("version: 1\npools:\n  a: [239.10.0.0/24]\n  b: [239.138.0.128/25]\n")
    (warning,) = policy.warnings
    assert (warning.line, warning.field) == (4, "pools.b[0]")
    assert "239.138.0.128/25 has MAC addresses of 239.10.0.0/24 on line 3" in warning.message
    assert load_policy("version: 1\npools:\n  a: [239.10.0.0/24]\n  b: [239.138.1.0/25]\n").warnings == ()


def test_there_are_bounds():
    pools = {"version": 1, "pools": {f"p{number}": [f"239.10.{number % 256}.0/24"] for number in range(1025)}}
    assert "at most 1024" in fault_of(json.dumps(pools))[2]
    ranges = [f"239.10.0.{number}" for number in range(65)]
    assert "at most 64" in fault_of(json.dumps({"version": 1, "pools": {"p": ranges}}))[2]
