"""A switch that connects again: nothing waits for what was under way before."""

from __future__ import annotations

from controller.effects import Put
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.refusals import RETRY_FIRST_S

TAG = 0x5602


def rule(number):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(1),), cookie_of(TAG, number))


def test_a_switch_that_connects_again_before_its_old_connection_was_seen_to_end_is_served_at_once(make_world):
    """What was under way went with the old connection: nobody waits for its barrier."""
    world = make_world()
    world.change([(2, Put(rule(1)))])
    world.to_switch[2].clear()
    world.connect(2)
    world.deliver()
    world.assert_in_sync()
    assert world.switches[2].rules.keys() == {rule(1).key}
    world.settle()
    assert world.installer.counters["barrier-timeout"] == 0


def test_what_was_refused_and_is_found_to_be_there_is_refused_no_more(make_world):
    """The edit was tried again, and the barrier's answer lost: the reading that follows shows the entry."""
    world = make_world()
    wanted = rule(1)
    world.refuse[2] = (5, 0)
    world.change([(2, Put(wanted))])
    world.deliver()
    world.refuse.clear()
    world.pass_time(RETRY_FIRST_S)
    world.step_switch(2)
    world.to_controller[2].clear()
    world.settle()
    world.assert_in_sync()
