"""A sender becomes known while its group comes in: its packets enter once switches hold all that the group needs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.multicast.table_limits import TableLimits
from controller.wire.packets import RecordType
from topology.generators import make

from .conftest import GROUP
from .test_covering import COVER, scarce
from .test_multicast_in_flight import POLICY, Race

__all__ = ["scarce"]

SEEDS = (7, 24, 68, 117, 173, 216, 251, 255, 280)
"""Runs in which a packet of the second sender met a switch that had not confirmed its entry."""


@pytest.mark.parametrize("mode", ["off", "swap", "cover"])
@pytest.mark.parametrize("room", ["ample", "little"])
@pytest.mark.parametrize("is_named", [False, True], ids=["group", "channels"])
def test_two_senders_bring_a_group_in_at_once_and_no_packet_is_lost(
    make_world, scarce, monkeypatch, mode, room, is_named
):
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: room == "ample")
    for seed in SEEDS:
        dice = random.Random(f"{room} {seed} {is_named}")
        policy = replace(POLICY, overcommit=replace(COVER.overcommit, mode=mode))
        world = make_world(make("fattree"), policy, seed=seed)
        names = list(world.hosts)
        members, senders = dice.sample(names, dice.randint(2, 5)), dice.sample(names, 2)
        race = Race(world, [], [], dice)
        race.members, race.senders = members, senders
        for name in members:
            if is_named:
                sources = [world.hosts[sender].v4 for sender in senders]
                world.record(name, RecordType.CHANGE_TO_INCLUDE, GROUP, *sources)
            else:
                world.join(name)
        world.settle()
        race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, 8)))
        for _ in range(8):
            race.send(dice.randrange(3))
            race.run(dice.randrange(12))
        race.settle(3.0)
        assert race.packets
        race.check_all(race.packets)
