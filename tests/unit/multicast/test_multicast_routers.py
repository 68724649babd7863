"""Multicast routers behind edge ports: they get every group and every report, and their queries reach every host."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from controller.config.multicast_settings import Querier, RouterPorts
from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast
from controller.config.terms import MacAddress, Prefix, SwitchPort, parse_prefix
from controller.events import PacketReceived
from controller.multicast.events import PolicyLoaded
from controller.multicast.view import VIEWS
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import PimHello, Query, Report
from topology.events import HostGone

GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.1.2.4")
GROUP_V6 = parse_ip("ff0e::1:2:3")
LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
ROUTED = Multicast(fast_leave=True, querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True))
FAST = Policy(default_allow=True, limits=LIMITS, multicast=ROUTED)


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
    world = make_world("fattree", replace(FAST, multicast=replace(ROUTED, sender_timeout_s=10)), version)
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
    ports = RouterPorts(static=frozenset({SwitchPort(*place)}))
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
    tell(world, "h3", hello(world, "h3"))
    world.settle()
    assert world.inject(world.hosts["h16"].place, hello(world, "h16")) == {"h3": 1}, "handed on by the controller"
    world.settle()
    got = world.inject(world.hosts["h16"].place, hello(world, "h16"))
    assert got == {name: 1 for name in world.hosts if name != "h16"}


# Who is refused

CLOSED = replace(FAST, multicast=Multicast(fast_leave=True))


def router_rule(host="h16", world=None, groups=(), allow=True, name="uplink"):
    place = SwitchPort(*world.hosts[host].place)
    return Rule(name, tuple(map(parse_prefix, groups)), frozenset({Role.ROUTER}), allow, hosts=(place,))


def with_rules(world, *rules, policy=CLOSED):
    world.feed(PolicyLoaded(replace(policy, rules=rules)))
    world.settle()


@pytest.mark.parametrize("family", [4, 6])
def test_by_default_a_host_that_claims_to_be_a_router_gets_nothing(make_world, family):
    world = make_world("fattree", CLOSED)
    group = GROUP if family == 4 else GROUP_V6
    world.join("h9", group)
    world.settle()
    plain = world.rules()
    for _ in range(3):
        for frame in (query(world, "h16", family=family), hello(world, "h16", family=family)):
            assert world.inject(world.hosts["h16"].place, frame) == {}, "it reaches no host and no router"
    world.settle()
    assert world.rules() == plain
    assert world.send("h1", group) == {"h9": 1}
    assert world.core.membership.querier(family).is_ours
    counters = world.core.status_view.status()["counters"]
    assert (counters["query-refused"], counters["pim-hello-refused"]) == (3, 3)
    kinds = [notice.kind for notice in world.notices]
    assert kinds == ["membership-query-refused", "membership-pim-hello-refused"], "once, and not per packet"
    assert "Port {}:{} ".format(*world.hosts["h16"].place) in world.notices[0].text
    audits = [audit for audit in world.audits if audit.role is Role.ROUTER]
    assert [(audit.decision.admit, audit.group) for audit in audits] == [(False, None)] * 2


def test_specific_queries_of_a_refused_host_reach_nobody(make_world):
    world = make_world("fattree", CLOSED)
    world.join("h9")
    world.settle()
    assert world.inject(world.hosts["h16"].place, query(world, "h16", GROUP)) == {}


@pytest.mark.parametrize("speech", [query, hello])
def test_a_rule_admits_a_router(make_world, version, speech):
    world = make_world("fattree", CLOSED, version)
    with_rules(world, router_rule(world=world))
    world.join("h9")
    tell(world, "h16", speech(world, "h16"))
    tell(world, "h12", speech(world, "h12"))
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}
    assert world.core.membership.querier(4).is_ours is (speech is hello)
    counts = {rule["rule"]: rule for rule in VIEWS["rules"](world.core)}
    assert counts["uplink"]["allow"] > 0
    with_rules(world)
    assert world.send("h1") == {"h9": 1}, "the rule is gone"
    assert world.core.membership.querier(4).is_ours


def test_a_router_gets_only_the_groups_that_its_rule_names(make_world, version):
    world = make_world("fattree", CLOSED, version)
    with_rules(world, router_rule(world=world, groups=["239.1.2.3"]))
    tell(world, "h16", hello(world, "h16"))
    world.settle()
    assert world.send("h1", GROUP) == {"h16": 1}
    assert world.send("h1", OTHER) == {}
    world.settle()
    assert world.send("h1", GROUP) == {"h16": 1}
    assert world.send("h1", OTHER) == {}
    tree = world.core.forest.tree(OTHER)
    assert tree is None or not tree.receivers
    outs = len(world.packet_outs)
    world.join("h1", OTHER)
    world.join("h1", GROUP)
    passed = [place for place, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report)]
    assert passed == [world.hosts["h16"].place], "the report of the one group alone"
    (shown,) = world.core.router_view.routers()["router_ports"]
    assert shown["groups"] == ["allow 239.1.2.3"]
    tell(world, "h16", query(world, "h16"))
    assert world.core.membership.querier(4).is_ours, "a querier asks about every group"
    with_rules(world, router_rule(world=world))
    assert world.send("h1", OTHER) == {"h16": 1}, "the rule names no groups any more"
    with_rules(world, router_rule(world=world, groups=["239.1.2.4"]))
    world.settle()
    assert world.send("h1", OTHER) == {"h16": 1}
    assert world.send("h3", GROUP) == {"h1": 1}, "a member is served, the router is not"


def test_a_routers_address_is_not_believed_of_another(make_world):
    world = make_world("fattree", CLOSED)
    router = world.hosts["h16"]
    address = Prefix(router.v4, 32)
    rule = Rule("uplink", (), frozenset({Role.ROUTER}), True, hosts=(address,))
    with_rules(world, rule)
    thief = world.hosts["h3"]
    for mac in (thief.mac, router.mac):
        tell(world, "h3", encode(PimHello(4, mac, router.v4, 105.0)))
        tell(world, "h3", encode(Query(4, 3, mac, router.v4, None, (), 10.0, False, 2, 125.0)))
    world.settle()
    assert world.send("h1") == {}
    assert world.core.membership.querier(4).is_ours
    assert "belongs to 02:00:00:00:00:10" in world.notices[-1].text
    tell(world, "h16", hello(world, "h16"))
    world.settle()
    assert world.send("h1") == {"h16": 1}


def test_a_false_router_is_found_out_when_the_owner_of_its_address_is_learnt(make_world):
    world = make_world("fattree", FAST)
    router, thief = world.hosts["h16"], world.hosts["h3"]
    world.feed(HostGone(router.mac, *router.place))
    tell(world, "h3", encode(PimHello(4, thief.mac, router.v4, 105.0)))
    tell(world, "h3", encode(Query(4, 3, thief.mac, router.v4, None, (), 10.0, False, 2, 125.0)))
    world.settle()
    assert world.send("h1") == {"h3": 1}
    world.learn(router)
    world.settle()
    assert world.send("h1") == {}
    assert world.core.membership.querier(4).is_ours


def test_another_host_at_the_queriers_port_cannot_have_its_queries_passed_on(make_world):
    world = make_world("fattree", CLOSED)
    router = world.hosts["h16"]
    rule = Rule("uplink", (), frozenset({Role.ROUTER}), True, hosts=(MacAddress(router.mac),))
    with_rules(world, rule)
    tell(world, "h16", query(world, "h16"))
    assert not world.core.membership.querier(4).is_ours
    outs = len(world.packet_outs)
    tell(world, "h16", encode(Query(4, 3, bytes(5) + b"\7", router.v4, None, (), 10.0, False, 2, 125.0)))
    assert len(world.packet_outs) == outs


def test_a_restart_brings_no_router_port_back_that_the_policy_refuses_now(make_world, version):
    world = make_world("fattree", FAST, version)
    tell(world, "h16", hello(world, "h16"))
    tell(world, "h16", query(world, "h16"))
    world.advance(2.0)
    world.restart(policy=CLOSED)
    world.connect_all()
    world.advance(1.0)
    assert world.send("h1") == {}
    assert world.core.membership.querier(4).is_ours
    assert world.core.router_view.routers()["router_ports"] == []


def test_a_second_router_at_a_port_is_shown_and_kept(make_world):
    world = make_world("fattree", FAST)
    router = world.hosts["h16"]
    other = encode(PimHello(4, bytes(5) + b"\7", parse_ip("10.0.0.77"), 105.0))
    tell(world, "h16", hello(world, "h16"))
    known = world.core.sections.routers.changes(0, 100)["version"]
    tell(world, "h16", other)
    (told,) = world.core.sections.routers.changes(known, 100)["put"].values()
    assert told["routers"] == ["10.0.0.16", "10.0.0.77"]
    world.advance(2.0)
    world.restart()
    world.connect_all()
    (shown,) = world.core.router_view.routers()["router_ports"]
    assert shown["routers"] == ["10.0.0.16", "10.0.0.77"]
    assert (shown["dpid"], shown["port_no"]) == router.place


def requested(world, on_request):
    """Return the policy with router ports that get what they ask for: all, none, or those of some hosts."""
    if not isinstance(on_request, bool):
        on_request = frozenset(SwitchPort(*world.hosts[name].place) for name in on_request)
    return replace(FAST, multicast=replace(ROUTED, router_ports=RouterPorts(learn=True, on_request=on_request)))


@pytest.mark.parametrize("on_request", [True, ("h16",)])
@pytest.mark.parametrize("speech", [query, hello])
def test_a_router_port_on_request_gets_the_groups_that_are_reported_there(make_world, version, speech, on_request):
    world = make_world("fattree", FAST, version)
    world.feed(PolicyLoaded(requested(world, on_request)))
    tell(world, "h16", speech(world, "h16"))
    outs = len(world.packet_outs)
    world.join("h9")
    reported = [place for place, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report)]
    assert reported == [world.hosts["h16"].place], "the router is told of members as before"
    world.settle()
    assert world.send("h1") == {"h9": 1}
    assert world.send("h1", OTHER) == {}
    world.settle()
    without = world.rules()
    world.join("h16")
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}
    world.leave("h16")
    world.settle()
    assert world.send("h1") == {"h9": 1}
    assert world.rules() == without
    (shown,) = world.core.router_view.routers()["router_ports"]
    assert shown["on_request"]


def test_other_router_ports_get_every_group_beside_one_on_request(make_world, version):
    world = make_world("fattree", FAST, version)
    world.feed(PolicyLoaded(requested(world, ("h16",))))
    for name in ("h16", "h12"):
        tell(world, name, hello(world, name))
    world.join("h9")
    assert world.send("h1") == {"h9": 1, "h12": 1}


def test_a_policy_that_changes_what_routers_get_holds_at_once(make_world, version):
    world = make_world("fattree", FAST, version)
    tell(world, "h16", hello(world, "h16"))
    world.join("h9")
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}
    world.feed(PolicyLoaded(requested(world, True)))
    world.settle()
    assert world.send("h1") == {"h9": 1}
    world.feed(PolicyLoaded(requested(world, ("h12",))))
    world.settle()
    assert world.send("h1") == {"h9": 1, "h16": 1}
