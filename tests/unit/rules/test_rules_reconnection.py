"""A switch that connects again: nothing waits for what was under way before."""

from __future__ import annotations

from controller.effects import Put
from controller.rules.cookies import cookie_of
from controller.rules.model import Match, Output, Rule, RuleKey

TAG = 0x5602


def rule(number):
    return Rule(RuleKey(0, 1, Match(in_port=number)), (Output(1),), cookie_of(TAG, number))


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
