"""Entries that groups share at cores: drawn trees, walked packet by packet by what the switches would hold."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.discovery.base_rules import base_rules
from controller.effects import Put
from controller.rules.compile import (
    TREE_VERSIONS,
    ChannelDuty,
    SenderEntry,
    SwitchDuty,
    channel_duties,
    lower_to_1_3,
    tree_version_of,
    versioned_mac,
)
from controller.rules.compile_shared import (
    HIGHEST_SHARED_PORT,
    BesideDuty,
    SharedDuty,
    in_shared_form,
    is_shared,
    port_set_mac,
    shared_duties,
    shared_rules,
    shares,
)
from controller.rules.cookies import group_cookie
from controller.rules.evaluate import Fields
from controller.rules.fake import FakeFabric, FakeSwitch
from controller.rules.model import Output
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, FORWARD, MULTICAST_TAG, VLAN_FORWARD
from controller.wire.addresses import group_mac, parse_ip

V4, OTHER_V4, V6 = parse_ip("239.1.2.3"), parse_ip("239.200.3.4"), parse_ip("ff0e::7:8")
SOURCES = parse_ip("10.0.0.9"), parse_ip("fd00::9")
VERSION = TREE_VERSIONS + 3
HOST_PORT, SENDER_PORT = 100, 200


def port(dpid: int, neighbour: int) -> int:
    return neighbour


def lowered(group, duties, version):
    cookie = group_cookie(MULTICAST_TAG, group)
    found = {}
    for dpid, duty in duties.items():
        if isinstance(duty, SharedDuty):
            found[dpid] = shared_rules(group, False, duty)
        else:
            plain = SwitchDuty(version, duty.channels, duty.senders)
            found[dpid] = in_shared_form(group, duty, lower_to_1_3(group, plain, cookie))
    return found


@st.composite
def trees(draw, size=14):
    """A random tree with members that want all sources or a named one, and the switches with senders."""
    count = draw(st.integers(2, size))
    neighbours = {dpid: set() for dpid in range(1, count + 1)}
    for dpid in range(2, count + 1):
        above = draw(st.integers(1, dpid - 1))
        neighbours[dpid].add(above)
        neighbours[above].add(dpid)
    leaves = [dpid for dpid in neighbours if len(neighbours[dpid]) == 1]
    others = draw(st.sets(st.sampled_from(sorted(neighbours)), max_size=2))
    members = {}
    for dpid in {*leaves, *others}:
        wanted = draw(st.sampled_from([{}, {None}, {"source"}, {None, "source"}]))
        if wanted:
            members[dpid] = wanted
    senders = draw(st.sets(st.sampled_from(leaves), min_size=1))
    return neighbours, members, senders


def wanted_by(members, address):
    """Return by switch and channel which ports want it; `address` is that of the named source."""
    found = {}
    for dpid, wanted in members.items():
        found[dpid] = {address if name else None: [HOST_PORT] for name in wanted}
    return found


def duties_of(neighbours, members, senders, address, from_address, version):
    channels = channel_duties(neighbours, port, wanted_by(members, address), (None, address))
    duties = {}
    for dpid in neighbours:
        sender = SenderEntry(SENDER_PORT, b"\2\0\0\0\0" + bytes((dpid,)), from_address, True)
        entries = (sender,) if dpid in senders else ()
        if channels.get(dpid) or entries:
            duties[dpid] = SwitchDuty(version, channels.get(dpid, ()), entries)
    return duties


def fabric_of(neighbours, rules):
    switches = {}
    for dpid, near in neighbours.items():
        switches[dpid] = FakeSwitch(dpid, 4, {*near, HOST_PORT, SENDER_PORT})
        for rule in (*base_rules(4), *rules.get(dpid, {}).values()):
            assert switches[dpid].apply(Put(rule), 0.0) is None
    links = [((u, v), (v, u)) for u, near in neighbours.items() for v in near if u < v]
    return FakeFabric(links, switches)


def packet(group, dpid, address):
    eth_type = ETH_TYPE_IPV4 if len(group) == 4 else ETH_TYPE_IPV6
    return Fields(group_mac(group), b"\2\0\0\0\0" + bytes((dpid,)), eth_type, 17, address, group)


@given(trees(), st.sampled_from([V4, V6]), st.booleans(), st.data())
def test_every_member_gets_each_packet_once_with_the_address_of_its_group(tree, group, is_named, data):
    neighbours, members, senders = tree
    address = SOURCES[len(group) == 16]
    from_address = address if is_named else address[:-1] + b"\x55"
    duties = duties_of(neighbours, members, senders, address, from_address, VERSION)
    found = shared_duties(duties, neighbours, port, neighbours)
    fabric = fabric_of(neighbours, lowered(group, found, VERSION))
    sender = data.draw(st.sampled_from(sorted(senders)))
    delivery = fabric.deliver(sender, SENDER_PORT, packet(group, sender, from_address), 100)
    got = Counter({copy.dpid: count for copy, count in delivery.hosts.items()})
    wanted = "source" if is_named else None
    plain = {dpid for dpid, names in members.items() if (wanted in names if is_named else None in names)}
    assert got == Counter(plain)
    assert {copy.eth_dst for copy in delivery.hosts} <= {group_mac(group)}


@given(trees(), st.sampled_from([V4, V6]))
def test_who_shares_has_neither_hosts_nor_a_neighbour_with_any_and_none_is_next_to_another(tree, group):
    neighbours, members, senders = tree
    address = SOURCES[len(group) == 16]
    duties = duties_of(neighbours, members, senders, address, address, VERSION)
    found = shared_duties(duties, neighbours, port, neighbours)
    sharing = {dpid for dpid, duty in found.items() if isinstance(duty, SharedDuty)}
    busy = {*members, *senders}
    for dpid in sharing:
        assert not busy & {dpid, *neighbours[dpid]}
        assert not sharing & neighbours[dpid]
    for dpid in duties.keys() - sharing:
        if not busy & {dpid, *neighbours[dpid]}:
            assert sharing & neighbours[dpid] or not any(duty.trunk_ports for duty in duties[dpid].channels)
    for rules in (lowered(group, {dpid: found[dpid]}, VERSION)[dpid] for dpid in sharing):
        assert all(is_shared(rule) and rule.key.match.ip_dst is None for rule in rules.values())


@given(trees(), st.data())
def test_a_packet_under_way_by_the_former_address_of_a_core_reaches_who_was_served_before_and_is(tree, data):
    """Next to a core some switches write the ports of before, some those of after: nobody is lost or doubled."""
    neighbours, members, senders = tree
    members = {dpid: {None, "source"} for dpid in members}
    address = SOURCES[0]
    later = {dpid: wanted for dpid, wanted in members.items() if data.draw(st.booleans())}
    before = duties_of(neighbours, members, senders, address, address, VERSION)
    after = duties_of(neighbours, later, senders, address, address, VERSION)
    olds = lowered(V4, shared_duties(before, neighbours, port, neighbours), VERSION)
    news = lowered(V4, shared_duties(after, neighbours, port, neighbours), VERSION)
    mixed = {dpid: {**olds.get(dpid, {}), **news.get(dpid, {})} for dpid in neighbours}
    for dpid, rules in olds.items():
        if data.draw(st.booleans()):
            mixed[dpid] = {**news.get(dpid, {}), **rules}
    fabric = fabric_of(neighbours, mixed)
    sender = data.draw(st.sampled_from(sorted(senders)))
    delivery = fabric.deliver(sender, SENDER_PORT, packet(V4, sender, address), 100)
    got = Counter({copy.dpid: count for copy, count in delivery.hosts.items()})
    assert set(later) <= set(got) <= set(members)
    assert set(got.values()) <= {1}


def star(pods):
    """Return a core, 1, with a switch 10 + n and behind it a ToR 50 + n for each pod n."""
    neighbours = {1: {10 + pod for pod in pods}}
    for pod in pods:
        neighbours[10 + pod] = {1, 50 + pod}
        neighbours[50 + pod] = {10 + pod}
    return neighbours


def star_duties(group, pods, sender=1, version=VERSION, rewriting=None):
    neighbours = star(pods)
    members = {50 + pod: {None, "source"} for pod in pods}
    address = SOURCES[len(group) == 16]
    duties = duties_of(neighbours, members, {50 + sender}, address, address, version)
    return shared_duties(duties, neighbours, port, neighbours if rewriting is None else rewriting)


def test_groups_of_the_same_pods_are_one_entry_whatever_their_tree_version():
    rules = {}
    for group, version in ((V4, TREE_VERSIONS + 1), (OTHER_V4, TREE_VERSIONS + 15)):
        rules |= lowered(group, star_duties(group, (1, 2, 5), version=version), version)[1]
    (rule,) = rules.values()
    assert rule.actions == (Output(11), Output(12), Output(15))
    assert lowered(V4, star_duties(V4, (1, 2)), VERSION)[1].keys() != rules.keys()
    assert lowered(V6, star_duties(V6, (1, 2, 5)), VERSION)[1].keys() != rules.keys()


def test_the_core_of_a_group_in_a_vlan_goes_by_an_entry_among_those_of_tagged_frames():
    duty = star_duties(V4, (1, 2))[1]
    (key,) = shared_rules(V4, True, duty)
    assert key.table == VLAN_FORWARD
    assert key.match.vlan_id is None
    (plain,) = shared_rules(V4, False, duty)
    assert plain.table == FORWARD
    assert plain.match == key.match


def test_all_switches_of_a_tree_have_one_key_for_a_channel():
    rules = lowered(V4, star_duties(V4, (1, 2)), VERSION)
    keys = {key for dpid in (11, 12, 51, 52) for key in rules[dpid] if key.table == FORWARD}
    assert len(keys) == 1
    assert {tree_version_of(key.match) for key in keys} == {VERSION}


@pytest.mark.parametrize("without", [1, 12], ids=["core", "neighbour"])
def test_nothing_is_shared_where_a_switch_cannot_match_part_of_an_address(without):
    found = star_duties(V4, (1, 2), rewriting={1, 11, 12, 51, 52} - {without})
    assert not any(isinstance(duty, SharedDuty | BesideDuty) for duty in found.values())


@pytest.mark.parametrize("highest", [HIGHEST_SHARED_PORT, HIGHEST_SHARED_PORT + 1])
def test_a_core_that_sends_by_a_port_without_a_bit_has_entries_of_its_own(highest):
    found = star_duties(V4, (1, highest - 10))
    assert isinstance(found[1], SharedDuty) is (highest == HIGHEST_SHARED_PORT)


def test_leaves_under_spines_share_nothing():
    neighbours = {1: {11, 12}, 11: {1}, 12: {1}}
    members = {11: {None, "source"}, 12: {None, "source"}}
    duties = duties_of(neighbours, members, {11}, SOURCES[0], SOURCES[0], VERSION)
    assert shared_duties(duties, neighbours, port, neighbours) == duties


@pytest.mark.parametrize("group", [V4, V6])
def test_addresses_of_port_sets_are_those_of_no_group_and_no_tree_version(group):
    """All of them are multicast; the marked bit is in no address that a group has, whatever its low bytes."""
    for version in range(TREE_VERSIONS + 1, 2 * TREE_VERSIONS):
        mac = port_set_mac(group, version, 0xFFFFFFFF)
        own = {versioned_mac(group, n) for n in range(TREE_VERSIONS)}
        assert mac[0] & 1
        assert mac[0] ^ group_mac(group)[0] == 0x02
        assert mac[1] & 0x80 != group_mac(group)[1] & 0x80
        assert mac[:2] not in {each[:2] for each in own}


def test_versions_of_either_form_are_told_from_their_keys():
    for version in range(1, 2 * TREE_VERSIONS):
        if version == TREE_VERSIONS:
            continue
        for group in (V4, V6):
            duty = SwitchDuty(version, (ChannelDuty(None, (3,), ()),), ())
            rules = lower_to_1_3(group, duty, 5)
            rules = in_shared_form(group, duty, rules) if shares(version) else rules
            assert [tree_version_of(key.match) for key in rules] == [version]


def test_a_switch_keeps_the_packets_of_another_tree_version_apart():
    rules = lowered(V4, star_duties(V4, (1, 2)), VERSION)
    beside = FakeSwitch(11, 4, {1, 51})
    for rule in (*base_rules(4), *rules[11].values()):
        assert beside.apply(Put(rule), 0.0) is None
    for version in range(1, TREE_VERSIONS):
        fields = packet(V4, 51, SOURCES[0])._replace(eth_dst=port_set_mac(V4, version, 0b11 << 10))
        assert bool(beside.process(fields, 1).sent) is (version + TREE_VERSIONS == VERSION)
