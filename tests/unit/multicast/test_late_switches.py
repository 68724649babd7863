"""Switches that are late: nothing that they owe is taken for silence, and no packet is lost for it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from controller.effects import RequestFlows
from controller.multicast.events import PolicyLoaded
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.rules.plans import PLAN_PATIENCE_S
from controller.wire.addresses import format_ip

from .overcommitted import (
    MEMBERS,
    assert_served,
    counted,
    done,
    group,
    inside,
    joined,
    overcommitted,
    rules_of,
    sender_of,
)

ROOM = 24
OF_ONE_HOST = range(0, 40, 4)


class Withheld(deque):
    """What a switch was sent and does not look at yet."""

    def __bool__(self):
        return False


def dpid_of(world, name):
    return world.hosts[name].place[0]


def delay(world, dpid):
    """Have a switch carry out nothing and answer no barrier until it is `caught_up`."""
    world.queues[dpid] = Withheld(world.queues[dpid])


def caught_up(world, dpid):
    world.queues[dpid] = deque(world.queues[dpid])
    world.settle()


def pass_time(world, seconds, number):
    """Have a packet to a group sent each second; all arrive."""
    for _ in range(int(seconds)):
        assert_served(world, number)
        world.advance(1.0)


@pytest.fixture
def unanswered(monkeypatch):
    """Has a switch not answer questions, about counters or what it holds."""

    def silence(world, *dpids):
        perform = world.perform

        def perform_some(effect):
            if not isinstance(effect, RequestFlows) or effect.dpid not in dpids:
                perform(effect)

        monkeypatch.setattr(world, "perform", perform_some)

    return silence


def test_groups_whose_senders_switch_does_not_tell_counters_are_not_taken_for_silent(make_world, unanswered):
    world = joined(overcommitted(make_world, room=ROOM), 40)
    active = range(20)
    for _ in range(4):
        for number in active:
            assert_served(world, number)
        world.advance(1.0)
    before = set(inside(world))
    unanswered(world, dpid_of(world, "h1"), dpid_of(world, "h3"))
    for _ in range(30):
        for number in active:
            assert_served(world, number)
        world.advance(1.0)
    for number in range(20, 40):
        assert_served(world, number)
    world.advance(1.0)
    assert set(inside(world)) >= before, "one packet each is no reason for those to leave that may send on"


@pytest.mark.parametrize("late", ["of the sender", "of a member"])
def test_a_group_that_goes_out_is_forwarded_until_its_senders_switch_has_let_go(make_world, late):
    world = joined(overcommitted(make_world), 1)
    assert_served(world, 0)
    world.settle()
    dpid = dpid_of(world, sender_of(0) if late == "of the sender" else MEMBERS[0])
    delay(world, dpid)
    done(world.do("group-swap-out", group=format_ip(group(0))))
    pass_time(world, 2.5 * PLAN_PATIENCE_S, 0)
    caught_up(world, dpid)
    pass_time(world, 3, 0)
    assert inside(world) == [group(0)]


def test_a_group_that_comes_in_is_handed_on_until_every_switch_has_its_entries(make_world, version):
    world = joined(overcommitted(make_world, version), 1)
    dpid = dpid_of(world, MEMBERS[0])
    delay(world, dpid)
    pass_time(world, 2.5 * PLAN_PATIENCE_S, 0)
    assert not [rule for rule in rules_of(world, group(0)) if rule.cookie & SENDER_COOKIE_BIT]
    caught_up(world, dpid)
    assert_served(world, 0)
    faults = counted(world, "faults")
    assert_served(world, 0)
    assert counted(world, "faults") == faults


def test_no_known_sender_is_cut_off_while_its_groups_are_on_their_way_in(make_world, version):
    """All its groups come in at once, and entries take most of a second."""
    world = joined(overcommitted(make_world, version), 40)
    limits = replace(world.policy.limits, unknown_packets_per_second_per_port=100)
    world.feed(PolicyLoaded(replace(world.policy, limits=limits)))
    world.settle()
    dpid = dpid_of(world, sender_of(0))
    for number in OF_ONE_HOST:
        assert_served(world, number)
    delay(world, dpid)
    for _ in range(40):
        for number in OF_ONE_HOST:
            assert_served(world, number)
        world.advance(0.02)
    caught_up(world, dpid)
    for number in OF_ONE_HOST:
        assert_served(world, number)
    assert "sender-penalty" not in {notice.kind for notice in world.notices}
    assert counted(world, "faults") >= 40 * len(OF_ONE_HOST)
