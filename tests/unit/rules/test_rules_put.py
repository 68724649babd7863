"""`Installer.put` does what `change` does with one stage of puts, whatever state the switches are in."""

from __future__ import annotations

import random

import pytest

from controller.effects import ApplyEdits, Put
from controller.rules.model import FlowEntry, FlowKey, Goto, Match, Output

TAG = 0x5602


def rule(number, *ports, tag=TAG):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(map(Output, ports)), tag << 48)


def sent_to(world):
    return [(effect.dpid, effect.edits) for effect in world.sent if isinstance(effect, ApplyEdits)]


def put(world, *entries):
    world.perform(world.installer.put(entries, world.now))


def test_entries_at_several_switches_go_out_at_once_one_batch_each(make_world):
    world = make_world()
    put(world, (2, rule(1, 5)), (3, rule(1, 6)))
    assert sent_to(world) == [(2, (Put(rule(1, 5)),)), (3, (Put(rule(1, 6)),))]
    world.deliver()
    world.assert_in_sync()
    world.sent.clear()
    put(world, (2, rule(1, 5)), (3, rule(1, 7)))
    assert sent_to(world) == [(3, (Put(rule(1, 7)),))]


def test_nothing_is_put_anywhere_where_one_switch_cannot_hold_its_entry(make_world):
    world = make_world()
    entries = ((3, rule(1, 5)), (1, rule(1, 5)._replace(actions=(Goto(1),))), (2, rule(1, 5)))
    put(world, *entries)
    assert sent_to(world) == []
    assert not any(world.installer.desired(dpid) for dpid in (1, 2, 3))
    assert [notice.kind for notice in world.notices] == ["rule-refused"]


@pytest.mark.parametrize("wrong", [rule(1, 5, tag=0x5603), rule(1, 5)._replace(idle_timeout_s=3)])
def test_an_entry_that_is_not_the_apps_own_is_an_error_before_anything_is_sent(make_world, wrong):
    world = make_world()
    with pytest.raises(ValueError, match="another app's tag"):
        world.installer.put(((2, rule(1, 5)), (3, wrong)), world.now)
    assert not world.installer.desired(2)


@pytest.mark.parametrize("seed", range(40))
def test_a_put_and_a_change_come_to_the_same(make_world, seed):
    dice = random.Random(seed)
    worlds = [make_world(), make_world()]
    for world in worlds:
        world.deliver()
    for _ in range(30):
        step, dpid = dice.random(), dice.choice((1, 2, 3))
        entries = [(at, rule(dice.randrange(3), dice.randrange(1, 4))) for at in dice.sample((1, 2, 3), 2)]
        for world, by_put in zip(worlds, (True, False), strict=True):
            if step < 0.6:
                if by_put:
                    put(world, *entries)
                else:
                    world.change([(at, Put(entry)) for at, entry in entries])
            elif step < 0.8:
                world.deliver(dpid)
            elif dpid in world.connected:
                world.disconnect(dpid)
            else:
                world.connect(dpid)
        one, other = worlds
        assert [dict(one.installer.desired(at)) for at in (1, 2, 3)] == [
            dict(other.installer.desired(at)) for at in (1, 2, 3)
        ]
    for world in worlds:
        for dpid in {1, 2, 3} - world.connected:
            world.connect(dpid)
        world.deliver()
        world.assert_in_sync()
