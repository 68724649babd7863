"""Joins of more groups than may be out of the tables are refused, told and served once there is room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.overcommit_settings import Capacities, Overcommit, TableShare, TenantShare
from controller.config.policy import Tenant
from controller.config.terms import parse_host_term
from controller.events import DeadlineReached
from controller.multicast import swap_slots
from controller.multicast.core import MulticastCore
from controller.multicast.events import LogFollowed, PolicyLoaded
from controller.multicast.swap_slots import NO_SLOT
from controller.wire.addresses import format_ip

from .conftest import OPEN, leaf_spine
from .overcommitted import group


def policy(world, store, mode="swap", **tenants):
    """Return a policy in which tenants, named by their hosts, have the limits and reservations given."""
    named = tuple(Tenant(name, (parse_host_term(format_ip(world.hosts[name].v4)),)) for name in tenants)
    shares = tuple(
        TenantShare(name, TableShare(1, reservation, limit)) for name, (limit, reservation) in tenants.items()
    )
    overcommit = Overcommit(mode=mode, capacity=Capacities(default=500), tenants=shares, store=store)
    return replace(OPEN, tenants=named, overcommit=overcommit)


@pytest.fixture
def fabric(make_world):
    def made(store, mode="swap", **tenants):
        world = make_world(leaf_spine(leaves=4, spines=2, hosts=2), OPEN)
        world.feed(PolicyLoaded(policy(world, store, mode, **tenants)))
        return world

    return made


def join(world, host, numbers):
    for number in numbers:
        world.join(host, group(number))
    world.settle()


def served(world, *hosts):
    """Return the numbers of the groups that each host is served."""
    found = {host: set() for host in hosts}
    for number in range(40):
        for host in world.send("h1", group(number)):
            found[host].add(number)
        world.settle()
    return found if len(hosts) > 1 else found[hosts[0]]


def taken(world):
    return {each.tenant: (each.kept, each.taken) for each in world.core.slots.views()}


def refused(world, number):
    """Return the rules that refuse members of a group, as operators are shown."""
    return [each["rule"] for each in world.core.group_view.group(group(number))["refused"]]


def test_a_group_beyond_the_store_is_refused_and_told(fabric):
    world = fabric(5)
    join(world, "h5", range(8))
    assert served(world, "h5") == set(range(5))
    assert world.core.counters["swap-slots-refused"] == 3
    (notice,) = [notice for notice in world.notices if notice.kind == "swap-slots-used-up"]
    assert "no slot left of 5" in notice.text
    assert refused(world, 6) == [NO_SLOT]
    audits = [each.decision for each in world.audits if not each.decision.admit]
    assert [each.rule for each in audits] == [NO_SLOT] * 3
    assert "its host is of no tenant" in audits[0].reason


def test_more_members_of_a_group_that_has_its_slot_are_served(fabric):
    world = fabric(2)
    join(world, "h5", range(2))
    join(world, "h7", range(4))
    assert served(world, "h5", "h7") == {"h5": {0, 1}, "h7": {0, 1}}


def test_who_waits_is_served_when_a_group_is_left(fabric):
    world = fabric(3)
    join(world, "h5", range(6))
    world.send("h1", group(1))
    world.leave("h5", group(1))
    world.advance(11)
    world.settle()
    assert served(world, "h5") == {0, 2, 3}
    assert taken(world) == {"": (0, 3)}


def test_slots_kept_for_a_tenant_are_not_for_others(fabric):
    world = fabric(10, h5=(6, 2))
    join(world, "h7", range(10))
    join(world, "h5", range(20, 30))
    assert served(world, "h5", "h7") == {"h5": set(range(20, 24)), "h7": set(range(6))}
    assert taken(world) == {"h5": (4, 4), "": (0, 6)}


def test_a_group_is_whose_host_joined_it_first_and_all_are_served_it(fabric):
    world = fabric(2, h5=(1, 0))
    join(world, "h7", range(3))
    assert served(world, "h5", "h7")["h7"] == {0}
    join(world, "h5", (2,))
    assert served(world, "h5", "h7") == {"h5": {2}, "h7": {0, 2}}


def test_another_policy_serves_who_waits_and_cuts_nobody_off(fabric):
    world = fabric(4)
    join(world, "h5", range(8))
    world.feed(PolicyLoaded(policy(world, 6)))
    world.settle()
    assert served(world, "h5") == set(range(6))
    world.feed(PolicyLoaded(policy(world, 2)))
    world.settle()
    assert served(world, "h5") == set(range(6))
    world.feed(PolicyLoaded(policy(world, 2, "off")))
    world.settle()
    assert served(world, "h5") == set(range(8))
    world.feed(PolicyLoaded(policy(world, 2)))
    world.settle()
    join(world, "h5", range(8, 10))
    assert served(world, "h5") == set(range(8))


def test_a_reservation_that_is_raised_gives_no_slot_back(fabric):
    world = fabric(10, h5=(6, 4))
    world.feed(PolicyLoaded(policy(world, 10, h5=(6, 1))))
    world.feed(PolicyLoaded(policy(world, 10, h5=(6, 6))))
    assert taken(world) == {"h5": (5, 0)}
    join(world, "h7", range(10))
    assert served(world, "h7") == set(range(5))


def test_groups_that_are_only_sent_to_take_none(fabric):
    world = fabric(1)
    for number in range(5):
        world.send("h1", group(number))
    join(world, "h5", (7, 8))
    assert served(world, "h5") == {7}


def test_who_is_denied_by_the_policy_takes_none(fabric):
    world = fabric(1)
    world.feed(PolicyLoaded(replace(world.core.policy, default_allow=False)))
    join(world, "h5", range(3))
    assert world.core.counters["swap-slots-refused"] == 0
    assert taken(world) == {}


def test_with_room_for_all_in_tables_the_mode_off_takes_none(fabric):
    world = fabric(1, "off")
    join(world, "h5", range(5))
    assert served(world, "h5") == set(range(5))
    assert taken(world) == {}


def test_after_a_restart_the_same_groups_are_served(fabric):
    world = fabric(4, h5=(3, 0))
    join(world, "h7", range(10, 14))
    join(world, "h5", range(5))
    before = served(world, "h5", "h7")
    assert {host: len(numbers) for host, numbers in before.items()} == {"h5": 3, "h7": 1}
    world.policy = world.core.policy
    world.restart()
    world.connect_all()
    world.advance(5)
    assert taken(world) == {"h5": (3, 3), "": (0, 1)}
    assert served(world, "h5", "h7") == before


def test_after_a_restart_with_a_smaller_store_who_was_served_still_is(fabric):
    world = fabric(4)
    join(world, "h5", range(6))
    assert served(world, "h5") == set(range(4))
    world.policy = policy(world, 2)
    world.restart()
    world.connect_all()
    world.advance(5)
    assert served(world, "h5") == set(range(4))


def test_who_follows_has_the_same_slots_taken(fabric):
    world = fabric(4)
    join(world, "h5", range(6))
    served(world, "h5")
    world.advance(1)
    shadow = MulticastCore(world.core.policy, world.now)
    shadow.handle(LogFollowed(tuple(world.log.read())), world.now)
    while (due_s := shadow.restart.due_s) is not None:
        shadow.handle(DeadlineReached(), due_s)
    assert [each.taken for each in shadow.slots.views()] == [4]


def test_those_that_are_too_many_to_be_remembered_are_served_all_the_same(fabric, monkeypatch):
    monkeypatch.setattr(swap_slots, "WAITING_BOUND", 2)
    world = fabric(1)
    join(world, "h5", range(6))
    world.feed(PolicyLoaded(policy(world, 20)))
    world.advance(25)
    world.settle()
    assert served(world, "h5") == set(range(6))
