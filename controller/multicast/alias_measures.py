"""How much groups wait and how full their trees are, by the loads that the forest accounts and the monitor saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from controller.service_classes.goals import Goal, GoalKind, performance_index
from controller.service_classes.measures import LinkUse, group_queue, group_utilisation
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
    queue: float
    utilisation: float
    rate_bps: float
    arrivals_per_s: float
    sending: float
    loss: float


def uses_of(trees: Iterable[Tree], loads: LinkLoads) -> list[LinkUse]:
    """Return what the trees of a group put on each directed link, by all trees together, beside the others' load."""
    own: dict[int, int] = {}
    for tree in trees:
        index = flows.index_of(tree, loads)
        for node, above in tree.parent.items():
            number = index[node][above]
            up, down = flows.link_load(tree, node)
            own[number] = own.get(number, 0) + up
            own[number ^ 1] = own.get(number ^ 1, 0) + down
    return [LinkUse(bps, loads.bps[number], loads.capacity_bps[number]) for number, bps in own.items() if bps > 0]


def fullest(uses: Iterable[LinkUse]) -> float:
    """Return load over capacity of the fullest of some links, 0.0 where there is none."""
    return max((use.load_bps / use.capacity_bps for use in uses), default=0.0)


def sample_of(uses: list[LinkUse], rate_bps: float, now: float) -> GroupSample:
    """Return what is seen of a group whose senders send `rate_bps` together."""
    return GroupSample(
        now,
        group_queue(uses),
        group_utilisation(uses),
        rate_bps,
        sum(use.own_bps for use in uses) / PACKET_BITS,
        sum(use.own_bps / use.capacity_bps for use in uses),
        max((max(0.0, 1 - use.capacity_bps / use.load_bps) for use in uses), default=0.0),
    )


class GroupMeasures:
    """The last samples of a group."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[GroupSample] = deque(maxlen=SAMPLES)

    def take(self, sample: GroupSample) -> None:
        """Take one more."""
        self._samples.append(sample)

    def mean(self, window_s: float) -> GroupSample:
        """Return the means of the samples of a time until the last one; 0 for that one alone."""
        last = self._samples[-1]
        recent = [sample for sample in self._samples if sample.now_s > last.now_s - window_s] or [last]
        count = len(recent)
        return GroupSample(last.now_s, *(sum(values) / count for values in list(zip(*recent, strict=True))[1:]))


class Fare(NamedTuple):
    """How a class fares: its index, above 1 where it misses its goal, and the part of its delay spent in queues."""

    performance_index: float
    queue_share: float


def fare_of(goal: Goal | None, samples: Iterable[GroupSample]) -> Fare:
    """Return how a class fares by what is seen of its groups: nothing is missed without a goal, or traffic."""
    queue = sending = arrivals_per_s = rate_bps = passed_bps = 0.0
    for sample in samples:
        queue += sample.queue
        sending += sample.sending
        arrivals_per_s += sample.arrivals_per_s
        rate_bps += sample.rate_bps
        passed_bps += sample.rate_bps * (1 - sample.loss)
    if goal is None or not rate_bps or not sending:
        return Fare(0.0, 0.0)
    measured = {
        GoalKind.LOSS: 100 * (1 - passed_bps / rate_bps),
        GoalKind.DELAY: 1000 * queue / arrivals_per_s,
        GoalKind.VELOCITY: 100 * sending / (sending + queue),
        GoalKind.RATE: passed_bps,
    }[goal.kind]
    return Fare(performance_index(goal, measured, rate_bps), queue / (queue + sending))
