"""What the OpenFlow versions cannot say is refused, and batches say all in order."""

from __future__ import annotations

import pytest

from controller.effects import ApplyEdits, Put, Remove
from controller.rules import of10, of13
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, FlowKey, Goto, Match, Meter, Opaque, Output
from controller.rules.openflow import NotExpressible
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6

GROUP = Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\xef\1\2\3", ip_dst_prefix=32)
MLD = Match(eth_type=ETH_TYPE_IPV6, ip_proto=58, icmpv6_type=143)


def rule(match=GROUP, actions=(), table=0):
    return FlowEntry(FlowKey(table, 1, match), tuple(actions), 1)


@pytest.mark.parametrize(
    ("refused", "word"),
    [
        (rule(MLD), "ICMPv6"),
        (rule(Match(eth_type=ETH_TYPE_IPV6, ip_dst=bytes(16), ip_dst_prefix=128)), "IPv6"),
        (rule(Match(eth_dst=bytes(6), eth_dst_mask=b"\1" + bytes(5))), "mask"),
        (rule(table=1), "table 0"),
        (rule(actions=[Goto(1)]), "goto"),
        (rule(actions=[Meter(1)]), "meter"),
        (rule(actions=[Output(0xFF00)]), "port"),
        (rule(Match(in_port=0x10000)), "port"),
        (rule(Match(tagged=True), [Output(1)]), "VLAN tag"),
        (rule(Match(eth_type=ETH_TYPE_IPV4, ip_dscp=46)), "code points"),
    ],
)
def test_what_1_0_cannot_say_is_refused_with_the_reason(refused, word):
    assert word in of10.expressible(refused)
    with pytest.raises(NotExpressible, match=word):
        of10.encode_put(refused, 1)


def test_1_0_can_drop_frames_with_a_tag_and_without_at_once():
    assert of10.expressible(rule(Match(in_port=1, tagged=True))) is None


@pytest.mark.parametrize(
    "refused",
    [
        rule(actions=[Goto(1), Output(1)]),
        rule(actions=[Output(1), Meter(1)]),
        rule(actions=[Goto(2)], table=2),
        rule(actions=[Opaque(bytes(8))]),
        rule(Match(ip_dst=bytes(4), ip_dst_prefix=32)),
        rule(Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\xef\0\0\1", ip_dst_prefix=24)),
        rule(Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\xef\0\0\1")),
        rule(Match(eth_type=ETH_TYPE_IPV4, ip_src_prefix=8)),
        rule(Match(eth_dst=bytes(5))),
        rule(Match(ip_proto=2)),
        rule(Match(ip_dscp=46)),
        rule(Match(eth_type=ETH_TYPE_IPV4, ip_dscp=64)),
        rule(Match(eth_dst=b"\1" + bytes(5), eth_dst_mask=b"\xff" * 6)),
    ],
)
def test_what_1_3_cannot_say_is_refused(refused):
    assert of13.expressible(refused) is not None
    with pytest.raises(NotExpressible):
        of13.encode_put(refused, 1)


def test_batch_is_edits_in_order_then_barrier():
    for version, lowering in LOWERINGS.items():
        batch = ApplyEdits(1, 100, (Put(rule(actions=[Output(1)])), Remove(rule().key)))
        expected = [
            lowering.encode_put(batch.edits[0].rule, 100),
            lowering.encode_remove(rule().key, 101),
            lowering.encode_barrier(102),
        ]
        assert lowering.encode_batch(batch) == b"".join(expected), version
