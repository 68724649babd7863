"""Packets to hosts go round switches that are drained, and none is lost on the way there and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.events import SwitchesDrained
from controller.rules.plans import DRAIN_S
from topology.events import PortRole, PortRoleChanged

from .reaching import all_pairs, assert_reachable, components, fabrics, populate

EDGE, AGGREGATION, CORE = 10100, 20100, 30000


def drain(bench, *dpids):
    bench.feed(SwitchesDrained(dpids))
    bench.run(2.0)


def passed(bench, one, other):
    """The switches that a packet from one host to another meets, in order."""
    way, follow = [], bench.rule_for

    def noted(dpid, in_port, address):
        way.append(dpid)
        return follow(dpid, in_port, address)

    bench.rule_for = noted
    try:
        assert bench.trace((one.dpid, one.port_no), other.mac) == [(other.dpid, other.port_no)]
    finally:
        del bench.rule_for
    return way


def transits(bench, hosts, dpid):
    """The pairs of hosts elsewhere whose packets pass a switch."""
    pairs = [(one, other) for one in hosts for other in hosts if one is not other]
    return [pair for pair in pairs if dpid not in (pair[0].dpid, pair[1].dpid) and dpid in passed(bench, *pair)]


@pytest.mark.parametrize("dpid", [EDGE, AGGREGATION, CORE])
def test_a_drained_switch_is_gone_round_without_loss(fabric, dpid):
    bench, hosts, _cables = fabric
    before = bench.host_rules()
    assert dpid == EDGE or transits(bench, hosts, dpid)
    bench.on_edits = lambda: assert_reachable(bench, hosts)
    bench.edits = 0
    drain(bench, dpid)
    assert bench.edits
    assert not transits(bench, hosts, dpid)
    assert_reachable(bench, hosts)
    drain(bench)
    assert bench.host_rules() == before


def test_a_switch_turns_round_when_what_was_under_way_to_it_has_passed(make_bench, make_host):
    """A packet that comes in by the port where its new entry sends it is dropped."""
    bench = make_bench()
    bench.build([(1, 3, 3, 1), (1, 4, 4, 1), (2, 3, 3, 2), (2, 4, 4, 2)])
    hosts = [make_host(n, 1 + n % 2, 10 + n) for n in range(1, 9)]
    populate(bench, hosts)
    before = {host.mac: [bench.core.port_to(dpid, host.mac) for dpid in (1, 2, 3)] for host in hosts}
    told = []
    apply = bench.apply
    bench.apply = lambda effect: (told.append((bench.now, effect.dpid)), apply(effect))
    bench.feed(SwitchesDrained((3,)))
    bench.run(0.1)
    assert {dpid for _, dpid in told} == {1, 2}, "the drained switch waits"
    since_s = max(at for at, _ in told)
    bench.run(1.0)
    assert min(at for at, dpid in told if dpid == 3) >= since_s + DRAIN_S
    (kept,) = {bench.core.port_to(3, host.mac) for host in hosts}
    assert any(ports[2] != kept and 3 in ports[:2] for ports in before.values()), "some came by the link that is kept"
    assert_reachable(bench, hosts)


def test_a_link_that_fails_waits_for_nothing(fabric):
    bench, hosts, cables = fabric
    bench.link(cables[0], up=False)
    bench.run(0.1)
    assert_reachable(bench, hosts)
    edits = bench.edits
    bench.run(2.0)
    assert bench.edits == edits


def test_what_is_drained_already_changes_nothing(fabric):
    bench, _hosts, _cables = fabric
    drain(bench, CORE)
    bench.edits = 0
    drain(bench, CORE)
    assert bench.edits == 0


def test_the_hosts_of_a_drained_switch_go_by_one_link_and_by_another_when_it_fails(fabric):
    bench, hosts, cables = fabric
    own, others = [h for h in hosts if h.dpid == EDGE], [h for h in hosts if h.dpid != EDGE]
    drain(bench, EDGE)
    (port_no,) = {bench.core.port_to(EDGE, host.mac) for host in others}
    arrivals = {passed(bench, other, one)[-2] for other in others for one in own}
    (cable,) = [cable for cable in cables if cable[:2] == (EDGE, port_no)]
    assert arrivals == {cable[2]}
    bench.link(cable, up=False)
    bench.run(0.1)
    assert_reachable(bench, hosts)
    assert {bench.core.port_to(EDGE, host.mac) for host in others} == {3, 4} - {port_no}


def test_a_link_that_fails_elsewhere_brings_packets_back_where_nothing_else_joins(make_bench, make_host):
    bench = make_bench()
    square = [(1, 1, 2, 1), (2, 2, 3, 1), (3, 2, 4, 1), (4, 2, 1, 2)]
    bench.build(square)
    hosts = [make_host(n, n, 9) for n in (1, 2, 3, 4)]
    populate(bench, hosts)
    drain(bench, 2)
    assert not transits(bench, hosts, 2)
    bench.link(square[2], up=False)
    bench.run(0.1)
    assert_reachable(bench, hosts)
    assert transits(bench, hosts, 2)
    bench.link(square[2])
    bench.run(0.1)
    assert not transits(bench, hosts, 2)


def test_a_drained_switch_keeps_one_of_several_cables(make_bench, make_host):
    bench = make_bench()
    bench.build([(1, 1, 2, 1), (1, 2, 2, 2)])
    hosts = [make_host(n, 1 + n % 2, 10 + n) for n in range(1, 25)]
    populate(bench, hosts)
    far = [host for host in hosts if host.dpid == 2]
    assert {bench.core.port_to(1, host.mac) for host in far} == {1, 2}
    drain(bench, 2)
    assert len({bench.core.port_to(1, host.mac) for host in far}) == 1
    assert_reachable(bench, hosts)


def test_drains_that_are_known_before_the_fabric_count(make_bench, make_host, make_fattree):
    bench = make_bench()
    bench.feed(SwitchesDrained((CORE, AGGREGATION)))
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(n, *end) for n, end in enumerate(ends, 1)]
    populate(bench, hosts)
    assert_reachable(bench, hosts)
    assert not transits(bench, hosts, CORE) and not transits(bench, hosts, AGGREGATION)


@settings(max_examples=60, deadline=None)
@given(fabrics(), st.data(), st.sampled_from([1, 4, 0]))
def test_entries_depend_on_the_topology_and_on_what_is_drained_alone(make_bench, make_host, drawn, data, version):
    count, cables, homes, down = drawn
    drained = data.draw(st.lists(st.integers(1, count), unique=True, max_size=count))
    hosts = [make_host(n, dpid, n) for n, dpid in enumerate(homes, 1)]
    benches = []
    for order in (drained, data.draw(st.permutations(drained))):
        bench = make_bench(version=version)
        benches.append(bench)
        for dpid in range(1, count + 1):
            bench.switch(dpid)
        for cable in cables:
            bench.link(cable)
        for host in hosts:
            bench.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
            bench.feed(host)
        bench.run(0.1)
        if bench is benches[-1] and len(benches) == 2:
            bench.on_edits = lambda bench=bench: [bench.trace_onward(d, h.mac) for h in hosts for d in bench.rules]
        for place in range(len(order)):
            drain(bench, *order[: place + 1])
        for cable in down:
            bench.link(cable, up=False)
        bench.run(0.1)
        bench.on_edits = lambda: None
        bench.meet(hosts)
        bench.call(bench.rules, hosts)
    assert benches[0].host_rules() == benches[1].host_rules()
    reach = components(count, [cable for cable in cables if cable not in down])
    for out, one, other in all_pairs(benches[0], hosts):
        connected = reach[one.dpid] == reach[other.dpid] and one is not other
        assert out == ([(other.dpid, other.port_no)] if connected else [])
