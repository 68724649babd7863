"""How long changes take: from their beginning to the barrier that confirms their last entry."""

from __future__ import annotations

import pytest

from controller.effects import Put, Remove
from controller.rules import confirmation
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAG = 0x5602
FULL = (3, 1)


def rule(number, *ports):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(map(Output, ports)), TAG << 48)


def timed(world, act):
    """Do something whose confirmation is timed."""
    clock = world.installer.clock
    clock.begin(world.now)
    act()
    clock.end()


def latency(world):
    found = world.installer.clock.latency.reading()
    return sum(found.counts), pytest.approx(found.sum)


@pytest.mark.parametrize("one_by_one", [True, False], ids=["put", "change"])
def test_a_change_lasts_until_the_last_switch_has_confirmed(make_world, one_by_one):
    world = make_world()

    def act():
        if one_by_one:
            for dpid in (2, 3):
                world.perform(world.installer.put(((dpid, rule(1, 5)),), world.now))
        else:
            world.change([(2, Put(rule(1, 5))), (3, Put(rule(1, 5)))])

    timed(world, act)
    world.now += 0.02
    world.deliver(2)
    assert latency(world) == (0, 0)
    world.now += 0.03
    world.deliver(3)
    assert latency(world) == (1, 0.05)


def test_a_change_of_what_is_under_way_waits_for_its_own_barrier(make_world):
    world = make_world()
    timed(world, lambda: world.change([(2, Put(rule(1, 5)))]))
    world.now += 0.01
    timed(world, lambda: world.perform(world.installer.put(((2, rule(1, 5, 6)),), world.now)))
    world.now += 0.01
    world.step_switch(2)
    world.step_controller(2)
    assert latency(world) == (1, 0.02)
    world.now += 0.01
    world.deliver()
    assert latency(world) == (2, 0.04)


def test_removals_and_what_is_there_already_are_not_timed(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))])
    world.deliver()
    timed(world, lambda: world.change([(2, Put(rule(1, 5)))]))
    timed(world, lambda: world.change([(2, Remove(rule(1).key))]))
    world.deliver()
    assert latency(world) == (0, 0)


def test_entries_that_follow_others_count_too(make_world):
    world = make_world()
    timed(world, lambda: world.change([(2, Put(rule(1, 5)))], [(3, Put(rule(1, 5)))]))
    world.now += 0.01
    world.deliver(2)
    assert latency(world) == (0, 0)
    world.now += 0.01
    world.deliver()
    assert latency(world) == (1, 0.02)


def test_an_entry_that_is_refused_is_waited_for_until_it_is_there(make_world):
    world = make_world()
    world.refuse[2] = FULL
    timed(world, lambda: world.change([(2, Put(rule(1, 5)))]))
    world.deliver()
    assert latency(world) == (0, 0)
    del world.refuse[2]
    world.settle()
    assert latency(world)[0] == 1
    assert world.installer.clock.latency.reading().sum > 0.4, "the time to the next try is in it"


def test_a_barrier_that_is_not_answered_is_waited_for_by_reading_back(make_world):
    world = make_world()
    timed(world, lambda: world.change([(2, Put(rule(1, 5)))]))
    world.step_switch(2)
    world.to_controller[2].clear()
    world.pass_time(6.0)
    world.deliver()
    assert latency(world)[0] == 1


def test_a_switch_that_is_lost_leaves_a_change_untimed(make_world):
    world = make_world()
    timed(world, lambda: world.change([(2, Put(rule(1, 5))), (3, Put(rule(1, 5)))]))
    world.disconnect(2)
    world.deliver()
    world.connect(2)
    world.deliver()
    assert latency(world) == (0, 0)
    assert world.installer.clock.untimed_count == 1
    timed(world, lambda: world.change([(2, Put(rule(2, 5)))]))
    world.deliver()
    assert latency(world)[0] == 1


def test_more_than_can_be_timed_are_counted(make_world, monkeypatch):
    monkeypatch.setattr(confirmation, "OPEN_BOUND", 2)
    world = make_world()
    for number in (1, 2, 3):
        timed(world, lambda number=number: world.change([(2, Put(rule(number, 5)))]))
    world.deliver()
    assert latency(world)[0] == 2
    assert world.installer.clock.untimed_count == 1


class CountedPort(int):
    """A port number that counts how often its hash is asked for."""

    hashed_count = 0

    def __hash__(self):
        CountedPort.hashed_count += 1
        return int(self)


def test_a_batch_costs_what_is_in_it_however_many_changes_wait(make_world):
    world = make_world()
    spent = []
    for waiting_count in (100, 1000):
        world.disconnect(2)
        world.connect(2)
        world.deliver(2)
        for number in range(waiting_count):
            edit = (2, Put(rule(CountedPort(number), waiting_count)))
            timed(world, lambda edit=edit: world.change([edit]))
        world.step_switch(2)
        before = CountedPort.hashed_count
        world.step_controller(2)
        edit_count = len(world.to_switch[2][0].edits)
        assert edit_count < waiting_count / 2
        spent.append((CountedPort.hashed_count - before) / edit_count)
        world.deliver(2)
    assert spent[1] == pytest.approx(spent[0], rel=0.5)


def test_entries_that_are_put_may_be_timed_by_themselves(make_world):
    world = make_world()
    world.perform(world.installer.put(((2, rule(1, 5)), (3, rule(1, 5))), world.now, is_timed=True))
    began_s = world.now
    world.settle()
    assert latency(world) == (1, world.now - began_s)
    world.disconnect(2)
    world.perform(world.installer.put(((2, rule(2, 5)),), world.now, is_timed=True))
    world.settle()
    assert latency(world)[0] == 1, "a switch that is not connected confirms nothing"
    assert world.installer.clock.current is None
