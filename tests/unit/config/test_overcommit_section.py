"""The section `overcommit`: what it may say, and every fault with its line."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.overcommit_settings import Capacities, Overcommit, TableCapacity
from controller.config.policy import Policy


def loaded(*lines: str) -> Policy:
    return load_policy("version: 1\n" + "".join(f"{line}\n" for line in lines))


def faults_of(*lines: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        loaded(*lines)
    return [tuple(error) for error in caught.value.errors]


def test_without_the_section_all_groups_are_in():
    assert loaded().overcommit == Overcommit()
    assert loaded().overcommit.mode == "off"


def test_switches_are_named_by_ids_and_names():
    policy = loaded(
        "switches: {leaf7: {dpid: 7}}",
        "overcommit:",
        "  mode: swap",
        '  capacity: {default: 2000, switches: {leaf7: 500, 12: 4000, "00000000000000aa": 7}}',
    )
    own = (TableCapacity(7, 500), TableCapacity(12, 4000), TableCapacity(0xAA, 7))
    assert policy.overcommit == Overcommit(mode="swap", capacity=Capacities(2000, own))


def test_faults_have_their_lines():
    assert faults_of(
        "overcommit:",
        "  mode: swop",
        "  capacity:",
        "    default: 0",
        "    switches:",
        "      12: 0",
        "      13: 5",
        "      0xd: 6",
        "      leaf: 7",
    ) == [
        (3, "overcommit.mode", "expected one of off, swap, found 'swop'; did you mean 'swap'?"),
        (5, "overcommit.capacity.default", "0 is not within 1 and 16777216"),
        (7, "overcommit.capacity.switches.12", "0 is not within 1 and 16777216"),
        (9, "overcommit.capacity.switches.0xd", "switch 13 has its number already, on line 8"),
        (10, "overcommit.capacity.switches.leaf", faults_of_leaf()),
    ]


def faults_of_leaf() -> str:
    ((_, _, message),) = faults_of("overcommit: {capacity: {switches: {leaf: 7}}}")
    assert "no switch of that name" in message
    return message
