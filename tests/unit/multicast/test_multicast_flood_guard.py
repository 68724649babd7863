"""A port that floods IGMP or MLD is cut at its switch, for as long as it floods; nobody else notices."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.events import PacketReceived
from controller.rules.pipeline import PRIORITY_MEMBERSHIP_PENALTY
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, Malformed, PimHello, RecordType, Report

FLOOD_PER_S = 50_000
POLICY = Policy(default_allow=True, limits=Limits(reports_per_second_per_port=100))
GROUP, GROUP_V6 = parse_ip("239.1.2.3"), parse_ip("ff0e::1:2:3")


@pytest.fixture
def world(make_world, version):
    return make_world("leaf-spine", POLICY, version)


def report(host, group=GROUP):
    family, version = (4, 3) if len(group) == 4 else (6, 2)
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, group, ())
    return encode(Report(family, version, host.mac, host.address(group), (record,)))


def cuts(world, name):
    rules = world.switches[world.hosts[name].dpid].rules
    return [key for key in rules if key.priority == PRIORITY_MEMBERSHIP_PENALTY]


def told(world):
    return [notice.kind for notice in world.notices if notice.kind in ("port-guarded", "port-released")]


def test_of_a_flood_of_reports_few_reach_the_controller(world):
    punted = world.flood("h1", report(world.hosts["h1"]), FLOOD_PER_S, 10.0)
    assert punted < 10 * FLOOD_PER_S / 50
    assert {key.match.in_port for key in cuts(world, "h1")} == {world.hosts["h1"].port_no}
    assert told(world) == ["port-guarded"]
    assert world.core.counters["port-guarded"] == 1
    assert world.core.counters["membership-flood"] > 0


def test_of_a_flood_of_malformed_messages_too(world):
    frame = bytearray(report(world.hosts["h1"]))
    frame[24] ^= 1
    assert world.flood("h1", bytes(frame), FLOOD_PER_S, 3.0) < 3 * FLOOD_PER_S / 50


def test_mld_is_cut_and_igmp_of_the_same_port_is_not(make_world):
    world = make_world("leaf-spine", POLICY)
    world.flood("h1", report(world.hosts["h1"], GROUP_V6), FLOOD_PER_S, 2.0)
    assert len(cuts(world, "h1")) == 5
    world.inject(world.hosts["h1"].place, report(world.hosts["h1"]))
    assert GROUP in world.core.membership.members_table.groups()


def test_a_join_at_another_port_counts_at_once_meanwhile(world):
    world.flood("h1", report(world.hosts["h1"]), FLOOD_PER_S, 2.0)
    other = next(host for host in world.hosts.values() if host.dpid == world.hosts["h1"].dpid and host.name != "h1")
    group = parse_ip("239.9.9.9")
    world.inject(other.place, report(other, group))
    world.settle()
    assert world.send("h5", group) == {other.name: 1}


def test_memberships_of_the_port_outlast_a_flood_and_its_hosts_are_asked_when_it_ends(world):
    host = world.hosts["h1"]
    world.join("h1")
    world.settle()
    world.flood("h1", report(host, parse_ip("239.7.7.7")), FLOOD_PER_S, 5.0)
    assert world.send("h5") == {"h1": 1}
    since = len(world.packet_outs)
    world.advance(4.0)
    for switch in world.switches.values():
        switch.expire(world.now)
    assert told(world) == ["port-guarded", "port-released"]
    assert host.place in [place for place, query in world.queries(since) if query.group is None]
    assert cuts(world, "h1") == []
    world.inject(host.place, report(host, parse_ip("239.8.8.8")))
    assert parse_ip("239.8.8.8") in world.core.membership.members_table.groups()


def test_a_port_within_twice_its_limit_is_not_cut(world):
    world.flood("h1", report(world.hosts["h1"]), 190, 10.0, lag_s=0.1)
    assert told(world) == []
    assert world.core.counters["membership-flood"] == 0


def without_padding(host):
    """An IGMPv2 report as a virtual interface sends it."""
    return encode(Report(4, 2, host.mac, host.v4, (GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP, ()),)))[:46]


def pim(host, family):
    return encode(PimHello(family, host.mac, host.v4 if family == 4 else host.v6, 105))


def behind_options(host):
    """An MLD report behind a hop-by-hop header of 16 bytes."""
    frame = report(host, GROUP_V6)
    length = int.from_bytes(frame[18:20], "big") + 8
    longer = frame[54:55] + b"\1" + frame[56:62] + b"\1\6" + bytes(6)
    return frame[:18] + length.to_bytes(2, "big") + frame[20:54] + longer + frame[62:]


@pytest.mark.parametrize(
    "frame_of",
    [without_padding, lambda host: pim(host, 4), lambda host: pim(host, 6), behind_options],
    ids=["without padding", "PIM", "PIM over IPv6", "behind options"],
)
def test_no_form_of_them_escapes(make_world, frame_of):
    world = make_world("leaf-spine", POLICY)
    host = world.hosts["h1"]
    for _ in range(1000):
        world.feed(PacketReceived(*host.place, frame_of(host)))
    world.settle(0.1)
    assert cuts(world, "h1")


def test_a_flood_of_pim_is_cut_at_the_switch(world):
    assert world.flood("h1", pim(world.hosts["h1"], 4), FLOOD_PER_S, 3.0) < 3 * FLOOD_PER_S / 50


def test_a_flood_of_what_cannot_be_read_is_cut_as_unknown_data_is(world):
    host = world.hosts["h1"]
    false_source = bytearray(world.data("h1", source=bytes((127, 0, 0, 1))))
    false_source[24:26] = bytes(2)
    assert isinstance(decode(bytes(false_source)), Malformed)
    assert world.flood("h1", bytes(false_source), FLOOD_PER_S, 3.0) < 3 * FLOOD_PER_S / 50
    assert "sender-penalty" in [notice.kind for notice in world.notices]
    other = next(h for h in world.hosts.values() if h.dpid == host.dpid and h.name != "h1")
    world.join("h5")
    world.settle()
    assert world.send(other.name) == {"h5": 1}
