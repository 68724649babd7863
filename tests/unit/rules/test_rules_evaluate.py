"""What entries mean to packets, and what fake switches refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.effects import ApplyEdits, Put, Remove, RequestFlows
from controller.events import BarrierReplied, EditFailed
from controller.rules.evaluate import Fields, FlowTables, Sent, overlap
from controller.rules.fake import FakeFabric, FakeSwitch, HostCopy, LoopFound, Punt
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER, FlowEntry, FlowKey, Goto, Match, Meter, Output, SetDscp, SetEthDst

MAC, OTHER, HOST = (bytes.fromhex(text) for text in ("01005e010203", "03005e010203", "020000000001"))
PACKET = Fields(MAC, HOST, 0x0800, 17, b"\x0a\0\0\1", b"\xef\1\2\3")


def rule(priority, match, *actions, table=0):
    return FlowEntry(FlowKey(table, priority, match), actions, 1)


def verdict(version, packet, in_port, *rules):
    tables = FlowTables()
    for each in rules:
        tables.put(each)
    return tables.process(version, packet, in_port)


@pytest.mark.parametrize("version", [1, 4])
def test_the_highest_priority_wins(version):
    low, high = rule(1, Match(), Output(2)), rule(2, Match(eth_type=0x0800), Output(3))
    assert verdict(version, PACKET, 1, low, high).sent == (Sent(3, MAC),)
    assert verdict(version, PACKET._replace(eth_type=0x0806, ip_dst=None), 1, low, high).sent == (Sent(2, MAC),)


def test_a_miss_drops_in_1_3_and_punts_in_1_0():
    assert verdict(4, PACKET, 1).sent == ()
    assert verdict(1, PACKET, 1).sent == (Sent(OFPP_CONTROLLER, MAC),)


def test_actions_apply_in_order_and_never_back_to_the_ingress_port():
    actions = (Output(1), SetEthDst(OTHER), Output(2), Output(3), SetEthDst(MAC), Output(4))
    assert verdict(4, PACKET, 3, rule(1, Match(), *actions)).sent == (Sent(1, MAC), Sent(2, OTHER), Sent(4, MAC))


def test_a_code_point_is_set_from_where_it_stands_on():
    marked = rule(1, Match(eth_type=0x0800), Output(2), SetDscp(46), Output(3))
    assert verdict(4, PACKET, 1, marked).sent == (Sent(2, MAC), Sent(3, MAC, (), 46))


def test_a_later_table_sees_the_packet_as_rewritten():
    first = rule(1, Match(), SetEthDst(OTHER), Goto(2))
    second = rule(1, Match(eth_dst=OTHER), Output(5), table=2)
    found = verdict(4, PACKET, 1, first, second)
    assert found.sent == (Sent(5, OTHER),)
    assert found.met == (first, second)


def test_a_packet_goes_by_the_entries_that_are_there_when_it_comes():
    tables, low, high = FlowTables(), rule(1, Match(), Output(2)), rule(2, Match(eth_type=0x0800), Output(3))

    def ports():
        return [sent.port_no for sent in tables.process(4, PACKET, 1).sent]

    tables.put(low)
    assert ports() == [2]
    tables.put(rule(1, Match(), Output(4)))
    assert ports() == [4]
    tables.put(high)
    assert ports() == [3]
    tables.remove(high.key)
    assert ports() == [4]
    tables.remove(low.key)
    assert ports() == []


def test_packets_are_counted():
    switch = FakeSwitch(1, 4)
    switch.apply(Put(rule(1, Match(), Output(2))), now=10.0)
    switch.process(PACKET, 1, 100)
    switch.process(PACKET, 1, 50)
    switch.apply(Put(rule(1, Match(), Output(3))), now=11.0)
    (counted,) = switch.counters(now=12.0)
    assert (counted.packet_count, counted.byte_count, counted.duration_s) == (2, 150, 2.0)


fields = {
    "in_port": st.integers(1, 2),
    "eth_dst": st.sampled_from([MAC, OTHER]),
    "eth_src": st.sampled_from([HOST, MAC]),
    "eth_type": st.sampled_from([0x0800, 0x86DD]),
    "ip_proto": st.sampled_from([2, 58]),
    "icmpv6_type": st.sampled_from([130, 143]),
    "ip_dscp": st.sampled_from([0, 46]),
}
packets = st.builds(
    Fields,
    fields["eth_dst"],
    fields["eth_src"],
    fields["eth_type"],
    st.none() | fields["ip_proto"],
    st.none(),
    st.sampled_from([None, b"\xef\1\2\3", b"\xe0\0\0\1", b"\xff" * 16]),
    st.none() | fields["icmpv6_type"],
    st.sampled_from([(), (0,), (5,), (6, 5)]),
    fields["ip_dscp"],
)
versions = st.sampled_from((1, 4))
any_matches = (
    st.fixed_dictionaries(
        {
            **{name: st.none() | values for name, values in fields.items()},
            "tagged": st.booleans(),
            "vlan_id": st.sampled_from([None, None, 5, 6]),
        }
    )
    .map(lambda drawn: {**drawn, "tagged": drawn["tagged"] and drawn["vlan_id"] is None})
    .map(lambda drawn: Match(**drawn))
    .flatmap(
        lambda match: st.sampled_from(
            [
                match,
                match._replace(ip_dst=b"\xe0\0\0\0", ip_dst_prefix=4),
                match._replace(ip_dst=b"\xef\1\2\3", ip_dst_prefix=32),
                match._replace(ip_dst=b"\xff" + bytes(15), ip_dst_prefix=8),
                match._replace(eth_dst=b"\1" + bytes(5), eth_dst_mask=b"\1" + bytes(5)),
            ]
        )
    )
)


def naively_matches(version, match, packet, in_port):
    if match.vlan_id is not None:
        if packet.vlan_ids[:1] != (match.vlan_id,):
            return False
    elif bool(packet.vlan_ids) > match.tagged if version == 1 else match.tagged > bool(packet.vlan_ids):
        return False
    for name in ("eth_src", "eth_type", "ip_proto", "icmpv6_type"):
        if getattr(match, name) not in (None, getattr(packet, name)):
            return False
    if match.ip_dscp not in (None, packet.dscp):
        return False
    if match.in_port not in (None, in_port):
        return False
    if match.eth_dst is not None:
        mask = match.eth_dst_mask or b"\xff" * 6
        if any((a ^ b) & kept for a, b, kept in zip(match.eth_dst, packet.eth_dst, mask, strict=True)):
            return False
    if match.ip_dst is not None:
        if packet.ip_dst is None or len(packet.ip_dst) != len(match.ip_dst):
            return False
        bits = "".join(f"{byte:08b}" for byte in match.ip_dst)[: match.ip_dst_prefix]
        return "".join(f"{byte:08b}" for byte in packet.ip_dst).startswith(bits)
    return True


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from((1, 4)),
    st.lists(any_matches, max_size=8, unique=True),
    packets,
    st.integers(1, 2),
    st.integers(0, 8),
)
def test_lookup_finds_what_a_scan_finds(version, matches, packet, in_port, removed):
    tables = FlowTables()
    rules = [rule(100 - at, match, Output(9)) for at, match in enumerate(matches)]
    for each in rules:
        tables.put(each)
    for each in rules[removed:]:
        assert tables.remove(each.key)
    met = (each for each in rules[:removed] if naively_matches(version, each.key.match, packet, in_port))
    expected = next(met, None)
    entry = tables.lookup(version, 0, packet, in_port)
    assert (entry and entry.rule) == expected


@settings(max_examples=200, deadline=None)
@given(versions, any_matches, any_matches, packets, st.integers(1, 2))
def test_matches_that_share_a_packet_overlap(version, one, other, packet, in_port):
    if naively_matches(version, one, packet, in_port) and naively_matches(version, other, packet, in_port):
        assert overlap(version, one, other)
    assert overlap(version, one, other) == overlap(version, other, one)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (rule(1, Match(), table=5), (5, 2)),
        (rule(1, Match(), Goto(5)), (3, 2)),
        (rule(1, Match(), Goto(0)), (4, 6)),
        (rule(1, Match(), Meter(2)), (12, 3)),
        (rule(1, Match(), Output(9)), (2, 4)),
        (rule(5, Match(eth_dst=MAC), Output(2)), (5, 3)),
    ],
)
def test_a_fake_switch_refuses_what_is_wrong(refused, error):
    switch = FakeSwitch(1, 4, ports={1, 2}, table_count=5, meters={1})
    assert switch.apply(Put(rule(5, Match(in_port=1), Output(1)))) is None
    assert switch.apply(Put(rule(1, Match(in_port=7), Meter(1), Output(OFPP_CONTROLLER), Goto(3)))) is None
    assert switch.apply(Put(refused)) == error
    assert refused.key not in switch.rules
    assert [edit.rule for edit, _, _ in switch.refused] == [refused]


@pytest.mark.parametrize("version", [1, 4])
def test_a_full_fake_switch_changes_but_does_not_add(version):
    switch = FakeSwitch(1, version, capacity=1)
    switch.apply(Put(rule(1, Match(in_port=1), Output(1))))
    batch = ApplyEdits(1, 5, (Put(rule(1, Match(in_port=2))), Put(rule(1, Match(in_port=1), Output(3)))))
    assert switch.respond(batch) == [EditFailed(1, 5, *LOWERINGS[version].table_full), BarrierReplied(1, 7)]
    assert switch.rules[batch.edits[1].rule.key].actions == (Output(3),)
    assert switch.apply(Remove(batch.edits[1].rule.key)) is None
    assert switch.apply(batch.edits[0]) is None


@pytest.mark.parametrize("version", [1, 4])
def test_a_fake_switch_reports_its_entries_in_parts(version):
    switch = FakeSwitch(1, version)
    rules = [rule(1, Match(in_port=n), Output(1))._replace(cookie=n % 2) for n in range(1, 501)]
    for each in rules:
        switch.apply(Put(each))
    replies = [
        LOWERINGS[version].decode_flow_stats(event.message, 1, 1)
        for event in switch.respond(RequestFlows(1, 9, 1, 1))
    ]
    assert [reply.more for reply in replies] == [True] * (len(replies) - 1) + [False]
    assert [entry.rule for reply in replies for entry in reply.entries] == rules[::2]


def test_hard_timeouts_end_entries():
    switch = FakeSwitch(1, 4)
    switch.apply(Put(rule(1, Match())._replace(hard_timeout_s=3)), now=10.0)
    switch.expire(12.9)
    assert switch.rules
    switch.expire(13.0)
    assert not switch.rules


def line(*entries):
    """Switches 1 - 2 by ports 10 and 20, with hosts elsewhere."""
    switches = {dpid: FakeSwitch(dpid, version) for dpid, version in ((1, 4), (2, 1))}
    for dpid, each in entries:
        assert switches[dpid].apply(Put(each)) is None
    return FakeFabric([((1, 10), (2, 20))], switches)


def test_a_fabric_delivers_every_copy():
    fabric = line(
        (1, rule(1, Match(), Output(3), SetEthDst(OTHER), Output(10), Output(OFPP_CONTROLLER))),
        (2, rule(1, Match(eth_dst=OTHER), Output(20), SetEthDst(MAC), Output(4), Output(5), Output(5))),
    )
    delivery = fabric.deliver(1, 1, PACKET)
    assert delivery.hosts == {HostCopy(1, 3, MAC): 1, HostCopy(2, 4, MAC): 1, HostCopy(2, 5, MAC): 2}
    assert delivery.punts == {Punt(1, 1, OTHER): 1}
    assert fabric.deliver(1, 3, PACKET).hosts[HostCopy(1, 3, MAC)] == 0


def test_a_link_that_is_cut_delivers_nothing():
    fabric = line((1, rule(1, Match(), Output(10))), (2, rule(1, Match(), Output(4))))
    assert fabric.deliver(1, 1, PACKET).hosts
    fabric.cut((2, 20))
    delivery = fabric.deliver(1, 1, PACKET)
    assert not delivery.hosts and not delivery.punts


def test_a_loop_is_found():
    switches = {dpid: FakeSwitch(dpid, 4) for dpid in (1, 2, 3)}
    for switch in switches.values():
        switch.apply(Put(rule(1, Match(), Output(1), Output(2))))
    fabric = FakeFabric([((1, 2), (2, 1)), ((2, 2), (3, 1)), ((3, 2), (1, 1))], switches)
    with pytest.raises(LoopFound):
        fabric.deliver(1, 9, PACKET)
