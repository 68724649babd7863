"""The installer and switches that tell what they hold late."""

from __future__ import annotations

import pytest

from controller.datapath.core import READ_DOUBLINGS, READ_TIMEOUT_S
from controller.effects import Put
from controller.events import FlowStatsReceived
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.openflow import FlowCounter

TAG = 0x5602


def rule(number, port_no):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(port_no),), TAG << 48)


def kinds(world):
    return [notice.kind for notice in world.notices]


@pytest.mark.parametrize("late_s", [0.5 * READ_TIMEOUT_S, 1.5 * READ_TIMEOUT_S, 3.5 * READ_TIMEOUT_S])
def test_a_switch_whose_answers_are_late_is_read_in_the_end(make_world, late_s):
    """Each reading is told so late; one asked for again in the same time for ever would never count."""
    world = make_world(connect=False)
    world.switches[2].apply(Put(rule(1, 5)))
    world.connect(2)
    told = []
    for _ in range(400):
        replies = [reply for sent in world.to_switch[2] for reply in world.switches[2].respond(sent)]
        told += [(world.now + late_s, reply) for reply in replies]
        world.to_switch[2].clear()
        while told and told[0][0] <= world.now:
            world.perform(world.installer.handle(told.pop(0)[1], world.now))
        world.pass_time(0.5)
    assert world.installer.in_sync(2)
    assert kinds(world).count("read-timeout") <= 2 * READ_DOUBLINGS


def test_a_reading_that_goes_on_is_not_given_up(make_world):
    world = make_world(connect=False)
    for number in range(1, 4):
        world.switches[2].apply(Put(rule(number, 5)))
    world.connect(2)
    (request,) = world.to_switch[2]
    world.to_switch[2].clear()
    lowering = LOWERINGS[4]
    held = [*world.switches[2].rules.values()]
    for number, entry in enumerate(held, 1):
        world.pass_time(0.9 * READ_TIMEOUT_S)
        part = lowering.encode_flow_stats_entry(FlowCounter(entry, 0, 0, 0.0))
        message = lowering.encode_flow_stats_reply(request.xid, number < len(held), part)
        world.perform(world.installer.handle(FlowStatsReceived(2, 4, request.xid, message), world.now))
    assert kinds(world) == []
    world.deliver()
    assert world.installer.in_sync(2)
