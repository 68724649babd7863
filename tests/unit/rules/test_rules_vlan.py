"""VLAN tags in flow entries: what can be said of them, how it is read, and what it does to frames."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.simulated_fabric.frames import changed, fields_of
from controller.config.vlans import PortVlans
from controller.effects import Put
from controller.kernel.domains import in_domain
from controller.rules import of10, of13, pipeline
from controller.rules.compile import ChannelDuty, SenderEntry, SwitchDuty, versioned_mac
from controller.rules.compile_vlan import lower_in_vlan_to_1_0
from controller.rules.evaluate import Fields, FlowTables, Sent
from controller.rules.fake import Copy, FakeFabric, FakeSwitch, HostCopy
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    OFPP_CONTROLLER,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Opaque,
    Output,
    PopVlan,
    PushVlan,
    SetEthDst,
    SetVlan,
)
from controller.rules.openflow import FlowCounter, NotExpressible
from controller.rules.pipeline import ETH_TYPE_IPV4, at_port
from controller.rules.port_drops import drop_keys
from controller.rules.rule_texts import rule_document

MAC, HOST = bytes.fromhex("01005e010203"), bytes.fromhex("020000000001")
PACKET = Fields(MAC, HOST, 0x0800, 17, b"\x0a\0\0\1", b"\xef\1\2\3")
ENDS, PAYLOAD = MAC + HOST, b"\x08\x06" + bytes(46)
ANY_TAG, VLAN_10 = Match(tagged=True), Match(vlan_id=10)
AT_5 = at_port(5)
GROUP_10 = in_domain(b"\xef\1\2\3", 10)
SENDERS = tuple(SenderEntry(n, HOST, b"\x0a\0\0" + bytes((n,)), True) for n in (1, 2))


def rule(match, *actions, priority=1, table=0):
    return FlowEntry(FlowKey(table, priority, match), actions, 1)


def read_back(version, *rules):
    lowering = LOWERINGS[version]
    entries = b"".join(lowering.encode_flow_stats_entry(FlowCounter(each, 1, 2, 3.0)) for each in rules)
    return lowering.decode_flow_stats(lowering.encode_flow_stats_reply(1, False, entries)).entries


@pytest.mark.parametrize("version", [1, 4])
@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (rule(Match(vlan_id=0)), "VLAN 0 cannot exist"),
        (rule(Match(vlan_id=4095)), "VLAN 4095 cannot exist"),
        (rule(Match(vlan_id=10, tagged=True)), "not for both"),
        (rule(Match(), PushVlan(0)), "VLAN 0 cannot exist"),
        (rule(VLAN_10, SetVlan(4095)), "VLAN 4095 cannot exist"),
        (rule(Match(), SetVlan(10)), "neither the match asks for one"),
        (rule(Match(), PopVlan()), "neither the match asks for one"),
        (rule(VLAN_10, PopVlan(), Output(1), SetVlan(10)), "neither the match asks for one"),
        (rule(VLAN_10, PushVlan(11)), "no second one"),
        (rule(Match(), PushVlan(10), Output(1), PushVlan(11)), "no second one"),
    ],
)
def test_what_no_switch_can_do_to_a_tag_is_refused_with_the_reason(version, refused, reason):
    assert reason in LOWERINGS[version].expressible(refused)
    with pytest.raises(NotExpressible, match=reason):
        LOWERINGS[version].encode_put(refused, 1)


@pytest.mark.parametrize("action", [PushVlan(10), SetVlan(10), PopVlan()])
def test_in_1_0_the_last_entry_leaves_tags_alone(action):
    last = rule(ANY_TAG, action, Output(1), priority=0)
    assert "for every frame" in of10.expressible(last)
    with pytest.raises(NotExpressible, match="for every frame"):
        of10.encode_put(last, 1)


def test_what_one_match_allows_is_no_less_refused_for_another():
    popping, pushing = (PopVlan(), Output(1)), (PushVlan(5), Output(1))
    for match, allowed, refused in ((VLAN_10, popping, pushing), (Match(), pushing, popping)):
        encoded = [of13.encode_put(rule(match, *allowed, priority=priority), 1) for priority in (1, 2, 1)]
        assert encoded[0] == encoded[2] != encoded[1]
        assert of13.expressible(rule(match, *allowed)) is None
        assert of13.expressible(rule(match, *refused)) is not None
        with pytest.raises(NotExpressible):
            of13.encode_put(rule(match, *refused), 1)


def test_in_1_3_a_match_for_any_tag_lets_it_be_set_and_popped():
    entry = rule(ANY_TAG, SetVlan(5), Output(1), PopVlan(), Output(2), PushVlan(6), Output(3))
    assert of13.expressible(entry) is None
    assert [found.rule for found in read_back(4, entry)] == [entry]


@pytest.mark.parametrize("version", [1, 4])
def test_one_id_is_another_key_than_another_none_and_any(version):
    rules = [rule(Match(vlan_id=vlan_id)) for vlan_id in (None, 1, 10, 4094)]
    assert [found.rule for found in read_back(version, *rules)] == rules
    assert len({LOWERINGS[version].encode_remove(each.key, 1) for each in rules}) == 4


def test_in_1_0_one_message_is_read_as_what_it_does_to_the_frames_of_the_match():
    message = struct.pack("!HHHxx", 1, 8, 20)
    entries = rule(Match(), PushVlan(20)), rule(VLAN_10, SetVlan(20))
    for entry in entries:
        assert of10.encode_put(entry, 1)[72:] == message
    assert [found.rule for found in read_back(1, *entries)] == [*entries]


@pytest.mark.parametrize(
    ("match", "raw"),
    [
        (Match(), struct.pack("!HHxxxx", 3, 8)),
        (Match(), struct.pack("!HHHxx", 1, 8, 0)),
        (VLAN_10, struct.pack("!HHHxx", 1, 8, 4095)),
        (VLAN_10, struct.pack("!HHBxxx", 2, 8, 3)),
    ],
)
def test_what_1_0_never_puts_is_no_action_of_ours(match, raw):
    assert of10._decode_actions(raw, 0, 8, match) == (Opaque(raw),)


def test_what_1_3_never_puts_is_no_action_of_ours():
    push, service = struct.pack("!HHHxx", 17, 8, 0x8100), struct.pack("!HHHxx", 17, 8, 0x88A8)
    set_10, set_none, set_0 = (
        struct.pack("!HHIHxxxxxx", 25, 16, 0x80000C02, vlan_vid) for vlan_vid in (0x100A, 0x000A, 0x1000)
    )
    output = struct.pack("!HHIH6x", 0, 16, 3, 0)
    for raw, expected in (
        (push + set_10, (PushVlan(10),)),
        (push + push + set_10, (Opaque(push), PushVlan(10))),
        (push + output + set_10, (Opaque(push), Output(3), SetVlan(10))),
        (service + set_10, (Opaque(service), SetVlan(10))),
        (push + set_none, (Opaque(push), Opaque(set_none))),
        (set_0, (Opaque(set_0),)),
    ):
        actions: list = []
        of13.decode_actions(raw, 0, len(raw), actions)
        assert tuple(actions) == expected


@pytest.mark.parametrize(
    ("vlan_vid", "mask", "match", "foreign"),
    [
        (0x100A, 0x1FFF, VLAN_10, False),
        (0x100A, 0xFFFF, VLAN_10, False),
        (0x100A, 0x100F, VLAN_10, True),
        (0x0000, 0x1FFF, None, True),
        (0x1000, 0x1000, ANY_TAG, False),
        (0x1000, 0x1FFF, None, True),
    ],
)
def test_masks_of_a_vlan_id_in_1_3(vlan_vid, mask, match, foreign):
    (entry,) = [of13.encode_flow_stats_entry(FlowCounter(rule(ANY_TAG), 1, 2, 3.0))]
    field = struct.pack("!HH", 0x1000, 0x1000)
    assert entry.count(field) == 1
    entry = entry.replace(field, struct.pack("!HH", vlan_vid, mask))
    (found,) = of13.decode_flow_stats(of13.encode_flow_stats_reply(1, False, entry)).entries
    assert found.foreign is foreign
    assert match is None or found.rule.key.match == match


@pytest.mark.parametrize("vlan_id", [0, 4095, 0x100A])
def test_ids_that_no_vlan_has_are_foreign_in_1_0(vlan_id):
    entry = of10.encode_flow_stats_entry(FlowCounter(rule(Match(vlan_id=0xABC)), 1, 2, 3.0))
    assert entry.count(b"\x0a\xbc") == 1
    entry = entry.replace(b"\x0a\xbc", vlan_id.to_bytes(2, "big"))
    (found,) = of10.decode_flow_stats(of10.encode_flow_stats_reply(1, False, entry)).entries
    assert found.foreign


def test_a_priority_beside_the_id_is_foreign_in_1_0():
    entry = bytearray(of10.encode_flow_stats_entry(FlowCounter(rule(VLAN_10), 1, 2, 3.0)))
    entry[4:8] = (int.from_bytes(entry[4:8], "big") & ~(1 << 20)).to_bytes(4, "big")
    (found,) = of10.decode_flow_stats(of10.encode_flow_stats_reply(1, False, bytes(entry))).entries
    assert found.foreign


def test_entries_with_tags_in_words():
    actions = SetVlan(20), Output(1), PopVlan(), Output(2), PushVlan(30), Output(3)
    document = rule_document(rule(Match(in_port=3, vlan_id=10), *actions))
    assert document["match"] == "in_port=3, vlan=10"
    assert document["actions"] == "set vlan:20, output:1, pop vlan, output:2, push vlan:30, output:3"


@pytest.mark.parametrize("version", [1, 4])
def test_a_match_meets_the_frames_of_its_vlan_alone(version):
    tables = FlowTables()
    for vlan_id, port_no in ((10, 2), (20, 3), (None, 4)):
        tables.put(rule(Match(vlan_id=vlan_id, eth_type=0x0800), Output(port_no), priority=5 if vlan_id else 1))

    def ports(*vlan_ids):
        return [sent.port_no for sent in tables.process(version, PACKET._replace(vlan_ids=vlan_ids), 1).sent]

    assert (ports(10), ports(20), ports()) == ([2], [3], [4])
    assert ports(20, 10) == [3]
    others = [OFPP_CONTROLLER] if version == 1 else [4]
    assert ports(30) == ports(0) == ports(0, 10) == others
    tables.remove(FlowKey(0, 5, Match(vlan_id=10, eth_type=0x0800)))
    assert ports(10) == others


@pytest.mark.parametrize("version", [1, 4])
def test_tags_are_pushed_set_and_popped_in_order(version):
    actions = PushVlan(10), Output(2), SetVlan(20), Output(3), PopVlan(), Output(4)
    tables = FlowTables()
    tables.put(rule(Match(), *actions))
    tables.put(rule(VLAN_10, *actions[1:], priority=2))
    sent = Sent(2, MAC, (10,)), Sent(3, MAC, (20,)), Sent(4, MAC)
    assert tables.process(version, PACKET, 1).sent == sent
    assert tables.process(version, PACKET._replace(vlan_ids=(10,)), 1).sent == sent
    inner = tuple(each._replace(vlan_ids=(*each.vlan_ids, 7)) for each in sent)
    assert tables.process(version, PACKET._replace(vlan_ids=(10, 7)), 1).sent == inner


def test_a_later_table_sees_the_tag_as_it_is_then():
    tables = FlowTables()
    tables.put(rule(Match(), PushVlan(10), Goto(1)))
    tables.put(rule(VLAN_10, PopVlan(), Goto(2), table=1))
    tables.put(rule(Match(), Output(2), table=2))
    verdict = tables.process(4, PACKET, 1)
    assert verdict.sent == (Sent(2, MAC),)
    assert [met.key.table for met in verdict.met] == [0, 1, 2]


def test_entries_of_a_port_keep_their_order_and_come_before_all_that_is_for_any_port():
    priorities = {value for name, value in vars(pipeline).items() if name.startswith("PRIORITY_")}
    ordinary = sorted(p for p in priorities if p <= pipeline.PRIORITY_MEMBERSHIP_PENALTY)
    both = sorted({*ordinary, *(p + 1 for p in ordinary)})
    moved = [pipeline.at_port(priority) for priority in both]
    assert moved == sorted(set(moved))
    assert both[-1] < pipeline.PRIORITY_PORT_CLOSED
    assert moved[0] == pipeline.PRIORITY_PORT_CLOSED and moved[-1] < pipeline.PRIORITY_HELD


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        (None, {(False, 5, None)}),
        (PortVlans(0, frozenset((10, 20))), {(False, 5, None), (False, AT_5, 10), (False, AT_5, 20)}),
        (PortVlans(10, frozenset((20,))), {(True, AT_5, None)}),
        (PortVlans(None, frozenset((20,))), {(True, AT_5, None)}),
    ],
)
def test_in_1_0_what_a_port_sends_too_much_of_is_dropped_in_all_its_domains(port, expected):
    keys = drop_keys(1, port, 5, Match(7, eth_type=ETH_TYPE_IPV4))
    assert {(key.match.tagged, key.priority, key.match.vlan_id) for key in keys} == expected
    assert all(key.table == 0 and key.match.in_port == 7 for key in keys)
    assert [key.table for key in drop_keys(4, port, 5, Match(7))] == ([1] if port is None else [1, 5])


@pytest.mark.parametrize(
    ("trunks", "hosts", "version", "untagged_sender", "tagged_sender"),
    [
        ((9,), (3, 4), 0, (PushVlan(10), Output(9), Output(4), PopVlan(), Output(3)), None),
        ((), (3,), 0, (Output(3),), (PopVlan(), Output(3))),
        ((), (4,), 2, (PushVlan(10), Output(4)), (Output(4),)),
        ((), (), 0, (), ()),
        ((9,), (), 1, (PushVlan(10), SetEthDst(versioned_mac(GROUP_10[:4], 1)), Output(9)), None),
    ],
)
def test_in_1_0_a_sender_of_a_vlan_has_its_outputs_with_the_tags_of_each_port(
    trunks, hosts, version, untagged_sender, tagged_sender
):
    duty = SwitchDuty(version, (ChannelDuty(None, trunks, hosts),), SENDERS)
    rules = lower_in_vlan_to_1_0(GROUP_10, (1, 3), duty, 77)
    by_port = {key.match.in_port: rule for key, rule in rules.items()}
    assert by_port[1].actions == untagged_sender and by_port[1].key.match.vlan_id is None
    assert by_port[2].actions == (untagged_sender[1:] if tagged_sender is None else tagged_sender)
    assert by_port[2].key.match.vlan_id == by_port[None].key.match.vlan_id == 10
    assert all(of10.expressible(rule) is None for rule in rules.values())


def test_in_1_0_alone_entries_of_a_vlan_and_of_untagged_frames_never_meet():
    for version, overlapping in ((1, False), (4, True)):
        switch = FakeSwitch(1, version)
        assert switch.apply(Put(rule(Match(in_port=1), Output(2)))) is None
        error = switch.apply(Put(rule(Match(eth_dst=MAC, vlan_id=10), Output(3))))
        assert (error is not None) is overlapping
        assert switch.apply(Put(rule(Match(vlan_id=11), Output(4)))) == error


def test_tags_go_with_frames_over_links():
    switches = {dpid: FakeSwitch(dpid, version) for dpid, version in ((1, 4), (2, 1))}
    assert switches[1].apply(Put(rule(Match(), PushVlan(10), Output(10)))) is None
    assert switches[2].apply(Put(rule(VLAN_10, Output(3), PopVlan(), Output(4), PushVlan(30), Output(5)))) is None
    fabric = FakeFabric([((1, 10), (2, 20))], switches)
    copies = HostCopy(2, 3, MAC, (10,)), HostCopy(2, 4, MAC), HostCopy(2, 5, MAC, (30,))
    assert fabric.deliver(1, 1, PACKET).hosts == dict.fromkeys(copies, 1)
    assert fabric.forward(Copy(2, 20, MAC, (), (30,)), PACKET).punts[0].vlan_ids == (30,)


def tags(*ids, tpid=0x8100):
    return b"".join(struct.pack("!HH", tpid, vlan_id) for vlan_id in ids)


def test_frames_change_by_their_tags_alone():
    frame = ENDS + tags(0xE00A) + tags(0x0006, tpid=0x88A8) + PAYLOAD
    assert fields_of(frame) == Fields(MAC, HOST, 0x0806, vlan_ids=(10, 6))
    assert changed(frame, MAC, (20, 6), 0) == ENDS + tags(0xE014) + tags(0x0006, tpid=0x88A8) + PAYLOAD
    assert changed(frame, MAC, (6,), 0) == ENDS + tags(0x0006, tpid=0x88A8) + PAYLOAD
    assert changed(frame, HOST, (), 0) == HOST + HOST + PAYLOAD
    assert changed(ENDS + PAYLOAD, MAC, (10,), 0) == ENDS + tags(10) + PAYLOAD
    assert changed(ENDS + tags(5) + PAYLOAD, MAC, (10, 5), 0) == ENDS + tags(10, 5) + PAYLOAD


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([b"", b"\x81\0", b"\x88\xa8\0\5\x81\0"]))
def test_frames_of_any_shape_are_read_and_given_back(rest, start):
    frame = ENDS + start + rest
    fields = fields_of(frame)
    assert changed(frame, MAC, fields.vlan_ids, fields.dscp) == frame
