"""Senders: learnt by their first packet, measured, aged, checked for false addresses, bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import PacketReceived
from controller.rules.pipeline import PRIORITY_SENDER, PRIORITY_UNKNOWN_PENALTY, SENDER_COOKIE_BIT
from controller.wire.addresses import parse_ip
from topology.events import HostGone, HostLearnt

GROUP = parse_ip("239.1.2.3")
OPEN = Policy(default_allow=True, limits=Limits(reports_per_second_per_port=1e6))


def sender_rules(world, dpid):
    return [rule for rule in world.rules()[dpid].values() if rule.key.priority == PRIORITY_SENDER]


def test_first_packets_reach_every_member_once_by_the_controller(make_world, version):
    world = make_world("fattree", OPEN, version)
    for name in ("h2", "h9", "h16"):
        world.join(name)
    world.settle()
    for _ in range(5):
        assert world.send("h1") == {"h2": 1, "h9": 1, "h16": 1}
    for _ in world.steps():
        assert world.send("h1") == {"h2": 1, "h9": 1, "h16": 1}
    outs = len(world.packet_outs)
    assert world.send("h1") == {"h2": 1, "h9": 1, "h16": 1}
    assert len(world.packet_outs) == outs


def test_members_that_join_later_get_a_known_sender(make_world, version):
    world = make_world("fattree", OPEN, version)
    assert world.send("h1") == {}
    world.settle()
    world.join("h16")
    world.settle()
    assert world.send("h1") == {"h16": 1}


def test_a_sender_is_sent_nothing_of_what_it_feeds(make_world, version):
    world = make_world("fattree", OPEN, version)
    world.join("h16")
    for name in ("h1", "h8"):
        world.send(name)
    world.settle()
    assert world.send("h1") == {"h16": 1}
    assert world.send("h8") == {"h16": 1}


FALSE = [{"source": parse_ip("10.0.0.9")}, {"mac": b"\x02\0\0\0\0\x09"}]


@pytest.mark.parametrize("changes", FALSE, ids=["ip", "mac"])
def test_false_sources_are_dropped_at_their_port(make_world, version, changes):
    world = make_world("fattree", OPEN, version)
    world.join("h16")
    world.settle()
    assert world.send("h1", **changes) == {}
    world.settle()
    outs, packets = len(world.packet_outs), world.core.counters
    assert world.send("h1", **changes) == {}
    assert len(world.packet_outs) == outs
    assert [rule.actions for rule in sender_rules(world, world.hosts["h1"].dpid)] == [()]
    assert [notice.kind for notice in world.notices] == ["spoofed-sender"]
    assert packets is world.core.counters
    assert world.send("h1") == {"h16": 1}


def test_a_false_source_is_found_out_when_its_owner_is_learnt(make_world, version):
    world = make_world("fattree", OPEN, version)
    owner = world.hosts["h9"]
    world.feed(HostGone(owner.mac, owner.dpid, owner.port_no))
    world.join("h16")
    world.settle()
    world.send("h1", source=owner.v4)
    world.settle()
    assert world.send("h1", source=owner.v4) == {"h16": 1}
    world.learn(owner)
    world.settle()
    assert world.send("h1", source=owner.v4) == {}


def test_an_address_that_changes_hands_makes_its_new_owner_a_sender(make_world):
    world = make_world("fattree", OPEN)
    taker, giver = world.hosts["h1"], world.hosts["h9"]
    world.join("h16")
    world.send("h1", source=giver.v4)
    world.settle()
    assert world.send("h1", source=giver.v4) == {}
    world.feed(HostLearnt(giver.mac, giver.dpid, giver.port_no, (giver.v6,)))
    world.feed(HostLearnt(taker.mac, taker.dpid, taker.port_no, (taker.v4, giver.v4)))
    world.settle()
    assert world.send("h1", source=giver.v4) == {"h16": 1}


def test_silent_senders_are_forgotten_and_busy_ones_kept(make_world, version):
    policy = replace(OPEN, multicast=Multicast(sender_timeout_s=20))
    world = make_world("leaf-spine", policy, version)
    world.join("h5")
    world.send("h1")
    world.send("h3")
    for _ in range(8):
        world.advance(4.0)
        world.send("h1")
    world.settle(3.0)
    known = {key.mac for key in world.core.plane.groups[GROUP].senders}
    assert known == {world.hosts["h1"].mac}
    assert len(sender_rules(world, world.hosts["h3"].dpid)) == 0
    assert world.send("h3") == {"h5": 1}


def test_rates_are_measured_from_the_entries_counters(make_world, version):
    world = make_world("leaf-spine", OPEN, version)
    world.join("h5")
    world.send("h1")
    world.advance(5.0)
    size = len(world.data("h1"))
    for _ in range(40):
        world.now += 0.2
        world.send("h1")
        world.settle(0.0)
    (sender,) = world.core.plane.groups[GROUP].senders.values()
    assert sender.rate_bps == pytest.approx(8 * size * 5, rel=0.25)
    tree = world.core.forest.tree(GROUP)
    assert tree.rates == {world.hosts["h1"].dpid: round(sender.rate_bps)}


@pytest.mark.parametrize("late_s", [3.0, 25.0])
def test_late_counters_keep_busy_senders_and_measure_them(make_world, version, late_s):
    world = make_world("leaf-spine", replace(OPEN, multicast=Multicast(sender_timeout_s=20)), version)
    world.join("h5")
    world.send("h1")
    world.send("h3")
    switch, late = world.switches[world.hosts["h1"].dpid], []
    respond = switch.respond

    def respond_late(effect, now):
        if not effect.cookie & SENDER_COOKIE_BIT:
            return respond(effect, now)
        late.extend((now + late_s, event) for event in respond(effect, now))
        return ()

    switch.respond = respond_late
    size = len(world.data("h1"))
    for _ in range(600):
        world.now += 0.2
        world.send("h1")
        while late and late[0][0] <= world.now:
            world.feed(late.pop(0)[1])
        world.settle(0.0)
    senders = {key.mac: sender for key, sender in world.core.plane.groups[GROUP].senders.items()}
    assert senders.keys() == {world.hosts["h1"].mac}, "the silent one is gone"
    assert senders[world.hosts["h1"].mac].rate_bps == pytest.approx(8 * size * 5, rel=0.25)


def test_a_switch_that_tells_no_counters_loses_no_senders(make_world, version):
    world = make_world("leaf-spine", replace(OPEN, multicast=Multicast(sender_timeout_s=20)), version)
    world.join("h5")
    world.send("h1")
    switch, asked = world.switches[world.hosts["h1"].dpid], []
    switch.respond = lambda effect, _now: asked.append(effect.cookie) or ()
    world.advance(300.0)
    assert len(world.core.plane.groups[GROUP].senders) == 1
    questions = sum(cookie & (1 << 48) - 1 == SENDER_COOKIE_BIT for cookie in asked)
    assert 4 <= questions <= 7, "an open question is not asked again every 2 s"


def test_a_sender_without_room_for_its_entry_is_kept_by_its_packets(make_world, version):
    """They go by the controller, and no counter tells of them."""
    world = make_world("leaf-spine", replace(OPEN, multicast=Multicast(sender_timeout_s=20)), version)
    world.join("h5")
    world.settle()
    switch = world.switches[world.hosts["h1"].dpid]
    switch.capacity = 0
    for _ in range(30):
        assert world.send("h1") == {"h5": 1}
        world.advance(2.0)
        assert sender_rules(world, switch.dpid) == []
        assert [key.mac for key in world.core.plane.groups[GROUP].senders] == [world.hosts["h1"].mac]
    world.advance(30.0)
    assert not world.core.plane.groups[GROUP].senders


def test_a_flood_of_unknown_senders_is_cut_off_at_the_switch(make_world, version):
    policy = Policy(default_allow=True, limits=Limits(unknown_packets_per_second_per_port=10, senders_per_port=1000))
    world = make_world("leaf-spine", policy, version)
    for n in range(500):
        world.send("h1", source=bytes((11, 0, n >> 8, n & 255)))
    assert world.core.senders.counters["unknown-packets-over-limit"] == 480
    world.settle()
    penalties = [r for r in world.rules()[1].values() if r.key.priority == PRIORITY_UNKNOWN_PENALTY]
    assert [(rule.actions, rule.hard_timeout_s) for rule in penalties] == [((), 1)]
    assert [notice.kind for notice in world.notices] == ["sender-penalty"]
    outs = len(world.packet_outs)
    world.join("h5")
    world.settle()
    assert world.send("h1", source=parse_ip("12.0.0.1")) == {}
    assert world.send("h3") == {"h5": 1}, "another port is not affected"
    assert world.send("h1", source=bytes((11, 0, 0, 1))) == {"h5": 1}, "a known sender goes on"
    assert len(world.packet_outs) > outs


def test_a_port_has_a_bounded_number_of_senders(make_world, version):
    policy = Policy(default_allow=True, limits=Limits(senders_per_port=3))
    world = make_world("leaf-spine", policy, version)
    for n in range(6):
        world.send("h1", source=bytes((11, 0, 0, n)))
    world.settle()
    assert len(world.core.plane.groups[GROUP].senders) == 3
    assert len(sender_rules(world, 1)) == 3
    assert world.core.senders.counters["senders-per-port"] == 3
    assert [notice.kind for notice in world.notices] == ["sender-penalty"]


def test_an_admitted_sender_takes_the_place_of_a_refused_one(make_world):
    policy = Policy(default_allow=True, limits=Limits(senders_per_port=3))
    world = make_world("leaf-spine", policy)
    world.join("h5")
    for n in (4, 5, 6):
        world.send("h1", source=world.hosts[f"h{n}"].v4)
    assert world.send("h1") == {"h5": 1}
    world.settle()
    assert sorted(rule.actions != () for rule in sender_rules(world, 1)) == [False, False, True]


def test_a_packet_with_a_wrong_group_mac_is_not_forwarded(make_world, version):
    world = make_world("leaf-spine", OPEN, version)
    world.join("h5")
    world.settle()
    frame = world.data("h1")
    for mac in (bytes((frame[0] ^ 2,)) + frame[1:6], b"\x01\x00\x5e\x00\x00\x01"):
        assert world.inject(world.hosts["h1"].place, mac + frame[6:]) == {}
    assert world.core.senders.counters["data-mac-mismatch"] == 2
    world.send("h1")
    world.settle()
    assert world.inject(world.hosts["h1"].place, bytes((frame[0] ^ 2,)) + frame[1:]) == {}


def test_a_port_whose_use_is_not_known_feeds_no_group(make_world, version):
    """A host that is plugged into a port for the first time is not admitted before it is known what the port is."""
    from topology.generators import make

    graph = make("tree", {"depth": 1, "fanout": 3})
    world = make_world(graph, OPEN, version, start=False)
    world.connect(1)
    from topology.events import PortRole, PortRoleChanged

    for name in ("h1", "h2"):
        host = world.hosts[name]
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
    world.settle()
    world.join("h1")
    world.send("h2")
    world.settle()
    assert world.send("h2") == {"h1": 1}
    assert world.send("h3") == {}
    host = world.hosts["h2"]
    stolen = world.data("h2")
    assert world.inject(world.hosts["h3"].place, stolen) == {}
    assert host.place != world.hosts["h3"].place


def test_data_for_link_scope_groups_makes_no_sender(make_world):
    world = make_world("leaf-spine", OPEN)
    world.feed(PacketReceived(1, 1, world.data("h1", parse_ip("224.0.0.5"))))
    assert not world.core.plane.groups
