"""What hosts wait for goes before bulk, in batches that the switch can carry out soon."""

from __future__ import annotations

import pytest
from slow_switch import Kind, Programmed

from controller.config.edit_settings import Edits
from controller.datapath.batches import BARRIER_TIMEOUT_S
from controller.datapath.lanes import Urgency
from controller.datapath.window import GROWTH, START_EDITS
from controller.effects import ApplyEdits, Put, Remove, RequestFlows
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.refusals import RETRY_FIRST_S

TAG = 0x5602
BULK = Urgency.BULK


def rule(number, port=5):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(port),), TAG << 48)


def bulk(world, numbers, dpid=2):
    world.perform(world.installer.change([[(dpid, Put(rule(n))) for n in numbers]], world.now, urgency=BULK))


def batches(world, dpid=2):
    return [sent.edits for sent in world.sent if isinstance(sent, ApplyEdits) and sent.dpid == dpid]


def next_batch(world, dpid=2):
    """Let a switch finish the batch that is under way, and return the one that follows."""
    world.step_switch(dpid)
    while world.to_controller[dpid]:
        world.step_controller(dpid)
    return batches(world, dpid)[-1]


def test_a_join_goes_out_first_in_the_next_batch_while_its_switch_is_programmed(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 2001))
    assert len(batches(world)[0]) == START_EDITS
    world.perform(world.installer.put(((2, rule(5001)),), world.now))
    world.change([(2, Put(rule(5002)))])
    assert len(batches(world)) == 1
    assert next_batch(world)[:2] == (Put(rule(5001)), Put(rule(5002)))
    world.settle()
    world.assert_in_sync()


def test_batches_grow_from_a_small_one(make_world):
    world = make_world(capacity=5000)
    world.change([(2, Put(rule(n))) for n in range(1, 1201)])
    world.deliver()
    sizes = [len(batch) for batch in batches(world)]
    assert sizes[0] == START_EDITS
    assert all(after <= GROWTH * (max(sizes[:n]) + 1) for n, after in enumerate(sizes[1:], 1))
    assert sum(sizes) == 1200
    world.assert_in_sync()


def test_the_operator_says_how_many_edits_go_out_at_once(make_world):
    world = make_world(capacity=5000)
    world.installer.use_edits(Edits(window="fixed", at_once=512))
    world.change([(2, Put(rule(n))) for n in range(1, 1201)])
    world.deliver()
    assert [len(batch) for batch in batches(world)] == [512, 512, 1200 - 2 * 512]
    world.assert_in_sync()


def test_bulk_has_its_share_of_each_batch_while_hosts_join_without_end(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 301))
    world.change([(2, Put(rule(n))) for n in range(1001, 2001)])
    batch = next_batch(world)
    assert [edit.rule.key.match.in_port > 1000 for edit in batch].count(False) == len(batch) // 4
    world.settle()
    world.assert_in_sync()


def test_a_join_at_a_switch_that_is_being_read_is_in_the_first_batch(make_world):
    world = make_world(connect=False, capacity=5000)
    bulk(world, range(1, 2001))
    world.connect(2)
    world.perform(world.installer.put(((2, rule(5001)),), world.now))
    bulk(world, [5002])
    world.step_switch(2)
    world.step_controller(2)
    assert batches(world)[0][0] == Put(rule(5001))
    assert Put(rule(5002)) not in batches(world)[0]
    world.settle()
    assert world.switches[2].rules.keys() == {rule(n).key for n in (*range(1, 2001), 5001, 5002)}


def test_a_timed_join_whose_barrier_stays_away_is_in_the_first_batch_after_the_reading(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 2001))
    clock = world.installer.clock
    clock.begin(world.now)
    world.perform(world.installer.put(((2, rule(5001)),), world.now))
    clock.end()
    next_batch(world)
    world.to_switch[2].clear()
    world.pass_time(BARRIER_TIMEOUT_S)
    assert isinstance(world.sent[-1], RequestFlows)
    assert next_batch(world)[0] == Put(rule(5001))


def test_a_key_that_waits_as_bulk_goes_out_with_what_hosts_wait_for_once_they_do(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 2001))
    world.change([(2, Put(rule(1500, 7)))])
    world.installer.hurry(2, rule(1700).key)
    world.installer.hurry(2, rule(7777).key)
    world.installer.hurry(77, rule(1).key)
    assert next_batch(world)[:2] == (Put(rule(1500, 7)), Put(rule(1700)))
    world.settle()
    world.assert_in_sync()


def test_stages_keep_their_order_whatever_lane_they_are_in(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 101))
    stages = ([(2, Put(rule(501)))], [(3, Put(rule(502)))], [(2, Remove(rule(1).key))])
    world.perform(world.installer.change(stages, world.now, urgency=BULK))
    world.change([(3, Put(rule(601)))], [(2, Put(rule(602)))])
    world.deliver(2)
    assert batches(world, 3) == [(Put(rule(601)),)]
    assert Put(rule(602)) not in [edit for batch in batches(world) for edit in batch]
    world.deliver(3)
    assert batches(world, 3)[-1] == (Put(rule(502)),)
    world.settle()
    world.assert_in_sync()
    order = [edit for batch in batches(world) for edit in batch]
    assert order.index(Put(rule(501))) < order.index(Remove(rule(1).key))


@pytest.mark.parametrize("staged", [False, True])
def test_bulk_that_a_join_has_to_wait_for_waits_for_other_bulk_no_more(make_world, staged):
    """A plan that waits for a plan that waits for bulk: all of it becomes prompt."""
    world = make_world(capacity=5000)
    bulk(world, range(1, 2001))

    def plan(*stages):
        world.perform(world.installer.change(stages, world.now, urgency=BULK))

    plan([(2, Put(rule(3001)))], [(3, Put(rule(3002)))])
    plan([(3, Put(rule(3002, 6)))], [(1, Put(rule(3003)))])
    if staged:
        world.change([(1, Put(rule(3003, 7)))], [(1, Put(rule(3004)))])
    else:
        world.change([(1, Put(rule(3003, 7)))])
    assert batches(world, 1) == []
    assert next_batch(world)[0] == Put(rule(3001))
    next_batch(world)
    world.deliver(3, 1)
    assert batches(world, 1)[0] == (Put(rule(3003, 7)),)
    assert len(world.installer.installed(2)) < 100
    world.settle()
    world.assert_in_sync()


def test_a_long_row_of_plans_that_wait_for_each_other_is_made_prompt_at_once(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 201))
    for number in range(2000):
        stages = ([(2, Put(rule(1000, number % 7 + 1)))], [(2, Put(rule(1001, number % 7 + 1)))])
        world.perform(world.installer.change(stages, world.now, urgency=BULK))
    world.change([(2, Put(rule(1001, 9)))])
    assert next_batch(world)[0].rule.key == rule(1000).key
    world.settle(limit=9000)
    assert world.switches[2].rules[rule(1001).key] == rule(1001, 9)


def test_edits_that_are_refused_in_a_batch_and_taken_later_make_batches_smaller(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 3001))
    world.deliver()
    world.sent.clear()
    bulk(world, range(3001, 3401))
    world.refuse[2] = (5, 0)
    next_batch(world)
    del world.refuse[2]
    world.pass_time(RETRY_FIRST_S)
    world.deliver()
    bulk(world, range(4001, 4401))
    assert [len(batch) for batch in batches(world)] == [400, 400, 200]
    world.settle()
    world.assert_in_sync()


def test_an_edit_that_is_refused_for_good_costs_no_throughput(make_world):
    world = make_world(capacity=5000)
    world.switches[2].ports = set(range(1, 10))
    wrong = [(2, Put(rule(n, 77))) for n in range(9000, 9010)]
    world.perform(world.installer.change([wrong], world.now, urgency=BULK))
    bulk(world, range(1, 3001))
    for _ in range(20):
        world.deliver()
        world.pass_time(1.0)
    assert max(map(len, batches(world))) == 512
    assert world.installer.counters["edit-failed"] > 30


def test_a_connection_that_a_batch_ended_is_not_ended_by_as_large_a_one_again(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 4001))
    while len(batches(world)[-1]) <= 256:
        next_batch(world)
    world.disconnect(2)
    world.sent.clear()
    world.connect(2)
    world.settle()
    world.assert_in_sync()
    assert max(map(len, batches(world))) <= 256


def test_a_barrier_that_stays_away_makes_batches_smaller(make_world):
    world = make_world(capacity=5000)
    bulk(world, range(1, 3001))
    while len(batches(world)[-1]) < 100:
        next_batch(world)
    size = len(batches(world)[-1])
    world.to_switch[2].clear()
    world.pass_time(BARRIER_TIMEOUT_S)
    assert len(next_batch(world)) == size // 2


@pytest.mark.parametrize(
    ("kind", "entries", "longest_s"),
    [
        (Kind("1,000 edits/s", 0.005, 1000), 3000, 0.5),
        (Kind("200 edits/s", 0.005, 200), 2000, 0.5),
        (Kind("60 edits/s", 0.005, 60), 600, 1.0),
        (Kind("1,000 edits/s, holds 256", 0.005, 1000, holds=256), 3000, 0.5),
    ],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("seed", [1, 2])
def test_hosts_wait_little_while_their_switch_is_programmed_anew(kind, entries, longest_s, seed):
    now = Programmed(kind, entries, Edits(), seed=seed).run()
    assert max(now.join_waits_s) <= longest_s
    assert now.whole <= 1.25
    assert (now.connections_lost, now.readings) == (0, 1)


def test_first_come_first_served_in_batches_of_512_had_them_wait_for_all_of_it():
    kind = Kind("1,000 edits/s", 0.005, 1000)
    before = Programmed(kind, 3000, Edits(window="fixed"), lanes=False).run()
    assert max(before.join_waits_s) > 2.5
    with pytest.raises(RuntimeError, match="missing"):
        Programmed(kind._replace(holds=256), 3000, Edits(window="fixed"), lanes=False, limit_s=30.0).run()


def test_lanes_alone_and_windows_alone_are_not_enough():
    kind = Kind("200 edits/s", 0.005, 200)
    assert max(Programmed(kind, 2000, Edits(window="fixed")).run().join_waits_s) > 2.0
    assert max(Programmed(kind, 2000, Edits(), lanes=False).run().join_waits_s) > 2.0
