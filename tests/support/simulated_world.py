"""Members over the store's twin, as tests look at them: who leads, what is waited for, who is cut off."""

from __future__ import annotations

from collections.abc import Callable

from cluster_histories import World
from cluster_members import Node

PATIENCE_S = 10.0


def until(world: World, reached: Callable[[], bool], within_s: float = PATIENCE_S) -> float:
    """Let time go on until something is so; return how long that took."""
    begun_s = world.now
    world.run(world.now + within_s, reached)
    assert reached(), [(node.name, node.member.standing, node.member.epoch) for node in world.nodes.values()]
    return world.now - begun_s


def leader(world: World) -> Node:
    """Return the member that leads."""
    (leader,) = world.leaders()
    return leader


def cut_off_from_switches(world: World, node: Node, dpids: set[int]) -> None:
    """Have a member reach some switches no more."""
    node.without |= dpids
    for dpid in dpids:
        node.disconnect(world.switches[dpid])
