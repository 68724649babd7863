"""The background check: what somebody else did to our entries is found, told and repaired, and nothing else is."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from controller.effects import ApplyEdits, Put, Remove, RequestFlows
from controller.events import CheckRequested
from controller.rules.check import SUSPICION_PAUSE_S
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAG = 0x5602
INTERVAL_S = 60.0


def rule(number, port=1, *, tag=TAG, priority=1):
    return FlowEntry(FlowKey(0, priority, Match(in_port=number)), (Output(port),), cookie_of(tag, number))


def run(world, seconds):
    """Let time pass; what is on the way arrives at once."""
    end = world.now + seconds
    world.deliver()
    while (due := world.installer.next_deadline()) is not None and due <= end:
        world.pass_time(max(due - world.now, 0.0))
        world.deliver()
    world.now = end


@pytest.fixture
def world(make_world):
    """Three switches with 20 entries each, which are checked once a minute; switch 1 speaks OpenFlow 1.0."""
    world = make_world()
    world.change([(dpid, Put(rule(number))) for dpid in world.switches for number in range(1, 21)])
    world.deliver()
    world.installer.check_every(INTERVAL_S)
    world.sent.clear()
    return world


def told(world):
    return [notice.text for notice in world.notices if notice.kind == "entries-repaired"]


@pytest.mark.parametrize("dpid", [1, 2], ids=["OpenFlow 1.0", "OpenFlow 1.3"])
def test_a_deleted_an_altered_and_an_added_entry_are_put_right_within_the_interval(world, dpid):
    tables = world.switches[dpid].tables
    for number in (3, 4):
        tables.remove(rule(number).key)
    tables.put(rule(5, 9))
    for number in (31, 32, 33):
        tables.put(rule(number))
    run(world, INTERVAL_S)
    world.assert_in_sync()
    assert told(world) == [
        f"The flow entries of switch {dpid} differ from what it confirmed (2 missing, 1 altered, 3 unexpected): "
        "they are repaired."
    ]
    counters = world.installer.counters
    assert [counters[f"entries-{kind}"] for kind in ("missing", "altered", "extra")] == [2, 1, 3]


def test_an_entry_with_another_cookie_is_replaced(world):
    world.switches[2].tables.put(rule(7)._replace(cookie=1))
    run(world, INTERVAL_S)
    world.assert_in_sync()


def test_it_is_not_in_sync_from_discovery_to_repair(world):
    world.switches[2].tables.remove(rule(3).key)
    seen = []
    world.check = lambda: seen.append(world.installer.in_sync(2))
    run(world, INTERVAL_S)
    assert seen == [False]
    assert world.installer.in_sync(2)


def test_entries_of_others_and_those_that_end_by_themselves_are_left(world):
    others = [rule(40, tag=0x5603), rule(41)._replace(hard_timeout_s=30), rule(42)._replace(cookie=0)]
    for other in others:
        world.switches[3].tables.put(other)
    run(world, 2 * INTERVAL_S)
    assert [world.switches[3].rules[other.key] for other in others] == others
    assert told(world) == []


def test_every_switch_is_read_once_an_interval_one_at_a_time(world):
    start = world.now
    asked = []
    while world.now < start + 3 * INTERVAL_S:
        run(world, 1.0)
        asked += [(effect.dpid, world.now) for effect in world.sent if isinstance(effect, RequestFlows)]
        world.sent.clear()
    for dpid in world.switches:
        times = [at for switch, at in asked if switch == dpid]
        assert len(times) == 3
        assert all(later - sooner >= INTERVAL_S - 1 for sooner, later in pairwise(times))
    gaps = [later[1] - sooner[1] for sooner, later in pairwise(asked)]
    assert min(gaps) >= INTERVAL_S / 3 - 1


def test_without_an_interval_nothing_is_read(world):
    world.installer.check_every(0)
    run(world, 10 * INTERVAL_S)
    assert world.sent == [] and world.installer.next_deadline() is None


def test_while_unknown_entries_are_held_what_is_wanted_is_put_right_and_the_rest_stays(make_world):
    world = make_world(hold_unknown=True)
    tables = world.switches[2].tables
    world.change([(2, Put(rule(number))) for number in (1, 2)])
    world.deliver()
    world.installer.check_every(INTERVAL_S)
    tables.remove(rule(1).key)
    tables.put(rule(9))
    run(world, INTERVAL_S)
    assert world.switches[2].rules == {rule(number).key: rule(number) for number in (1, 2, 9)}
    assert told(world) == [
        "The flow entries of switch 2 differ from what it confirmed (1 missing): they are repaired."
    ]
    tables.remove(rule(9).key)
    run(world, INTERVAL_S)
    assert len(told(world)) == 1, "what nobody wants may go"
    tables.put(rule(9))
    run(world, INTERVAL_S)
    world.perform(world.installer.release_unknown(world.now))
    run(world, 0)
    world.assert_in_sync()


def asked(world):
    return [effect.dpid for effect in world.sent if isinstance(effect, RequestFlows)]


def test_who_finds_entries_missing_has_others_look_and_who_finds_others_does_not(world):
    world.switches[2].tables.remove(rule(3).key)
    world.switches[3].tables.put(rule(5, 9))
    world.switches[3].tables.put(rule(31))
    run(world, INTERVAL_S)
    assert len(told(world)) == 2
    assert world.lost == [2]


@pytest.mark.parametrize("busy", [False, True])
def test_a_switch_that_another_app_suspects_is_read_at_once_and_nobody_is_sent_on(world, busy):
    world.pass_time(1.0)
    world.switches[3].tables.remove(rule(3).key)
    if busy:
        world.change([(3, Put(rule(50)))])
        world.sent.clear()
    world.perform(world.installer.handle(CheckRequested(3), world.now))
    assert asked(world) == [3]
    world.deliver()
    world.assert_in_sync()
    assert len(told(world)) == 1
    assert world.lost == []


def test_a_switch_is_read_again_where_it_is_suspected_during_a_check(world):
    world.pass_time(INTERVAL_S / 3)
    (dpid,) = asked(world)
    world.step_switch(dpid)
    world.switches[dpid].tables.remove(rule(3).key)
    world.perform(world.installer.handle(CheckRequested(dpid), world.now))
    assert asked(world) == [dpid]
    run(world, 0)
    assert asked(world) == [dpid, dpid]
    world.assert_in_sync()


def test_suspicions_do_not_keep_others_from_their_turn(world):
    start = world.now
    for _ in range(int(INTERVAL_S)):
        world.perform(world.installer.handle(CheckRequested(2), world.now))
        run(world, 1.0)
    assert world.now == start + INTERVAL_S
    assert {1, 3} <= set(asked(world))


def test_nobody_is_read_at_a_suspicion_who_is_not_checked_or_not_there(world):
    world.disconnect(2)
    world.perform(world.installer.handle(CheckRequested(2), world.now))
    world.perform(world.installer.handle(CheckRequested(99), world.now))
    suspect(world, 2)
    suspect(world, 99)
    world.installer.check_every(0)
    world.perform(world.installer.handle(CheckRequested(3), world.now))
    suspect(world, 3)
    assert world.sent == [] and world.installer.next_deadline() is None
    world.installer.check_every(INTERVAL_S)
    run(world, 1.0)
    assert world.sent == []


def suspect(world, dpid):
    world.perform(world.installer.table_suspected(dpid, world.now))


def test_a_switch_that_shows_signs_of_lost_entries_is_read_at_once_and_others_are_told(world):
    world.pass_time(10.0)
    world.switches[3].tables.remove(rule(3).key)
    suspect(world, 3)
    assert asked(world) == [3]
    world.deliver()
    world.assert_in_sync()
    assert len(told(world)) == 1
    assert world.lost == [3]


def test_signs_have_a_switch_read_once_in_some_seconds_and_the_last_one_counts(world):
    world.pass_time(10.0)
    start = world.now
    times = []
    while world.now < start + 19.9:
        suspect(world, 3)
        times += [world.now] * asked(world).count(3)
        world.sent.clear()
        run(world, 0.1)
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert times[0] == start
    assert len(times) == 4 and min(gaps) >= SUSPICION_PAUSE_S - 0.01
    suspect(world, 3)
    world.switches[3].tables.remove(rule(3).key)
    run(world, SUSPICION_PAUSE_S)
    world.assert_in_sync()


def test_another_app_s_word_does_not_wait_for_the_pause_between_signs(world):
    world.pass_time(1.0)
    suspect(world, 3)
    assert asked(world) == []
    world.perform(world.installer.handle(CheckRequested(3), world.now))
    assert asked(world) == [3]
    run(world, SUSPICION_PAUSE_S + 1)
    assert asked(world).count(3) == 1, "it was looked at since"


def test_edits_that_are_confirmed_during_a_reading_do_not_confuse_it(world):
    """The switch tells its entries, then carries out edits and confirms them; the telling arrives last."""
    world.pass_time(INTERVAL_S / 3)
    (dpid,) = [dpid for dpid, queue in world.to_switch.items() if queue]
    world.step_switch(dpid)
    telling = list(world.to_controller[dpid])
    world.to_controller[dpid].clear()
    world.change([(dpid, Put(rule(50))), (dpid, Remove(rule(1).key)), (dpid, Put(rule(2, 9)))])
    world.deliver()
    world.to_controller[dpid].extend(telling)
    world.sent.clear()
    world.deliver()
    assert not [effect for effect in world.sent if isinstance(effect, ApplyEdits)]
    assert told(world) == []
    world.assert_in_sync()


def test_an_entry_that_is_put_alone_during_a_reading_does_not_confuse_it(world):
    """The switch tells its entries before it has the new one, and the telling arrives when that is confirmed."""
    world.pass_time(INTERVAL_S / 3)
    (dpid,) = [dpid for dpid, queue in world.to_switch.items() if queue]
    world.step_switch(dpid)
    telling = list(world.to_controller[dpid])
    world.to_controller[dpid].clear()
    (effect,) = world.installer.put(((dpid, rule(50)),), world.now)
    world.perform([effect])
    world.deliver()
    world.to_controller[dpid].extend(telling)
    world.sent.clear()
    world.deliver()
    assert not [effect for effect in world.sent if isinstance(effect, ApplyEdits)]
    assert told(world) == []
    world.assert_in_sync()


def test_a_busy_switch_is_read_later_but_not_never(world):
    world.switches[1].tables.remove(rule(3).key)
    for second in range(int(3 * INTERVAL_S)):
        world.change([(1, Put(rule(60, 1 + second % 7)))])
        world.pass_time(1.0)
        world.deliver()
    assert world.installer.counters["check-postponed"] > 0
    assert {effect.dpid for effect in world.sent if isinstance(effect, RequestFlows)} == {1, 2, 3}
    world.assert_in_sync()


def test_a_switch_that_does_not_answer_lets_others_have_their_turn(world):
    for _ in range(6):
        world.pass_time(INTERVAL_S / 3)
        world.to_switch[2].clear()
        world.deliver(1, 3)
    asked = [effect.dpid for effect in world.sent if isinstance(effect, RequestFlows)]
    assert {1, 2, 3} <= set(asked)
    assert world.installer.counters["check-timeout"] >= 1
    run(world, 2 * INTERVAL_S)
    world.assert_in_sync()


def test_a_thousand_corruptions_are_all_found_and_none_invented(make_world):
    draw = random.Random(7)
    world = make_world()
    numbers = range(1, 301)
    world.change([(dpid, Put(rule(number))) for dpid in world.switches for number in numbers])
    world.deliver()
    world.installer.check_every(INTERVAL_S)
    made = 0
    for _ in range(12):
        for switch in world.switches.values():
            for number in draw.sample(numbers, 30):
                kind = draw.choice(("missing", "altered", "extra"))
                if kind == "missing":
                    switch.tables.remove(rule(number).key)
                elif kind == "altered":
                    switch.tables.put(rule(number, 7))
                else:
                    switch.tables.put(rule(number, priority=2))
                made += 1
        for _ in range(6):
            world.change([(dpid, Put(rule(draw.randint(301, 320), draw.randint(1, 9)))) for dpid in world.switches])
            run(world, INTERVAL_S / 6)
        world.assert_in_sync()
    counters = world.installer.counters
    assert sum(counters[f"entries-{kind}"] for kind in ("missing", "altered", "extra")) == made >= 1000


def test_an_edit_under_way_when_a_switch_is_asked_does_not_count_either(world):
    world.installer.check_every(1.0)
    world.change([(2, Put(rule(50)))], [(2, Put(rule(51)))])
    for _ in range(15):
        world.pass_time(0.3)
        world.deliver(1, 3)
    assert [type(effect) for effect in world.to_switch[2]] == [ApplyEdits, RequestFlows]
    while world.to_switch[2]:
        world.step_switch(2)
    world.to_controller[2].rotate(1)  # the table is told before the edit is confirmed
    world.deliver()
    assert told(world) == []
    assert sum(world.installer.counters[f"entries-{kind}"] for kind in ("missing", "altered", "extra")) == 0


def test_a_repair_goes_out_behind_what_hosts_wait_for(world):
    for number in (3, 4):
        world.switches[2].tables.remove(rule(number).key)
    world.change([(2, Put(rule(60)))])
    batch = world.to_switch[2].popleft()
    world.perform(world.installer.check_requested(2, world.now))
    for event in world.switches[2].respond(world.to_switch[2].popleft(), world.now):
        world.perform(world.installer.handle(event, world.now))
    world.change([(2, Put(rule(61)))])
    world.to_switch[2].append(batch)
    world.deliver()
    edits = [effect.edits for effect in world.sent if isinstance(effect, ApplyEdits) and effect.dpid == 2]
    assert edits == [(Put(rule(60)),), (Put(rule(61)), Put(rule(3)), Put(rule(4)))]
