"""Over which ports a switch may still send by entries that it is to give up."""

from __future__ import annotations

import random

from controller.effects import Put, Remove
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAG = 0x5602
PORTS = (1, 2, 3)


def rule(number, *ports):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(map(Output, ports)), TAG << 48)


def may_send(world, dpid):
    return {port for port in PORTS if world.installer.may_send(dpid, port)}


def settled(world, *rules):
    world.change([(2, Put(rule)) for rule in rules])
    world.deliver()
    assert may_send(world, 2) == set()


def test_a_port_counts_until_the_switch_has_confirmed_that_it_sends_nothing_there(make_world):
    world = make_world()
    settled(world, rule(1, 1, 2), rule(9, 1))
    world.change([(2, Put(rule(1, 2)))])
    assert may_send(world, 2) == {1}
    world.change([(2, Remove(rule(1).key))])
    assert may_send(world, 2) == {1, 2}
    world.step_switch(2)
    world.step_controller(2)
    assert may_send(world, 2) == {2}
    world.deliver()
    assert may_send(world, 2) == set()


def test_a_put_counts_that_was_under_way_when_it_was_taken_back(make_world):
    world = make_world()
    settled(world)
    world.change([(2, Put(rule(1, 3)))])
    assert may_send(world, 2) == set(), "it is to send there"
    world.change([(2, Remove(rule(1).key))])
    assert may_send(world, 2) == {3}
    world.deliver()
    assert may_send(world, 2) == set()


def test_an_entry_that_waits_for_its_stage_is_to_send_meanwhile(make_world):
    world = make_world()
    settled(world, rule(1, 1))
    world.change([(3, Put(rule(2, 2)))], [(2, Remove(rule(1).key))])
    assert may_send(world, 2) == set()
    world.step_switch(3)
    world.step_controller(3)
    assert may_send(world, 2) == {1}


def test_an_entry_that_the_switch_refuses_to_give_up_counts(make_world):
    world = make_world()
    settled(world, rule(1, 1))
    world.refuse[2] = (5, 0)
    world.change([(2, Remove(rule(1).key))])
    world.deliver()
    assert may_send(world, 2) == {1}
    world.refuse.clear()
    world.settle()
    assert may_send(world, 2) == set()


def test_a_switch_without_a_connection_sends_by_what_it_had_confirmed(make_world):
    world = make_world()
    settled(world, rule(1, 1), rule(2, 2))
    world.disconnect(2)
    assert may_send(world, 2) == set()
    world.change([(2, Remove(rule(1).key))])
    assert may_send(world, 2) == {1}
    world.connect(2)
    assert may_send(world, 2) == set(PORTS), "what it holds is not known"
    world.deliver()
    assert may_send(world, 2) == set()


def test_a_switch_never_heard_of_sends_nothing(make_world):
    assert not make_world().installer.may_send(77, 1)


def test_whatever_a_connected_switch_holds_and_shall_not_counts(make_world):
    for seed in range(200):
        dice = random.Random(seed)
        world = make_world()

        def compare(world=world, seed=seed):
            for dpid in world.connected:
                state = world.installer._switches.get(dpid)
                held = world.switches[dpid].rules
                sends = {
                    out.port_no
                    for key, entry in held.items()
                    for out in entry.actions
                    if out not in getattr(state.target(key), "actions", ())
                }
                assert sends <= may_send(world, dpid), (seed, dpid)

        world.check = compare
        for _ in range(60):
            dpid = dice.choice([*world.switches])
            what = dice.randrange(6)
            if what < 3:
                stages = [
                    [
                        (to, Put(rule(number, *dice.sample(PORTS, dice.randrange(3)))))
                        if dice.random() < 0.6
                        else (to, Remove(rule(number).key))
                        for to in dice.sample([*world.switches], 2)
                        for number in dice.sample(range(4), 2)
                    ]
                    for _ in range(dice.randint(1, 3))
                ]
                world.change(*stages)
            elif what == 3 and world.to_switch[dpid]:
                world.step_switch(dpid)
            elif what == 4 and world.to_controller[dpid]:
                world.step_controller(dpid)
            elif what == 5 and dice.random() < 0.3:
                world.disconnect(dpid) if dpid in world.connected else world.connect(dpid)
            compare()
        for dpid in set(world.switches) - world.connected:
            world.connect(dpid)
        world.settle()
        assert all(may_send(world, dpid) == set() for dpid in world.switches)
