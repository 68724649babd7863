"""No packet circles through switches that have lost their connection and go on with the entries that they hold."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.discovery.base_rules import base_rules as discovery_rules
from controller.effects import Put
from controller.rules.evaluate import Fields
from controller.rules.fake import FakeFabric, FakeSwitch
from controller.unicast import routes
from controller.unicast.routes import WORK_COUNT
from topology.events import SwitchDown

HOME, A, B, X, Y, P, Q = range(101, 108)
"""Numbers by which A, X, B and Y send in a circle, once the cables of A and B are gone, unless that is seen to."""

CABLES = [
    *((HOME, 10, A, 10), (HOME, 11, B, 10)),  # the short ways from home
    *((A, 20, X, 20), (A, 21, Y, 20), (B, 20, X, 21), (B, 21, Y, 21)),
    *((X, 30, P, 30), (Y, 30, P, 31), (P, 40, Q, 40), (Q, 50, HOME, 50)),  # and a long one
]


def fabric_of(bench):
    """The entries of a bench in switches of their own, behind the first entries that discovery makes."""
    switches = {}
    for dpid, rules in bench.rules.items():
        switch = switches[dpid] = FakeSwitch(dpid, bench.version_of(dpid))
        for rule in [*discovery_rules(bench.version_of(dpid)), *rules.values()]:
            assert switch.apply(Put(rule)) is None
    links = {tuple(sorted(pair)) for pair in bench.other_end.items()}
    return FakeFabric(links, switches)


def deliveries(bench, mac):
    """Where packets to a host come out that enter at each switch; LoopFound where one circles."""
    fabric = fabric_of(bench)
    fields = Fields(mac, b"\x02\0\0\0\xff\xff", 0x0800, 17, b"\x0a\0\0\1", b"\x0a\0\0\2")
    found = {dpid: fabric.deliver(dpid, 99, fields, 100).hosts for dpid in bench.rules}
    return {dpid: [(copy.dpid, copy.port_no) for copy in copies] for dpid, copies in found.items()}


def watch(bench, hosts):
    """Check after every edit that nothing circles."""

    def check():
        for host in hosts:
            for dpid in bench.rules:
                bench.trace_onward(dpid, host.mac)

    bench.on_edits = check


def populated(bench, make_host, count=12):
    bench.build(CABLES)
    hosts = [make_host(n, HOME, 100 + n) for n in range(count)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.call(bench.rules, hosts)
    return hosts


@pytest.mark.parametrize("version", [1, 4, 0])
@pytest.mark.parametrize("shift", (0, 30, 50, -100))
def test_two_switches_without_a_connection_make_no_loop(make_bench, make_host, version, shift):
    """Their entries lead towards A and B, which have to go the other way once their own cables are gone.

    Which way each goes of two is a matter of the switches' numbers.
    """
    bench = make_bench(version=version)
    cables = [(a + shift, a_port, b + shift, b_port) for a, a_port, b, b_port in CABLES]
    bench.build(cables)
    hosts = [make_host(n, HOME + shift, 100 + n) for n in range(12)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.call(bench.rules, hosts)
    bench.lose(X + shift)
    bench.lose(Y + shift)
    watch(bench, hosts)
    bench.link(cables[0], up=False)
    bench.link(cables[1], up=False)
    bench.run(0.1)
    for host in hosts:
        found = deliveries(bench, host.mac)
        assert found[P + shift] == found[Q + shift] == [(HOME + shift, host.port_no)]
    bench.regain(X + shift)
    bench.run(0.1)
    bench.regain(Y + shift)
    bench.run(0.1)
    for host in hosts:
        assert deliveries(bench, host.mac) == {dpid: [(HOME + shift, host.port_no)] for dpid in bench.rules}


def test_where_another_way_is_as_short_it_is_taken(make_bench, make_host):
    """Only X is away: A and B reach everybody by Y."""
    bench = make_bench()
    hosts = populated(bench, make_host)
    bench.lose(X)
    bench.link(CABLES[0], up=False)
    bench.link(CABLES[1], up=False)
    bench.run(0.1)
    for host in hosts:
        found = deliveries(bench, host.mac)
        assert found[A] == found[B] == [(HOME, host.port_no)]


def test_a_switch_lost_with_edits_under_way_is_trusted_for_none_of_them(make_bench, make_host):
    bench = make_bench()
    hosts = populated(bench, make_host)
    bench.lose(Y)
    held = bench.rules[X].copy()
    bench.hold = []
    bench.link(CABLES[0], up=False)
    bench.link(CABLES[1], up=False)
    bench.run(0.01)
    bench.lose(X)
    bench.rules[X] = held  # none of them had arrived
    bench.confirm()
    bench.run(0.1)
    for host in hosts:
        deliveries(bench, host.mac)


def test_what_goes_on_elsewhere_is_as_without_it(make_bench, make_host):
    """A switch that is away with right entries is used as before, and changes nothing."""
    bench = make_bench()
    hosts = populated(bench, make_host)
    before = bench.host_rules()
    bench.lose(X)
    bench.run(0.1)
    assert bench.host_rules() == before
    bench.edits = 0
    bench.regain(X)
    bench.run(0.1)
    assert (bench.edits, bench.host_rules()) == (0, before)
    assert len(hosts) == 12


@st.composite
def stories(draw):
    count = draw(st.integers(4, 8))
    pairs = list(product(range(1, count + 1), repeat=2))
    chosen = draw(
        st.lists(st.sampled_from([(a, b) for a, b in pairs if a < b]), unique=True, min_size=4, max_size=14)
    )
    cables = [(a, 10 + n, b, 10 + n) for n, (a, b) in enumerate(chosen)]
    homes = draw(st.lists(st.integers(1, count), min_size=2, max_size=4))
    steps = draw(st.lists(st.tuples(st.sampled_from("llccccrwm"), st.integers(0, 99)), max_size=25))
    return count, cables, homes, steps


@settings(max_examples=100, deadline=None)
@given(stories(), st.sampled_from([1, 4, 0]), st.sampled_from([1, WORK_COUNT]))
def test_no_packet_circles_whatever_happens_while_switches_are_away(make_bench, make_host, story, version, work):
    """However much is done in a turn."""
    with patch.object(routes, "WORK_COUNT", work):
        live_through(make_bench, make_host, story, version)


def live_through(make_bench, make_host, story, version):
    count, cables, homes, steps = story
    bench = make_bench(version=version)
    for dpid in range(1, count + 1):
        bench.switch(dpid)
    bench.build(cables)
    hosts = [make_host(n, dpid, n + 100) for n, dpid in enumerate(homes, 1)]
    for host in hosts:
        bench.feed(host)
    bench.run(31.0)  # the time of grace after a start is over
    bench.call(bench.rules, hosts)
    watch(bench, hosts)
    away, down = set(), set()
    for kind, number in steps:
        cable = cables[number % len(cables)]
        dpid = number % count + 1
        if kind == "l" and dpid not in away:
            away.add(dpid)
            bench.lose(dpid)
        elif kind == "r" and dpid in away:
            away.discard(dpid)
            bench.regain(dpid)
        elif kind == "c" and cable not in down and not {cable[0], cable[2]} <= away:
            down.add(cable)
            bench.link(cable, up=False)
        elif kind == "c" and cable in down and not {cable[0], cable[2]} & away:
            down.discard(cable)
            bench.link(cable)
        elif kind == "m":
            moved = hosts[number % len(hosts)]
            hosts[number % len(hosts)] = moved._replace(dpid=dpid)
            bench.feed(hosts[number % len(hosts)])
        elif kind == "w":
            bench.run(0.1)
            bench.on_edits()
    bench.run(0.1)
    bench.on_edits()
    for dpid in sorted(away):
        bench.regain(dpid)
    bench.run(0.1)
    straight = make_bench(version=version)
    for dpid in range(1, count + 1):
        straight.switch(dpid)
    straight.build([cable for cable in cables if cable not in down])
    for host in hosts:
        straight.feed(host)
    straight.run(0.1)
    straight.call(straight.rules, hosts)
    assert bench.host_rules() == straight.host_rules()


def test_a_switch_that_is_given_up_leads_nobody_astray(make_bench, make_host):
    bench = make_bench()
    hosts = populated(bench, make_host)
    bench.lose(X)
    bench.lose(Y)
    bench.link(CABLES[0], up=False)
    bench.link(CABLES[1], up=False)
    bench.run(0.1)
    held = dict(bench.rules[X])
    bench.feed(SwitchDown(X))
    bench.rules[X] = held
    bench.run(0.1)
    for host in hosts:
        deliveries(bench, host.mac)
    bench.regain(Y)
    bench.run(0.1)
    for host in hosts:
        assert deliveries(bench, host.mac)[A] == [(HOME, host.port_no)]
