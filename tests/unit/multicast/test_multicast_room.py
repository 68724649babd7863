"""The bound on groups with a tree: who is refused, who gives way, and that who waits is served when there is room."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast, RouterPorts
from controller.config.terms import SwitchPort, parse_prefix
from controller.events import DeadlineReached
from controller.multicast import room, waiting
from controller.multicast.events import PolicyLoaded
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import PortRole, PortRoleChanged

LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=65536)
POLICY = Policy(default_allow=True, limits=LIMITS, multicast=Multicast(fast_leave=True))


def group(n):
    return bytes((239, 4, n >> 8, n & 255))


def limited(groups, **multicast):
    return replace(POLICY, limits=replace(LIMITS, groups=groups), multicast=Multicast(fast_leave=True, **multicast))


def test_a_refused_member_is_served_at_once_when_the_last_receiver_of_a_group_leaves_though_its_sender_stays(
    make_world, version
):
    """A sender that nobody hears sends on and on: its tree is not to keep others out."""
    world = make_world("leaf-spine", limited(2), version)
    for n in (0, 1, 2):
        world.join("h3", group(n))
        world.send("h1", group(n))
        world.settle()
    assert world.send("h1", group(2)) == {}
    world.leave("h3", group(0))
    world.settle()
    assert world.send("h1", group(2)) == {"h3": 1}, "nobody reported again"
    assert world.send("h1", group(1)) == {"h3": 1}
    assert world.send("h1", group(0)) == {}
    assert len(world.core.forest) == 2
    (refused,) = world.core.plane.groups[group(0)].senders.values()
    assert (refused.admitted, refused.rule) == (False, "limits.groups")
    told = [(audit.group, audit.decision.admit) for audit in world.audits if audit.decision.rule == "limits.groups"]
    assert (group(0), False) in told
    world.join("h4", group(0))
    world.leave("h3", group(1))
    world.settle()
    assert world.send("h1", group(0)) == {"h4": 1}


def test_a_refused_sender_is_served_at_once_when_a_group_ends(make_world, version):
    world = make_world("leaf-spine", limited(2), version)
    for n in (0, 1):
        world.join("h3", group(n))
    assert world.send("h1", group(2)) == {}
    world.settle()
    world.leave("h3", group(0))
    world.settle()
    (sender,) = world.core.plane.groups[group(2)].senders.values()
    assert sender.admitted
    world.join("h4", group(2))
    world.settle()
    assert world.send("h1", group(2)) == {"h4": 1}


def test_a_receiver_takes_the_room_of_a_group_that_nobody_receives(make_world):
    world = make_world("leaf-spine", limited(2))
    for n in range(4):
        world.send("h1", group(n))
    world.settle()
    assert len(world.core.forest) == 2
    for n in (2, 3):
        world.join("h3", group(n))
        world.settle()
        assert len(world.core.forest) == 2
        assert world.send("h1", group(n)) == {"h3": 1}, "and its sender, refused before, is served with it"
    world.join("h3", group(0))
    world.settle()
    assert world.send("h1", group(0)) == {}, "those that are received do not give way"


def test_a_host_that_the_policy_refuses_takes_nobodys_room(make_world):
    senders = Rule("senders", (parse_prefix("239.0.0.0/8"),), frozenset({Role.SENDER}), True, any_host=True)
    world = make_world("leaf-spine", replace(limited(1), default_allow=False, rules=(senders,)))
    world.send("h1", group(0))
    world.join("h3", group(1))
    world.settle()
    (kept,) = world.core.forest
    assert kept.key == group(0)
    assert world.core.gate.room.waiting_count == 0


def test_a_group_that_a_router_gets_does_not_give_way(make_world):
    place = make_world("leaf-spine", POLICY).hosts["h5"].place
    world = make_world("leaf-spine", limited(1, router_ports=RouterPorts(static=frozenset({SwitchPort(*place)}))))
    world.send("h1", group(0))
    world.settle()
    world.join("h3", group(1))
    world.settle()
    assert world.send("h1", group(0)) == {"h5": 1}
    assert len(world.core.forest) == 1


def test_those_that_wait_are_served_in_their_order(make_world):
    world = make_world("leaf-spine", limited(100))
    for n in range(300):
        world.join("h3" if n < 100 else "h5", group(n))
    world.settle()
    for n in range(100):
        world.leave("h3", group(n))
    world.settle()
    assert sorted(world.core.plane.groups) == [group(n) for n in range(100, 200)]
    for n in range(100, 150):
        world.leave("h5", group(n))
    assert world.core.gate.room.waiting_count == 50
    assert len(world.core.forest) == 100


def test_room_that_many_leave_at_once_is_given_in_steps(make_world, monkeypatch):
    monkeypatch.setattr(waiting, "ROOM_BATCH", 2)
    world = make_world("leaf-spine", limited(10))
    for n in range(20):
        world.join("h3" if n < 10 else "h5", group(n))
    world.settle()
    gone = world.hosts["h3"]
    world.feed(PortRoleChanged(gone.dpid, gone.port_no, PortRole.DOWN))
    assert len(world.core.forest) == 2
    world.settle()
    assert sorted(world.core.plane.groups) == [group(n) for n in range(10, 20)]


def test_a_raised_limit_serves_at_once(make_world):
    world = make_world("leaf-spine", limited(1))
    for n in range(5):
        world.join("h3", group(n))
    world.feed(PolicyLoaded(limited(4)))
    world.settle()
    assert len(world.core.forest) == 4


def test_groups_that_are_not_remembered_are_served_some_time_later(make_world, monkeypatch):
    monkeypatch.setattr(room, "WAITING_BOUND", 2)
    world = make_world("leaf-spine", limited(1))
    for n in range(6):
        world.join("h3", group(n))
    for _ in range(5):
        (served,) = world.core.plane.groups
        world.leave("h3", served)
        world.advance(11.0)
        assert len(world.core.forest) == 1
    assert world.core.gate.room.waiting_count == 0


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_nobody_waits_while_there_is_room(make_world, seed):
    random = Random(seed)
    world = make_world("leaf-spine", limited(3, sender_timeout_s=30))
    names = ("h2", "h3", "h5")
    for _ in range(60):
        n = random.randrange(8)
        match random.randrange(4):
            case 0 | 1:
                world.join(random.choice(names), group(n))
            case 2:
                world.leave(random.choice(names), group(n))
            case _:
                world.send("h1", group(n))
        if random.random() < 0.1:
            world.advance(random.choice((1.0, 40.0)))
        plane, forest = world.core.plane, world.core.forest
        received = [g for g, known in plane.groups.items() if known.interests]
        refused = {member.group for member in world.core.membership.members() if not member.admitted}
        assert len(forest) <= 3
        assert set(plane.unheard) == {g for g in plane.groups if g in forest} - set(received)
        assert not refused or len(received) == 3, "a receiver waits only for groups that are received"
    world.advance(1.0)
    world.feed(DeadlineReached())


def test_below_a_lowered_bound_as_many_give_way_as_it_takes(make_world, version):
    world = make_world("leaf-spine", limited(8), version)
    for n in range(4):
        world.send("h1", group(n))
        world.settle()
    world.feed(PolicyLoaded(limited(1)))
    world.join("h3", group(8))
    world.join("h4", group(9))
    world.settle()
    assert len(world.core.forest) == 1
    assert world.send("h1", group(8)) == {"h3": 1}
    assert world.send("h1", group(9)) == {}


def join_at_once(world, name, *groups):
    """Join several groups by one message."""
    host = world.hosts[name]
    records = tuple(GroupRecord(RecordType.CHANGE_TO_EXCLUDE, address, ()) for address in groups)
    world.report(name, Report(4, 3, host.mac, host.v4, records))
    world.settle()


def trees(world):
    return {tree.key for tree in world.core.forest}


def verdicts(world, address):
    """Return what was decided about a group, one decision after the other."""
    return [audit.decision.admit for audit in world.audits if audit.group == address]


def test_each_of_several_groups_joined_at_once_takes_another_one_s_room(make_world):
    world = make_world("leaf-spine", limited(3))
    for n in range(3):
        world.send("h1", group(n))
        world.settle()
    join_at_once(world, "h3", group(7), group(8))
    assert trees(world) == {group(2), group(7), group(8)}
    for n in (7, 8):
        assert world.send("h1", group(n)) == {"h3": 1}


def test_a_group_that_was_to_give_way_does_not_when_it_is_joined_by_the_same_message(make_world):
    world = make_world("leaf-spine", limited(2))
    for n in range(2):
        world.send("h1", group(n))
        world.settle()
    join_at_once(world, "h3", group(7), group(0))
    assert trees(world) == {group(0), group(7)}
    assert world.send("h1", group(0)) == {"h3": 1}
    assert world.core.gate.room.waiting_count == 1, "the other one waits"


def test_who_joins_what_has_a_tree_takes_nobody_s_room(make_world):
    world = make_world("leaf-spine", limited(2))
    world.send("h1", group(0))
    world.join("h3", group(1))
    world.settle()
    world.join("h4", group(1))
    world.settle()
    assert trees(world) == {group(0), group(1)}
    assert verdicts(world, group(0)) == [True], "it never gave way"
    assert world.send("h1", group(1)) == {"h3": 1, "h4": 1}


def test_a_receiver_of_several_sources_takes_room_once(make_world):
    world = make_world("leaf-spine", limited(2))
    world.send("h1", group(0))
    world.settle()
    sources = [world.hosts[name].v4 for name in ("h1", "h2")]
    world.record("h3", RecordType.CHANGE_TO_INCLUDE, group(1), *sources)
    world.settle()
    assert trees(world) == {group(0), group(1)}
    assert verdicts(world, group(0)) == [True], "it never gave way"
    for name in ("h1", "h2"):
        assert world.send(name, group(1)) == {"h3": 1}


def test_a_receiver_of_several_sources_needs_no_more_room_than_there_is(make_world):
    world = make_world("leaf-spine", limited(1))
    sources = [world.hosts[name].v4 for name in ("h1", "h2")]
    world.record("h3", RecordType.CHANGE_TO_INCLUDE, group(1), *sources)
    world.settle()
    for name in ("h1", "h2"):
        assert world.send(name, group(1)) == {"h3": 1}
    assert world.core.gate.room.waiting_count == 0


def test_a_group_that_gave_way_is_served_again_when_there_is_room(make_world):
    world = make_world("leaf-spine", limited(1))
    for n in range(2):
        world.send("h1", group(n))
        world.settle()
    world.join("h3", group(1))
    world.settle()
    assert trees(world) == {group(1)}
    assert world.core.gate.room.waiting_count == 1, "its sender waits; that of the other is served"
    world.leave("h3", group(1))
    world.settle()
    world.advance(40.0)
    assert len(trees(world)) == 1
    world.feed(PolicyLoaded(limited(2)))
    world.settle()
    assert trees(world) == {group(0), group(1)}
    assert world.core.gate.room.waiting_count == 0


def test_of_those_that_wait_no_more_than_the_bound_are_remembered(make_world, monkeypatch):
    monkeypatch.setattr(room, "WAITING_BOUND", 3)
    world = make_world("leaf-spine", limited(1))
    world.join("h3", group(0))
    world.settle()
    for n in (1, 2):
        world.send("h1", group(n))
    assert world.core.gate.room.waiting_count == 2
    for n in (3, 4, 5):
        world.join("h3", group(n))
    assert world.core.gate.room.waiting_count == 3


def test_when_one_that_waited_is_served_others_of_its_group_are_next(make_world, monkeypatch):
    monkeypatch.setattr(waiting, "ROOM_BATCH", 1)
    world = make_world("leaf-spine", limited(4))
    for n in range(4):
        world.join("h3", group(n))
    for n in range(4, 8):
        world.join("h5", group(n))
    world.settle()
    gone = world.hosts["h3"]
    world.feed(PortRoleChanged(gone.dpid, gone.port_no, PortRole.DOWN))
    assert trees(world) == {group(4)}
    world.join("h6", group(7))
    assert trees(world) == {group(4), group(7)}
    assert world.core.gate.room.waiting_count == 2
    assert not [m for m in world.core.membership.members() if m.group == group(7) and not m.admitted]
    world.settle()
    assert trees(world) == {group(n) for n in range(4, 8)}
    assert world.core.gate.room.waiting_count == 0
