"""A link of many trees fails: they are built around it in several turns, and nothing is amiss in between."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.events import DeadlineReached
from controller.multicast.fabric import TERMINALS_AT_ONCE
from controller.wire.addresses import parse_ip
from topology.events import LinkDown, PortRole, PortRoleChanged, SwitchDown
from turns import calls_of

POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
)


def group(number):
    return parse_ip(f"239.7.{number >> 8}.{number & 255}")


@pytest.fixture
def busy(make_world):
    """Makes a leaf-spine fabric in which so many groups have a sender and a member at different leaves."""

    def make(count):
        world = make_world("leaf-spine", POLICY)
        names = sorted(world.hosts, key=lambda name: world.hosts[name].place)
        for number in range(count):
            world.join(names[-1], group(number))
            world.send(names[0], group(number))
        world.settle()
        return world, names

    return make


def busiest_link(world):
    forest = world.core.forest
    pairs = [tuple(sorted(pair)) for pair in world.links]
    return max(pairs, key=lambda pair: len(forest.groups_on(*pair)))


def lose(world, pair):
    """Have a link fail, and discovery say so."""
    ends = world.links[frozenset(pair)]
    world.fabric.cut(ends[0])
    for end in ends:
        world.feed(PortRoleChanged(*end, PortRole.DOWN))
    world.feed(LinkDown(*ends[0], *ends[1]))


def turns_of(world):
    """Do what is due at once, and return how many turns that took."""
    count = 0
    while world.core.forest.is_broken:
        assert world.core.next_deadline() == world.now
        world.feed(DeadlineReached())
        count += 1
    return count


def served(world, names, count):
    return [world.send(names[0], group(number)) == {names[-1]: 1} for number in range(count)]


def test_trees_follow_a_few_at_a_time_and_all_serve_in_the_end(busy):
    world, names = busy(60)
    pair = busiest_link(world)
    users = len(world.core.forest.groups_on(*pair))
    assert users > 3 * TERMINALS_AT_ONCE // 2
    lose(world, pair)
    assert len(world.core.forest.groups_on(*pair)) == 0
    assert world.core.topology.repaired_count == users
    assert turns_of(world) == -(-users // (TERMINALS_AT_ONCE // 2)) - 1
    world.settle()
    assert all(served(world, names, 60))


def test_a_turn_is_as_long_with_many_groups_as_with_some(busy):
    def calls(count):
        world, _ = busy(count)
        pair = busiest_link(world)
        ends = world.links[frozenset(pair)]
        lose_it = LinkDown(*ends[0], *ends[1])
        for end in ends:
            world.feed(PortRoleChanged(*end, PortRole.DOWN))
        return calls_of(lambda: world.core.handle(lose_it, world.now))

    assert calls(160) <= 1.5 * calls(40)


def test_a_member_that_joins_meanwhile_is_served_and_so_are_the_others(busy):
    world, names = busy(60)
    pair = busiest_link(world)
    broken = sorted(world.core.forest.groups_on(*pair))
    lose(world, pair)
    late = names[len(names) // 2]
    world.join(late, broken[-1])
    assert all(world.core.forest.graph.has_link(*link) for link in world.core.forest.tree(broken[-1]).links())
    world.settle()
    assert world.send(names[0], broken[-1]) == {names[-1]: 1, late: 1}
    others = [number for number in range(60) if group(number) != broken[-1]]
    assert all(world.send(names[0], group(number)) == {names[-1]: 1} for number in others)


def test_a_link_that_is_back_before_all_trees_left_it_is_held(busy):
    world, names = busy(60)
    pair = busiest_link(world)
    lose(world, pair)
    assert world.core.forest.is_broken
    world.mend(*pair)
    assert not world.core.forest.is_broken
    assert world.core.counters["link-held"] == 1
    assert not world.core.forest.graph.has_link(*pair)
    world.settle()
    assert world.core.forest.graph.has_link(*pair)
    assert all(served(world, names, 60))


def test_trees_of_a_switch_that_dies_follow_so_too(busy):
    world, names = busy(60)
    spine = next(dpid for dpid in busiest_link(world) if dpid not in {host.dpid for host in world.hosts.values()})
    for a, b in [sorted(pair) for pair in world.links if spine in pair]:
        lose(world, (a, b))
    world.disconnect(spine)
    world.feed(SwitchDown(spine))
    turns_of(world)
    world.settle()
    assert all(served(world, names, 60))
