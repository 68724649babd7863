"""Flows divided by switches: what the action says in OpenFlow 1.3, what it means, what Open vSwitch does by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.effects import ApplyEdits, Put
from controller.kernel.domains import in_domain
from controller.rules import of10, of13
from controller.rules.compile import (
    TREE_VERSIONS,
    PartEntry,
    SenderEntry,
    SwitchDuty,
    lower_to_1_3,
    part_of,
    parts_mac,
    tree_version_of,
    versioned_mac,
)
from controller.rules.compile_vlan import lower_in_vlan_to_1_3
from controller.rules.evaluate import Fields, FlowTables, Sent
from controller.rules.fake import FakeSwitch
from controller.rules.model import (
    FLOW_PARTS,
    Bucket,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Opaque,
    Output,
    SetDscp,
    SetEthDst,
    SplitFlows,
)
from controller.rules.openflow import FlowCounter, NotExpressible
from controller.rules.pipeline import ADMIT, FORWARD, SENDER_COOKIE_BIT, SPLIT, VLAN_ADMIT, VLAN_FORWARD
from controller.rules.rule_texts import rule_document
from controller.wire.addresses import group_mac, parse_ip
from controller.wire.udp import encode_udp
from openflow_client import Client
from private_bridge import private_bridge

GROUP, GROUP_V6 = parse_ip("239.1.1.1"), parse_ip("ff1e::1")
IN_VLAN = in_domain(GROUP, 10)
HOST, SOURCE = b"\2\0\0\0\0\1", b"\x0a\0\0\1"
COOKIE = 0x5602 << 48 | 7
BASE = b"\3\x4e\0\0\0\0"
BRIDGE = "vsrtsplit0"


def test_what_is_put_is_a_hash_into_the_address_and_a_visit_to_the_table_of_parts():
    message = of13.encode_put(FlowEntry(FlowKey(1, 1, Match()), (SplitFlows(BASE),), 0), 1)
    set_field = "00190010 80000606 034e00000000 0000"
    multipath = "ffff0020 00002320 000a 0003 0000 0000 0000 000f 00000000 0000 0007 00000206"
    resubmit = "ffff0010 00002320 000e fff8 04 000000"
    assert message.endswith(bytes.fromhex(f"00040048 00000000 {set_field} {multipath} {resubmit}"))


def test_it_is_read_back_among_other_actions():
    for actions in ((SplitFlows(BASE),), (SetDscp(1), SplitFlows(BASE), Output(1), SplitFlows(BASE), Goto(2))):
        match = Match(eth_type=0x0800)
        entry = FlowCounter(FlowEntry(FlowKey(1, 1, match), actions, 0), 1, 2, 3.0)
        reply = of13.encode_flow_stats_reply(1, False, of13.encode_flow_stats_entry(entry))
        (found,) = of13.decode_flow_stats(reply).entries
        assert found.rule.actions == actions


@pytest.mark.parametrize(
    ("at", "byte", "what"),
    [
        (13, 1, "an address that parts are not counted from"),
        (16 + 19, 7, "fewer parts"),
        (16 + 27, 3, "fewer bits"),
        (16 + 30, 4, "another field"),
        (48 + 12, 5, "another table"),
    ],
)
def test_what_somebody_has_altered_is_not_taken_for_it(at, byte, what):
    whole = bytearray(of13.encode_actions((SplitFlows(BASE),)))
    assert whole[at] != byte
    whole[at] = byte
    actions: list[object] = []
    of13.decode_actions(bytes(whole), 0, len(whole), actions)
    assert not any(isinstance(action, SplitFlows) for action in actions), what
    assert any(isinstance(action, Opaque) for action in actions)


@pytest.mark.parametrize(
    ("table", "mac", "reason"),
    [
        (SPLIT, BASE, "not divided again"),
        (ADMIT, b"\3\x4e\0\0\0\1", "the last of them 0"),
        (ADMIT, b"\3\x4e\0\0\0", "has 6 bytes"),
    ],
)
def test_what_cannot_be_divided_is_refused(table, mac, reason):
    with pytest.raises(NotExpressible, match=reason):
        of13.encode_put(FlowEntry(FlowKey(table, 1, Match()), (SplitFlows(mac),), 0), 1)


def test_1_0_and_groups_divide_no_flows():
    assert "divides no flows" in of10.expressible(FlowEntry(FlowKey(0, 1, Match()), (SplitFlows(BASE),), 0))
    assert "does not divide flows" in of13.bucket_problem(Bucket((SplitFlows(BASE),)))


def test_it_can_be_read_by_an_operator():
    rule = FlowEntry(FlowKey(1, 1, Match()), (SplitFlows(BASE), Goto(2)), 0)
    assert rule_document(rule)["actions"] == "split flows:03:4e:00:00:00:00/16, goto:2"


# What it means


def sender(is_split=True, admitted=True):
    return SenderEntry(7, HOST, SOURCE, admitted, None, is_split)


def tables(*duties, group=GROUP):
    """A switch with what it does for some trees of a group."""
    switch = FakeSwitch(1, 4)
    assert switch.apply(Put(FlowEntry(FlowKey(0, 0, Match()), (Goto(ADMIT),), 0))) is None
    for duty in duties:
        for rule in lower_to_1_3(group, duty, COOKIE).values():
            assert switch.apply(Put(rule)) is None
    for version in range(TREE_VERSIONS):
        eth_type = 0x0800 if len(group) == 4 else 0x86DD
        match = Match(eth_dst=versioned_mac(group, version), eth_type=eth_type)
        assert switch.apply(Put(FlowEntry(FlowKey(FORWARD, 1, match), (Output(100 + version),), 0))) is None
    return switch.tables


def packet(flow, group=GROUP, source=SOURCE):
    return Fields(group_mac(group), HOST, 0x0800 if len(group) == 4 else 0x86DD, 17, source, group, flow=flow)


@pytest.mark.parametrize("group", [GROUP, GROUP_V6])
def test_each_part_takes_its_tree(group):
    source = SOURCE if group is GROUP else b"\xfe" + bytes(15)
    heads = (SenderEntry(7, HOST, source, True, 46, True), SenderEntry(8, HOST, source, True, None, True))
    parts = tuple(PartEntry(part) for part in range(FLOW_PARTS))
    switch = tables(SwitchDuty(0, (), (*heads, *parts[::2])), SwitchDuty(5, (), parts[1::2]), group=group)
    for flow in range(3 * FLOW_PARTS):
        version = 5 if flow % 2 else 0
        verdict = switch.process(4, packet(flow, group, source), 7)
        assert verdict.sent == (Sent(100 + version, versioned_mac(group, version), dscp=46),)
        assert [rule.key.table for rule in verdict.met] == [0, ADMIT, SPLIT, FORWARD]
        assert switch.process(4, packet(flow, group, source), 8).sent[0].port_no == 100 + version
    counted = {
        key.match.eth_dst[5]: entry.packet_count for key, entry in switch.entries.items() if key.table == SPLIT
    }
    assert counted == dict.fromkeys(range(FLOW_PARTS), 6)


def test_a_part_without_an_entry_is_on_no_tree():
    switch = tables(SwitchDuty(0, (), (sender(), PartEntry(3))))
    assert len(switch.process(4, packet(3), 7).sent) == 1
    assert switch.process(4, packet(4), 7).sent == ()


def test_refused_senders_are_dropped_and_whole_ones_have_their_tree():
    refused, whole = sender(admitted=False), SenderEntry(8, HOST, SOURCE, True)
    switch = tables(SwitchDuty(2, (), (refused, whole, PartEntry(0))))
    assert switch.process(4, packet(0), 7).sent == ()
    assert switch.process(4, packet(0), 8).sent == (Sent(102, versioned_mac(GROUP, 2)),)


def test_addresses_of_parts_are_none_of_trees():
    for group in (GROUP, GROUP_V6):
        of_trees = {versioned_mac(group, version) for version in range(TREE_VERSIONS)}
        of_parts = {parts_mac(group)[:5] + bytes((part,)) for part in range(FLOW_PARTS)}
        assert len(of_parts) == FLOW_PARTS and not of_trees & of_parts
        assert {mac[:1] for mac in of_parts} == {versioned_mac(group, 1)[:1]}, "they are dropped and counted as those"
        assert [part_of(Match(eth_dst=mac)) for mac in sorted(of_parts)] == list(range(FLOW_PARTS))
        assert {part_of(Match(eth_dst=mac)) for mac in of_trees} == {None}


def test_entries_of_parts_count_as_those_of_senders_and_are_of_no_version():
    rules = lower_to_1_3(GROUP, SwitchDuty(5, (), (PartEntry(3),)), COOKIE)
    ((key, rule),) = rules.items()
    assert rule.cookie == COOKIE | SENDER_COOKIE_BIT
    assert (key.table, tree_version_of(key.match), part_of(key.match)) == (SPLIT, 0, 3)


def test_in_a_vlan_parts_are_those_of_its_group():
    duty = SwitchDuty(5, (), (sender(), PartEntry(3)))
    by_table = {key.table: (key, rule) for key, rule in lower_in_vlan_to_1_3(IN_VLAN, (), duty, COOKIE).items()}
    assert by_table.keys() == {VLAN_ADMIT, SPLIT}
    assert by_table[VLAN_ADMIT][1].actions == (SplitFlows(parts_mac(GROUP)), Goto(VLAN_FORWARD))
    assert by_table[SPLIT][0].match.vlan_id == 10
    assert by_table[SPLIT][1].actions == (SetEthDst(versioned_mac(GROUP, 5)),)


def test_what_an_entry_of_a_part_sends_goes_out_once():
    switch = FlowTables()
    part = Match(eth_dst=BASE[:5] + b"\2")
    switch.put(FlowEntry(FlowKey(SPLIT, 1, part), (Output(9), SetDscp(3)), 0))
    switch.put(FlowEntry(FlowKey(0, 1, Match()), (SplitFlows(BASE), Output(10)), 0))
    sent = switch.process(4, packet(2), 7).sent
    assert sent == (Sent(9, BASE[:5] + b"\2"), Sent(10, BASE[:5] + b"\2", dscp=3))


# Open vSwitch


@pytest.fixture(scope="module")
def bridge() -> Iterator[Path]:
    with private_bridge(BRIDGE) as path:
        yield path


@pytest.mark.emulation
def test_open_vswitch_divides_flows_of_udp_as_the_entries_say(bridge: Path) -> None:
    client = Client(bridge, 4)
    try:
        first = SwitchDuty(0, (), (sender(), *map(PartEntry, range(8))))
        second = SwitchDuty(5, (), tuple(map(PartEntry, range(8, FLOW_PARTS))))
        rules = [rule for duty in (first, second) for rule in lower_to_1_3(GROUP, duty, COOKIE).values()]
        for version in (0, 5):
            match = Match(eth_dst=versioned_mac(GROUP, version), eth_type=0x0800, ip_dst=GROUP, ip_dst_prefix=32)
            rules.append(FlowEntry(FlowKey(FORWARD, 1, match), (), COOKIE))
        rules.append(FlowEntry(FlowKey(0, 0, Match()), (Goto(ADMIT),), COOKIE))
        assert client.apply(ApplyEdits(1, 1, tuple(map(Put, rules)))) == []
        assert {entry.rule for entry in client.counters()} == set(rules)
        for number in range(64):
            client.send(packet_out(encode_udp(HOST, SOURCE, GROUP, bytes(24), source_port=4000 + number)))
        deadline = time.monotonic() + 10.0
        while True:
            counted = {entry.rule.key: entry.packet_count for entry in client.counters()}
            forwarded = [count for key, count in counted.items() if key.table == FORWARD]
            if sum(forwarded) >= 64 or time.monotonic() > deadline:
                break
        parts = [count for key, count in counted.items() if key.table == SPLIT]
        assert sum(forwarded) == sum(parts) == 64
        assert min(forwarded) > 16
        assert sum(count > 0 for count in parts) > 10
    finally:
        client.close()


def packet_out(data: bytes) -> bytes:
    """Have the switch take a frame in as if it came by port 7."""
    to_table = bytes.fromhex("00000010 fffffff9 0000 000000000000")
    head = bytes.fromhex("ffffffff 00000007 0010 000000000000")
    return bytes((4, 13)) + (24 + 16 + len(data)).to_bytes(2, "big") + bytes(4) + head + to_table + data
