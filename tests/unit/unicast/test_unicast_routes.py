"""Entries per host: reachability, spread, path independence, and no loop at any moment."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.events import HostGone, PortRole, PortRoleChanged, SwitchDown, SwitchUp

from .reaching import all_pairs, assert_reachable, components, fabrics, populate


def test_every_host_reaches_every_other_on_a_fattree(fabric):
    bench, hosts, _cables = fabric
    assert len(hosts) == 16
    assert_reachable(bench, hosts)


@pytest.mark.parametrize("version", [1, 0])
def test_openflow_1_0_gets_the_same_paths_in_table_0(make_bench, make_host, make_fattree, version):
    bench = make_bench(version=version)
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(n, *end) for n, end in enumerate(ends, 1)]
    populate(bench, hosts)
    assert_reachable(bench, hosts)
    old = [dpid for dpid in bench.rules if bench.version_of(dpid) == 1]
    assert old and {key.table for dpid in old for key in bench.rules[dpid]} == {0}


def test_destinations_spread_evenly_over_equal_paths(make_bench, make_host, make_fattree):
    bench = make_bench()
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(16 * n + i, dpid, 100 + n) for i, (dpid, _port) in enumerate(ends) for n in range(1, 17)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    for dpid in sorted({end[0] for end in ends}):
        up = Counter(bench.core.port_to(dpid, host.mac) for host in hosts if host.dpid != dpid)
        assert set(up) == {3, 4}
        assert max(up.values()) / sum(up.values()) < 0.58, (dpid, up)


def test_failures_and_returns_keep_everybody_connected(fabric):
    bench, hosts, cables = fabric
    before = bench.host_rules()
    for cable in cables[::3]:
        bench.link(cable, up=False)
        bench.run(0.1)
        assert_reachable(bench, hosts)
        bench.link(cable)
        bench.run(0.1)
    assert bench.host_rules() == before


def test_parallel_cables_share_the_destinations_and_each_fails_by_itself(make_bench, make_host):
    bench = make_bench()
    cables = [(1, 1, 9, 1), (1, 2, 9, 2), (2, 1, 9, 3), (2, 2, 9, 4), (1, 3, 2, 3), (1, 4, 2, 4), (3, 1, 9, 5)]
    ends = [(dpid, 100 + n) for dpid in (1, 2, 3) for n in range(6)]
    bench.build(cables, ends)
    hosts = [make_host(number, *end) for number, end in enumerate(ends, 5)]
    populate(bench, hosts)
    assert_reachable(bench, hosts)
    before = bench.host_rules()
    assert {bench.core.port_to(1, host.mac) for host in hosts if host.dpid == 2} == {3, 4}
    assert {bench.core.port_to(1, host.mac) for host in hosts if host.dpid == 3} == {1, 2}
    for cable in cables[:-1]:
        bench.link(cable, up=False)
        bench.run(0.1)
        assert_reachable(bench, hosts)
        bench.link(cable)
        bench.run(0.1)
        assert_reachable(bench, hosts)
    assert bench.host_rules() == before


def test_a_failure_changes_only_what_it_must(fabric):
    bench, _hosts, cables = fabric
    bench.edits = 0
    bench.link(cables[0], up=False)
    bench.run(0.1)
    assert 0 < bench.edits < 60, f"{bench.edits} edits for one of {len(cables)} cables"


def test_a_switch_that_goes_and_returns(fabric):
    bench, hosts, cables = fabric
    before = bench.host_rules()
    core = 30000
    bench.down(core)
    bench.run(0.1)
    assert_reachable(bench, hosts)
    bench.switch(core)
    for cable in cables:
        if core in (cable[0], cable[2]):
            bench.link(cable)
    bench.run(0.1)
    assert_reachable(bench, hosts)
    assert bench.host_rules() == before


def test_a_host_that_goes_leaves_no_entry(fabric):
    bench, hosts, _cables = fabric
    gone = hosts[3]
    bench.feed(HostGone(*gone[:3]))
    bench.run(0.1)
    assert all(key.match.eth_dst != gone.mac for table in bench.rules.values() for key in table)
    assert_reachable(bench, [host for host in hosts if host is not gone])


def test_a_host_that_moves_is_reached_at_its_new_port(fabric):
    bench, hosts, _cables = fabric
    moved = hosts[0]._replace(dpid=hosts[-1].dpid, port_no=77)
    bench.edits = 0
    bench.feed(HostGone(*hosts[0][:3]))
    bench.feed(moved)
    bench.run(0.1)
    assert_reachable(bench, [moved, *hosts[1:]])
    assert bench.edits <= len(bench.rules), "no entry is removed only to be put again"


def test_no_packet_circles_at_any_moment_of_a_change(fabric):
    bench, hosts, cables = fabric

    def check():
        for host in hosts:
            for dpid in bench.rules:
                bench.trace_onward(dpid, host.mac, strict=True)

    bench.on_edits = check
    for cable in (cables[0], cables[5], cables[9]):
        bench.link(cable, up=False)
        bench.run(0.1)
    for cable in (cables[5], cables[0]):
        bench.link(cable)
        bench.run(0.1)
    bench.feed(hosts[0]._replace(dpid=hosts[-1].dpid, port_no=77))
    bench.run(0.1)


@pytest.mark.parametrize("version", [1, 4, 0])
@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_no_packet_circles_while_a_ring_turns_round(make_bench, make_host, size, version):
    """The far side of a broken ring changes direction: the one order that makes no loop is outwards."""
    bench = make_bench(version=version)
    ring = [(n, 1, n % size + 1, 2) for n in range(1, size + 1)]
    bench.build(ring)
    hosts = [make_host(n, n, 9) for n in range(1, size + 1)]
    populate(bench, hosts)

    def check():
        for host in hosts:
            for dpid in bench.rules:
                bench.trace_onward(dpid, host.mac, strict=True)

    bench.on_edits = check
    for cable in ring:
        bench.link(cable, up=False)
        bench.run(0.1)
        assert_reachable(bench, hosts)
        bench.link(cable)
        bench.run(0.1)
        assert_reachable(bench, hosts)


def test_a_restart_keeps_forwarding_and_clears_up_later(fabric, make_bench):
    old, hosts, cables = fabric
    gone = (hosts[0].mac, old.core.location_address(hosts[0].mac))
    expected = {item for item in old.host_rules() if item[1].key.match.eth_dst not in gone}
    new = make_bench()
    new.rules, new.other_end = old.rules, old.other_end
    for dpid in sorted(new.rules):
        new.switch(dpid)
    assert_reachable(new, hosts)
    new.edits = 0
    for cable in cables:
        new.link(cable)
    for host in hosts[1:]:
        new.feed(host)
    new.run(0.1)
    assert_reachable(new, hosts)
    assert new.edits == 0, "what is right already is left alone"
    new.run(31.0)
    assert new.host_rules() == expected


def restarted(old, make_bench, cables, late=()):
    """A new controller on the switches of another, all but some of which are connected, and their links."""
    new = make_bench()
    new.rules, new.other_end = old.rules, old.other_end
    for dpid in sorted(new.rules.keys() - set(late)):
        new.switch(dpid)
    for cable in cables:
        if not {cable[0], cable[2]} & set(late):
            new.link(cable)
    return new


def test_after_a_restart_a_host_that_moves_is_followed_by_who_asked_for_it_before(fabric, make_bench):
    old, hosts, cables = fabric
    new = restarted(old, make_bench, cables)
    for host in hosts:
        new.feed(host)
    new.run(1.0)
    moved = hosts[0]._replace(dpid=hosts[-1].dpid, port_no=77)
    new.feed(moved)
    new.run(0.1)
    asked = [host for host in hosts[1:] if host.dpid != hosts[0].dpid]
    assert_reachable(new, [moved, *asked])


def test_after_a_restart_a_switch_that_comes_late_keeps_what_its_hosts_asked_for(fabric, make_bench):
    old, hosts, cables = fabric
    expected, late = old.host_rules(), hosts[0].dpid
    new = restarted(old, make_bench, cables, (late,))
    for host in hosts:
        new.feed(host)
    new.run(1.0)
    new.switch(late)
    for cable in cables:
        new.link(cable)
    new.run(31.0)
    assert new.host_rules() == expected


@settings(max_examples=100, deadline=None)
@given(fabrics(), st.randoms(use_true_random=False), st.sampled_from([1, 4, 0]))
def test_entries_depend_on_the_topology_alone(make_bench, make_host, fabric, random, version):
    count, cables, homes, down = fabric
    hosts = [make_host(n, dpid, n) for n, dpid in enumerate(homes, 1)]
    straight = make_bench(version=version)
    for dpid in range(1, count + 1):
        straight.switch(dpid)
    for cable in cables:
        if cable not in down:
            straight.link(cable)
    for host in hosts:
        straight.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        straight.feed(host)
    straight.run(0.1)

    winding = make_bench(version=version)
    for dpid in range(1, count + 1):
        winding.rules[dpid] = {}
        winding.core.handle(SwitchUp(dpid, winding.version_of(dpid)), winding.now)
        winding.switch(dpid)
    steps = [(winding.link, (cable,)) for cable in cables]
    steps += [(winding.feed, (host,)) for host in hosts]
    steps += [(winding.feed, (host._replace(dpid=random.randint(1, count), port_no=99),)) for host in hosts]
    steps += [(winding.call, ((dpid,), (random.choice(hosts),))) for dpid in range(1, count + 1)]
    steps += [(winding.feed, (PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE),)) for host in hosts]
    random.shuffle(steps)
    for step, arguments in steps:
        step(*arguments)
        if random.random() < 0.5:
            winding.run(0.01)
    for host in hosts:
        winding.feed(HostGone(*winding.core.fabric.host(host.mac)[:3]))
        winding.feed(host)
    for cable in down:
        winding.link(cable, up=False)
    winding.run(0.1)
    for bench in (straight, winding):
        bench.call(bench.rules, hosts)
    assert winding.host_rules() == straight.host_rules()

    straight.meet(hosts)
    reach = components(count, [cable for cable in cables if cable not in down])
    for out, one, other in all_pairs(straight, hosts):
        connected = reach[one.dpid] == reach[other.dpid] and one is not other
        assert out == ([(other.dpid, other.port_no)] if connected else [])


def test_a_switch_that_returns_with_openflow_1_0_gets_its_entries_there(make_bench, make_host):
    bench = make_bench()
    bench.build([(1, 1, 2, 1)])
    populate(bench, [make_host(1, 1, 5), make_host(2, 2, 5)])
    bench.down(2)
    bench.run(0.1)
    assert not any(key.match.eth_dst == make_host(2, 2, 5).mac for key in bench.rules[1])
    bench.version = 1
    bench.switch(2)
    bench.link((1, 1, 2, 1))
    bench.feed(make_host(2, 2, 5))
    bench.run(0.1)
    bench.meet([make_host(1, 1, 5), make_host(2, 2, 5)])
    assert_reachable(bench, [make_host(1, 1, 5), make_host(2, 2, 5)])
    assert {key.table for key in bench.rules[2]} == {0}
    assert {key.match.eth_dst for key in bench.rules[2]} >= {make_host(1, 1, 5).mac, make_host(2, 2, 5).mac}
    bench.feed(SwitchDown(99))
