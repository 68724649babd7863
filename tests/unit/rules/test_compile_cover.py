"""Entries under covering trees: what carries their addresses meets them alone."""

from __future__ import annotations

import pytest

from controller.discovery.base_rules import base_rules
from controller.rules.compile import (
    COVERED_VERSIONS,
    TREE_VERSIONS,
    ChannelDuty,
    SenderEntry,
    SwitchDuty,
    lower_to_1_3,
    tree_version_of,
    versioned_mac,
)
from controller.rules.compile_cover import (
    HIGHEST_COVER,
    STAND_IN_VERSION,
    CoverDuty,
    cover_mac,
    cover_of,
    cover_rule,
    in_covered_form,
    is_covered,
)
from controller.rules.compile_shared import SharedDuty, in_shared_form, is_shared, shared_rules, shares
from controller.rules.evaluate import Fields, FlowTables, overlap
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, OPENFLOW_1_3
from controller.wire.addresses import group_mac, parse_ip

GROUPS = [parse_ip("239.1.2.3"), parse_ip("ff0e::1:2:3")]
VERSION = COVERED_VERSIONS + 7
SENDER_MAC = bytes.fromhex("020000000009")


def covered(group, duty, version=VERSION):
    stand_in = SwitchDuty(STAND_IN_VERSION, duty.channels, duty.senders)
    return in_covered_form(version, versioned_mac(group, STAND_IN_VERSION), lower_to_1_3(group, stand_in, 5))


def source_of(group):
    return bytes(len(group) - 1) + b"\x09"


def fields(group, mac):
    eth_type = ETH_TYPE_IPV4 if len(group) == 4 else ETH_TYPE_IPV6
    return Fields(mac, SENDER_MAC, eth_type, 17, source_of(group), group)


def tables_with(*rule_sets):
    tables = FlowTables()
    for rule in [*base_rules(OPENFLOW_1_3), *(rule for rules in rule_sets for rule in rules.values())]:
        tables.put(rule)
    return tables


def sent_by(tables, group, mac, in_port):
    return [(each.port_no, each.eth_dst) for each in tables.process(OPENFLOW_1_3, fields(group, mac), in_port).sent]


@pytest.mark.parametrize("group", GROUPS)
def test_a_packet_travels_by_the_address_of_the_tree_and_reaches_hosts_by_its_own(group):
    sender = SenderEntry(3, SENDER_MAC, source_of(group), True)
    tables = tables_with(covered(group, SwitchDuty(VERSION, (ChannelDuty(None, (1,), (2,)),), (sender,))))
    expected = [(1, cover_mac(7)), (2, group_mac(group))]
    assert sent_by(tables, group, group_mac(group), 3) == expected
    assert sent_by(tables, group, cover_mac(7), 9) == expected
    assert sent_by(tables, group, cover_mac(8), 9) == [], "it is on another tree"


@pytest.mark.parametrize("group", GROUPS)
def test_a_switch_without_hosts_sends_all_groups_on_and_one_that_is_an_end_drops_them(group):
    rule = cover_rule(VERSION, (1, 2, 5))
    assert sent_by(tables_with({rule.key: rule}), group, cover_mac(7), 2) == [(1, cover_mac(7)), (5, cover_mac(7))]
    assert sent_by(tables_with({rule.key: rule}), group, cover_mac(8), 2) == []
    assert sent_by(tables_with(), group, cover_mac(7), 2) == []
    assert is_shared(rule)


@pytest.mark.parametrize("group", GROUPS)
def test_entries_of_covering_trees_overlap_with_none_of_other_versions(group):
    """A packet of one tree meets the entries of that alone, whatever of its group is still there beside them."""
    duty = SwitchDuty(VERSION, (ChannelDuty(None, (1,), (2,)),), ())
    mine = [*covered(group, duty).values(), cover_rule(VERSION, (1, 2))]
    others = [*covered(group, duty, COVERED_VERSIONS + 8).values(), cover_rule(COVERED_VERSIONS + 8, (1,))]
    for version in range(TREE_VERSIONS):
        own = lower_to_1_3(group, SwitchDuty(version, (ChannelDuty(None, (8,), ()),), ()), 5)
        others += own.values()
        if version:
            shared = SwitchDuty(TREE_VERSIONS + version, (ChannelDuty(None, (8,), ()),), ())
            plain = lower_to_1_3(group, SwitchDuty(*shared), 5)
            others += in_shared_form(group, shared, plain).values()
    others += shared_rules(group, False, SharedDuty(17, (ChannelDuty(None, tuple(range(1, 33)), ()),))).values()
    for rule in mine:
        assert not any(overlap(OPENFLOW_1_3, rule.key.match, other.key.match) for other in others
                       if other.key.priority == rule.key.priority)  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_entries_tell_which_tree_they_are_of(group):
    for version in (COVERED_VERSIONS + 1, VERSION, COVERED_VERSIONS + HIGHEST_COVER):
        (rule,) = covered(group, SwitchDuty(version, (ChannelDuty(None, (1,), (2,)),), ()), version).values()
        assert tree_version_of(rule.key.match) == version
        assert is_covered(version) and shares(version)
        assert rule.key.match.eth_dst == cover_mac(cover_of(version))
    assert not any(is_covered(version) for version in range(COVERED_VERSIONS + 1))


def test_a_duty_under_a_covering_tree_is_no_other_duty():
    assert CoverDuty(VERSION, (), (), (1, 2)) != SwitchDuty(VERSION, (), ())
