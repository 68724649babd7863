"""What hosts wait for is sent before bulk, whatever makes a switch busy."""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.effects import Put
from controller.events import DeadlineReached
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip

from .conftest import GRAPHS, OPEN

GROUPS = [parse_ip(f"239.1.{n // 250}.{n % 250}") for n in range(300)]
NEW = parse_ip("239.9.9.9")
CLOSED = Policy(default_allow=False, limits=OPEN.limits)


def edits(world, dpid):
    return [edit for _, edit in world.queues[dpid] if edit is not None]


def next_batch(world, dpid):
    """Let a switch finish the batch that is under way, and return the one that follows."""
    while edits(world, dpid):
        world.step(dpid)
    world.step(dpid)
    return edits(world, dpid)


def about(edit):
    return (edit.rule.key if isinstance(edit, Put) else edit.key).match.ip_dst


@pytest.fixture
def busy(make_world):
    """Makes a leaf-spine fabric with a host in many groups, and one at another leaf in half of them; returns both."""

    def make(policy=OPEN):
        world = make_world(GRAPHS["leaf-spine"](), policy)
        one = world.hosts[min(world.hosts)]
        other = next(host for host in world.hosts.values() if host.dpid != one.dpid)
        for number, group in enumerate(GROUPS):
            world.join(one.name, group)
            if number % 2:
                world.join(other.name, group)
        world.settle()
        return world, one, other

    return make


def joins_first(world, dpid):
    """Tell whether the new group is in the next batch, with bulk behind it."""
    groups = [about(edit) for edit in next_batch(world, dpid)]
    bulk = [place for place, group in enumerate(groups) if group in GROUPS]
    return bulk and NEW in groups[: bulk[0]]


def test_a_join_at_a_switch_that_came_back_goes_out_in_the_next_batch(busy):
    world, one, _ = busy()
    world.disconnect(one.dpid)
    world.settle()
    world.reconnect(one.dpid)
    world.join(one.name, NEW)
    assert joins_first(world, one.dpid)
    world.settle(30.0)
    assert {about(Put(rule)) for rule in world.rules()[one.dpid].values()} >= {*GROUPS, NEW}


def test_a_join_does_not_wait_for_what_a_changed_policy_admits(busy):
    world, one, _ = busy(CLOSED)
    world.feed(PolicyLoaded(OPEN))
    while not edits(world, one.dpid):
        world.feed(DeadlineReached())
    world.join(one.name, NEW)
    assert joins_first(world, one.dpid)
    world.settle(30.0)
    assert {about(Put(rule)) for rule in world.rules()[one.dpid].values()} >= {*GROUPS, NEW}


def test_a_join_does_not_wait_for_the_trees_that_leave_a_drained_switch(busy):
    world, one, _ = busy()
    used = {int(link[1]) for group in GROUPS for link in world.core.forest.tree(group).links()} - {one.dpid}
    spine = min(used - {host.dpid for host in world.hosts.values()})
    world.do("switch-drain", dpid=spine)
    world.join(one.name, NEW)
    assert joins_first(world, one.dpid)
