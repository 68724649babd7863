"""How much groups wait and how full their trees are, by the loads that the forest accounts and the monitor saw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.service_classes.goals import Goal, GoalKind, performance_index
from controller.trees import flows
from controller.trees.tree import Tree
from topology.loads import LinkLoads

PACKET_BITS = 12_000
"""Bits that a packet is taken to have, 1,500 bytes: counters of flow entries do not tell."""

SAMPLES = 7
"""Samples of a group that are kept: those of a minute, one every 10 s."""


class GroupSample(NamedTuple):
    """What was seen of a group at a moment.

    `queue` is in packets, `utilisation` as `group_utilisation`. `arrivals_per_s` are those at all ports on its way,
    `sending` the packets of it that are being sent; `loss` is the part lost at its fullest port, 0 to 1.
    """

    now_s: float
    queue: float = 0.0
    utilisation: float = 0.0
    rate_bps: float = 0.0
    arrivals_per_s: float = 0.0
    sending: float = 0.0
    loss: float = 0.0


def uses_of(trees: Iterable[Tree], loads: LinkLoads) -> dict[int, int]:
    """Return what the trees of a group put on directed links by all together, in bit/s, by the links' numbers."""
    own: dict[int, int] = {}
    for tree in trees:
        for number, bps in flows.carried(tree, loads).items():
            own[number] = own.get(number, 0) + bps
    return own


def fullest(uses: Iterable[int], loads: LinkLoads) -> float:
    """Return load over capacity of the fullest of some directed links, 0.0 where there is none."""
    return max((loads.bps[number] / loads.capacity_bps[number] for number in uses), default=0.0)


class ClassTotals(NamedTuple):
    """What the groups of a class come to together: means of samples, summed; `passed_bps` is what was not lost."""

    queue: float
    sending: float
    arrivals_per_s: float
    rate_bps: float
    passed_bps: float


class Fare(NamedTuple):
    """How a class fares: its index, above 1 where it misses its goal, and the part of its delay spent in queues."""

    performance_index: float
    queue_share: float


def fare_of(goal: Goal | None, totals: ClassTotals) -> Fare:
    """Return how a class fares by what is seen of its groups: nothing is missed without a goal, or traffic."""
    queue, sending, arrivals_per_s, rate_bps, passed_bps = totals
    if goal is None or not rate_bps or not sending:
        return Fare(0.0, 0.0)
    measured = {
        GoalKind.LOSS: 100 * (1 - passed_bps / rate_bps),
        GoalKind.DELAY: 1000 * queue / arrivals_per_s,
        GoalKind.VELOCITY: 100 * sending / (sending + queue),
        GoalKind.RATE: passed_bps,
    }[goal.kind]
    return Fare(performance_index(goal, measured, rate_bps), queue / (queue + sending))
