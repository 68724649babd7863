"""What is known of tables that have room for all groups, and of those that have it no more."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.config.overcommit_settings import Capacities, TableCapacity
from controller.multicast.events import PolicyLoaded
from controller.multicast.table_limits import entries_of, table_of
from controller.wire.addresses import format_ip

from .conftest import OPEN, leaf_spine
from .overcommitted import (
    MEMBERS,
    assert_served,
    counted,
    done,
    group,
    inside,
    joined,
    overcommitted,
    policy,
    rules_of,
)


def held_by_table(world):
    """Return how many entries that may leave each table shall have of groups that are in."""
    held = Counter()
    for address in inside(world):
        held.update(entries_of(world.core.plane.groups[address].rules))
    return +held


def accounted(world):
    tables = world.core.swapping.accounts.tables.tables
    return +Counter({number: table.used for number, table in tables.items()})


@pytest.mark.parametrize("seed", range(4))
def test_tables_that_had_room_for_all_are_known_exactly_once_they_have_not(make_world, seed):
    world = joined(overcommitted(make_world, room=800, seed=seed), 12)
    chance, names = world.random, [f"h{number}" for number in range(1, 9)]
    for turn in range(200):
        number = chance.randrange(12)
        name = chance.choice(names)
        chance.choice((world.join, world.leave, world.send))(name, group(number))
        world.advance(0.05)
        if turn % 40 == 39:
            assert accounted(world) != held_by_table(world)  # nobody needs to know
            world.core.table_view.tables()
            assert accounted(world) == held_by_table(world)
    assert counted(world, "swaps-out") == 0
    fullest = max(max(Counter(key.table for key in rules).values()) for rules in world.rules().values())
    world.feed(PolicyLoaded(policy(capacity=fullest - 3)))
    world.advance(3)
    assert accounted(world) == held_by_table(world)
    assert counted(world, "swaps-out") > 0


def test_a_group_of_which_nothing_was_noted_yet_goes_out_whole(make_world):
    world = joined(overcommitted(make_world, room=800), 1)
    assert_served(world, 0)
    world.join("h8", group(0))
    done(world.do("group-swap-out", group=format_ip(group(0))))
    world.settle()
    assert rules_of(world, group(0)) == []
    assert accounted(world) == Counter()
    assert world.send("h1", group(0)) == Counter([*MEMBERS, "h8"])


def test_no_table_that_is_nearly_full_is_taken_to_have_ample_room(make_world):
    world = joined(make_world(leaf_spine(4, 2, 2), OPEN), 40)
    limits, fullest = world.core.swapping.accounts.limits, 0
    for _dpid, rules in world.rules().items():
        fullest = max(fullest, *Counter(key.table for key in rules).values())
    for capacity in range(1, 2 * fullest + 200):
        limits.use(Capacities(default=capacity))
        if limits.are_ample():
            assert fullest <= 0.75 * capacity
            break
    else:
        pytest.fail("a table twice as large as all entries has ample room")
    limits.use(Capacities(default=capacity, switches=(TableCapacity(next(iter(world.switches)), 2),)))
    assert not limits.are_ample()


def test_entries_that_stay_and_come_after_a_switch_has_connected_are_counted_before_the_next_reading(make_world):
    world = joined(overcommitted(make_world), 60)
    world.restart(journal=False)
    for dpid in world.switches:
        world.connect(dpid)
        world.settle(0.001)  # it is counted; entries for flooding wait for what else comes
    world.connect_all()
    joined(world, 60)
    world.advance(0.6)
    limits, installer = world.core.swapping.accounts.limits, world.core.installer
    for dpid in world.switches:
        for table_id, count in installer.by_table(dpid).items():
            assert limits.of(table_of(dpid, table_id)).pinned == count, (dpid, table_id)
    assert not inside(world)
    for number in range(60):
        world.send(("h1", "h2", "h3", "h4")[number % 4], group(number))
    world.advance(1.0)
    assert inside(world)
    assert installer.counters["table-full"] == 0
