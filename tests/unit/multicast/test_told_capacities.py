"""What switches say that their tables have room for bounds what groups take of them, as far as it can be so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.overcommit_settings import Capacities
from controller.effects import RequestTables
from controller.multicast.events import PolicyLoaded
from controller.multicast.table_limits import UNLIMITED, table_of
from controller.rules.pipeline import ADMIT, FORWARD

from .conftest import OPEN, leaf_spine
from .overcommitted import MEMBERS, answer, assert_served, inside, joined, overcommitted, policy

NUMBERS = range(60)


def told(make_world, version=4, says="all", said=False):
    """Return a world whose switches say that their tables have room for as many entries as they take of the core."""
    world = overcommitted(make_world, version)
    for switch in world.switches.values():
        switch.said_capacity = world.policy.overcommit.capacity.default if says == "all" else says
    if not said:
        world.policy = replace(world.policy, overcommit=replace(world.policy.overcommit, capacity=Capacities()))
    world.restart(journal=False)
    world.connect_all()
    world.settle()
    return world


def limits(world):
    """Return what tables of groups are taken to have room for."""
    found = world.core.swapping.accounts.limits
    table = 0 if world.switches[1].ofp_version == 1 else FORWARD
    return {dpid: found.of(table_of(dpid, table)).limit for dpid in world.switches}


def use(world):
    for number in NUMBERS:
        since = len(world.packet_outs)
        for _ in range(3):  # who sends once alone stays out the next time
            assert_served(world, number)
            world.advance(0.1)
        answer(world, since)


@pytest.mark.parametrize("version", [1, 4])
def test_no_switch_refuses_anything_where_all_say_what_they_take(make_world, version):
    world = joined(told(make_world, version), len(NUMBERS))
    assert limits(world) == {dpid: switch.said_capacity for dpid, switch in world.switches.items()}
    use(world)
    assert world.refused_edits() == []
    assert 0 < len(inside(world)) < len(NUMBERS)


@pytest.mark.parametrize("says", [0, 0xFFFFFFFF, 1_000_000, None])
def test_who_says_what_cannot_be_so_has_said_nothing(make_world, says):
    world = joined(told(make_world, says=says), len(NUMBERS))
    assert set(limits(world).values()) == {UNLIMITED}
    assert not any(notice.kind == "error-unmatched" for notice in world.notices)
    use(world)
    assert world.refused_edits(), "what a table takes is found by what it refuses"


def test_the_least_of_policy_and_switch_counts_and_is_told(make_world):
    world = told(make_world, said=True)
    said = world.policy.overcommit.capacity.default
    for switch in world.switches.values():
        switch.said_capacity = said - 5 if switch.dpid == 1 else said + 5
    world.restart(journal=False)
    world.connect_all()
    world.settle()
    assert limits(world) == {dpid: said - 5 if dpid == 1 else said for dpid in world.switches}
    (notice,) = [notice for notice in world.notices if notice.kind == "tables-say-less"]
    assert f"{said - 5}, not {said}" in notice.text
    assert dict(notice.fields) == {"dpid": 1}


def test_a_switch_that_connects_again_is_asked_again(make_world):
    world = told(make_world)
    before = limits(world)
    world.switches[2].said_capacity = before[2] + 7
    world.disconnect(2)
    world.settle()
    world.reconnect(2)
    world.settle()
    assert limits(world) == {**before, 2: before[2] + 7}


def test_a_limit_that_is_lowered_is_known_to_the_entry_and_one_that_is_raised_a_minute_later(make_world):
    world = joined(told(make_world), len(NUMBERS))
    use(world)
    before, by = limits(world), 20
    for change, wait_s in ((-by, 20), (by, 70)):
        for switch in world.switches.values():
            switch.said_capacity += change
            switch.table_capacity += change
        since_s = world.now
        while world.now < since_s + wait_s:
            use(world)
        members = {world.hosts[name].dpid for name in MEMBERS}
        assert {limits(world)[dpid] for dpid in members} == {before[dpid] + min(change, 0) for dpid in members}
    assert 0 < len(world.refused_edits()) < 5 * len(world.switches)


def test_a_number_that_was_refused_counts_for_more_than_the_same_word_again(make_world):
    world = joined(told(make_world), len(NUMBERS))
    use(world)
    before = limits(world)
    for switch in world.switches.values():
        switch.table_capacity -= 20
    for _ in range(3):
        use(world)
    members = {world.hosts[name].dpid for name in MEMBERS}
    assert all(limits(world)[dpid] <= before[dpid] - 20 for dpid in members)


def test_switches_are_asked_once_the_mode_is_on_and_never_else(make_world):
    world = make_world(leaf_spine(leaves=4, spines=2, hosts=2), OPEN)
    asked = []
    perform = world.perform

    def watched(effect):
        if isinstance(effect, RequestTables):
            asked.append(effect.dpid)
        perform(effect)

    world.perform = watched
    world.disconnect(1)
    world.reconnect(1)
    world.settle()
    assert asked == []
    for _ in range(2):
        world.feed(PolicyLoaded(policy()))
        world.settle()
    assert sorted(asked) == sorted(world.switches)
    world.feed(PolicyLoaded(OPEN))
    world.feed(PolicyLoaded(policy()))
    world.settle()
    assert len(asked) == 2 * len(world.switches)


def test_a_number_below_what_stays_in_a_table_is_not_believed(make_world):
    world = joined(told(make_world), 3)
    world.advance(31)
    limit = limits(world)[1]
    found, number = world.core.swapping.accounts.limits, table_of(1, ADMIT)
    stays = found.of(number).pinned
    assert 0 < stays < limit
    for says, takes in ((stays, stays), (stays - 1, UNLIMITED), (1, UNLIMITED), (limit, limit)):
        found.told(1, {ADMIT: says}, is_again=False)
        assert found.of(number).limit == takes
