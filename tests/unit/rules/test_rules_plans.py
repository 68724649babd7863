"""Plans whose stages wait: for all parts of the one before, or until packets have passed."""

from __future__ import annotations

from controller.effects import Put, Remove
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


def test_stages_that_are_named_wait_until_packets_have_passed_and_no_others(make_world):
    world = make_world()
    stages = [[(dpid, Put(rule(1, 5)))] for dpid in (1, 2, 3)] + [[(1, Put(rule(2, 5)))]]
    world.change(*stages, drain_s=0.05, drains=(1, 2))
    for stage in (1, 2):
        world.deliver()
        world.pass_time(0.049)
        world.deliver()
        assert [dpid for dpid, switch in world.switches.items() if switch.rules] == [1, 2, 3][:stage]
        world.pass_time(0.002)
    world.deliver()
    assert set(world.switches[1].rules.values()) == {rule(1, 5), rule(2, 5)}
    assert set(world.switches[3].rules.values()) == {rule(1, 5)}
    world.assert_in_sync()


def test_a_patient_plan_never_goes_on_without_a_switch_that_is_connected(make_world):
    world = make_world()
    world.change([(1, Put(rule(1, 5)))])
    world.deliver()
    world.refuse[2] = (4, 9)
    world.change([(2, Put(rule(1, 5)))], [(1, Remove(rule(1).key))], is_patient=True)
    for _ in range(100):
        world.deliver()
        world.pass_time(1.0)
    assert world.switches[1].rules
    assert not [notice for notice in world.notices if notice.kind == "plan-overdue"]
    world.disconnect(2)
    world.deliver()
    assert not world.switches[1].rules
