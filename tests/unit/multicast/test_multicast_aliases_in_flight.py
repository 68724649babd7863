"""Packets under way while groups get and lose trees: hops and edits in any order, no packet is lost or doubled."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.events import DeadlineReached
from controller.multicast.events import PolicyLoaded

from .conftest import leaf_spine
from .test_multicast_in_flight import POLICY, Race, fabric_of


def use(world, count):
    static = (StaticTrees(parse_prefix("239.0.0.0/8"), count),) if count else ()
    world.policy = replace(world.policy, aliases=Aliases(mode="static" if count else "off", static=static))
    world.feed(PolicyLoaded(world.policy))


def let_pass(race, seconds):
    """Let deadlines come due while packets and edits are under way."""
    race.world.now += seconds
    race.world.feed(DeadlineReached())


@pytest.mark.parametrize("graph", ["leaf-spine", "fattree", "avalanche24", "ring", "bundles"])
def test_trees_come_and_go_under_packets_and_each_arrives_once(make_world, graph, version):
    """Whatever switches are slow. A packet that was sent before a tree went is not older than what drains."""
    moved = 0
    for seed in range(20):
        dice = random.Random(f"{graph} {version} {seed}")
        fabric = leaf_spine(leaves=4, spines=4) if graph == "leaf-spine" else fabric_of(graph)
        world = make_world(fabric, POLICY, version, seed=seed)
        names = list(world.hosts)
        members, senders = dice.sample(names, min(4, len(names))), dice.sample(names, min(5, len(names)))
        race = Race(world, members, senders, dice)
        sent = []
        for _ in range(8):
            race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, len(world.switches) // 2)))
            use(world, dice.randint(0, 4))
            sent += race.send(2)
            race.run(dice.randrange(20))
            for _ in range(3):
                let_pass(race, 0.0)
                sent += race.send(1)
                race.run(dice.randrange(15))
            while any(packet.copies for packet in race.packets):
                race.hop(dice.choice([packet for packet in race.packets if packet.copies]))
            let_pass(race, dice.choice([0.0, 0.01, 0.06, 0.3]))
        race.settle(3.0)
        race.check_all(sent)
        (group,) = world.core.plane.groups.values()
        moved += len({sender.alias for sender in group.senders.values()}) > 1
        sent = race.send(3)
        race.settle()
        race.check_all(sent)
    assert moved > 5
