"""The OpenFlow codecs against the parsers of two frameworks, against themselves, and against noise."""

from __future__ import annotations

import importlib
import random
import struct
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.rules import of10, of13, oxm
from controller.rules.group_match import GroupMatch
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    OFPP_CONTROLLER,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Meter,
    Opaque,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    SplitFlows,
    ToGroup,
)
from controller.rules.openflow import (
    ErrorReply,
    FlowCounter,
    NotExpressible,
    decode_error,
    encode_set_config,
    match_problem,
)
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6
from controller.wire.addresses import format_ip, format_mac
from drawn_rules import RULES, SOME_RULES, versioned_lists, versioned_rules, versions

FRAMEWORKS = ("ryu", "os_ken")
MAC = bytes.fromhex("01005e010203")
GROUP = Match(eth_dst=MAC, eth_type=ETH_TYPE_IPV4, ip_dst=b"\xef\1\2\3", ip_dst_prefix=32)
MLD = Match(eth_type=ETH_TYPE_IPV6, ip_proto=58, icmpv6_type=143)


def parse(framework, version, message):
    """Parse a message as the framework does."""
    ofproto_parser = importlib.import_module(f"{framework}.ofproto.ofproto_parser")
    suffix = {1: "0", 4: "3"}[version]
    ofproto = importlib.import_module(f"{framework}.ofproto.ofproto_v1_{suffix}")
    parser = importlib.import_module(f"{framework}.ofproto.ofproto_v1_{suffix}_parser")
    importlib.import_module(f"{framework}.ofproto.ofproto_v1_3_parser")
    datapath = SimpleNamespace(ofproto=ofproto, ofproto_parser=parser)
    kind, length, xid = struct.unpack_from("!BHI", message, 1)
    assert length == len(message)
    if message[1] == ofproto.OFPT_FLOW_MOD:
        return parser.OFPFlowMod.parser(datapath, version, kind, length, xid, bytearray(message))
    return ofproto_parser.msg(datapath, version, kind, length, xid, bytes(message))


def seen_by_framework_13(flow_mod):
    """What a parsed flow-mod of OpenFlow 1.3 says, in our words."""
    fields = dict(flow_mod.match.items())
    actions = []
    for instruction in flow_mod.instructions:
        if hasattr(instruction, "meter_id"):
            actions.append(("meter", instruction.meter_id))
        elif hasattr(instruction, "table_id"):
            actions.append(("goto", instruction.table_id))
        else:
            for action in instruction.actions:
                if hasattr(action, "queue_id"):
                    actions.append(("queue", action.queue_id))
                elif hasattr(action, "group_id"):
                    actions.append(("group", action.group_id))
                elif hasattr(action, "port"):
                    assert action.max_len == (0xFFFF if action.port == OFPP_CONTROLLER else 0)
                    actions.append(("output", action.port))
                elif hasattr(action, "ethertype"):
                    actions.append(("push", action.ethertype))
                elif action.type == 18:
                    actions.append(("pop", action.len))
                elif action.key == "vlan_vid":
                    actions.append(("vlan_vid", action.value))
                elif action.key == "ip_dscp":
                    actions.append(("ip_dscp", action.value))
                else:
                    assert action.key == "eth_dst"
                    actions.append(("set", action.value))
    return fields, actions


def expected_fields_13(match):
    fields = {}
    for name in ("in_port", "eth_type", "ip_dscp", "ip_proto", "icmpv6_type"):
        if getattr(match, name) is not None:
            fields[name] = getattr(match, name)
    if match.eth_src is not None:
        fields["eth_src"] = format_mac(match.eth_src)
    if match.eth_dst is not None:
        value = format_mac(match.eth_dst)
        fields["eth_dst"] = value if match.eth_dst_mask is None else (value, format_mac(match.eth_dst_mask))
    if match.tagged:
        fields["vlan_vid"] = (0x1000, 0x1000)
    if match.vlan_id is not None:
        fields["vlan_vid"] = 0x1000 | match.vlan_id
    for name in ("ip_src", "ip_dst"):
        address, prefix = getattr(match, name), getattr(match, name + "_prefix")
        if address is None:
            continue
        bits = 8 * len(address)
        field = f"ip{'v4' if bits == 32 else 'v6'}{name[2:]}"
        mask = ((1 << bits) - (1 << bits - prefix)).to_bytes(bits // 8, "big")
        fields[field] = format_ip(address) if prefix == bits else (format_ip(address), format_ip(mask))
    return fields


def expected_actions(rule):
    words = {Output: "output", SetQueue: "queue", SetDscp: "ip_dscp", ToGroup: "group", Goto: "goto", Meter: "meter"}
    expected = []
    for action in rule.actions:
        if isinstance(action, SetEthDst):
            expected.append(("set", format_mac(action.mac)))
        elif isinstance(action, PushVlan):
            expected += [("push", 0x8100), ("vlan_vid", 0x1000 | action.vlan_id)]
        elif isinstance(action, SetVlan):
            expected.append(("vlan_vid", 0x1000 | action.vlan_id))
        elif isinstance(action, PopVlan):
            expected.append(("pop", 8))
        else:
            expected.append((words[type(action)], action[0]))
    return expected


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=100, deadline=None)
@given(rule=RULES[4], xid=st.integers(0, 2**32 - 1))
def test_put_of_1_3_says_the_same_to_a_framework(framework, rule, xid):
    flow_mod = parse(framework, 4, of13.encode_put(rule, xid))
    fields, actions = seen_by_framework_13(flow_mod)
    assert fields == expected_fields_13(rule.key.match)
    assert actions == expected_actions(rule)
    assert (flow_mod.xid, flow_mod.table_id, flow_mod.priority) == (xid, rule.key.table, rule.key.priority)
    assert (flow_mod.cookie, flow_mod.idle_timeout, flow_mod.hard_timeout) == rule[2:]
    assert (flow_mod.command, flow_mod.flags, flow_mod.buffer_id) == (0, 0, 0xFFFFFFFF)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=100, deadline=None)
@given(rule=RULES[1], xid=st.integers(0, 2**32 - 1))
def test_put_of_1_0_says_the_same_to_a_framework(framework, rule, xid):
    message = of10.encode_put(rule, xid)
    flow_mod = parse(framework, 1, message)
    match, theirs = rule.key.match, flow_mod.match
    wildcards = theirs.wildcards
    for bit, value, parsed in (
        (0, match.in_port and match.in_port & 0xFFFF, theirs.in_port),
        (2, match.eth_src, theirs.dl_src),
        (3, match.eth_dst, theirs.dl_dst),
        (4, match.eth_type, theirs.dl_type),
        (5, match.ip_proto, theirs.nw_proto),
    ):
        assert bool(wildcards >> bit & 1) == (value is None)
        if value is not None:
            assert parsed == value
    for shift, address, prefix, parsed in (
        (8, match.ip_src, match.ip_src_prefix, theirs.nw_src),
        (14, match.ip_dst, match.ip_dst_prefix, theirs.nw_dst),
    ):
        assert min(wildcards >> shift & 0x3F, 32) == 32 - (prefix or 0)
        if address is not None:
            assert parsed in (int.from_bytes(address, "big"), format_ip(address))
    for bit in (6, 7, 20, 21):
        assert wildcards >> bit & 1
    vlan = (1, 0) if match.tagged else (0, match.vlan_id or 0xFFFF)
    assert (wildcards >> 1 & 1, theirs.dl_vlan) == vlan
    assert (flow_mod.cookie, flow_mod.priority, flow_mod.command) == (rule.cookie, rule.key.priority, 2)
    assert (flow_mod.idle_timeout, flow_mod.hard_timeout) == rule[3:]
    expected, queue_id = b"", None
    for action in rule.actions:
        if isinstance(action, SetQueue):
            queue_id = action.queue_id
        elif isinstance(action, Output) and queue_id is not None and action.port_no != OFPP_CONTROLLER:
            expected += struct.pack("!HHH6xI", 11, 16, action.port_no & 0xFFFF, queue_id)
        elif isinstance(action, Output):
            max_len = 0xFFFF if action.port_no == OFPP_CONTROLLER else 0
            expected += struct.pack("!HHHH", 0, 8, action.port_no & 0xFFFF, max_len)
        elif isinstance(action, PushVlan | SetVlan):
            expected += struct.pack("!HHHxx", 1, 8, action.vlan_id)
        elif isinstance(action, SetDscp):
            expected += struct.pack("!HHBxxx", 8, 8, action.dscp << 2)
        elif isinstance(action, PopVlan):
            expected += struct.pack("!HHxxxx", 3, 8)
        else:
            expected += struct.pack("!HH6s6x", 5, 16, action.mac)
    assert message[72:] == expected


@settings(max_examples=100, deadline=None)
@given(versioned_rules)
def test_remove_names_the_same_entry_as_put(versioned):
    version, rule = versioned
    lowering = LOWERINGS[version]
    put = parse("os_ken", version, lowering.encode_put(rule, 1))
    remove = parse("os_ken", version, lowering.encode_remove(rule.key, 2))
    assert (remove.command, remove.priority, remove.xid) == (4, put.priority, 2)
    if version == 4:
        assert remove.table_id == put.table_id and remove.instructions == []
        assert dict(remove.match.items()) == dict(put.match.items())
        assert (remove.out_port, remove.out_group, remove.cookie_mask) == (0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        assert vars(remove.match) == vars(put.match)
        assert remove.out_port == 0xFFFF and remove.actions == []


@settings(max_examples=150, deadline=None)
@given(versioned_lists, st.integers(0, 2**63), st.booleans())
def test_flow_stats_give_back_the_rules(versioned, count, more):
    version, listed = versioned
    lowering = LOWERINGS[version]
    entries = tuple(FlowCounter(rule, count, count + 1, 12.5) for rule in listed)
    message = lowering.encode_flow_stats_reply(7, more, b"".join(map(lowering.encode_flow_stats_entry, entries)))
    stats = lowering.decode_flow_stats(message)
    assert stats == (7, more, entries, None)
    theirs = parse("os_ken", version, message)
    assert [(entry.cookie, entry.priority, entry.packet_count) for entry in theirs.body] == [
        (rule.cookie, rule.key.priority, count) for rule in listed
    ]


def framework_flow_stats_13(framework):
    """A reply whose matches and instructions a framework has written."""
    ofproto = importlib.import_module(f"{framework}.ofproto.ofproto_v1_3")
    parser = importlib.import_module(f"{framework}.ofproto.ofproto_v1_3_parser")

    def entry(match, actions, extra=()):
        body = bytearray(48)
        parser.OFPMatch(**match).serialize(body, 48)
        body.extend(bytes(-len(body) % 8))
        for instruction in (parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions), *extra):
            instruction.serialize(body, len(body))
        fixed = (len(body), 2, 3, 500_000_000, 9, 0, 0, 0, 0x5602 << 48, 5, 2**64 - 1)
        return struct.pack("!HBxIIHHHH4xQQQ", *fixed) + body[48:]

    entries = [
        entry(
            {
                "in_port": 3,
                "eth_dst": "01:00:5e:01:02:03",
                "eth_type": 0x800,
                "ipv4_src": ("10.1.0.0", "255.255.0.0"),
            },
            [parser.OFPActionOutput(4, 0), parser.OFPActionSetField(eth_dst="03:00:5e:01:02:03")],
            [parser.OFPInstructionGotoTable(3)],
        ),
        entry({"eth_type": 0x800, "ip_proto": 17, "udp_dst": 53}, []),
        entry({"vlan_vid": 0x1005}, []),
        entry({"vlan_vid": (0x1000, 0x1000)}, []),
        entry({"eth_type": 0x800}, [parser.OFPActionGroup(1), parser.OFPActionOutput(OFPP_CONTROLLER, 128)]),
    ]
    body = struct.pack("!HH4x", 1, 1) + b"".join(entries)
    return struct.pack("!BBHI", 4, 19, 8 + len(body), 77) + body


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_flow_stats_written_by_a_framework(framework):
    stats = of13.decode_flow_stats(framework_flow_stats_13(framework))
    assert (stats.xid, stats.more, stats.fault) == (77, True, None)
    first, udp, vlan, tagged, group = stats.entries
    match = Match(3, MAC, eth_type=0x800, ip_src=b"\x0a\1\0\0", ip_src_prefix=16)
    actions = (Output(4), SetEthDst(bytes.fromhex("03005e010203")), Goto(3))
    assert first == FlowCounter(FlowEntry(FlowKey(2, 9, match), actions, 0x5602 << 48), 5, None, 3.5, foreign=False)
    assert udp.foreign
    assert not vlan.foreign and vlan.rule.key.match == Match(vlan_id=5)
    assert not tagged.foreign and tagged.rule.key.match == Match(tagged=True)
    assert not group.foreign and [type(action) for action in group.rule.actions] == [ToGroup, Opaque]


def test_flow_stats_leave_out_other_cookies():
    for lowering in LOWERINGS.values():
        entries = [
            FlowCounter(FlowEntry(FlowKey(0, 1, GROUP._replace(in_port=n)), (), n << 48), 0, 0, 0.0) for n in (1, 2)
        ]
        message = lowering.encode_flow_stats_reply(1, False, b"".join(map(lowering.encode_flow_stats_entry, entries)))
        assert lowering.decode_flow_stats(message, 2 << 48, 0xFFFF << 48).entries == (entries[1],)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 255), st.sampled_from([1, 4]))
def test_noise_never_raises(noise, kind, version):
    message = bytes([version, kind]) + noise
    lowering = LOWERINGS[version]
    lowering.decode_flow_stats(message)
    decode_error(message)


@pytest.mark.parametrize("version", [1, 4])
def test_a_hundred_thousand_random_messages_never_raise(version):
    noise = random.Random(version)
    lowering = LOWERINGS[version]
    kind = {1: 17, 4: 19}[version]
    for number in range(100_000):
        body = noise.randbytes(noise.randrange(200))
        entry = struct.pack("!H", len(body) + 2) + body
        head = struct.pack("!HH", 1, 0) + (bytes(4) if version == 4 else b"")
        stats = struct.pack("!BBHI", version, kind, 8 + len(head) + len(entry), number) + head + entry
        assert lowering.decode_flow_stats(stats).xid == number
        lowering.decode_flow_stats(body)
        decode_error(body)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_flow_stats_never_raise_and_never_invent_length(data):
    version = data.draw(versions)
    lowering = LOWERINGS[version]
    listed = data.draw(SOME_RULES[version])
    entries = b"".join(lowering.encode_flow_stats_entry(FlowCounter(rule, 1, 2, 3.0)) for rule in listed)
    message = bytearray(lowering.encode_flow_stats_reply(1, False, entries))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(4, len(message) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(message)))
    for damaged in (bytes(message), bytes(message[:cut])):
        stats = lowering.decode_flow_stats(damaged)
        assert stats.fault is not None or len(stats.entries) <= len(damaged) // 56


def test_truncated_flow_stats_are_at_fault():
    for lowering in LOWERINGS.values():
        entry = lowering.encode_flow_stats_entry(FlowCounter(FlowEntry(FlowKey(0, 1, GROUP), (), 1), 0, 0, 0.0))
        message = lowering.encode_flow_stats_reply(1, False, entry)
        assert lowering.decode_flow_stats(message).fault is None
        for length in range(len(message)):
            assert lowering.decode_flow_stats(message[:length]).fault is not None


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("version", [1, 4])
def test_other_messages_say_the_same_to_a_framework(framework, version):
    suffix = {1: "0", 4: "3"}[version]
    parser = importlib.import_module(f"{framework}.ofproto.ofproto_v1_{suffix}_parser")
    ofproto = importlib.import_module(f"{framework}.ofproto.ofproto_v1_{suffix}")
    datapath = SimpleNamespace(ofproto=ofproto, ofproto_parser=parser)

    def serialised(message):
        message.set_xid(9)
        message.serialize()
        return bytes(message.buf)

    assert LOWERINGS[version].encode_barrier(9) == serialised(parser.OFPBarrierRequest(datapath))
    assert encode_set_config(version, 0xFFFF, 9) == serialised(parser.OFPSetConfig(datapath, 0, 0xFFFF))


def test_packet_out_bytes():
    out = of13.encode_packet_out((3, 0xFFFF0001), b"frame", 5)
    outputs = struct.pack("!HHIH6x", 0, 16, 3, 0) + struct.pack("!HHIH6x", 0, 16, 0xFFFF0001, 0)
    fixed = struct.pack("!BBHIIIH6x", 4, 13, 24 + 32 + 5, 5, 0xFFFFFFFF, 0xFFFFFFFD, 32)
    assert out == fixed + outputs + b"frame"
    out = of10.encode_packet_out((3,), b"frame", 5)
    assert out == struct.pack("!BBHIIHHHHHH", 1, 13, 16 + 8 + 5, 5, 0xFFFFFFFF, 0xFFFF, 8, 0, 8, 3, 0) + b"frame"
    with pytest.raises(NotExpressible):
        of10.encode_packet_out((0xFF01,), b"", 1)


def test_flow_stats_request_bytes():
    request = of13.encode_flow_stats_request(6, 0x5602 << 48, 0xFFFF << 48)
    body = struct.pack("!HH4xB3xII4xQQHH4x", 1, 0, 0xFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x5602 << 48, 0xFFFF << 48, 1, 4)
    assert request == struct.pack("!BBHI", 4, 18, 8 + len(body), 6) + body
    request = of10.encode_flow_stats_request(6, 1, 1)
    assert request[:12] == struct.pack("!BBHIHH", 1, 16, 56, 6, 1, 0)
    assert int.from_bytes(request[12:16], "big") & 0x3820FF == 0x3820FF
    assert request[52:] == bytes((0xFF, 0, 0xFF, 0xFF))


def test_replies_are_read():
    assert decode_error(struct.pack("!BBHIHH", 4, 1, 12, 99, 5, 1)) == ErrorReply(99, 5, 1)


@given(versioned_rules)
def test_what_can_be_said_is_not_refused(versioned):
    version, said = versioned
    assert LOWERINGS[version].expressible(said) is None
    assert match_problem(said.key.match) is None


def test_actions_of_different_kinds_are_never_equal():
    numbered = [kind(2) for kind in (Output, SetQueue, SetDscp, ToGroup, Goto, Meter, PushVlan, SetVlan)]
    kinds = [*numbered, PopVlan(), SetEthDst(b"\0" * 6), SplitFlows(b"\0" * 6), Opaque(b"\0" * 8)]
    assert all(a != b for i, a in enumerate(kinds) for b in kinds[:i])


def test_an_entry_of_a_further_table_is_none_that_1_0_can_name():
    rule = FlowEntry(FlowKey(0, 7, Match(3)), (Output(4),), 5 << 48)
    entry = bytearray(of10.encode_flow_stats_entry(FlowCounter(rule, 1, 2, 3.0)))
    entry[2] = 1
    (found,) = of10.decode_flow_stats(of10.encode_flow_stats_reply(7, False, bytes(entry))).entries
    assert (found.rule.key.table, found.foreign) == (1, True)


ODD_FIELDS = {
    "in_port": [None, 3],
    "eth_dst": [None, MAC, bytes(6), MAC[:5]],
    "eth_src": [None, MAC],
    "eth_type": [None, ETH_TYPE_IPV4, ETH_TYPE_IPV6],
    "ip_proto": [None, 2],
    "ip_src": [None, b"\x0a\0\0\1"],
    "ip_src_prefix": [None, 32],
    "ip_dst": [None, b"\xef\1\2\3", bytes(16)],
    "ip_dst_prefix": [None, 32, 24, 128],
    "eth_dst_mask": [None, b"\xff\xff\xff\0\0\0"],
    "tagged": [False, True],
    "vlan_id": [None, 7],
}


@pytest.mark.parametrize("field", ODD_FIELDS)
def test_a_match_is_encoded_or_refused(field):
    for value in ODD_FIELDS[field]:
        match = GROUP._replace(**{field: value})
        oxm.MATCHES.pop(match, None)
        assert oxm.match_bytes(match) == (match_problem(match) or oxm._encode(match))


@pytest.mark.parametrize("vlan_id", [None, 7, 4094])
def test_a_match_of_a_group_is_encoded_as_one_like_any_other(vlan_id):
    match = GROUP._replace(vlan_id=vlan_id)
    assert oxm.match_bytes(GroupMatch(*match)) == oxm._encode(match)


def test_a_match_of_a_group_that_asks_for_more_is_one_like_any_other():
    match = GroupMatch(*GROUP)
    assert match == GROUP
    more = match._replace(in_port=7)
    assert type(more) is Match
    assert oxm.match_bytes(more) == oxm._encode(GROUP._replace(in_port=7))
