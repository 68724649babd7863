"""The section `overcommit`: what it may say, and every fault with its line."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.overcommit_settings import Capacities, Overcommit, TableCapacity, TableShare, TenantShare
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
        (3, "overcommit.mode", "expected one of off, swap, cover, found 'swop'; did you mean 'swap'?"),
        (5, "overcommit.capacity.default", "0 is not within 1 and 16777216"),
        (7, "overcommit.capacity.switches.12", "0 is not within 1 and 16777216"),
        (9, "overcommit.capacity.switches.0xd", "switch 13 has its number already, on line 8"),
        (10, "overcommit.capacity.switches.leaf", faults_of_leaf()),
    ]


def faults_of_leaf() -> str:
    ((_, _, message),) = faults_of("overcommit: {capacity: {switches: {leaf: 7}}}")
    assert "no switch of that name" in message
    return message


TENANTS = "tenants: {video: [10.0.0.1], backup: [10.0.0.2]}"


def test_tenants_have_shares_of_tables():
    policy = loaded(
        TENANTS,
        "overcommit:",
        "  tax_pct: 50",
        "  tenants:",
        "    backup: {}",
        "    video: {shares: 2.5, reservation: 200, limit: 1500}",
    )
    shares = (TenantShare("backup", TableShare()), TenantShare("video", TableShare(2.5, 200, 1500)))
    assert policy.overcommit == Overcommit(tax_pct=50, tenants=shares)


def test_faults_of_tenants_have_their_lines():
    assert faults_of(
        TENANTS,
        "overcommit:",
        "  tax_pct: 100",
        "  capacity: {default: 100, switches: {7: 60}}",
        "  tenants:",
        "    vidio: {shares: 0}",
        "    backup:",
        "      reservation: 50",
        "      limit: 40",
        "    video: {reservation: 11}",
    ) == [
        (4, "overcommit.tax_pct", "100 is not within 0 and 99"),
        (7, "overcommit.tenants", "61 entries are reserved, and a table has room for 60"),
        (7, "overcommit.tenants.vidio", "unknown tenant 'vidio'; did you mean 'video'?"),
        (7, "overcommit.tenants.vidio.shares", "0 is not within 0.001 and 1000000"),
        (9, "overcommit.tenants.backup.reservation", "50 is above the limit, 40"),
    ]


def test_what_tenants_may_have_to_do_without_has_room_in_the_store():
    lines = (TENANTS, "overcommit:", "  capacity: {default: 100, switches: {7: 120}}")
    shares = ("  tenants:", "    video: {reservation: 20}", "    backup: {reservation: 10, limit: 40}")
    assert loaded(*lines, *shares, "  store: 130").overcommit.store == 130
    needs = "the tenants need 130 slots of the store, what each may have less what it has reserved"
    assert faults_of(*lines, *shares, "  store: 129") == [
        (6, "overcommit.tenants", f"{needs}, and overcommit.store is 129")
    ]
    unknown = (TENANTS, "overcommit:", "  tenants: {video: {reservation: 20}}", "  store: 1")
    assert loaded(*unknown).overcommit.store == 1


def test_no_more_tenants_share_tables_than_are_supported():
    names = [f"t{number}" for number in range(257)]
    hosts = ", ".join(f"{name}: [10.1.{number >> 8}.{number & 255}]" for number, name in enumerate(names))
    shares = ", ".join(f"{name}: {{}}" for name in names)
    faults = faults_of(f"tenants: {{{hosts}}}", f"overcommit: {{tenants: {{{shares}}}}}")
    assert faults == [(3, "overcommit.tenants", "257 tenants; at most 256 are supported")]


def test_covering_trees_beside_aliases_are_warned_of_and_neither_alone_is():
    (warning,) = loaded("overcommit:", "  mode: cover", "aliases: {mode: dynamic}").warnings
    assert tuple(warning[:2]) == (3, "overcommit.mode")
    assert "while aliases.mode is dynamic: groups keep their own entries" in warning[2]
    for others in ("aliases: {mode: 'off'}", "queues: {mode: 'off'}", "vlans: {}"):
        assert loaded("overcommit: {mode: cover}", others).warnings == ()
    assert loaded("overcommit: {mode: swap}", "aliases: {mode: dynamic}").warnings == ()
