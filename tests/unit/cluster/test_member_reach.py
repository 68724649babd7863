"""A leader that reaches fewer switches than another member hands over to it; of members that share none last."""

from __future__ import annotations

from cluster_histories import World

from controller.cluster.events import HandOverWanted
from controller.cluster.reach import APART_S, BEHIND_S, YIELD_S
from simulated_world import cut_off_from_switches, leader, until


def test_a_leader_that_is_cut_off_from_switches_hands_over_to_who_has_most(world: World):
    first = leader(world)
    one, other = (node for node in world.nodes.values() if node is not first)
    cut_off_from_switches(world, one, {1})
    world.run(world.now + 4.0)
    assert world.leaders() == [first]
    cut_off_from_switches(world, first, {1, 2})
    assert BEHIND_S < until(world, lambda: world.leaders() == [other]) < BEHIND_S + 1.5
    until(world, world.is_settled)
    assert (world.told["switches-unreached"], world.told["stepped-down"]) == (1, 1)
    world.run(world.now + 30.0)
    assert world.leaders() == [other]


def test_one_that_shares_no_switch_with_the_leader_leads_when_it_has_had_more_for_long(world: World):
    """It may be of another fabric, and is no member any more then."""
    first = leader(world)
    one, other = (node for node in world.nodes.values() if node is not first)
    cut_off_from_switches(world, one, {2, 3})
    cut_off_from_switches(world, other, {1})
    cut_off_from_switches(world, first, {2, 3})
    assert APART_S < until(world, lambda: world.leaders() == [other], 2 * APART_S) < APART_S + 1.5


def test_one_that_shares_a_switch_with_the_leader_comes_before_one_that_has_more(world: World):
    first = leader(world)
    one, other = (node for node in world.nodes.values() if node is not first)
    cut_off_from_switches(world, one, {3})
    cut_off_from_switches(world, other, {1})
    cut_off_from_switches(world, first, {2, 3})
    first.give(HandOverWanted(""))
    until(world, lambda: world.leaders() == [one])


def test_the_lead_is_left_to_one_that_is_connected_to_more_switches(world: World):
    """Such as by one that has just begun, and has none yet."""
    for _ in range(6):
        first = leader(world)
        one, other = (node for node in world.nodes.values() if node is not first)
        cut_off_from_switches(world, one, {1, 2, 3})
        world.run(world.now + 1.0)
        first.kill()
        assert until(world, world.leaders) < YIELD_S
        assert world.leaders() == [other]
        one.without.clear()
        first.start()
        until(world, world.is_settled)
        world.run(world.now + 60.0)


def test_the_lead_is_not_left_for_long_to_one_that_does_not_take_it(world: World):
    first = leader(world)
    one, other = (node for node in world.nodes.values() if node is not first)
    cut_off_from_switches(world, one, {1, 2, 3})
    world.run(world.now + 1.0)
    other.is_stopped = True
    first.kill()
    assert YIELD_S < until(world, lambda: world.leaders() == [one]) < YIELD_S + 0.3


def test_switches_that_nobody_reaches_cost_no_leader_the_lead(world: World):
    first = leader(world)
    for node in world.nodes.values():
        cut_off_from_switches(world, node, {1, 2})
    world.run(world.now + 10.0)
    assert world.leaders() == [first] and not world.told["switches-unreached"]


def test_a_connection_that_comes_back_in_time_costs_nobody_the_lead(world: World):
    first = leader(world)
    for _ in range(5):
        first.disconnect(world.switches[1])
        world.run(world.now + 1.5)
    assert world.leaders() == [first]
