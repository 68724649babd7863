"""Tokens, probes and the first entries."""

from __future__ import annotations

import pytest

from controller.discovery.base_rules import base_rules, policer_rules
from controller.discovery.core import DiscoveryCore
from controller.discovery.probes import host_probe, link_local
from controller.discovery.settings import DiscoverySettings
from controller.discovery.tokens import FrameTokens
from controller.rules.evaluate import Fields, FlowTables, Sent
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER, Goto, Output
from controller.wire.addresses import parse_ip, parse_mac
from controller.wire.frame import decode
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC
from controller.wire.packets import Arp, Neighbour


def test_tokens_differ_by_port_switch_time_and_secret():
    places = [(dpid, port, sent) for dpid in (1, 2) for port in (1, 2) for sent in (1, 2)]
    tokens = {FrameTokens(secret, b"lldp").token(*place) for secret in (b"a" * 16, b"b" * 16) for place in places}
    assert len(tokens) == 16


def test_a_token_tells_when_its_frame_was_sent_and_nothing_once_it_was_altered():
    tokens = FrameTokens(b"a" * 16, b"lldp")
    token = tokens.token(7, 3, 123_456_789)
    assert tokens.sent_us(7, 3, token) == 123_456_789
    assert tokens.sent_us(7, 4, token) is tokens.sent_us(8, 3, token) is None
    assert FrameTokens(b"b" * 16, b"lldp").sent_us(7, 3, token) is None
    assert FrameTokens(b"a" * 16, b"echo").sent_us(7, 3, token) is None
    altered = [token[:at] + bytes((token[at] ^ 1,)) + token[at + 1 :] for at in range(len(token))]
    assert {tokens.sent_us(7, 3, other) for other in (*altered, b"", token[:-1], token + b"\0")} == {None}


def test_probes_ask_one_host_alone():
    mac, asker = parse_mac("02:00:00:00:00:0a"), parse_mac("02:56:53:52:54:00")
    assert link_local(asker) == parse_ip("fe80::56:53ff:fe52:5400")
    assert decode(host_probe(mac, parse_ip("10.0.0.1"), asker, bytes(4))) == Arp(
        asker, mac, 1, asker, bytes(4), bytes(6), parse_ip("10.0.0.1")
    )
    target = parse_ip("fe80::1")
    probe = decode(host_probe(mac, target, asker, bytes(4)))
    assert probe == Neighbour(asker, mac, link_local(asker), target, True, target, asker)


def test_openflow_1_3_tables_follow_each_other_and_end_in_drops():
    rules = {(rule.key.table, rule.key.priority, rule.key.match): rule for rule in base_rules(4)}
    misses = {key[0]: rule.actions for key, rule in rules.items() if key[1] == 0}
    assert misses == {0: (Goto(1),), 1: (Goto(2),), 2: (Goto(3),), 3: ()}
    punted = {
        (rule.key.match.eth_type, rule.key.match.icmpv6_type)
        for rule in rules.values()
        if rule.actions == (Output(OFPP_CONTROLLER),)
    }
    assert punted == {(0x88CC, None), (0x0806, None), (0x86DD, 135), (0x86DD, 136), (0x8809, None)}
    assert len({rule.cookie >> 48 for rule in rules.values()}) == 1


@pytest.mark.parametrize("version", [1, 4])
def test_an_echo_frame_returns_once_and_goes_nowhere_else(version):
    tables = FlowTables()
    for rule in base_rules(version):
        assert LOWERINGS[version].expressible(rule) is None
        tables.put(rule)
    frame = Fields(ECHO_MAC, bytes(6), 0x88CC)
    assert tables.process(version, frame, 7).sent == (Sent(7, NEAREST_BRIDGE_MAC),)
    back = Fields(NEAREST_BRIDGE_MAC, bytes(6), 0x88CC)
    assert tables.process(version, back, 7).sent == (Sent(OFPP_CONTROLLER, NEAREST_BRIDGE_MAC),)


def test_openflow_1_0_has_one_table_and_no_ipv6():
    rules = base_rules(1)
    assert {rule.key.table for rule in rules} == {0}
    assert not any(rule.key.match.eth_type == 0x86DD for rule in rules)
    assert [rule.actions for rule in rules if rule.key.priority == 0] == [()]


@pytest.mark.parametrize("version", [1, 4])
def test_guards_come_before_what_they_guard_and_end_by_themselves(version):
    punts = [rule for rule in base_rules(version) if rule.actions == (Output(OFPP_CONTROLLER),)]
    guards = policer_rules(version, 7, 2, None)
    assert len(guards) == len(punts)
    for punt, guard in zip(punts, guards, strict=True):
        assert guard.key.match == punt.key.match._replace(in_port=7)
        assert guard.key.priority > punt.key.priority
        assert (guard.actions, guard.hard_timeout_s) == ((), 2)


@pytest.mark.parametrize(
    "settings",
    [
        DiscoverySettings(lldp_interval_s=0),
        DiscoverySettings(missed_count=0),
        DiscoverySettings(probe_offsets_s=()),
        DiscoverySettings(probe_offsets_s=(0.0, 0.5)),
        DiscoverySettings(host_timeout_s=4.0),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings):
    with pytest.raises(ValueError):
        DiscoveryCore(settings, bytes(32))


@pytest.mark.parametrize("size", [0, 15, 65])
def test_the_secret_must_be_one(size):
    with pytest.raises(ValueError):
        DiscoveryCore(DiscoverySettings(), bytes(size))
