"""Groups, meters and roles as messages: against the parsers of two frameworks, themselves, and noise."""

from __future__ import annotations

import importlib
import re
import struct
from types import SimpleNamespace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.effects import ApplyEdits, Define, Undefine
from controller.events import ControllerRole
from controller.rules import of10, of10_roles, of13, of13_resources
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    GROUP,
    METER,
    Action,
    Bucket,
    FlowEntry,
    FlowKey,
    Goto,
    GroupEntry,
    GroupKey,
    GroupType,
    Match,
    Meter,
    MeterEntry,
    MeterKey,
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
    is_own,
)
from controller.rules.openflow import FlowCounter, NotExpressible, RoleReply
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6

FRAMEWORKS = ("ryu", "os_ken")
MAC = bytes.fromhex("01005e010203")
GROUP_TYPES = (GroupType.ALL, GroupType.SELECT, GroupType.FAST_FAILOVER)
KEY = FlowKey(0, 1, Match(in_port=1))

ports = st.integers(1, 0xFFFFFEFF) | st.just(0xFFFFFFFD)
bucket_actions = st.lists(
    ports.map(Output)
    | st.binary(min_size=6, max_size=6).map(SetEthDst)
    | st.integers(0, 2**32 - 2).map(SetQueue)
    | st.integers(1, 4094).map(PushVlan)
    | st.integers(1, 4094).map(SetVlan)
    | st.just(PopVlan()),
    max_size=4,
).map(tuple)
meters = st.tuples(
    st.integers(1, 0xFFFF0000).map(MeterKey), st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1), st.booleans()
).map(lambda fields: MeterEntry(*fields))


@st.composite
def groups(draw):
    group_type = draw(st.sampled_from(GROUP_TYPES))
    buckets = tuple(
        Bucket(
            draw(bucket_actions),
            draw(st.integers(1, 0xFFFF)) if group_type == GroupType.SELECT else 0,
            draw(st.integers(1, 0xFFFFFEFF)) if group_type == GroupType.FAST_FAILOVER else None,
        )
        for _ in range(draw(st.integers(0, 4)))
    )
    return GroupEntry(GroupKey(draw(st.integers(1, 0xFFFFFF00))), group_type, buckets)


def framework_13(framework):
    names = (f"{framework}.ofproto.ofproto_v1_3", f"{framework}.ofproto.ofproto_v1_3_parser")
    ofproto, parser = map(importlib.import_module, names)
    return ofproto, parser, SimpleNamespace(ofproto=ofproto, ofproto_parser=parser)


def parsed(framework, message):
    ofproto_parser = importlib.import_module(f"{framework}.ofproto.ofproto_parser")
    _, _, datapath = framework_13(framework)
    kind, length, xid = struct.unpack_from("!BHI", message, 1)
    assert length == len(message)
    return ofproto_parser.msg(datapath, 4, kind, length, xid, bytes(message))


def made(message, xid):
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def their_actions(parser, actions):
    for action in actions:
        if isinstance(action, Output):
            yield parser.OFPActionOutput(action.port_no, 0xFFFF if action.port_no == 0xFFFFFFFD else 0)
        elif isinstance(action, SetEthDst):
            yield parser.OFPActionSetField(eth_dst=action.mac.hex(":"))
        elif isinstance(action, PushVlan):
            yield parser.OFPActionPushVlan(0x8100)
            yield parser.OFPActionSetField(vlan_vid=0x1000 | action.vlan_id)
        elif isinstance(action, SetVlan):
            yield parser.OFPActionSetField(vlan_vid=0x1000 | action.vlan_id)
        elif isinstance(action, PopVlan):
            yield parser.OFPActionPopVlan()
        else:
            yield parser.OFPActionSetQueue(action.queue_id)


def their_buckets(ofproto, parser, group):
    return [
        parser.OFPBucket(
            weight=bucket.weight,
            watch_port=ofproto.OFPP_ANY if bucket.watch_port is None else bucket.watch_port,
            watch_group=ofproto.OFPG_ANY,
            actions=list(their_actions(parser, bucket.actions)),
        )
        for bucket in group.buckets
    ]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=60, deadline=None)
@given(group=groups(), xid=st.integers(0, 2**32 - 1), exists=st.booleans())
def test_groups_say_the_same_to_a_framework(framework, group, xid, exists):
    ofproto, parser, datapath = framework_13(framework)
    command = ofproto.OFPGC_MODIFY if exists else ofproto.OFPGC_ADD
    buckets = their_buckets(ofproto, parser, group)
    theirs = parser.OFPGroupMod(datapath, command, int(group.type), group.key.group_id, buckets)
    assert of13_resources.encode_resource_put(group, xid, exists=exists) == made(theirs, xid)
    theirs = parser.OFPGroupMod(datapath, ofproto.OFPGC_DELETE, 0, group.key.group_id, [])
    assert of13_resources.encode_resource_remove(group.key, xid) == made(theirs, xid)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=60, deadline=None)
@given(meter=meters, xid=st.integers(0, 2**32 - 1), exists=st.booleans())
def test_meters_say_the_same_to_a_framework(framework, meter, xid, exists):
    ofproto, parser, datapath = framework_13(framework)
    flags = ofproto.OFPMF_BURST | (ofproto.OFPMF_PKTPS if meter.is_packets else ofproto.OFPMF_KBPS)
    command = ofproto.OFPMC_MODIFY if exists else ofproto.OFPMC_ADD
    drop = parser.OFPMeterBandDrop(rate=meter.rate, burst_size=meter.burst)
    theirs = parser.OFPMeterMod(datapath, command, flags, meter.key.meter_id, [drop])
    assert of13_resources.encode_resource_put(meter, xid, exists=exists) == made(theirs, xid)
    theirs = parser.OFPMeterMod(datapath, ofproto.OFPMC_DELETE, 0, meter.key.meter_id, [])
    assert of13_resources.encode_resource_remove(meter.key, xid) == made(theirs, xid)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_requests_say_the_same_to_a_framework(framework):
    ofproto, parser, datapath = framework_13(framework)
    assert of13_resources.encode_resource_request(GROUP, 9) == made(parser.OFPGroupDescStatsRequest(datapath), 9)
    assert of13_resources.encode_resource_request(METER, 9) == made(parser.OFPMeterConfigStatsRequest(datapath), 9)
    for role in (ofproto.OFPCR_ROLE_NOCHANGE, ofproto.OFPCR_ROLE_MASTER, ofproto.OFPCR_ROLE_SLAVE):
        for generation in (0, 2**63, 2**64 - 1):
            theirs = made(parser.OFPRoleRequest(datapath, role, generation), 9)
            assert of13_resources.encode_role_request(role, generation, 9) == theirs


@pytest.mark.parametrize("framework", FRAMEWORKS)
@settings(max_examples=40, deadline=None)
@given(told=st.lists(groups(), max_size=3), more=st.booleans())
def test_replies_with_groups_say_the_same_to_a_framework(framework, told, more):
    _, parser, _ = framework_13(framework)
    theirs = parsed(framework, of13_resources.encode_resource_reply(GROUP, 7, tuple(told), more=more))
    assert (theirs.xid, theirs.flags) == (7, int(more))
    assert [(one.group_id, one.type, len(one.buckets)) for one in theirs.body] == [
        (group.key.group_id, group.type, len(group.buckets)) for group in told
    ]
    weights = [(bucket.weight, len(bucket.actions)) for one in theirs.body for bucket in one.buckets]
    buckets = [bucket for group in told for bucket in group.buckets]
    assert weights == [(bucket.weight, len([*their_actions(parser, bucket.actions)])) for bucket in buckets]


@settings(deadline=None)
@given(told=st.lists(groups(), max_size=5) | st.lists(meters, max_size=5), more=st.booleans())
def test_what_a_switch_tells_is_read_as_it_was_put(told, more):
    kind = told[0].key.kind if told else GROUP
    reply = of13_resources.decode_resources(of13_resources.encode_resource_reply(kind, 7, tuple(told), more=more))
    assert reply == (7, more, tuple(told), None)
    assert all(of13_resources.resource_expressible(resource) is None for resource in told)


@settings(deadline=None)
@given(told=st.lists(groups(), min_size=1, max_size=3), data=st.data())
def test_replies_that_are_cut_or_wrong_raise_nothing(told, data):
    message = bytearray(of13_resources.encode_resource_reply(GROUP, 7, tuple(told)))
    for length in range(len(message)):
        assert of13_resources.decode_resources(bytes(message[:length])).fault is not None
    for _ in range(3):
        message[data.draw(st.integers(8, len(message) - 1))] = data.draw(st.integers(0, 255))
    of13_resources.decode_resources(bytes(message))


@given(st.binary(max_size=64))
def test_noise_raises_nothing(noise):
    assert of13_resources.decode_resources(noise).fault is not None or noise[1] == 19
    of13_resources.decode_role_reply(noise)


def test_what_the_model_cannot_say_equals_nothing_that_is_put():
    watched = bytearray(
        of13_resources.encode_resource_reply(
            GROUP, 7, (GroupEntry(GroupKey(1), GroupType.FAST_FAILOVER, (Bucket((Output(1),), 0, 1),)),)
        )
    )
    struct.pack_into("!I", watched, 24 + 8, 5)  # watch_group
    (group,) = of13_resources.decode_resources(bytes(watched)).entries
    assert "cannot say" in of13_resources.resource_expressible(group)
    for flags, kind in ((5 | 8, 1), (5, 2), (1, 1), (7, 1)):
        body = struct.pack("!HHI", 24, flags, 3) + struct.pack("!HHIIB3x", kind, 16, 10, 10, 0)
        message = struct.pack("!BBHIHHI", 4, 19, 16 + len(body), 7, 10, 0, 0) + body
        (meter,) = of13_resources.decode_resources(message).entries
        if (flags, kind) != (5, 1):
            assert "cannot say" in of13_resources.resource_expressible(meter)


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        (GroupEntry(GroupKey(0), GroupType.ALL, ()), "cannot exist"),
        (GroupEntry(GroupKey(0xFFFFFF01), GroupType.ALL, ()), "cannot exist"),
        (GroupEntry(GroupKey(1), 2, ()), "type 2"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((Output(1),), 3),)), "weights in select groups alone"),
        (GroupEntry(GroupKey(1), GroupType.SELECT, (Bucket((Output(1),)),)), "weight of 1 to 65535"),
        (GroupEntry(GroupKey(1), GroupType.SELECT, (Bucket((), 0x10000),)), "weight of 1 to 65535"),
        (GroupEntry(GroupKey(1), GroupType.FAST_FAILOVER, (Bucket((Output(1),)),)), "watch a port"),
        (GroupEntry(GroupKey(1), GroupType.SELECT, (Bucket((), 1, 4),)), "watch a port"),
        (GroupEntry(GroupKey(1), GroupType.FAST_FAILOVER, (Bucket((), 0, 0),)), "cannot be watched"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((ToGroup(2),)),)), "no other groups"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((Goto(2),)),)), "cannot say"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((SetQueue(2**32 - 1),)),)), "queue"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((PushVlan(0),)),)), "VLAN 0"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((SetVlan(4095),)),)), "VLAN 4095"),
        (GroupEntry(GroupKey(1), GroupType.ALL, (Bucket((Output(1),)),) * 5000), "bytes"),
        (MeterEntry(MeterKey(0), 1, 1), "cannot exist"),
        (MeterEntry(MeterKey(0xFFFF0001), 1, 1), "cannot exist"),
        (MeterEntry(MeterKey(1), 0, 1), "rate and a burst"),
        (MeterEntry(MeterKey(1), 1, 2**32), "rate and a burst"),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_reason(resource, reason):
    assert reason in of13_resources.resource_expressible(resource)
    with pytest.raises(NotExpressible, match=re.escape(reason)):
        LOWERINGS[4].encode_batch(ApplyEdits(1, 1, (Define(resource),)))


def test_openflow_1_0_says_what_it_cannot_do():
    group, meter = GroupEntry(GroupKey(1), GroupType.ALL, ()), MeterEntry(MeterKey(1), 1, 1)
    assert LOWERINGS[1].problem(group) == "OpenFlow 1.0 has no groups"
    assert LOWERINGS[1].problem(meter) == "OpenFlow 1.0 has no meters"
    assert LOWERINGS[1].problem(FlowEntry(KEY, (ToGroup(1),), 0)) == "OpenFlow 1.0 has no group"
    for edit in (Define(group), Undefine(meter.key)):
        with pytest.raises(NotExpressible, match=r"OpenFlow 1\.0 has no"):
            LOWERINGS[1].encode_batch(ApplyEdits(1, 1, (edit,)))


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ((SetQueue(1),), "right before an output"),
        ((SetQueue(1), SetEthDst(MAC), Output(1)), "right before an output"),
        ((SetQueue(1), Output(0xFFFFFFFD)), "right before an output"),
        ((SetQueue(1), Output(1), SetQueue(1), Output(2)), "set already"),
        ((SetQueue(2**32 - 1), Output(1)), "cannot exist"),
        ((SetQueue(1), Output(0xFF05)), "no port"),
    ],
)
def test_queues_that_1_0_cannot_say(actions, reason):
    rule = FlowEntry(KEY, actions, 0)
    assert reason in of10.expressible(rule)
    with pytest.raises(NotExpressible, match=reason):
        of10.encode_put(rule, 1)


@pytest.mark.parametrize(
    ("version", "match", "dscp", "reason"),
    [
        (1, Match(), 46, "IPv4 packets only"),
        (1, Match(eth_type=ETH_TYPE_IPV6), 46, "OpenFlow 1.0"),
        (4, Match(), 46, "asks for IPv4 or IPv6"),
        (4, Match(eth_type=0x0806), 46, "asks for IPv4 or IPv6"),
        (4, Match(eth_type=ETH_TYPE_IPV6), 64, "code point 64 cannot exist: they are 0 to 63"),
        (1, Match(eth_type=ETH_TYPE_IPV4), -1, "code point -1 cannot exist"),
    ],
)
def test_code_points_that_cannot_be_set(version, match, dscp, reason):
    rule = FlowEntry(FlowKey(0, 1, match), (SetDscp(dscp), Output(1)), 0)
    assert reason in LOWERINGS[version].expressible(rule)


def test_a_group_sets_no_code_point():
    bucket = Bucket((SetDscp(46), Output(1)))
    assert "which packets are IP" in of13.bucket_problem(bucket)


def test_an_output_past_its_queue_is_nothing_that_1_0_puts():
    rule = FlowEntry(KEY, (SetQueue(1), Output(1), Output(2)), 0)
    entry = bytearray(of10.encode_flow_stats_entry(FlowCounter(rule, 1, 2, 3.0)))
    plain = struct.pack("!HHHH", 0, 8, 2, 0)
    entry[-16:] = plain
    entry[:2] = len(entry).to_bytes(2, "big")
    (found,) = of10.decode_flow_stats(of10.encode_flow_stats_reply(7, False, bytes(entry))).entries
    assert found.rule.actions == (SetQueue(1), Output(1), Opaque(plain))


def test_every_action_that_1_3_can_say_is_read_back_as_itself():
    examples = {
        Output: (Output(3),),
        SetEthDst: (SetEthDst(MAC),),
        SetDscp: (SetDscp(46), Output(1)),
        SetQueue: (SetQueue(3), Output(1)),
        PushVlan: (PushVlan(3),),
        SetVlan: (PushVlan(3), SetVlan(4)),
        PopVlan: (PushVlan(3), PopVlan()),
        SplitFlows: (SetEthDst(MAC), SplitFlows(MAC[:5] + b"\0"), SetEthDst(MAC)),
        ToGroup: (ToGroup(3),),
        Goto: (Goto(3),),
        Meter: (Meter(3),),
    }
    assert {*examples, Opaque} == set(get_args(Action)), "an action without an example here"
    key = FlowKey(0, 1, Match(eth_type=ETH_TYPE_IPV4))
    for actions in examples.values():
        entry = of13.encode_flow_stats_entry(FlowCounter(FlowEntry(key, actions, 0), 1, 2, 3.0))
        (found,) = of13.decode_flow_stats(of13.encode_flow_stats_reply(1, False, entry)).entries
        assert found.rule.actions == actions


@pytest.mark.parametrize(
    "unsayable", [Meter(0), Meter(0xFFFF0001), ToGroup(0), ToGroup(0xFFFFFF01), SetQueue(2**32 - 1)]
)
def test_ids_beyond_the_limits_of_openflow_are_refused(unsayable):
    with pytest.raises(NotExpressible, match="cannot exist"):
        of13.encode_put(FlowEntry(KEY, (unsayable,), 0), 1)


def test_role_replies_are_read():
    for reply in (RoleReply(7, 2, 2**64 - 2), RoleReply(7, 1, None), RoleReply(7, 3, 0)):
        message = of13_resources.encode_role_reply(reply)
        assert of13_resources.decode_role_reply(message) == reply
        assert all(of13_resources.decode_role_reply(message[:length]) is None for length in range(len(message)))
        theirs = parsed("os_ken", message)
        assert (theirs.role, theirs.xid) == (reply.role, 7)


def test_groups_and_meters_have_owners_by_their_ids():
    assert is_own(GroupKey(0x56020001), 0x5602) and not is_own(GroupKey(0x56020001), 0x5603)
    assert is_own(MeterKey(0x2FF), 0x5602) and not is_own(MeterKey(0x300), 0x5602)
    assert GroupKey(5) != MeterKey(5) and len({GroupKey(5), MeterKey(5)}) == 2


@pytest.mark.parametrize("role", list(ControllerRole))
def test_roles_of_openflow_1_0_are_those_of_the_extension(role):
    number = {ControllerRole.EQUAL: 0, ControllerRole.MASTER: 1, ControllerRole.SLAVE: 2}[role]
    body = bytes.fromhex("00002320") + (10).to_bytes(4, "big") + number.to_bytes(4, "big")
    assert of10_roles.encode_role_request(role, 7, 9) == bytes.fromhex("0104001400000009") + body
    reply = of10_roles.NiciraRole(9, role)
    message = of10_roles.encode_role_reply(reply)
    assert of10_roles.decode_role_reply(message) == reply
    assert of10_roles.decode_role_reply(message + b"more") == reply


def test_what_is_no_role_of_the_extension_is_none():
    message = of10_roles.encode_role_reply(of10_roles.NiciraRole(9, ControllerRole.SLAVE))
    for at, octet in ((0, 4), (1, 3), (10, 0), (15, 10), (19, 3)):
        assert of10_roles.decode_role_reply(message[:at] + bytes([octet]) + message[at + 1 :]) is None
    assert all(of10_roles.decode_role_reply(message[:length]) is None for length in range(len(message)))
