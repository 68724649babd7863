"""Rules of every shape put on a real Open vSwitch and read back: what comes back equals what was put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.emulation.processes import run
from controller.effects import ApplyEdits, Define, Put, Remove
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    OFPP_CONTROLLER,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Meter,
    MeterEntry,
    MeterKey,
    Output,
    SetDscp,
    SetEthDst,
    SetQueue,
    SplitFlows,
)
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6
from openflow_client import Client
from private_bridge import private_bridge

pytestmark = pytest.mark.emulation

BRIDGE = "vsrtrules0"
METER = MeterEntry(MeterKey(5), 10_000, 150)
OFPP_LOCAL = 0xFFFFFFFE
MAC, OTHER_MAC = bytes.fromhex("01005e010203"), bytes.fromhex("03005e010203")
HOST_MAC = bytes.fromhex("020000000001")
V4_GROUP = {"eth_type": 0x0800, "ip_dst": b"\xef\1\2\3", "ip_dst_prefix": 32}
V6_GROUP = {"eth_type": 0x86DD, "ip_dst": b"\xff\x0e" + bytes(13) + b"\1", "ip_dst_prefix": 128}

MATCHES_1_0 = (
    Match(),
    Match(in_port=7),
    Match(eth_type=0x88CC),
    Match(eth_type=0x86DD),
    Match(eth_src=HOST_MAC, eth_dst=MAC),
    Match(eth_type=0x0800, ip_proto=2),
    Match(eth_type=0x0800, ip_dst=b"\xe0\0\0\0", ip_dst_prefix=4),
    Match(eth_dst=MAC, **V4_GROUP),
    Match(in_port=3, eth_src=HOST_MAC, eth_dst=MAC, ip_src=b"\x0a\0\0\1", ip_src_prefix=32, **V4_GROUP),
    Match(ip_src=b"\x0a\1\0\0", ip_src_prefix=16, **V4_GROUP),
)
MATCHES_1_3 = (
    *MATCHES_1_0,
    Match(tagged=True),
    Match(in_port=OFPP_LOCAL),
    Match(eth_dst=b"\1" + bytes(5), eth_dst_mask=b"\1" + bytes(5)),
    Match(eth_dst=b"\x33\x33" + bytes(3) + b"\1", **V6_GROUP),
    Match(in_port=3, ip_src=b"\xfd" + bytes(15), ip_src_prefix=8, **V6_GROUP),
    *(Match(eth_type=0x86DD, ip_proto=58, icmpv6_type=kind) for kind in (130, 131, 132, 143)),
    *(Match(eth_type=eth_type, ip_dscp=dscp) for eth_type, dscp in ((0x0800, 46), (0x86DD, 8), (0x0800, 0))),
    Match(in_port=3, ip_dscp=63, ip_src=b"\x0a\1\0\0", ip_src_prefix=16, **V4_GROUP),
)
ACTIONS_1_0 = (
    (),
    (Output(2),),
    (Output(OFPP_CONTROLLER),),
    (Output(OFPP_CONTROLLER), Output(1), Output(2)),
    (Output(1), SetEthDst(OTHER_MAC), Output(2), Output(3), SetEthDst(MAC), Output(4)),
    (Output(1), SetQueue(3), Output(2), Output(3), SetEthDst(MAC), SetQueue(4), Output(4), Output(OFPP_CONTROLLER)),
)
ACTIONS_1_3 = (
    *ACTIONS_1_0,
    (Goto(3),),
    (SetEthDst(OTHER_MAC), Goto(3)),
    (Meter(5), Output(1)),
    (Meter(5), Output(1), Goto(2)),
)


MARKS = ((SetDscp(46), Output(2)), (SetDscp(0), Output(1), SetDscp(63), SetQueue(3), Output(2)))


@pytest.fixture(scope="module")
def bridge() -> Iterator[Path]:
    with private_bridge(BRIDGE) as path:
        yield path


@pytest.fixture(params=[1, 4])
def client(request, bridge: Path) -> Iterator[Client]:
    run("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
    client = Client(bridge, request.param)
    yield client
    client.close()


def every_shape(version: int) -> list[FlowEntry]:
    matches, actions, table = (MATCHES_1_0, ACTIONS_1_0, 0) if version == 1 else (MATCHES_1_3, ACTIONS_1_3, 1)
    rules = []
    for index, match in enumerate(matches):
        for other, listed in enumerate(actions):
            key = FlowKey(table, 1000 * index + other, match)
            rules.append(FlowEntry(key, listed, 0x5602 << 48 | len(rules), 0, 100 if other == 2 else 0))
    of_ip = [match for match in matches if match.eth_type in (ETH_TYPE_IPV4, ETH_TYPE_IPV6)]
    for index, match in enumerate(match for match in of_ip if version == 4 or match.eth_type == ETH_TYPE_IPV4):
        if version == 4:
            split = (SplitFlows(b"\3\x4e\0\0\0\0"), Goto(9))
            rules.append(FlowEntry(FlowKey(table, 49_000 + 10 * index, match), split, 0x5602 << 48 | 2 << 32))
        keys = (FlowKey(table, 50_000 + 10 * index + other, match) for other in range(len(MARKS)))
        rules += [FlowEntry(key, listed, 0x5602 << 48 | 1 << 32) for key, listed in zip(keys, MARKS, strict=True)]
    return rules


def test_every_shape_comes_back_as_it_was_put(client: Client) -> None:
    if client.version == 4:
        client.apply(ApplyEdits(1, 1, (Define(METER),)))
    rules = every_shape(client.version)
    assert client.apply(ApplyEdits(1, 1, tuple(map(Put, rules)))) == []
    entries = client.counters()
    assert not any(entry.foreign for entry in entries)
    assert {entry.rule.key: entry.rule for entry in entries} == {rule.key: rule for rule in rules}
    assert {entry.rule for entry in client.counters(rules[7].cookie, 0xFFFFFFFFFFFFFFFF)} == {rules[7]}


def test_remove_takes_exactly_its_entry(client: Client) -> None:
    if client.version == 4:
        client.apply(ApplyEdits(1, 1, (Define(METER),)))
    rules = every_shape(client.version)
    client.apply(ApplyEdits(1, 1, tuple(map(Put, rules))))
    gone = rules[::3]
    assert client.apply(ApplyEdits(1, 1000, tuple(Remove(rule.key) for rule in gone))) == []
    assert {entry.rule for entry in client.counters()} == set(rules) - set(gone)


def test_put_on_an_entry_changes_its_actions_and_keeps_its_counters(client: Client) -> None:
    key = FlowKey(0, 5, Match())
    client.apply(ApplyEdits(1, 1, (Put(FlowEntry(key, (Output(9),), 7)),)))
    packet = f"in_port=controller packet=ffffffffffff0200000000010800{bytes(50).hex()} actions=table"
    for _ in range(3):
        run("ovs-ofctl", "-O", "OpenFlow13", "packet-out", BRIDGE, packet)
    before = client.counters()[0]
    assert before.packet_count == 3
    changed = FlowEntry(key, (Output(8), Output(9)), 7)
    assert client.apply(ApplyEdits(1, 10, (Put(changed),))) == []
    after = client.counters()[0]
    assert after.rule == changed
    assert (after.packet_count, after.byte_count) == (3, before.byte_count)


def test_a_full_table_gives_the_error_that_the_lowering_names(client: Client) -> None:
    limited = ("--id=@t", "create", "Flow_Table", "flow_limit=3", "--", "set", "bridge", BRIDGE, "flow_tables:0=@t")
    run("ovs-vsctl", "--timeout=10", "--", *limited)
    try:
        rules = [FlowEntry(FlowKey(0, n, Match(in_port=n)), (), n) for n in range(1, 6)]
        errors = client.apply(ApplyEdits(1, 1, tuple(map(Put, rules))))
        assert [(error.xid, (error.type, error.code)) for error in errors] == [
            (xid, LOWERINGS[client.version].table_full) for xid in (4, 5)
        ]
        assert {entry.rule for entry in client.counters()} == set(rules[:3])
    finally:
        run("ovs-vsctl", "--timeout=10", "clear", "bridge", BRIDGE, "flow_tables")


def test_in_1_0_only_the_last_entry_is_for_tagged_frames(bridge: Path) -> None:
    client = Client(bridge, 1)
    run("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
    rules = [
        FlowEntry(FlowKey(0, 9, Match(eth_src=HOST_MAC)), (), 1),
        FlowEntry(FlowKey(0, 0, Match(tagged=True)), (), 2),
    ]
    client.apply(ApplyEdits(1, 1, tuple(map(Put, rules))))
    for tags in ("", "81000005", "81000000", "88a80005", "88a8000581000006"):
        packet = f"in_port=controller packet=ffffffffffff{HOST_MAC.hex()}{tags}0800{bytes(50).hex()} actions=table"
        run("ovs-ofctl", "-O", "OpenFlow13", "packet-out", BRIDGE, packet)
    assert {entry.rule.cookie: entry.packet_count for entry in client.counters()} == {1: 1, 2: 4}
    client.close()


def test_in_1_3_one_entry_is_for_every_tag(bridge: Path) -> None:
    client = Client(bridge, 4)
    run("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
    rules = [FlowEntry(FlowKey(0, 9, Match(tagged=True)), (), 1), FlowEntry(FlowKey(0, 0, Match()), (), 2)]
    client.apply(ApplyEdits(1, 1, tuple(map(Put, rules))))
    for tags in ("", "81000005", "81000000", "88a80005", "88a8000581000006"):
        packet = f"in_port=controller packet=ffffffffffff{HOST_MAC.hex()}{tags}0800{bytes(50).hex()} actions=table"
        run("ovs-ofctl", "-O", "OpenFlow13", "packet-out", BRIDGE, packet)
    assert {entry.rule.cookie: entry.packet_count for entry in client.counters()} == {1: 4, 2: 1}
    client.close()


def test_an_entry_for_any_vlan_is_another_than_that_for_untagged_frames(bridge: Path) -> None:
    """Entries of versions that wildcarded the VLAN id are found, and taken away without the new ones."""
    client = Client(bridge, 1)
    run("ovs-ofctl", "-O", "OpenFlow13", "del-flows", BRIDGE)
    wanted = FlowEntry(FlowKey(0, 9, Match(eth_type=0x0806)), (Output(OFPP_CONTROLLER),), 0x5601 << 48)
    run("ovs-ofctl", "-O", "OpenFlow10", "add-flow", BRIDGE, f"cookie={0x5601 << 48},priority=9,arp,actions=drop")
    client.apply(ApplyEdits(1, 1, (Put(wanted),)))
    old = wanted._replace(key=FlowKey(0, 9, Match(eth_type=0x0806, tagged=True)), actions=())
    assert {entry.rule: entry.foreign for entry in client.counters()} == {wanted: False, old: False}
    client.apply(ApplyEdits(1, 5, (Remove(old.key),)))
    assert [entry.rule for entry in client.counters()] == [wanted]
    client.close()
