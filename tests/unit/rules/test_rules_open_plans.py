"""Plans that are told in parts: what waits for a stage waits for all of its parts."""

from __future__ import annotations

from controller.effects import Put
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.plans import PLAN_PATIENCE_S

TAG = 0x5602


def rule(number, *ports):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(map(Output, ports)), cookie_of(TAG, 0))


def test_a_plan_that_is_told_in_parts_goes_on_when_all_of_its_first_stage_is_confirmed(make_world):
    world = make_world()
    plan = world.installer.open_plan(2, world.now)
    for dpid in (1, 2, 3):
        stages = [[(dpid, Put(rule(1, 7)))], [(dpid, Put(rule(1, 8))), (dpid, Put(rule(2, 8)))]]
        world.perform(world.installer.extend_plan(plan, stages, world.now))
        world.deliver()
        assert [switch.rules.get(rule(1).key) for switch in world.switches.values()][:dpid] == [rule(1, 7)] * dpid
    world.pass_time(1.0)
    assert all(len(switch.rules) == 1 for switch in world.switches.values())
    world.perform(world.installer.close_plan(plan, world.now))
    world.deliver()
    assert all(set(switch.rules.values()) == {rule(1, 8), rule(2, 8)} for switch in world.switches.values())
    world.assert_in_sync()


def test_a_plan_that_is_never_closed_goes_on_after_a_while(make_world):
    world = make_world()
    plan = world.installer.open_plan(2, world.now)
    world.perform(world.installer.extend_plan(plan, [[(1, Put(rule(1, 7)))], [(1, Put(rule(2, 8)))]], world.now))
    world.deliver()
    world.pass_time(PLAN_PATIENCE_S + 1.0)
    world.deliver()
    world.perform(world.installer.extend_plan(plan, [[(2, Put(rule(1, 7)))], [(2, Put(rule(2, 8)))]], world.now))
    world.deliver()
    assert all(len(world.switches[dpid].rules) == 2 for dpid in (1, 2))
    world.perform(world.installer.close_plan(plan, world.now))
    world.deliver()
    world.assert_in_sync()
