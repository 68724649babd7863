"""Duties and their two lowerings, against a walk of the tree that knows nothing of either."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rules import of10
from controller.rules.compile import (
    ChannelDuty,
    SenderEntry,
    SwitchDuty,
    channel_duties,
    common_outputs,
    differences,
    lower_to_1_0,
    lower_to_1_3,
    queued,
    supports,
    versioned_mac,
)
from controller.rules.model import Goto, Output, SetEthDst, SetQueue
from controller.rules.pipeline import ADMIT, FORWARD, SENDER_COOKIE_BIT
from controller.wire.addresses import parse_ip

GROUP = parse_ip("239.1.2.3")
SOURCE = parse_ip("10.0.0.9")


def port(dpid: int, neighbour: int) -> int:
    return 100 + neighbour


@st.composite
def trees(draw):
    """A random tree, ports that want all or a named source, as (neighbours, members)."""
    size = draw(st.integers(1, 9))
    neighbours = {dpid: set() for dpid in range(1, size + 1)}
    for dpid in range(2, size + 1):
        above = draw(st.integers(1, dpid - 1))
        neighbours[dpid].add(above)
        neighbours[above].add(dpid)
    ports = st.sets(st.integers(1, 4), max_size=3)
    members = {
        dpid: {source: wanted for source, wanted in ((None, draw(ports)), (SOURCE, draw(ports))) if wanted}
        for dpid in neighbours
    }
    return neighbours, members


def duty_for(duties: tuple[ChannelDuty, ...], source: bytes | None) -> ChannelDuty:
    by_source = {duty.source: duty for duty in duties}
    return by_source.get(source, by_source.get(None, ChannelDuty(None, (), ())))


def delivered(neighbours, duties, source, start):
    """Ports that a packet reaches that enters the tree at switch `start`, with repeats."""
    reached, queue = [], [(start, None)]
    while queue:
        dpid, came_from = queue.pop()
        duty = duty_for(duties.get(dpid, ()), source)
        reached += [(dpid, port_no) for port_no in duty.host_ports]
        queue += [(n, dpid) for n in neighbours[dpid] if n != came_from and port(dpid, n) in duty.trunk_ports]
        assert len(reached) < 1000
    return sorted(reached)


@given(trees(), st.sampled_from([None, SOURCE]), st.data())
def test_every_port_that_wants_a_channel_gets_it_once_from_anywhere(tree, source, data):
    neighbours, members = tree
    duties = channel_duties(neighbours, port, members, (None, SOURCE))
    start = data.draw(st.sampled_from(sorted(neighbours)))
    wanted = sorted((d, p) for d, channels in members.items() for p in channels.get(source, ()))
    assert delivered(neighbours, duties, source, start) == wanted


@given(trees(), st.sampled_from([None, SOURCE]))
def test_no_link_carries_a_channel_towards_nobody(tree, source):
    neighbours, members = tree
    duties = channel_duties(neighbours, port, members, (None, SOURCE))
    for dpid in neighbours:
        for neighbour in neighbours[dpid]:
            beyond = {neighbour}
            queue = [(neighbour, dpid)]
            while queue:
                node, parent = queue.pop()
                queue += [(n, node) for n in neighbours[node] if n != parent]
                beyond |= {n for n in neighbours[node] if n != parent}
            carries = port(dpid, neighbour) in duty_for(duties.get(dpid, ()), source).trunk_ports
            assert carries == any(members[node].get(source) for node in beyond)


def test_a_source_treated_like_any_other_needs_no_entry_of_its_own():
    duties = channel_duties({1: set()}, port, {1: {None: [3], SOURCE: [3]}}, (None, SOURCE))
    assert duties == {1: (ChannelDuty(None, (), (3,)),)}


def test_a_source_that_only_others_get_is_dropped_by_an_entry_of_its_own():
    duties = channel_duties({1: set()}, port, {1: {None: [3]}}, (None, SOURCE))
    assert duties == {1: (ChannelDuty(None, (), (3,)), ChannelDuty(SOURCE, (), ()))}


def test_an_empty_tree_has_no_duties():
    assert channel_duties({}, port, {}, (None,)) == {}


DUTY = SwitchDuty(
    1,
    (ChannelDuty(None, (101, 102), (3,)), ChannelDuty(SOURCE, (), (4,))),
    (SenderEntry(7, b"\0\0\0\0\0\7", SOURCE, True), SenderEntry(8, b"\0\0\0\0\0\x08", SOURCE, False)),
)


def test_1_3_lets_senders_choose_the_tree_version_and_restores_the_address_for_hosts():
    rules = lower_to_1_3(GROUP, DUTY, cookie=5)
    admit = {key.match.in_port: rule for key, rule in rules.items() if key.table == ADMIT}
    assert admit[7].actions == (SetEthDst(versioned_mac(GROUP, 1)), Goto(FORWARD))
    assert admit[8].actions == ()
    assert all(rule.cookie == 5 | SENDER_COOKIE_BIT for rule in admit.values())
    forward = {key.match.ip_src: rule for key, rule in rules.items() if key.table == FORWARD}
    assert forward[None].actions == (Output(101), Output(102), SetEthDst(versioned_mac(GROUP, 0)), Output(3))
    assert forward[SOURCE].actions == (SetEthDst(versioned_mac(GROUP, 0)), Output(4))
    assert forward[SOURCE].key.priority > forward[None].key.priority
    assert {rule.key.match.eth_dst for rule in forward.values()} == {versioned_mac(GROUP, 1)}


def test_1_0_carries_the_outputs_in_the_senders_entry():
    rules = lower_to_1_0(GROUP, DUTY, cookie=5)
    senders = {key.match.in_port: rule for key, rule in rules.items() if key.match.in_port is not None}
    assert senders[7].actions == (Output(4),)
    assert senders[8].actions == ()
    assert {key.table for key in rules} == {0}


def test_1_0_moves_a_sender_onto_the_new_tree_before_trunks_and_back_before_hosts():
    duty = DUTY._replace(channels=(ChannelDuty(None, (101,), (3,)),))
    rules = lower_to_1_0(GROUP, duty, cookie=5)
    sender = next(rule for key, rule in rules.items() if key.match.in_port == 7)
    new, own = SetEthDst(versioned_mac(GROUP, 1)), SetEthDst(versioned_mac(GROUP, 0))
    assert sender.actions == (new, Output(101), own, Output(3))


@given(st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)), st.integers(0, 1))
def test_versioned_addresses_stay_multicast_and_differ(group, version):
    mac = versioned_mac(group, version)
    assert len(mac) == 6
    assert mac[0] & 1
    assert versioned_mac(group, 0) != versioned_mac(group, 1)


def test_ipv6_is_refused_on_1_0_with_the_reason():
    assert "OpenFlow 1.3" in supports(1, parse_ip("ff3e::1"))
    assert supports(4, parse_ip("ff3e::1")) is None
    assert supports(1, GROUP) is None


def test_differences_lead_from_one_set_to_another():
    before = lower_to_1_3(GROUP, DUTY, cookie=5)
    after = lower_to_1_3(GROUP, DUTY._replace(channels=DUTY.channels[:1]), cookie=5)
    puts, removes = differences(before, after)
    result = {key: rule for key, rule in before.items() if key not in removes}
    result.update({rule.key: rule for rule in puts})
    assert result == after
    assert puts == []
    assert len(removes) == 1


@pytest.mark.parametrize("kept", [(), (2,), (3,), (2, 3)])
def test_what_an_entry_keeps_of_its_outputs_can_be_said_in_openflow_1_0_with_a_queue(kept):
    duty = SwitchDuty(1, (ChannelDuty(None, (2,), (3,)),), ())
    ((key, rule),) = queued(lower_to_1_0(GROUP, duty, 0), 6).items()
    old = rule._replace(actions=tuple(map(Output, kept)))
    shrunk = common_outputs(rule, old)
    assert [action.port_no for action in shrunk.actions if isinstance(action, Output)] == list(kept)
    assert (SetQueue(6) in shrunk.actions) is bool(kept)
    assert of10.expressible(shrunk) is None
    assert shrunk.key == key
