"""Proxying (RFC 4605): routers hear of the hosts of a domain as of one host, and nothing of the hosts themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.multicast_settings import Proxy, Querier, RouterPorts
from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast
from controller.config.terms import MacAddress, SwitchPort, parse_prefix
from controller.config.vlans import PortVlans, Vlans
from controller.events import PacketReceived
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip, parse_name
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag, without_tag
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, PimHello, Query, RecordType, Report

GROUP, OTHER, SSM = parse_ip("239.1.2.3"), parse_ip("239.1.2.4"), parse_ip("232.1.2.3")
GROUP_V6 = parse_ip("ff0e::1:2:3")
SOURCES = [parse_ip(f"10.9.0.{n}") for n in range(1, 4)]
LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
ROUTED = Multicast(fast_leave=True, querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True))
PROXIED = replace(ROUTED, proxy=Proxy(router_ports=True))
OPEN = Policy(default_allow=True, limits=LIMITS, multicast=PROXIED)
IS_EX, TO_EX, TO_IN = RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
IS_IN, ALLOW, BLOCK = RecordType.MODE_IS_INCLUDE, RecordType.ALLOW_NEW_SOURCES, RecordType.BLOCK_OLD_SOURCES
NEWEST = {4: 3, 6: 2}


def query(world, name, group=None, sources=(), family=4, version=0, robustness=2, source=None):
    host = world.hosts[name]
    source = source or (host.v4 if family == 4 else host.v6)
    version = version or NEWEST[family]
    return encode(Query(family, version, host.mac, source, group, sources, 10.0, False, robustness, 125.0))


def tell(world, name, frame):
    world.feed(PacketReceived(*world.hosts[name].place, frame))


def attach(world, *names, family=4):
    """Have routers say hello, and what is said to them then be over."""
    for name in names:
        host = world.hosts[name]
        tell(world, name, encode(PimHello(family, host.mac, host.v4 if family == 4 else host.v6, 600.0)))
    world.advance(5.0)


def reports(world, since):
    """Return the reports that left since then, by host at the port, and see that they are the controller's own."""
    at = {host.place: host.name for host in world.hosts.values()}
    found = [(at[place], decode(frame)) for place, frame in world.packet_outs[since:]]
    found = [(name, packet) for name, packet in found if isinstance(packet, Report)]
    assert {packet.eth_src for _, packet in found} <= {bytes.fromhex("025653525401")}
    return found


def records(world, since, name=None):
    """Return the (type, group, sources) that were said, to one router or any, each once, in order."""
    found = [record for to, packet in reports(world, since) if name in (None, to) for record in packet.records]
    return list(dict.fromkeys(found))


def said(world, act, name=None, seconds=3.0):
    since = len(world.packet_outs)
    act()
    world.advance(seconds)
    return records(world, since, name)


def test_members_are_one_host_to_the_routers(make_world, version):
    world = make_world("fattree", OPEN, version)
    attach(world, "h16", "h12")
    joined = [GroupRecord(TO_EX, GROUP)]
    since = len(world.packet_outs)
    world.join("h1")
    world.advance(3.0)
    assert [(name, packet.version, packet.source) for name, packet in reports(world, since)] == [
        ("h16", 3, bytes(4)),
        ("h12", 3, bytes(4)),
    ] * 2, "each change is said twice, at every router"
    assert records(world, since) == joined
    assert said(world, lambda: (world.join("h2"), world.join("h9"), world.leave("h1"), world.leave("h9"))) == []
    assert said(world, lambda: world.leave("h2")) == [GroupRecord(TO_IN, GROUP)]


def test_refused_members_do_not_count(make_world):
    world = make_world("fattree", OPEN)
    of_h1 = (MacAddress(world.hosts["h1"].mac),)
    rule = Rule("no", (parse_prefix("239.1.2.3"),), frozenset({Role.RECEIVER}), False, any_host=False, hosts=of_h1)
    world.feed(PolicyLoaded(replace(OPEN, rules=(rule,))))
    attach(world, "h16")
    assert said(world, lambda: world.join("h1")) == []
    assert said(world, lambda: world.join("h2")) == [GroupRecord(TO_EX, GROUP)]
    denies_all = PolicyLoaded(replace(OPEN, rules=(replace(rule, any_host=True, hosts=()),)))
    assert said(world, lambda: world.feed(denies_all)) == [GroupRecord(TO_IN, GROUP)]


def test_sources_are_merged(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    s1, s2, s3 = SOURCES
    assert said(world, lambda: world.record("h1", ALLOW, SSM, s1)) == [GroupRecord(ALLOW, SSM, (s1,))]
    assert said(world, lambda: world.record("h2", ALLOW, SSM, s1, s2)) == [GroupRecord(ALLOW, SSM, (s2,))]
    assert said(world, lambda: world.record("h1", BLOCK, SSM, s1)) == []
    assert said(world, lambda: world.record("h2", BLOCK, SSM, s1)) == [GroupRecord(BLOCK, SSM, (s1,))]
    assert said(world, lambda: world.record("h1", TO_EX, GROUP, s1, s2)) == [GroupRecord(TO_EX, GROUP, (s1, s2))]
    assert said(world, lambda: world.record("h2", ALLOW, GROUP, s1)) == [GroupRecord(ALLOW, GROUP, (s1,))]
    assert said(world, lambda: world.record("h9", TO_EX, GROUP, s2, s3)) == []
    assert said(world, lambda: world.record("h1", TO_IN, GROUP)) == [GroupRecord(BLOCK, GROUP, (s3,))]


def test_queries_of_routers_are_answered_and_reach_no_host(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16", "h12")
    s1, s2, _ = SOURCES
    world.join("h1")
    world.record("h2", ALLOW, SSM, s1)
    world.advance(5.0)
    since = len(world.packet_outs)
    both = [GroupRecord(IS_EX, GROUP), GroupRecord(IS_IN, SSM, (s1,))]
    assert sorted(said(world, lambda: tell(world, "h16", query(world, "h16")), "h12", 10.0)) == sorted(both)
    assert sorted(records(world, since, "h16")) == sorted(both)
    for group, sources, expected in (
        (GROUP, (), both[:1]),
        (SSM, (), both[1:]),
        (SSM, (s1, s2), both[1:]),
        (SSM, (s2,), []),
        (OTHER, (), []),
    ):
        asked = query(world, "h16", group, sources)
        assert said(world, lambda asked=asked: tell(world, "h16", asked), None, 10.0) == expected
    assert world.core.counters["proxy-queries"] == 6
    own = bytes.fromhex("025653525401")
    assert {packet.eth_src for _, packet in world.queries(since)} <= {own}
    assert world.core.router_view.routers()["queriers"][0]["ours"]


def test_answers_come_within_the_time_that_the_query_gives(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.advance(5.0)
    times = []
    for _ in range(8):
        since = len(world.packet_outs)
        begin_s = world.now
        tell(world, "h16", query(world, "h16"))
        while not reports(world, since):
            world.advance(0.25)
        times.append(world.now - begin_s)
        world.advance(20.0)
    assert max(times) <= 10.25
    assert len({round(at) for at in times}) > 3, "the delay is drawn anew for each query"


def test_a_query_that_a_general_answer_covers_has_none_of_its_own(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.advance(5.0)
    since = len(world.packet_outs)
    for _ in range(5):
        tell(world, "h16", query(world, "h16"))
        tell(world, "h16", query(world, "h16", GROUP))
    world.advance(15.0)
    assert 1 <= len(reports(world, since)) <= 2


@pytest.mark.parametrize(("family", "older"), [(4, 2), (4, 1), (6, 1)])
def test_reports_are_in_the_version_that_the_routers_ask_in(make_world, family, older):
    world = make_world("fattree", OPEN)
    group, leaves = (GROUP, older == 2) if family == 4 else (GROUP_V6, True)
    attach(world, "h16", family=family)
    world.join("h1", group)
    world.advance(5.0)
    since = len(world.packet_outs)
    tell(world, "h16", query(world, "h16", family=family, version=older))
    world.advance(10.0)
    world.leave("h1", group)
    world.advance(3.0)
    assert {packet.version for _, packet in reports(world, since)} == {older}
    assert records(world, since) == [GroupRecord(IS_EX, group)] + [GroupRecord(TO_IN, group)] * leaves
    (notice,) = (notice for notice in world.notices if notice.kind == "proxy-version")
    assert f"v{older} from now on" in notice.text
    shown = world.core.router_view.routers()["router_ports"][0]["reported"]
    assert shown == {"version": older, "group_count": 0, "groups": []}
    world.advance(260.0)
    since = len(world.packet_outs)
    world.join("h1", group)
    world.advance(3.0)
    assert {packet.version for _, packet in reports(world, since)} == {NEWEST[family]}


def test_the_robustness_of_the_routers_holds(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    tell(world, "h16", query(world, "h16", robustness=4))
    world.advance(10.0)
    since = len(world.packet_outs)
    world.join("h1")
    world.advance(5.0)
    assert len(reports(world, since)) == 4


def test_a_router_that_comes_is_told_all_and_one_that_goes_nothing(make_world):
    world = make_world("fattree", OPEN)
    for name, group in (("h1", GROUP), ("h2", OTHER), ("h9", GROUP)):
        world.join(name, group)
    world.advance(5.0)
    all_of = [GroupRecord(IS_EX, GROUP), GroupRecord(IS_EX, OTHER)]
    assert sorted(said(world, lambda: attach(world, "h16"))) == all_of
    place = world.hosts["h16"].place
    assert world.core.proxy.has(*place, 4, 0)
    host = world.hosts["h16"]
    farewell = encode(PimHello(4, host.mac, host.v4, 0.0))
    assert said(world, lambda: (tell(world, "h16", farewell), world.leave("h2", OTHER))) == []
    assert not world.core.proxy.has(*place, 4, 0)
    assert world.core.plane.followed_by is None


def test_a_router_that_goes_while_it_is_told_is_told_no_more_and_others_are_told_on(make_world):
    world = make_world("fattree", OPEN)
    host = world.hosts["h16"]
    farewell = encode(PimHello(4, host.mac, host.v4, 0.0))
    attach(world, "h16")
    since = len(world.packet_outs)
    world.join("h1")
    tell(world, "h16", farewell)
    world.advance(10.0)
    assert records(world, since) == []
    attach(world, "h16", "h12")
    since = len(world.packet_outs)
    world.leave("h1")
    tell(world, "h16", farewell)
    world.advance(10.0)
    assert [name for name, _ in reports(world, since)] == ["h12", "h12"]


@pytest.mark.parametrize("dies", [True, False])
def test_a_router_whose_switch_was_away_is_told_all_anew(make_world, dies):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.join("h2", OTHER)
    world.advance(5.0)
    dpid, _ = world.hosts["h16"].place
    world.disconnect(dpid, dies=dies)
    world.advance(1.0)
    since = len(world.packet_outs)
    world.reconnect(dpid)
    world.advance(5.0)
    assert set(records(world, since, "h16")) == {GroupRecord(IS_EX, GROUP), GroupRecord(IS_EX, OTHER)}


def test_what_hosts_at_the_port_of_a_router_want_is_not_said_there(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16", "h12")
    assert said(world, lambda: world.join("h16"), "h16") == []
    assert world.core.router_view.routers()["router_ports"][0]["reported"]["group_count"] == 1
    assert said(world, lambda: world.join("h1"), "h16") == [GroupRecord(TO_EX, GROUP)]
    assert said(world, lambda: world.leave("h1"), "h12") == []


def test_routers_hear_of_the_groups_that_they_may_have(make_world):
    world = make_world("fattree", OPEN)
    of_h16 = (MacAddress(world.hosts["h16"].mac),)
    rule = Rule("lab", (parse_prefix("239.1.2.3"),), frozenset({Role.ROUTER}), True, any_host=False, hosts=of_h16)
    world.feed(PolicyLoaded(replace(OPEN, rules=(rule,))))
    attach(world, "h16")
    assert said(world, lambda: (world.join("h1", OTHER), world.join("h2"))) == [GroupRecord(TO_EX, GROUP)]


def test_a_router_that_comes_later_hears_of_the_groups_that_it_may_have_in_its_family_alone(make_world):
    world = make_world("fattree", OPEN)
    of_h16 = (MacAddress(world.hosts["h16"].mac),)
    groups = (parse_prefix("239.1.2.3"), parse_prefix("ff0e::1:2:3"))
    rule = Rule("lab", groups, frozenset({Role.ROUTER}), True, any_host=False, hosts=of_h16)
    world.feed(PolicyLoaded(replace(OPEN, rules=(rule,))))
    for group in (GROUP, OTHER, GROUP_V6):
        world.join("h1", group)
    assert said(world, lambda: attach(world, "h16")) == [GroupRecord(IS_EX, GROUP)]
    assert said(world, lambda: attach(world, "h16", family=6)) == [GroupRecord(IS_EX, GROUP_V6)]


def test_static_members_count(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    dpid, port_no = world.hosts["h1"].place
    set_ = {"dpid": dpid, "port_no": port_no, "group": "239.1.2.3"}
    assert said(world, lambda: world.do("static-member-add", **set_)) == [GroupRecord(TO_EX, GROUP)]


def test_a_report_of_a_host_goes_to_ports_that_are_not_reported_to(make_world):
    world = make_world("fattree", OPEN)
    listed = frozenset({SwitchPort(*world.hosts["h16"].place)})
    world.feed(PolicyLoaded(replace(OPEN, multicast=replace(ROUTED, proxy=Proxy(router_ports=listed)))))
    attach(world, "h16", "h12")
    outs = len(world.packet_outs)
    world.join("h1")
    world.advance(3.0)
    heard = [(place, decode(frame)) for place, frame in world.packet_outs[outs:]]
    senders = {(place, packet.eth_src) for place, packet in heard if isinstance(packet, Report)}
    controller = bytes.fromhex("025653525401")
    assert senders == {
        (world.hosts["h16"].place, controller),
        (world.hosts["h12"].place, world.hosts["h1"].mac),
    }


def test_a_policy_that_turns_it_on_takes_the_place_of_a_querier_there(make_world):
    world = make_world("fattree", replace(OPEN, multicast=ROUTED))
    tell(world, "h16", query(world, "h16"))
    world.join("h1")
    assert not world.core.router_view.routers()["queriers"][0]["ours"]
    turned_on = PolicyLoaded(OPEN)
    assert said(world, lambda: world.feed(turned_on)) == [GroupRecord(IS_EX, GROUP)]
    assert world.core.router_view.routers()["queriers"][0]["ours"]
    assert said(world, lambda: world.feed(PolicyLoaded(replace(OPEN, multicast=ROUTED)))) == []
    outs = len(world.packet_outs)
    world.join("h2")
    (report,) = (decode(frame) for _, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report))
    assert report.eth_src == world.hosts["h2"].mac


def test_a_router_at_a_port_that_is_not_reported_to_has_no_query_answered_at_others(make_world):
    world = make_world("fattree", OPEN)
    listed = frozenset({SwitchPort(*world.hosts["h16"].place)})
    world.feed(PolicyLoaded(replace(OPEN, multicast=replace(ROUTED, proxy=Proxy(router_ports=listed)))))
    attach(world, "h16", "h12")
    world.join("h1")
    world.advance(5.0)
    assert said(world, lambda: tell(world, "h12", query(world, "h12")), "h16", 12.0) == []
    assert said(world, lambda: tell(world, "h16", query(world, "h16")), "h16", 12.0) == [GroupRecord(IS_EX, GROUP)]


def test_a_question_of_our_own_about_one_group_is_not_answered_about_all(make_world):
    world = make_world("fattree", replace(OPEN, multicast=replace(PROXIED, fast_leave=False)))
    attach(world, "h16")
    world.join("h1", OTHER)
    world.join("h16")
    world.advance(10.0)
    since = len(world.packet_outs)
    assert said(world, lambda: world.leave("h16"), "h16", 12.0) == []
    assert [at for at, asked in world.queries(since) if asked.group == GROUP], "the port was asked"


def test_where_no_router_asks_our_own_query_is_answered(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.advance(10.0)
    since = len(world.packet_outs)
    world.advance(140.0)
    assert reports(world, since)
    assert records(world, since) == [GroupRecord(IS_EX, GROUP)]


def test_a_switch_that_asks_with_no_address_is_answered_behind_a_router_port_alone(make_world):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.advance(5.0)
    nobody = query(world, "h16", source=bytes(4))
    assert said(world, lambda: tell(world, "h16", nobody), None, 10.0) == [GroupRecord(IS_EX, GROUP)]
    assert said(world, lambda: tell(world, "h12", query(world, "h12", source=bytes(4))), None, 10.0) == []


def test_hosts_that_are_no_routers_are_not_answered(make_world):
    refused = replace(OPEN, multicast=replace(PROXIED, router_ports=RouterPorts()))
    world = make_world("fattree", refused)
    world.join("h1")
    assert said(world, lambda: tell(world, "h16", query(world, "h16")), None, 10.0) == []
    assert any(notice.kind == "membership-query-refused" for notice in world.notices)


@pytest.mark.parametrize("journal", [True, False])
def test_a_controller_that_starts_anew_says_all_again_and_takes_nothing_back(make_world, journal):
    world = make_world("fattree", OPEN)
    attach(world, "h16")
    world.join("h1")
    world.join("h2", OTHER)
    world.advance(5.0)
    since = len(world.packet_outs)
    world.restart(journal=journal)
    world.connect_all()
    world.settle()
    if not journal:
        attach(world, "h16")
        world.join("h1")
        world.join("h2", OTHER)
    world.advance(5.0)
    found = records(world, since)
    assert {record.group for record in found} == {GROUP, OTHER}
    assert {record.type for record in found} <= {IS_EX, TO_EX}
    assert [name for name, _ in reports(world, since)].count("h16") >= 2


def test_many_groups_are_answered_in_parts_one_after_the_other(make_world):
    limits = replace(LIMITS, groups_per_port=1000, records_per_second_per_port=1e6)
    world = make_world("fattree", replace(OPEN, limits=limits))
    attach(world, "h16")
    groups = [parse_ip(f"239.2.{n // 250}.{n % 250}") for n in range(200)]
    host = world.hosts["h1"]
    joins = tuple(GroupRecord(TO_EX, group) for group in groups)
    world.report("h1", Report(4, 3, host.mac, host.v4, joins))
    world.advance(5.0)
    tell(world, "h16", query(world, "h16", version=2))
    since = len(world.packet_outs)
    before = world.core.counters["proxy-reports"]
    while world.core.counters["proxy-reports"] == before:
        world.advance(0.005)
        assert world.now < 2000.0
    assert len(reports(world, since)) <= 128
    world.advance(1.0)
    assert {record.group for record in records(world, since)} == set(groups)
    assert len(reports(world, since)) == len(groups)


def test_reports_in_a_vlan_come_from_an_address_of_its_own(make_world):
    trunk, names = PortVlans(0, frozenset((10, 20, 30))), ("10.0.10.250@10", "10.0.20.250@20")
    proxied = replace(PROXIED, proxy=replace(PROXIED.proxy, vlan_addresses_v4=tuple(map(parse_name, names))))
    world = make_world("fattree", replace(OPEN, multicast=proxied, vlans=Vlans(default=trunk)))
    sources = {}
    for vlan_id in (0, 10, 20, 30):
        router, host = world.hosts["h16"], world.hosts["h1"]
        since = len(world.packet_outs)
        said_by = (
            (router, encode(PimHello(4, router.mac, router.v4, 600.0))),
            (host, encode(Report(4, 3, host.mac, host.v4, (GroupRecord(TO_EX, GROUP),)))),
        )
        for speaker, frame in said_by:
            world.feed(PacketReceived(*speaker.place, with_tag(frame, vlan_id) if vlan_id else frame))
            world.advance(5.0)
        for place, frame in world.packet_outs[since:]:
            tag, plain = without_tag(frame) or (0, frame)
            packet = decode(plain)
            if isinstance(packet, Report) and place == router.place:
                sources.setdefault(tag, set()).add(packet.source)
    assert sources == {
        0: {bytes(4)},
        10: {parse_ip("10.0.10.250")},
        20: {parse_ip("10.0.20.250")},
        30: {bytes(4)},
    }
