"""The end of the time of grace: what nobody desires goes, at once and from then on, behind what hosts wait for."""

from __future__ import annotations

import pytest

from controller.effects import ApplyEdits, Put, Remove
from controller.events import DeadlineReached
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.release import LOOKED_AT_ONCE

TAG = 0x5602
INTERVAL_S = 60.0


def rule(number, port=1):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(port),), cookie_of(TAG, number))


@pytest.fixture
def world(make_world):
    """Three switches that hold entries 1 to 4 of before the start, of which 1 and 2 are desired by now."""
    world = make_world(hold_unknown=True, connect=False)
    for dpid in world.switches:
        for number in range(1, 5):
            world.switches[dpid].tables.put(rule(number))
        world.connect(dpid)
    world.deliver()
    world.change([(dpid, Put(rule(number))) for dpid in world.switches for number in (1, 2)])
    world.deliver()
    world.sent.clear()
    return world


def held(world, dpid):
    return {rule.key.match.in_port for rule in world.switches[dpid].rules.values()}


def release(world):
    world.perform(world.installer.release_unknown(world.now))


def test_what_nobody_desires_goes_at_the_end_and_not_before(world):
    assert held(world, 2) == {1, 2, 3, 4}
    release(world)
    world.deliver()
    assert all(held(world, dpid) == {1, 2} for dpid in world.switches)
    world.assert_in_sync()


def test_what_is_not_to_stay_goes_at_once(make_world):
    world = make_world(hold_unknown=lambda key: key.match.in_port == 3, connect=False)
    for number in range(1, 5):
        world.switches[1].tables.put(rule(number))
    world.change([(1, Put(rule(1)))])
    world.connect(1)
    world.deliver()
    assert held(world, 1) == {1, 3}
    release(world)
    world.deliver()
    assert held(world, 1) == {1}


def test_a_switch_that_connects_later_keeps_nothing_that_nobody_desires(world):
    world.disconnect(2)
    release(world)
    world.deliver()
    assert held(world, 2) == {1, 2, 3, 4}
    world.connect(2)
    world.deliver()
    assert held(world, 2) == {1, 2}


def test_a_switch_that_is_being_read_at_the_end_loses_what_nobody_desires_after_it(world):
    world.disconnect(2)
    world.connect(2)
    release(world)
    assert not any(isinstance(effect, ApplyEdits) and effect.dpid == 2 for effect in world.sent)
    world.deliver()
    world.assert_in_sync()


def test_the_check_takes_away_what_nobody_desires_from_then_on(world):
    world.installer.check_every(INTERVAL_S)
    for late in (False, True):
        if late:
            release(world)
            world.deliver()
        world.switches[2].tables.put(rule(9))
        for _ in range(8):
            world.pass_time(INTERVAL_S / 4)
            world.deliver()
        assert (9 in held(world, 2)) is not late


def test_what_a_host_waits_for_goes_out_before_what_goes(world):
    world.change([(2, Put(rule(5)))])
    release(world)
    world.change([(2, Put(rule(6)))])
    world.deliver()
    batches = [effect.edits for effect in world.sent if isinstance(effect, ApplyEdits) and effect.dpid == 2]
    assert batches == [(Put(rule(5)),), (Put(rule(6)), Remove(rule(3).key), Remove(rule(4).key))]


def test_a_turn_looks_through_the_entries_of_few_switches(make_world):
    world = make_world(hold_unknown=True, connect=False, capacity=10_000)
    for dpid in world.switches:
        for number in range(1, LOOKED_AT_ONCE + 1):
            world.switches[dpid].tables.put(rule(number))
        world.connect(dpid)
    world.deliver()
    world.sent.clear()
    release(world)
    turns = [{edits.dpid for edits in world.sent if isinstance(edits, ApplyEdits)}]
    while (due_s := world.installer.next_deadline()) is not None and due_s <= world.now:
        world.sent.clear()
        world.perform(world.installer.handle(DeadlineReached(), world.now))
        turns.append({edits.dpid for edits in world.sent})
    assert turns == [{1}, {2}, {3}]
    world.deliver()
    assert not any(held(world, dpid) for dpid in world.switches)
