"""What a leader says of itself for sure: for less time than others need to lead."""

from __future__ import annotations

from cluster_histories import World

from controller.cluster.events import ConfirmWanted
from controller.cluster.heard import CHALLENGE_S, FRESH_S


def test_who_leads_says_for_sure_for_less_time_than_others_need_to_lead() -> None:
    world = World(7)
    world.run(10.0, world.is_settled)
    (first,) = world.leaders()
    world.run(world.now + 1.0)
    assert first.leading.fresh_until_s < world.now
    for node in world.nodes.values():
        node.give(ConfirmWanted())
    asked_s = world.now
    world.run(asked_s + 1.0, lambda: first.leading.fresh_until_s > asked_s)
    assert first.leading.fresh_until_s == asked_s + FRESH_S < asked_s + CHALLENGE_S
    assert all(node.leading.epoch is None for node in world.nodes.values() if node is not first)
    world.store.be_silent(1.0)
    told_s = first.leading.fresh_until_s
    first.give(ConfirmWanted())
    world.run(world.now + 0.9)
    assert first.leading.fresh_until_s == told_s
