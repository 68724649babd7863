"""Tenants that share the flow tables of a fabric: whose groups are in, and whose go out for others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from controller.config.overcommit_settings import Capacities, Overcommit, TableShare, TenantShare
from controller.config.policy import Tenant
from controller.config.terms import parse_host_term
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import format_ip

from .conftest import OPEN
from .overcommitted import MEMBERS, answer, group, inside, overcommitted

EACH = 30
FIRST = {"video": 0, "backup": 100}
SENDERS = {"video": "h1", "backup": "h3"}


def shared(make_world, room=30, seed=0, **shares):
    """Return a world in which h1 is of `video` and h3 of `backup`, with 30 groups each, and its tables' capacity."""
    world = overcommitted(make_world, room=room, seed=seed)
    tenants = tuple(
        Tenant(name, (parse_host_term(format_ip(world.hosts[host].v4)),)) for name, host in SENDERS.items()
    )
    own = tuple(TenantShare(name, share) for name, share in shares.items())
    capacity = Capacities(default=world.policy.overcommit.capacity.default)
    overcommit = Overcommit(mode="swap", capacity=capacity, tenants=own)
    world.feed(PolicyLoaded(replace(OPEN, tenants=tenants, overcommit=overcommit)))
    for first in FIRST.values():
        for number in range(first, first + EACH):
            for name in MEMBERS:
                world.join(name, group(number))
    world.settle()
    return world


def send(world, tenant, rounds=1):
    for _ in range(rounds):
        first = len(world.packet_outs)
        for number in range(FIRST[tenant], FIRST[tenant] + EACH):
            assert world.send(SENDERS[tenant], group(number)) == Counter(MEMBERS)
            world.advance(0.05)
        answer(world, first)


def held(world):
    counts = Counter()
    names = {group(number): tenant for tenant, first in FIRST.items() for number in range(first, first + EACH)}
    counts.update(names[address] for address in inside(world))
    return counts


def test_who_has_twice_the_shares_has_twice_the_groups(make_world):
    world = shared(make_world, video=TableShare(2), backup=TableShare(1))
    send(world, "backup", 2)
    for _ in range(6):
        send(world, "video")
        send(world, "backup")
    counts = held(world)
    assert 1.6 <= counts["video"] / counts["backup"] <= 2.5


def test_without_shares_of_its_own_who_was_first_keeps_what_it_sends_as_much_by(make_world):
    world = shared(make_world)
    send(world, "backup", 4)
    before = held(world)["backup"]
    for _ in range(3):
        send(world, "video")
        send(world, "backup")
    assert held(world)["backup"] >= before - 3


def entries_of_tenant(world, tenant):
    """Return how many entries a tenant has in each table."""
    rows = world.core.table_view.tables().items()
    return {table: sum(each["entries"] for each in row["tenants"] if each["tenant"] == tenant) for table, row in rows}


def test_what_is_reserved_stays_though_it_is_silent(make_world):
    world = shared(make_world, backup=TableShare(reservation=6))
    send(world, "backup", 2)
    for _ in range(60):
        first = len(world.packet_outs)
        world.advance(1)
        answer(world, first)
    before = entries_of_tenant(world, "backup")
    for _ in range(6):
        send(world, "video")
    after = entries_of_tenant(world, "backup")
    assert all(after[table] >= min(count, 6) for table, count in before.items())
    assert sum(after.values()) < sum(before.values())


def test_nobody_has_more_than_its_limit(make_world):
    world = shared(make_world, video=TableShare(limit=6), backup=TableShare())
    for _ in range(3):
        send(world, "video")
        assert held(world)["video"] <= 6
    assert held(world)["video"] == 6


def test_what_tenants_have_is_shown_and_adds_up(make_world):
    world = shared(make_world, video=TableShare(2), backup=TableShare(1))
    send(world, "video")
    send(world, "backup")
    assert world.send("h2", group(0)) == Counter(MEMBERS)  # of no tenant, to a group of video's
    rows = [row for row in world.core.table_view.tables().values() if row["entries"]]
    assert rows
    for row in rows:
        assert sum(each["entries"] for each in row["tenants"]) == row["entries"]
        assert {each["tenant"] for each in row["tenants"]} <= {"video", "backup"}
        assert sum(each["entitled"] for each in row["tenants"]) <= row["capacity"] - row["pinned"] + 0.2
    assert {each["tenant"] for row in rows for each in row["tenants"]} == {"video", "backup"}


def test_other_shares_count_from_then_on(make_world):
    world = shared(make_world, video=TableShare(1), backup=TableShare(1))
    send(world, "video")
    send(world, "backup")
    overcommit = replace(world.core.policy.overcommit, tenants=(TenantShare("video", TableShare(limit=2)),))
    world.feed(PolicyLoaded(replace(world.core.policy, overcommit=overcommit)))
    world.settle()
    before = held(world)["video"]
    assert before > 2
    for _ in range(2):
        send(world, "backup")
        send(world, "video")
    assert held(world)["video"] < before
