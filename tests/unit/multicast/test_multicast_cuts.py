"""When a port that floods membership messages is cut, for how long, and what becomes of a flood whose port goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.effects import ApplyEdits
from controller.events import PacketReceived
from controller.multicast.events import PolicyLoaded
from controller.rules.pipeline import ADMIT, PRIORITY_MEMBERSHIP_PENALTY
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import PortRole, PortRoleChanged

LIMITS = Limits(reports_per_second_per_port=5)
POLICY = Policy(default_allow=True, limits=LIMITS)
READ_PER_S, READ_AT_ONCE = 20, 40
"""What is read of a port under these limits before it is cut: never fewer than 20 a second, and as much in two."""

IGMP, MLD = parse_ip("239.1.2.3"), parse_ip("ff0e::1:2:3")


@pytest.fixture
def world(make_world):
    return make_world("leaf-spine", POLICY)


def report(world, name, count, group=IGMP):
    """Report so often at once; return the cuts that are ordered: edits of entries that end by themselves."""
    host = world.hosts[name]
    family, version = (4, 3) if len(group) == 4 else (6, 2)
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, group, ())
    frame = encode(Report(family, version, host.mac, host.address(group), (record,)))
    effects = [effect for _ in range(count) for effect in world.feed(PacketReceived(*host.place, frame))]
    edits = [
        (effect.dpid, edit.rule) for effect in effects if isinstance(effect, ApplyEdits) for edit in effect.edits
    ]
    return [(dpid, rule) for dpid, rule in edits if rule.key.priority == PRIORITY_MEMBERSHIP_PENALTY]


def told(world):
    """Return what was told of floods since the last call: what, and of which port."""
    found = [
        (notice.kind, (dict(notice.fields)["dpid"], dict(notice.fields)["port_no"]))
        for notice in world.notices
        if notice.kind in ("port-guarded", "port-released")
    ]
    world.notices.clear()
    return found


@pytest.mark.parametrize("group", [IGMP, MLD], ids=["IGMP", "MLD"])
def test_a_port_is_cut_when_it_sent_more_than_it_may_and_once_in_a_second(world, group):
    assert report(world, "h1", READ_AT_ONCE, group) == []
    assert told(world) == []
    assert report(world, "h1", 1, group) != []
    (text,) = [notice.text for notice in world.notices]
    protocol = "IGMP" if group is IGMP else "MLD"
    place = "{}:{}".format(*world.hosts["h1"].place)
    assert (
        text == f"Port {place} receives over 20 {protocol} messages a second: its switch drops them until that ends."
    )
    assert report(world, "h1", 10, group) == []
    world.advance(0.9)
    assert report(world, "h1", READ_AT_ONCE, group) == []
    world.advance(0.1)
    assert report(world, "h1", READ_AT_ONCE, group) != []
    assert [kind for kind, _ in told(world)] == ["port-guarded"]
    assert world.core.counters["port-guarded"] == 1
    read = READ_AT_ONCE + int(1.0 * READ_PER_S)
    assert world.core.counters["membership-flood"] == 3 * READ_AT_ONCE + 11 - read


def test_what_a_port_sends_beyond_its_due_is_not_even_looked_at(world):
    host = world.hosts["h1"]
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, IGMP, ())
    frame = bytearray(encode(Report(4, 3, host.mac, host.v4, (record,))))
    frame[24] ^= 1  # its checksum is wrong
    counters = world.core.counters
    seen = []
    for _ in range(READ_AT_ONCE + 2):
        before = counters.total()
        world.feed(PacketReceived(*host.place, bytes(frame)))
        seen.append((counters["membership-flood"], counters.total() - before))
    assert seen[:READ_AT_ONCE] == [(0, 1)] * READ_AT_ONCE, "each is counted as malformed"
    assert seen[READ_AT_ONCE:] == [(1, 2), (2, 1)], "the flood is counted, and what is left unread"


def test_entries_that_cut_a_port_are_for_its_switch_s_version(make_world, version):
    world = make_world("leaf-spine", POLICY, version)
    host = world.hosts["h1"]
    cuts = report(world, "h1", READ_AT_ONCE + 1)
    assert [
        (dpid, rule.key.table, rule.key.match.in_port, rule.hard_timeout_s, rule.actions) for dpid, rule in cuts
    ] == [(host.dpid, 0 if version == 1 else ADMIT, host.port_no, 1, ())] * 2


def test_a_flood_that_goes_on_is_not_over_two_seconds_after_it_began(world):
    place = world.hosts["h1"].place
    report(world, "h1", READ_AT_ONCE + 1)
    world.advance(1.5)
    report(world, "h1", READ_AT_ONCE + 1)
    assert told(world) == [("port-guarded", place)]
    world.advance(2.9)
    assert told(world) == []
    world.advance(0.2)
    assert told(world) == [("port-released", place)]
    report(world, "h1", READ_AT_ONCE + 30)
    assert told(world) == [("port-guarded", place)], "the next flood is another one"


def test_floods_end_in_their_order_though_one_goes_on(world):
    one, other = world.hosts["h1"].place, world.hosts["h3"].place
    report(world, "h1", READ_AT_ONCE + 1)
    world.advance(0.5)
    report(world, "h3", READ_AT_ONCE + 1)
    world.advance(1.0)
    report(world, "h1", READ_AT_ONCE + 1)
    assert told(world) == [("port-guarded", one), ("port-guarded", other)]
    world.advance(2.1)
    assert told(world) == [("port-released", other)]
    world.advance(0.5)
    assert told(world) == []
    world.advance(0.5)
    assert told(world) == [("port-released", one)]


@pytest.mark.parametrize("group", [IGMP, MLD], ids=["IGMP", "MLD"])
def test_with_its_port_a_flood_is_over_and_whoever_is_plugged_in_next_is_not_blamed(world, group):
    host = world.hosts["h1"]
    report(world, "h1", READ_AT_ONCE + 1, group)
    assert told(world) == [("port-guarded", host.place)]
    world.feed(PortRoleChanged(*host.place, PortRole.DOWN))
    since = len(world.packet_outs)
    world.advance(4.0)
    assert told(world) == []
    assert host.place not in [place for place, _ in world.queries(since)], "nobody is there to be asked"


def test_a_port_that_is_back_may_send_as_much_as_any_and_is_cut_as_any(world):
    host = world.hosts["h1"]
    report(world, "h1", READ_AT_ONCE + 1)
    for role in (PortRole.DOWN, PortRole.EDGE):
        world.feed(PortRoleChanged(*host.place, role))
    world.learn(host)
    told(world)
    assert report(world, "h1", READ_AT_ONCE) == []
    assert world.core.counters["membership-flood"] == 1
    assert report(world, "h1", 1) != []
    assert told(world) == [("port-guarded", host.place)]


@pytest.mark.parametrize("group", [IGMP, MLD], ids=["IGMP", "MLD"])
def test_other_limits_hold_from_the_moment_they_are_loaded(world, group):
    world.feed(PolicyLoaded(replace(POLICY, limits=replace(LIMITS, reports_per_second_per_port=100))))
    world.advance(2.0)
    assert report(world, "h1", 400, group) == []
    assert report(world, "h1", 1, group) != []
    assert "receives over 200 " in world.notices[-1].text
