"""What one turn of discovery is: some of what is due, however many ports a fabric has."""

from __future__ import annotations

import pytest

from controller.discovery.budget import GRANTS_AT_ONCE
from controller.discovery.core import COST_AT_ONCE
from controller.events import DeadlineReached
from topology.events import LinkDown, PortRole

SWITCHES, PORTS = 100, 12
EFFECTS_AT_ONCE = COST_AT_ONCE + GRANTS_AT_ONCE + 16


@pytest.fixture
def world(make_world):
    """A fabric that has just connected, each switch cabled to the next one at two ports."""
    world = make_world()
    for dpid in range(1, SWITCHES):
        for cable in (0, 1):
            world.cable((dpid, 1 + cable), (dpid + 1, 3 + cable))
    for dpid in range(1, SWITCHES + 1):
        world.connect(dpid, range(1, PORTS + 1))
    return world


def turns(world, seconds):
    """Yield how much each turn leads to that is due in the next seconds."""
    until = world.now + seconds
    while (due_s := world.core.next_deadline()) is not None and due_s <= until:
        world.now = max(world.now, due_s)
        effects = world.core.handle(DeadlineReached(), world.now)
        yield len(effects)
        world.perform(effects)


@pytest.mark.parametrize("late_s", [0.0, 0.5, 2.0])
def test_a_turn_does_little_while_a_fabric_comes_up_however_late_the_loop_is(world, late_s):
    world.now += late_s
    assert max(turns(world, 12.0)) <= EFFECTS_AT_ONCE
    roles = [world.fabric.role(dpid, port) for dpid in range(1, SWITCHES + 1) for port in range(1, PORTS + 1)]
    assert roles.count(PortRole.TRUNK) == 4 * (SWITCHES - 1)
    assert roles.count(PortRole.EDGE) == len(roles) - 4 * (SWITCHES - 1)


def test_a_turn_does_little_after_the_loop_was_late_and_nothing_is_lost(world):
    list(turns(world, 20.0))
    world.now += 1.0
    assert max(turns(world, 0.5)) <= EFFECTS_AT_ONCE
    assert not any(isinstance(event, LinkDown) for event in world.events)
