"""Whose turn it is in the background check when a switch leaves, does not answer, or answers nonsense."""

from __future__ import annotations

import pytest

from controller.effects import ApplyEdits, Put, RequestFlows
from controller.events import CheckRequested
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAG = 0x5602
INTERVAL_S, TURN_S = 60.0, 20.0
TIMEOUT_S = 10.0
"""How long a switch has to tell its entries, as docs/rules.md has it."""


def rule(number, port=1):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(port),), cookie_of(TAG, number))


@pytest.fixture
def world(make_world):
    """Three switches with 20 entries each, of which one is checked every 20 s: 1, then 2, then 3."""
    world = make_world()
    world.change([(dpid, Put(rule(number))) for dpid in world.switches for number in range(1, 21)])
    world.deliver()
    world.installer.check_every(INTERVAL_S)
    world.sent.clear()
    return world


def asked(world):
    """Return the switches that were asked for their entries since the last call."""
    found = [effect.dpid for effect in world.sent if isinstance(effect, RequestFlows)]
    world.sent.clear()
    return found


def kinds(world):
    return [notice.kind for notice in world.notices]


def suspect(world, dpid):
    world.perform(world.installer.table_suspected(dpid, world.now))


def request(world, dpid):
    world.perform(world.installer.handle(CheckRequested(dpid), world.now))


def test_a_switch_that_leaves_while_it_is_asked_does_not_keep_others_waiting(world):
    world.pass_time(TURN_S)
    assert asked(world) == [1]
    world.disconnect(1)
    request(world, 3)
    assert asked(world) == [3]
    world.deliver()
    world.pass_time(TIMEOUT_S)
    assert "check-timeout" not in kinds(world)


def test_while_one_is_asked_no_other_is_though_a_third_leaves(world):
    world.pass_time(TURN_S)
    assert asked(world) == [1]
    world.disconnect(3)
    request(world, 2)
    assert asked(world) == []
    world.deliver()
    world.pass_time(0.0)
    assert asked(world) == [2]


@pytest.mark.parametrize("want", [suspect, request])
def test_a_switch_that_leaves_is_not_read_though_that_was_wanted(world, want):
    world.pass_time(TURN_S)
    assert asked(world) == [1]
    want(world, 2)
    world.disconnect(2)
    world.deliver()
    world.pass_time(TURN_S - 1.0)
    assert asked(world) == []
    world.connect(2)
    assert asked(world) == [2]
    world.deliver()
    world.sent.clear()
    world.pass_time(0.5)
    assert asked(world) == [], "what was wanted before is read by now"


def test_where_all_switches_have_left_nothing_is_due(world):
    for dpid in world.switches:
        world.disconnect(dpid)
    assert world.installer.next_deadline() is None
    world.pass_time(2 * INTERVAL_S)
    assert asked(world) == []


def test_a_sign_does_not_put_off_what_another_app_asked_for_nor_tell_others_again(world):
    world.switches[3].tables.remove(rule(3).key)
    world.pass_time(TURN_S)
    assert asked(world) == [1]
    request(world, 3)
    suspect(world, 3)
    world.deliver()
    world.pass_time(0.0)
    assert asked(world) == [3]
    world.deliver()
    world.assert_in_sync()
    assert world.lost == []


def test_the_pause_between_signs_begins_with_the_last_reading(world):
    world.pass_time(1.0)
    suspect(world, 3)  # it is to be read 5 s after it connected
    world.pass_time(1.0)
    request(world, 3)
    assert asked(world) == [3]
    world.deliver()
    suspect(world, 3)
    world.pass_time(4.9)
    assert asked(world) == []
    world.pass_time(0.2)
    assert asked(world) == [3]


def test_a_sign_that_waits_for_its_time_takes_nobody_s_turn(world):
    world.installer.check_every(6.0)
    world.pass_time(2.0)
    assert asked(world) == [1]
    world.deliver()
    suspect(world, 1)
    for dpid in (2, 3):
        world.pass_time(2.0)
        assert asked(world) == [dpid]
        world.deliver()
    world.pass_time(1.0)
    assert asked(world) == [1]


def test_a_switch_has_ten_seconds_to_tell_its_entries(world):
    world.pass_time(TURN_S)
    (question,) = world.to_switch[1]
    world.to_switch[1].clear()
    world.pass_time(TIMEOUT_S - 0.1)
    assert "check-timeout" not in kinds(world)
    world.pass_time(0.1)
    (told,) = [notice.text for notice in world.notices]
    assert told == "Switch 1 did not tell its flow entries in time: it is asked later."
    assert asked(world) == [1, 2]
    world.deliver()
    counters = world.installer.counters
    assert (counters["check-timeout"], counters["checks"]) == (1, 1)
    world.switches[1].tables.remove(rule(3).key)
    for late in world.switches[1].respond(question, world.now):
        world.perform(world.installer.handle(late, world.now))
    assert counters["checks"] == 1 and world.installer.in_sync(1), "what it tells too late does not count"
    for _ in range(3):
        world.pass_time(TURN_S)
        world.deliver()
    assert counters["entries-missing"] == 1
    world.assert_in_sync()


def test_a_timeout_while_all_others_are_busy_ends_the_question(world):
    world.pass_time(TURN_S)
    assert asked(world) == [1]
    world.to_switch[1].clear()
    world.pass_time(TIMEOUT_S - 0.5)
    world.change([(dpid, Put(rule(30))) for dpid in world.switches])
    world.pass_time(0.5)
    counters = world.installer.counters
    assert (counters["check-timeout"], counters["check-postponed"]) == (1, 3)
    world.deliver()
    world.pass_time(TURN_S)
    assert asked(world) == [2]
    assert counters["check-timeout"] == 1


def test_a_busy_switch_is_read_after_two_intervals_at_any_rate(world):
    start = world.now
    read_s = None
    while read_s is None and world.now < start + 3 * INTERVAL_S:
        world.change([(1, Put(rule(60, 1 + int(world.now) % 7)))])
        world.pass_time(1.0)
        if 1 in asked(world):
            read_s = world.now
        world.deliver()
    assert read_s == start + 2 * INTERVAL_S


def test_an_answer_that_makes_no_sense_changes_nothing(world):
    world.pass_time(TURN_S)
    (question,) = world.to_switch[1]
    world.to_switch[1].clear()
    (answer,) = world.switches[1].respond(question, world.now)
    world.perform(world.installer.handle(answer._replace(message=answer.message[:-3]), world.now))
    assert kinds(world) == ["read-faulty"]
    assert [effect for effect in world.sent if isinstance(effect, ApplyEdits)] == []
    assert world.installer.in_sync(1) and world.lost == []
    world.pass_time(INTERVAL_S)
    world.deliver()
    world.assert_in_sync()


def test_an_answer_that_comes_twice_counts_once(world):
    world.pass_time(TURN_S)
    (question,) = world.to_switch[1]
    world.to_switch[1].clear()
    world.switches[1].tables.remove(rule(3).key)
    for _ in range(2):
        for answer in world.switches[1].respond(question, world.now):
            world.perform(world.installer.handle(answer, world.now))
    counters = world.installer.counters
    assert (counters["checks"], counters["entries-missing"]) == (1, 1)
    world.deliver()
    world.assert_in_sync()
