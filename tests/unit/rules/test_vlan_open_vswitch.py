"""VLAN tags on a real Open vSwitch: entries come back as they were put, frames as the evaluation of entries says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.emulation.processes import run
from apps.openflow.southbound import packet_in
from apps.simulated_fabric import messages
from apps.simulated_fabric.frames import changed, fields_of
from controller.effects import ApplyEdits, Put, Remove
from controller.rules.evaluate import FlowTables
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    OFPP_CONTROLLER,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Output,
    PopVlan,
    PushVlan,
    SetEthDst,
    SetQueue,
    SetVlan,
)
from controller.rules.openflow import encode_set_config
from openflow_client import Client
from private_bridge import private_bridge

pytestmark = pytest.mark.emulation

BRIDGE = "vsrtvlans0"
OFPP_TABLE = 0xFFFFFFF9
MAC, OTHER_MAC = bytes.fromhex("01005e010203"), bytes.fromhex("03005e010203")
GROUP = {"eth_type": 0x0800, "ip_dst": b"\xef\1\2\3", "ip_dst_prefix": 32}
HEAR = Output(OFPP_CONTROLLER)

OF_A_VLAN = (
    Match(vlan_id=1),
    Match(vlan_id=4094),
    Match(in_port=3, eth_src=OTHER_MAC, eth_dst=MAC, vlan_id=10, **GROUP),
    Match(vlan_id=10, eth_type=0x0806),
)
UNTAGGED = (Match(), Match(in_port=3, eth_dst=MAC, **GROUP))
ON_TAGGED = (
    (SetVlan(20), Output(2)),
    (PopVlan(), Output(2)),
    (Output(1), PopVlan(), Output(2), PushVlan(30), Output(3), SetVlan(4094), Output(4), SetEthDst(MAC), Output(5)),
    (SetVlan(1), SetQueue(3), Output(2), PopVlan(), Output(3)),
)
ON_UNTAGGED = (
    (PushVlan(10), Output(2)),
    (PushVlan(1), Output(2), SetVlan(4094), Output(3), PopVlan(), Output(4)),
    (Output(1), PushVlan(30), SetQueue(3), Output(2), HEAR),
)


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
    shapes = [(match, actions) for match in OF_A_VLAN for actions in ON_TAGGED]
    shapes += [(match, actions) for match in UNTAGGED for actions in ON_UNTAGGED]
    if version == 4:
        shapes += [(Match(tagged=True), actions) for actions in ON_TAGGED]
        shapes += [(Match(vlan_id=10), (PopVlan(), Goto(6))), (Match(), (PushVlan(10), Goto(6)))]
    return [
        FlowEntry(FlowKey(0, number, match), actions, number) for number, (match, actions) in enumerate(shapes, 1)
    ]


def test_every_shape_comes_back_as_it_was_put(client: Client) -> None:
    rules = every_shape(client.version)
    assert client.apply(ApplyEdits(1, 1, tuple(map(Put, rules)))) == []
    entries = client.counters()
    assert not any(entry.foreign for entry in entries)
    assert {entry.rule.key: entry.rule for entry in entries} == {rule.key: rule for rule in rules}
    gone = rules[::3]
    assert client.apply(ApplyEdits(1, 1000, tuple(Remove(rule.key) for rule in gone))) == []
    assert {entry.rule for entry in client.counters()} == set(rules) - set(gone)


def test_behind_a_tag_the_second_one_is_the_eth_type(client: Client) -> None:
    """As long as `vlan-limit` of Open vSwitch is what it is unless somebody sets it."""
    inner = [FlowEntry(FlowKey(0, 9, Match(eth_type=tpid, tagged=True)), (), tpid) for tpid in (0x8100, 0x88A8)]
    others = [FlowEntry(FlowKey(0, 5, Match(vlan_id=10)), (), 1), FlowEntry(FlowKey(0, 0, Match(tagged=True)), (), 2)]
    assert client.apply(ApplyEdits(1, 1, tuple(map(Put, (*inner, *others))))) == []
    for tags in ("8100000a", "8100000a81000014", "8100000a88a80014", "88a8000a81000014", "81000014"):
        packet = f"in_port=controller packet={MAC.hex()}{OTHER_MAC.hex()}{tags}0800{bytes(50).hex()} actions=table"
        run("ovs-ofctl", "-O", "OpenFlow13", "packet-out", BRIDGE, packet)
    counted = {entry.rule.cookie: entry.packet_count for entry in client.counters()}
    assert counted == {0x8100: 2, 0x88A8: 1, 1: 1, 2: 1}


def test_a_put_changes_what_is_done_to_the_tag(client: Client) -> None:
    key = FlowKey(0, 7, Match(vlan_id=10))
    for actions in ON_TAGGED:
        rule = FlowEntry(key, actions, 1)
        assert client.apply(ApplyEdits(1, 1, (Put(rule),))) == []
        assert [entry.rule for entry in client.counters()] == [rule]


def frames() -> list[bytes]:
    """Frames without a tag, with tags of several ids, priorities and kinds, and with two."""
    ipv4 = "0800" + "4500001c0001000040110000" + "0a000001" + "ef010203" + "0000" * 30
    arp = "0806" + "0001080006040001" + "0000" * 30
    tags = ("", "8100000a", "8100a00a", "8100000b", "8100000c", "81000000", "88a8000a")
    sound = [MAC + OTHER_MAC + bytes.fromhex(tag + payload) for tag in tags for payload in (ipv4, arp)]
    return [*sound, MAC + OTHER_MAC + bytes.fromhex("8100000a" + "81000006" + ipv4)]


def test_frames_come_out_as_the_evaluation_says(client: Client) -> None:
    wanted = [
        (9, Match(), (PushVlan(10), HEAR, SetVlan(30), HEAR, PopVlan(), SetEthDst(OTHER_MAC), HEAR)),
        (9, Match(vlan_id=10), (HEAR, SetVlan(20), HEAR, PopVlan(), HEAR)),
        (9, Match(vlan_id=11, **GROUP), (PopVlan(), HEAR)),
        (8, Match(vlan_id=11), (SetVlan(12), HEAR)),
    ]
    if client.version == 4:
        wanted[0] = (5, *wanted[0][1:])
        wanted.append((7, Match(tagged=True), ()))
    else:
        wanted.append((0, Match(tagged=True), ()))
    rules = [FlowEntry(FlowKey(0, priority, match), actions, 1) for priority, match, actions in wanted]
    assert client.apply(ApplyEdits(1, 1, tuple(map(Put, rules)))) == []
    tables, lowering = FlowTables(), LOWERINGS[client.version]
    for rule in rules:
        tables.put(rule)
    client.send(encode_set_config(client.version, 0xFFFF, 5))
    for xid, frame in enumerate(frames(), 10):
        sent = tables.process(client.version, fields_of(frame), 1).sent
        expected = [changed(frame, copy.eth_dst, copy.vlan_ids, copy.dscp) for copy in sent]
        client.send(lowering.encode_packet_out((OFPP_TABLE,), frame, xid))
        heard = []
        while len(heard) < len(expected):
            message = client.receive()
            if message[1] == messages.PACKET_IN:
                packet = packet_in(1, client.version, message)
                assert packet is not None
                heard.append(packet.data)
        assert heard == expected, frame.hex()
    counts = {entry.rule: entry.packet_count for entry in client.counters()}
    assert counts == {rule: tables.entries[rule.key].packet_count for rule in rules}
