"""Multicast routers behind edge ports: they get every group and every report, and their queries reach every host."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast, RouterPorts
from controller.config.terms import SwitchPort, parse_prefix
from controller.events import PacketReceived
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import PimHello, Query, Report

GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.1.2.4")
GROUP_V6 = parse_ip("ff0e::1:2:3")
LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
FAST = Policy(default_allow=True, limits=LIMITS, multicast=Multicast(fast_leave=True))


def query(world, name, group=None, family=4, source=None):
    host = world.hosts[name]
    source = source or (host.v4 if family == 4 else host.v6)
    return encode(Query(family, 3 if family == 4 else 2, host.mac, source, group, (), 10.0, False, 2, 125.0))


def hello(world, name, holdtime_s=105.0, family=4):
    host = world.hosts[name]
    return encode(PimHello(family, host.mac, host.v4 if family == 4 else host.v6, holdtime_s))


def tell(world, name, frame):
    world.feed(PacketReceived(*world.hosts[name].place, frame))


@pytest.mark.parametrize("learnt_by", ["query", "hello"])
def test_a_router_gets_every_group(make_world, version, learnt_by):
    world = make_world("fattree", FAST, version)
    world.join("h9")
    tell(world, "h16", query(world, "h16") if learnt_by == "query" else hello(world, "h16"))
    world.settle()
    for group, expected in ((GROUP, {"h9": 1, "h16": 1}), (OTHER, {"h16": 1})):
        assert world.send("h1", group) == expected
        world.settle()
        assert world.send("h1", group) == expected
    world.join("h16")
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}


def test_a_router_goes_with_its_hello(make_world, version):
    world = make_world("fattree", FAST, version)
    world.join("h9")
    world.send("h1")
    world.settle()
    plain = world.rules()
    tell(world, "h16", hello(world, "h16"))
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}
    tell(world, "h16", hello(world, "h16", 0.0))
    world.settle()
    assert world.send("h1") == {"h9": 1}
    assert world.rules() == plain


def test_a_router_that_is_a_member_too_stays_one_when_it_is_no_router_any_more(make_world):
    world = make_world("fattree", FAST)
    world.join("h16")
    tell(world, "h16", hello(world, "h16"))
    tell(world, "h16", hello(world, "h16", 0.0))
    world.settle()
    assert world.send("h1") == {"h16": 1}
    tell(world, "h16", hello(world, "h16"))
    world.leave("h16")
    world.settle()
    assert world.send("h1") == {"h16": 1}
    tell(world, "h16", hello(world, "h16", 0.0))
    world.settle()
    assert world.send("h1") == {}
    tree = world.core.forest.tree(GROUP)
    assert tree is None or not tree.receivers


def test_nothing_is_left_of_a_group_that_only_routers_got(make_world, version):
    world = make_world("fattree", replace(FAST, multicast=Multicast(fast_leave=True, sender_timeout_s=10)), version)
    tell(world, "h16", hello(world, "h16", inf))
    world.settle()
    plain = world.rules()
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h16": 1}
    world.advance(20.0)
    assert world.rules() == plain
    assert len(world.core.forest) == 0


def test_routers_of_one_family_get_nothing_of_the_other(make_world):
    world = make_world("fattree", FAST)
    tell(world, "h16", hello(world, "h16"))
    world.settle()
    assert world.send("h1", GROUP_V6) == {}
    tell(world, "h16", hello(world, "h16", family=6))
    world.settle()
    assert world.send("h1", GROUP_V6) == {"h16": 1}


def test_reports_go_to_routers_only(make_world):
    world = make_world("fattree", FAST)
    tell(world, "h16", hello(world, "h16"))
    tell(world, "h12", hello(world, "h12"))
    outs = len(world.packet_outs)
    world.join("h1")
    world.leave("h1")
    passed = [(place, decode(frame)) for place, frame in world.packet_outs[outs:]]
    reports = [(place, packet) for place, packet in passed if isinstance(packet, Report)]
    routers = {world.hosts["h16"].place, world.hosts["h12"].place}
    assert len(reports) == 4
    assert {place for place, _ in reports} == routers


def test_reports_of_refused_hosts_go_nowhere(make_world):
    denied = Rule("no", (parse_prefix("239.1.2.3"),), frozenset(Role), False, any_host=True)
    world = make_world("fattree", replace(FAST, rules=(denied,)))
    tell(world, "h16", hello(world, "h16"))
    outs = len(world.packet_outs)
    audits = len(world.audits)
    world.join("h1")
    world.leave("h1")
    assert not [place for place, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report)]
    assert len(world.audits) == audits + 1
    world.join("h1", OTHER)
    assert [place for place, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report)]


def test_the_queriers_general_query_reaches_every_other_edge_port(make_world, version):
    world = make_world("fattree", FAST, version)
    outs = len(world.packet_outs)
    frame = query(world, "h16")
    tell(world, "h16", frame)
    places = sorted(place for place, sent in world.packet_outs[outs:] if sent == frame)
    assert places == sorted(host.place for host in world.hosts.values() if host.name != "h16")
    outs = len(world.packet_outs)
    world.advance(200.0)
    ours = [query for _, query in world.queries(outs) if query.family == 4]
    assert not ours, "who is not the querier asks nothing"


def test_the_queriers_specific_query_reaches_the_members(make_world):
    world = make_world("fattree", FAST)
    for name in ("h1", "h9"):
        world.join(name)
    tell(world, "h16", query(world, "h16"))
    outs = len(world.packet_outs)
    frame = query(world, "h16", GROUP)
    tell(world, "h16", frame)
    places = {place for place, sent in world.packet_outs[outs:] if sent == frame}
    assert places == {world.hosts["h1"].place, world.hosts["h9"].place}


def test_queries_are_passed_on_at_a_bounded_rate(make_world):
    world = make_world("leaf-spine", FAST)
    outs = len(world.packet_outs)
    for _ in range(200):
        tell(world, "h6", query(world, "h6"))
    assert len(world.packet_outs) - outs == 20 * (len(world.hosts) - 1)
    assert world.core.counters["queries-over-limit"] == 180


def test_a_loser_of_the_election_is_not_passed_on(make_world):
    world = make_world("leaf-spine", FAST)
    tell(world, "h1", query(world, "h1"))
    outs = len(world.packet_outs)
    tell(world, "h6", query(world, "h6"))
    assert len(world.packet_outs) == outs


def test_ports_set_to_be_router_ports(make_world, version):
    place = make_world("fattree", FAST).hosts["h16"].place
    ports = RouterPorts(learn=False, static=frozenset({SwitchPort(*place)}))
    world = make_world("fattree", replace(FAST, multicast=Multicast(fast_leave=True, router_ports=ports)), version)
    tell(world, "h12", hello(world, "h12"))
    world.settle()
    assert world.send("h1") == {"h16": 1}


def test_a_router_sends_what_others_sent(make_world, version):
    """Packets that a router forwards have its MAC address and the source's IP address: that is not false."""
    world = make_world("fattree", FAST, version)
    world.join("h9")
    world.settle()
    source = world.hosts["h5"].v4
    assert world.send("h16", source=source) == {}
    tell(world, "h16", hello(world, "h16"))
    world.settle()
    assert world.send("h16", source=source) == {"h9": 1}
    tell(world, "h16", hello(world, "h16", 0.0))
    world.settle()
    assert world.send("h16", source=source) == {}


def test_hellos_reach_other_routers(make_world, version):
    world = make_world("fattree", FAST, version)
    got = world.inject(world.hosts["h16"].place, hello(world, "h16"))
    assert got == {name: 1 for name in world.hosts if name != "h16"}
    assert world.core.plane.is_router_port(*world.hosts["h16"].place, 4)
