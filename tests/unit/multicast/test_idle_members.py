"""Members of silent groups are asked, and senders age faster, while flow tables are short of free entries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from controller.config.settings import Multicast
from controller.multicast.events import PolicyLoaded
from controller.multicast.idle_members import IDLE_S
from controller.wire.encode import encode
from controller.wire.packets import Query

from .conftest import OPEN
from .overcommitted import MEMBERS, answer, asked, assert_served, counted, group, inside, joined, overcommitted

FEW = 3
ROOM, MANY = 100, 112
"""Groups with which 3 to 4 % are free of the 116 entries that the table of groups has: few, but none has to leave."""


def filled(make_world, count=MANY):
    """Return a world in which a sender of each of so many groups has sent a packet."""
    world = joined(overcommitted(make_world, room=ROOM), count)
    for number in range(count):
        assert_served(world, number)
        world.advance(0.1)
    return world


def go_on(world, numbers, for_s, answers=()):
    """Have groups send every 5 s, and hosts answer who are asked for theirs; return how often each was asked."""
    times = Counter()
    end_s = world.now + for_s
    while world.now < end_s:
        for number in numbers:
            assert_served(world, number)
        for _ in range(10):
            first = len(world.packet_outs)
            world.advance(0.5)
            times.update(name for name, _ in asked(world, first))
            answer(world, first, answers)
    return times


def test_who_does_not_answer_for_a_silent_group_is_a_member_no_more(make_world):
    world = filled(make_world)
    first = len(world.packet_outs)
    world.advance(IDLE_S / 2)
    assert not asked(world, first)
    times = go_on(world, range(FEW), IDLE_S)
    assert times and not times.keys() & {group(number) for number in range(FEW)}
    for name in times:
        members = world.core.plane.groups[name].interests if name in world.core.plane.groups else {}
        assert not members
    for number in range(FEW):
        assert_served(world, number)


def test_who_answers_stays_and_is_not_asked_again_at_once(make_world):
    world = filled(make_world)
    times = go_on(world, range(FEW), 2 * IDLE_S, answers=MEMBERS)
    assert times and max(times.values()) <= 2 * len(MEMBERS)  # the query and its repetition, at the port of each
    assert counted(world, "groups-asked") == len(times)
    for name in times:
        assert sum(map(len, world.core.plane.groups[name].interests.values())) == len(MEMBERS)


def test_nobody_is_asked_while_there_is_room(make_world):
    world = filled(make_world, count=6)
    first = len(world.packet_outs)
    world.advance(3 * IDLE_S)
    assert not asked(world, first)
    assert len(inside(world)) == 6


def test_a_sender_ages_four_times_as_fast_where_its_table_is_short(make_world):
    worlds = {count: filled(make_world, count=count) for count in (6, MANY)}
    left = {}
    for count, world in worlds.items():
        world.feed(PolicyLoaded(replace(world.core.policy, multicast=Multicast(sender_timeout_s=80))))
        for _ in range(12):
            for number in range(FEW):
                assert_served(world, number)
            world.advance(4.0)
        left[count] = [len(world.core.plane.groups[group(number)].senders) for number in (0, FEW + 1)]
    assert left == {6: [1, 1], MANY: [1, 0]}


def test_where_another_router_asks_nobody_else_does(make_world):
    world = filled(make_world)
    multicast = replace(OPEN.multicast, querier=replace(OPEN.multicast.querier, accept_others=True))
    world.feed(PolicyLoaded(replace(world.core.policy, multicast=multicast)))
    host = world.hosts["h1"]
    world.report("h1", encode(Query(4, 3, host.mac, host.v4, None, (), 10.0, False, 2, 125.0)))
    assert not world.core.membership.querier(4).is_ours
    first = len(world.packet_outs)
    go_on(world, range(FEW), IDLE_S)
    assert not asked(world, first)
