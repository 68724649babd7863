"""The section `fabrics`: names of parts of the network, each known by some of its switches."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.policy import NamedFabric


def errors(section):
    with pytest.raises(PolicyInvalid) as invalid:
        load_policy(f"version: 1\nswitches: {{leaf1: {{dpid: 1}}}}\nfabrics:\n{section}")
    return [(error.line, error.field, error.message) for error in invalid.value.errors]


def test_names_and_switches_are_read_in_the_order_of_the_file():
    policy = load_policy("version: 1\nswitches: {leaf1: {dpid: 1}}\nfabrics:\n  b: [leaf1, 0x1a]\n  a: [3]\n")
    assert policy.fabrics == (NamedFabric("b", (1, 26)), NamedFabric("a", (3,)))
    assert [fabric.line for fabric in policy.fabrics] == [4, 5]
    assert policy.known_switches() == {1, 3, 26}


def test_a_switch_in_two_fabrics_is_a_fault_with_both_places():
    (error,) = errors("  a: [2, leaf1]\n  b: [leaf1]\n")
    assert error == (5, "fabrics.b[0]", "switch 1 is in 'a' already (line 4)")


def test_a_switch_twice_in_a_fabric_is_a_fault():
    assert errors("  a: [2, 2]\n") == [(4, "fabrics.a[1]", "switch 2 is in 'a' already (line 4)")]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("  9a: [2]\n", "cannot name a fabric"),
        ("  'a b': [2]\n", "cannot name a fabric"),
        ("  fabric: [2]\n", "cannot name a fabric"),
        ("  a: []\n", "0 switches"),
        ("  a: 2\n", "expected a list of switches"),
        ("  a: [spine]\n", "no switch of that name"),
        ("  a: [" + ", ".join(map(str, range(1, 66))) + "]\n", "65 switches"),
    ],
)
def test_what_cannot_be_a_fabric_is_told_with_its_line(section, message):
    (error,) = errors(section)
    assert error[0] == 4 and message in error[2]
