"""Switches that take fewer entries than was said of them, and fewer or more as they run: found, told, and no more."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.multicast.table_limits import table_of
from controller.overcommit.found_room import GROWS_FIRST_S
from controller.rules.pipeline import FORWARD
from controller.wire.addresses import format_ip

from .overcommitted import MEMBERS, assert_served, counted, done, group, inside, joined, overcommitted, sender_of

ROOM, GROUPS = 48, 100


def filled(make_world, version=4, **settings):
    """Return a world whose tables are full of groups that sent a moment ago, and one after the other."""
    world = joined(overcommitted(make_world, version, room=ROOM, **settings), GROUPS)
    send_all(world)
    return world


def send_all(world, numbers=range(GROUPS), pause_s=0.05):
    for number in numbers:
        assert world.send(sender_of(number), group(number)) == Counter(MEMBERS), number
        world.advance(pause_s)


def change_senders(world):
    """Have some groups send, then others, so that groups come in for those that sent before."""
    for numbers in (range(20, 50), range(50, 80), range(30)):
        for _ in range(4):
            send_all(world, numbers)


def cut(world, by):
    """Have the tables of all switches take so many entries fewer than they do, whatever they hold."""
    for switch in world.switches.values():
        switch.table_capacity -= by


def found(world):
    """Return what the tables of groups at the members' switches are taken to have room for."""
    limits = world.core.swapping.accounts.limits
    dpids = {world.hosts[name].place[0] for name in MEMBERS}
    return {dpid: limits.of(table_of(dpid, FORWARD)).limit for dpid in dpids}


def taken(world, dpid):
    """Return how many entries of the core a switch's table of groups takes beside those of others."""
    switch = world.switches[dpid]
    own = world.rules()[dpid]
    return switch.table_capacity - sum(key.table == FORWARD and key not in own for key in switch.rules)


@pytest.mark.parametrize("by", [12, 36])
def test_tables_that_take_fewer_entries_by_now_are_found_out_by_few_refusals(make_world, by):
    world = filled(make_world)
    before = found(world)
    cut(world, by)
    change_senders(world)
    few = len(world.refused_edits())
    assert 0 < few < by * len(before), "fewer than if one less were tried each time"
    for dpid, limit in found(world).items():
        assert taken(world, dpid) - by <= limit <= taken(world, dpid)
    change_senders(world)
    assert len(world.refused_edits()) == few, "they are asked for no more than they take"
    assert 0 < len(inside(world)) <= max(taken(world, dpid) for dpid in before)


def test_it_is_told_once_a_minute_what_a_table_takes_and_what_was_said(make_world):
    world = filled(make_world)
    cut(world, 12)
    for _ in range(2):
        change_senders(world)
    told = [dict(notice.fields) for notice in world.notices if notice.kind == "table-smaller"]
    assert {(each["dpid"], each["table_id"]) for each in told} == {(dpid, FORWARD) for dpid in found(world)}
    assert len(told) == len(found(world))
    assert all(each["entries"] >= found(world)[each["dpid"]] for each in told)


def test_tables_that_take_more_again_are_full_again(make_world):
    world = filled(make_world)
    before = found(world)
    cut(world, 12)
    change_senders(world)
    assert max(found(world).values()) < min(before.values())
    cut(world, -12)
    refused, until_s = len(world.refused_edits()), world.now + 4 * GROWS_FIRST_S
    while found(world) != before:
        assert world.now < until_s, (found(world), before)
        for number in range(GROUPS):  # or they are asked, and do not answer
            for name in MEMBERS:
                world.join(name, group(number))
        change_senders(world)
    assert len(world.refused_edits()) == refused


def test_what_two_switches_refuse_is_known_of_both(make_world):
    world = filled(make_world, said=False)
    limits = found(world)
    assert len(limits) == 2 and max(limits.values()) < 1000


def test_an_entry_that_stays_has_room_made_at_a_table_that_takes_fewer_by_now(make_world):
    world = filled(make_world)
    cut(world, 12)
    name = next(number for number in range(GROUPS) if group(number) not in inside(world))
    active = [number for number in range(GROUPS) if group(number) in inside(world)]
    for _ in range(3):
        send_all(world, active, 0.01)
    done(world.do("group-pin", group=format_ip(group(name))))
    for _ in range(4):
        for number in (*active, name):
            assert_served(world, number)
        world.advance(1.0)
    assert group(name) in inside(world)
    faults = counted(world, "faults")
    assert_served(world, name)
    assert counted(world, "faults") == faults
    assert world.core.installer.full_switches() == []
