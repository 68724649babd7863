"""Frames with a VLAN tag: dropped and counted where they enter, whatever they carry; untagged ones go on as ever."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.config.vlans import PortVlans
from controller.effects import RequestFlows
from controller.events import PacketReceived
from controller.multicast.tagged import TaggedFrames
from controller.rules.cookies import VLAN_TAGGED_COOKIE
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import PortRole, PortRoleChanged

from .vlan_world import VlanWorld

GROUP = parse_ip("239.1.2.3")
TAGS = {
    "802.1Q": b"\x81\0\0\x05",
    "priority": b"\x81\0\xe0\0",
    "802.1ad": b"\x88\xa8\0\x05",
    "double": b"\x88\xa8\0\x05\x81\0\0\x06",
}


@pytest.fixture(params=TAGS.values(), ids=TAGS)
def tags(request):
    return request.param


def with_tags(frame, tags):
    return frame[:12] + tags + frame[12:]


def join_of(host, group=GROUP):
    records = (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, group, ()),)
    return encode(Report(4, 3, host.mac, host.v4, records))


def test_tagged_data_of_an_admitted_sender_goes_nowhere(make_world, version, tags):
    world = make_world("fattree", version=version)
    for name in ("h2", "h16"):
        world.join(name)
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h2": 1, "h16": 1}
    before = len(world.packet_outs)
    assert world.inject(world.hosts["h1"].place, with_tags(world.data("h1"), tags)) == {}
    assert world.inject(world.hosts["h3"].place, with_tags(world.data("h3"), tags)) == {}
    assert len(world.packet_outs) == before
    assert world.send("h1") == {"h2": 1, "h16": 1}


def test_a_tagged_join_is_no_membership(make_world, version, tags):
    world = make_world("fattree", version=version)
    host = world.hosts["h2"]
    world.inject(host.place, with_tags(join_of(host), tags))
    assert not list(world.core.membership.members_table.groups())
    world.inject(host.place, join_of(host))
    assert list(world.core.membership.members_table.groups()) == [GROUP]


def test_a_tagged_join_that_reaches_the_controller_all_the_same_is_counted(make_world, version, tags):
    world = make_world("fattree", version=version)
    host = world.hosts["h2"]
    world.feed(PacketReceived(host.dpid, host.port_no, with_tags(join_of(host), tags)))
    assert not list(world.core.membership.members_table.groups())
    assert world.core.counters["vlan-tagged"] == 1
    world.feed(PacketReceived(host.dpid, host.port_no, join_of(host)))
    assert list(world.core.membership.members_table.groups()) == [GROUP]


def test_what_the_switches_dropped_is_counted_and_told_once(make_world, version):
    world = make_world("fattree", version=version)
    host = world.hosts["h2"]
    for tags in TAGS.values():
        for _ in range(3):
            world.inject(host.place, with_tags(world.data("h2"), tags))
    world.advance(11.0)
    assert world.core.counters["vlan-tagged"] == 12
    world.inject(host.place, with_tags(world.data("h2"), b"\x81\0\0\x05"))
    world.advance(11.0)
    assert world.core.counters["vlan-tagged"] == 13
    (notice,) = [notice for notice in world.notices if notice.kind == "vlan-tagged"]
    assert notice.text == f"Switch {host.dpid} dropped 12 frames with a VLAN tag that their port is not to have."


def test_counts_go_on_over_a_connection_and_begin_anew_with_the_entry(make_world, version):
    world = make_world("fattree", version=version)
    place = world.hosts["h2"].place
    tagged = with_tags(world.data("h2"), b"\x81\0\0\x05")
    for _ in range(3):
        world.inject(place, tagged)
    world.advance(11.0)
    world.disconnect(place[0])
    world.advance(11.0)
    world.reconnect(place[0])
    world.settle()
    for _ in range(2):
        world.inject(place, tagged)
    world.advance(11.0)
    assert world.core.counters["vlan-tagged"] == 5


def test_what_was_dropped_before_a_restart_is_not_told_again(make_world, version):
    world = make_world("fattree", version=version)
    place = world.hosts["h2"].place
    tagged = with_tags(world.data("h2"), b"\x81\0\0\x05")
    for _ in range(3):
        world.inject(place, tagged)
    world.advance(11.0)
    assert world.core.counters["vlan-tagged"] == 3
    world.restart()
    world.connect_all()
    world.notices.clear()
    world.advance(61.0)
    assert world.core.counters["vlan-tagged"] == 0
    world.inject(place, tagged)
    world.advance(61.0)
    assert world.core.counters["vlan-tagged"] == 1
    (notice,) = [notice for notice in world.notices if notice.kind == "vlan-tagged"]
    assert notice.text.startswith(f"Switch {place[0]} dropped 1 frames")


def test_the_ports_that_dropped_most_are_named_where_ports_are_in_vlans(version):
    names = ("h1", "h2")
    world = VlanWorld({name: PortVlans(10, frozenset()) for name in names}, version=version)
    ports = [world.hosts[name].place for name in names]
    assert ports[0][0] == ports[1][0]
    for place, count in zip(ports, (2, 5), strict=True):
        for _ in range(count):
            world.utter(place, with_tag(world.data("h1"), 20))
    world.advance(61.0)
    assert world.core.counters["vlan-tagged"] == 7
    (notice,) = [notice for notice in world.notices if notice.kind == "vlan-tagged"]
    dpid = ports[0][0]
    assert notice.text == (
        f"Switch {dpid} dropped 7 frames with a VLAN tag that their port is not to have: "
        f"5 at port {dpid}:{ports[1][1]}, 2 at port {dpid}:{ports[0][1]}."
    )


def test_a_switch_that_drops_nothing_is_read_once_a_minute_and_one_that_does_every_ten_seconds(make_world):
    world = make_world("leaf-spine")
    dpid = world.hosts["h2"].dpid
    asked = dict.fromkeys(world.switches, 0)
    handle = world.handle

    def counted(event):
        effects = handle(event)
        for effect in effects:
            if isinstance(effect, RequestFlows) and effect.cookie == VLAN_TAGGED_COOKIE:
                asked[effect.dpid] += 1
        return effects

    world.handle = counted
    for _ in range(13):
        world.inject(world.hosts["h2"].place, with_tags(world.data("h2"), b"\x81\0\0\x05"))
        world.advance(10.0)
    assert asked.pop(dpid) >= 11
    assert set(asked.values()) == {3}


class Readable:
    def read_flows(self, dpid, cookie, mask):
        return RequestFlows(dpid, dpid, cookie, mask)


def test_switches_are_read_as_often_as_checks_read_all_their_entries():
    tagged = TaggedFrames(Readable(), Counter())
    tagged.use_check_interval(2.0, 0.0)
    tagged.switch_connected(1, 0.0)
    assert [second for second in range(1, 9) if list(tagged.on_deadline(float(second)))] == [2, 4, 6, 8]
    tagged.use_check_interval(0.0, 8.0)  # no entries are checked
    assert [second for second in range(9, 140) if list(tagged.on_deadline(float(second)))] == [10, 70, 130]
    tagged.use_check_interval(5.0, 140.0)
    assert [second for second in range(141, 152) if list(tagged.on_deadline(float(second)))] == [145, 150]


def test_switches_are_read_within_a_budget_and_each_in_its_turn():
    tagged = TaggedFrames(Readable(), Counter())
    for dpid in range(1280):
        tagged.switch_connected(dpid, dpid / 1000)
    read: list[int] = []
    for second in range(1, 201):
        asked = [request.dpid for request in tagged.on_deadline(float(second))]
        assert len(asked) <= 21
        read += asked
    assert len(read) > 20 * 180
    assert read == [number % 1280 for number in range(len(read))]


@pytest.mark.parametrize("lost", ["its port leads to another switch", "its port is down", "its switch is gone"])
def test_a_tag_that_was_let_in_counts_for_nothing_where_no_hosts_are_any_more(lost):
    world = VlanWorld({"h5": PortVlans(None, frozenset((10, 20)))})
    place = world.hosts["h5"].place
    world.joins("h5", vlan_id=10)
    if lost == "its switch is gone":
        world.disconnect(place[0])
    else:
        world.feed(PortRoleChanged(*place, PortRole.TRUNK if "switch" in lost else PortRole.DOWN))
    counted = world.core.counters["report-not-at-edge"]
    host, other = world.hosts["h5"], parse_ip("239.1.2.4")
    report = join_of(host, other)
    world.feed(PacketReceived(*place, with_tag(report, 10)))
    assert world.core.counters["report-not-at-edge"] == counted + 1
    members = world.core.memberships.of(10).members_table
    assert other not in list(members.groups())
    world.feed(PortRoleChanged(*place, PortRole.EDGE))
    world.feed(PacketReceived(*place, with_tag(report, 10)))
    assert world.core.counters["report-not-at-edge"] == counted + 1
    assert other in list(members.groups())
