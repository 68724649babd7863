"""Location addresses: what the middle of a fabric holds, who can use them, and what comes of equal ones."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.discovery.base_rules import base_rules as discovery_rules
from controller.effects import Put
from controller.rules.evaluate import Fields
from controller.rules.fake import Copy, FakeFabric, FakeSwitch, HostCopy, Punt
from controller.rules.model import Goto, SetEthDst
from controller.unicast import routes
from controller.unicast.core import ASKED_KEPT_S
from controller.unicast.entries import host_keys, trunk_rule
from controller.unicast.locations import LABEL_COUNT, host_number, location_address, number_of, switch_number
from controller.wire.ethernet import encode_ethernet
from controller.wire.udp import encode_udp
from topology.events import HostGone, PortRole, PortRoleChanged
from topology.graph import Graph

ROW = [(1, 1, 2, 1), (2, 2, 3, 1)]
SQUARE = [(1, 11, 2, 11), (2, 12, 3, 12), (3, 13, 4, 13), (4, 14, 1, 14)]


def fabric_of(bench):
    """The entries of a bench in strict switches of their own, behind the first entries that discovery makes."""
    switches = {}
    for dpid, rules in bench.rules.items():
        switch = switches[dpid] = FakeSwitch(dpid, bench.version_of(dpid))
        for rule in [*discovery_rules(bench.version_of(dpid)), *rules.values()]:
            assert switch.apply(Put(rule)) is None, switch.refused
    return FakeFabric({tuple(sorted(pair)) for pair in bench.other_end.items()}, switches)


def packet(mac, sender=b"\x02\0\0\0\xff\xff", eth_type=0x0800):
    return Fields(mac, sender, eth_type, 17, b"\x0a\0\0\1", b"\x0a\0\0\2")


def follow(fabric, end, mac):
    """The switches on a packet's way, and where and with which address it comes out; it never has two copies."""
    copies, way, out = [Copy(*end, mac)], [], []
    while copies:
        (copy,) = copies
        way.append(copy.dpid)
        hop = fabric.forward(copy, packet(copy.eth_dst))
        out += [*hop.hosts, *hop.punts]
        copies = hop.onward
    return way, out


def distances(cables, start):
    graph = Graph()
    for a, a_port, b, b_port in cables:
        graph.add_node(a)
        graph.add_node(b)
        graph.add_link(a, b, a_port, b_port)
    found, ring = {start: 0}, [start]
    for dpid in ring:
        for near in graph.neighbours(dpid):
            if near not in found:
                found[near] = found[dpid] + 1
                ring.append(near)
    return found


@pytest.mark.parametrize("version", [1, 4, 0])
def test_every_host_reaches_every_other_by_a_shortest_path(make_bench, make_host, make_fattree, version):
    bench = make_bench(version=version)
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(n, *end) for n, end in enumerate(ends, 1)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.meet(hosts)
    fabric = fabric_of(bench)
    far = {host.dpid: distances(cables, host.dpid) for host in hosts}
    for one, other in permutations(hosts, 2):
        way, out = follow(fabric, (one.dpid, one.port_no), other.mac)
        assert out == [HostCopy(other.dpid, other.port_no, other.mac)]
        assert len(way) == 1 + far[other.dpid][one.dpid]


def test_the_middle_holds_entries_by_switch_and_edges_those_of_hosts_that_were_asked_for(
    make_bench, make_host, make_fattree
):
    bench = make_bench()
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    few = [make_host(n, *end) for n, end in enumerate(ends, 1)]
    many = [make_host(100 * n + m, dpid, 100 + m) for n, (dpid, _port) in enumerate(ends, 1) for m in range(5)]
    for host in few:
        bench.feed(host)
    bench.run(0.1)
    before = {dpid: dict(rules) for dpid, rules in bench.rules.items()}
    for host in many:
        bench.feed(host)
    bench.run(0.1)
    edges = {dpid for dpid, _port in ends}
    assert {dpid for dpid in bench.rules if bench.rules[dpid] != before[dpid]} == edges
    for dpid in edges:
        here = [host for host in (*few, *many) if host.dpid == dpid]
        assert len(bench.rules[dpid]) - len(before[dpid]) == 2 * (len(here) - 2)
    labels = LABEL_COUNT * len(edges)
    assert all(len(bench.rules[dpid]) < labels + 12 for dpid in bench.rules.keys() - edges)
    bench.call((ends[0][0],), (many[-1],))
    asked = bench.rules[ends[0][0]][host_keys(4, many[-1].mac)[0]]
    assert [type(action) for action in asked.actions] == [SetEthDst, Goto]
    assert all(host_keys(4, many[-1].mac)[0] not in bench.rules[dpid] for dpid in edges - {ends[0][0], many[-1].dpid})


def square(make_bench, make_host, version=4, macs=()):
    bench = make_bench(version=version)
    bench.build(SQUARE, [(1, 5), (1, 6), (3, 5), (3, 6)])
    hosts = [make_host(n, *end) for n, end in enumerate([(1, 5), (1, 6), (3, 5), (3, 6)], 1)]
    hosts = [host._replace(mac=mac) for host, mac in zip(hosts, [*macs, *(host.mac for host in hosts)], strict=False)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.meet(hosts)
    return bench, hosts


def test_a_host_cannot_send_by_location_address(make_bench, make_host):
    bench, (_, _, victim, _) = square(make_bench, make_host)
    address = bench.core.location_address(victim.mac)
    fabric = fabric_of(bench)
    for dpid, port_no in ((1, 5), (3, 6), (2, 7)):
        assert follow(fabric, (dpid, port_no), address)[1] == [Punt(dpid, port_no, address)], "the controller has it"
    assert follow(fabric, (2, 11), address)[1] == [HostCopy(3, 5, victim.mac)]


def test_a_port_lets_location_addresses_in_only_while_a_switch_is_behind_it(make_bench, make_host):
    bench, _hosts = square(make_bench, make_host)
    key = trunk_rule(11).key
    assert key in bench.rules[2]
    bench.feed(PortRoleChanged(2, 11, PortRole.UNKNOWN))
    assert key not in bench.rules[2]
    bench.feed(PortRoleChanged(2, 11, PortRole.TRUNK))
    assert key in bench.rules[2]


@pytest.mark.parametrize("version", [1, 4, 0])
@pytest.mark.parametrize("at", [1, 3])
def test_a_host_whose_own_address_is_anothers_location_gets_nothing_of_it(make_bench, make_host, version, at):
    bench, hosts = square(make_bench, make_host, version)
    victim = hosts[2]
    thief = make_host(9, at, 6)._replace(mac=bench.core.location_address(victim.mac))
    bench.feed(thief)
    bench.run(0.1)
    bench.meet([*hosts, thief])
    fabric = fabric_of(bench)
    for other in (hosts[0], hosts[1], hosts[3]):
        way, out = follow(fabric, (other.dpid, other.port_no), victim.mac)
        assert out == [HostCopy(victim.dpid, victim.port_no, victim.mac)], way


@pytest.mark.parametrize("version", [1, 4])
def test_hosts_at_one_switch_with_the_same_last_bytes_are_both_served(make_bench, make_host, version):
    macs = [b"\x02\1\1\0\0\7", b"\x02\2\2\0\0\7", b"\x02\3\3\0\0\7", b"\x02\4\4\0\0\7"]
    bench, hosts = square(make_bench, make_host, version, macs)
    addresses = {bench.core.location_address(mac) for mac in macs}
    assert len(addresses) == 4
    fabric = fabric_of(bench)
    for one, other in permutations(hosts, 2):
        assert follow(fabric, (one.dpid, one.port_no), other.mac)[1] == [
            HostCopy(other.dpid, other.port_no, other.mac)
        ]
    bench.feed(HostGone(*hosts[0][:3]))
    bench.run(0.1)
    assert follow(fabric_of(bench), (3, 5), macs[1])[1] == [HostCopy(1, 6, macs[1])]


@given(st.integers(0, 2**21 - 1), st.integers(0, LABEL_COUNT - 1), st.integers(0, 2**24 - 1))
def test_location_addresses_are_local_unicast_addresses_and_tell_the_switch(number, label, host):
    address = location_address(number, label, host)
    assert len(address) == 6
    assert address[0] & 3 == 2
    assert number_of(address) == number
    assert address[:3] == location_address(number, label)[:3]
    assert location_address(number, 1 - label, host)[:3] != address[:3]


def test_equal_numbers_give_way():
    taken = {switch_number(7, ())}
    assert switch_number(7, taken) not in taken
    mac = b"\x02\0\0\1\2\3"
    assert host_number(mac, ()) == 0x010203
    assert host_number(mac, {0x010203}) != 0x010203


def test_what_arrives_by_location_before_its_entry_is_delivered_with_the_hosts_own_address(make_bench, make_host):
    bench, hosts = square(make_bench, make_host)
    data = encode_udp(hosts[0].mac, hosts[0].addresses[0], hosts[2].addresses[0], b"x", eth_dst=hosts[2].mac)
    (sent,) = bench.frame((2, 11), bench.core.location_address(hosts[2].mac) + data[6:])
    assert (sent.dpid, sent.ports, sent.data) == (3, (5,), data)
    assert bench.frame((2, 11), location_address(0, 0, 5) + data[6:]) == []


def test_a_frame_without_a_location_address_from_another_switch_has_its_sender_given_the_entry(make_bench, make_host):
    """A switch may hold entries of a version before, which send frames on as hosts sent them."""
    bench = make_bench()
    bench.build(ROW, [(1, 5), (3, 5)])
    hosts = [make_host(1, 1, 5), make_host(2, 3, 5)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    data = encode_udp(hosts[0].mac, hosts[0].addresses[0], hosts[1].addresses[0], b"x", eth_dst=hosts[1].mac)
    assert follow(fabric_of(bench), (2, 1), hosts[1].mac)[1] == [Punt(2, 1, hosts[1].mac)], "the controller has it"
    (sent,) = bench.frame((2, 1), data)
    assert (sent.dpid, sent.ports, sent.data) == (3, (5,), data)
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[1] == [HostCopy(3, 5, hosts[1].mac)]


def test_other_than_ip_is_delivered_and_has_its_entry_from_then_on(make_bench, make_host):
    bench = make_bench()
    bench.build(ROW, [(1, 5), (3, 5)])
    hosts = [make_host(1, 1, 5), make_host(2, 3, 5)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[1] == [Punt(1, 5, hosts[1].mac)]
    frame = encode_ethernet(hosts[1].mac, hosts[0].mac, 0x88A2, b"ata over ethernet")
    (sent,) = bench.frame((1, 5), frame)
    assert (sent.dpid, sent.ports, sent.data) == (3, (5,), frame)
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[1] == [HostCopy(3, 5, hosts[1].mac)]
    fabric = fabric_of(bench)
    group = fabric.deliver(1, 5, packet(b"\x01\x80\xc2\0\0\x0e", eth_type=0x88A2))
    assert not group.hosts and not group.punts
    unknown = fabric.deliver(1, 5, packet(b"\x02\0\0\0\x77\x77", eth_type=0x88A2))
    assert [punt.eth_dst for punt in unknown.punts] == [b"\x02\0\0\0\x77\x77"]


def test_a_moved_hosts_new_entries_are_in_place_before_anybody_uses_them(make_bench, make_host):
    bench, hosts = square(make_bench, make_host)
    former = bench.core.location_address(hosts[2].mac)
    bench.feed(make_host(77, 4, 8))
    bench.run(0.1)
    bench.hold = []
    bench.feed(hosts[2]._replace(dpid=4, port_no=7))
    bench.run(0.1)
    assert bench.rules[1][host_keys(4, hosts[2].mac)[0]].actions[0] == SetEthDst(former)
    bench.confirm()
    assert follow(fabric_of(bench), (1, 5), hosts[2].mac)[1] == [HostCopy(4, 7, hosts[2].mac)]
    assert follow(fabric_of(bench), (3, 6), hosts[2].mac)[1] == [HostCopy(4, 7, hosts[2].mac)], (
        "asked for where it was too"
    )
    assert not any(key.match.eth_dst == former for rules in bench.rules.values() for key in rules)


def test_a_link_is_used_when_its_far_end_lets_location_addresses_in(make_bench, make_host):
    bench = make_bench()
    bench.build(SQUARE[:3], [(1, 5), (4, 5)])
    hosts = [make_host(1, 1, 5), make_host(2, 4, 5)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.meet(hosts)
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[0] == [1, 2, 3, 4]
    bench.hold = []
    bench.link(SQUARE[3])
    bench.run(0.1)
    while prompt := [reply for reply in bench.hold if reply.dpid != 4]:
        bench.hold.remove(prompt[0])
        bench.feed(prompt[0])
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[0] == [1, 2, 3, 4]
    bench.confirm()
    assert follow(fabric_of(bench), (1, 5), hosts[1].mac)[0] == [1, 4]


@pytest.mark.parametrize("seconds", [ASKED_KEPT_S - 10, ASKED_KEPT_S + 10])
def test_who_asked_for_a_host_is_remembered_a_while(make_bench, make_host, seconds):
    bench, hosts = square(make_bench, make_host)
    bench.feed(HostGone(*hosts[2][:3]))
    bench.run(seconds)
    assert host_keys(4, hosts[2].mac)[0] not in bench.rules[1]
    bench.feed(hosts[2])
    bench.run(0.1)
    assert (host_keys(4, hosts[2].mac)[0] in bench.rules[1]) == (seconds < ASKED_KEPT_S)


def test_a_switch_that_is_back_has_entries_for_what_its_hosts_asked_for(make_bench, make_host):
    bench, hosts = square(make_bench, make_host)
    before = bench.host_rules()
    cables = [cable for cable in SQUARE if 1 in (cable[0], cable[2])]
    bench.down(1)
    bench.run(20.0)
    bench.switch(1)
    for cable in cables:
        bench.link(cable)
    for host in hosts[:2]:
        bench.feed(host)
    bench.run(0.1)
    assert bench.host_rules() == before


def test_no_turn_makes_more_than_a_few_edits(make_bench, make_host, make_fattree):
    """The work of one turn is bounded; what is left follows at once, in turns of its own."""
    bench = make_bench()
    cables, ends = make_fattree(8)
    turns = []
    perform = bench.perform

    def counted(effects):
        effects = list(effects)
        turns.append(sum(len(getattr(effect, "edits", ())) for effect in effects))
        perform(effects)

    bench.build(cables, ends)
    bench.perform = counted
    for n, end in enumerate(ends, 1):
        bench.feed(make_host(n, *end))
    bench.run(0.1)
    bench.link(cables[-1], up=False)
    bench.run(0.1)
    assert max(turns) <= LABEL_COUNT * (routes.WORK_COUNT + routes.DESTINATION_WORK_COUNT) + 2 * len(ends)
    assert sum(turns) > 5000
