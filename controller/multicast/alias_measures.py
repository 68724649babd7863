"""How much groups wait and how full their trees are, by the loads that the forest accounts and the monitor saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from math import inf
from typing import NamedTuple

from controller.service_classes.goals import Goal, GoalKind, performance_index
from controller.service_classes.measures import link_queue
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


class LinkStates:
    """What all directed links carry at a moment, by their numbers in `LinkLoads`, for groups to be looked at.

    `waiting_per_bps` are the packets that wait for each bit/s of load, `spare_bps` what the link could carry beside
    its load, `lost` the part of its load beyond what it can, 0 to 1, and `seconds_per_bit` what a bit takes.
    """

    def __init__(self, loads: LinkLoads, version: int) -> None:
        both = list(zip(loads.bps, loads.capacity_bps, strict=True))
        self.version = version
        self.waiting_per_bps = [link_queue(bps, most) / bps if bps > 0 else 0.0 for bps, most in both]
        self.spare_bps = [most - bps for bps, most in both]
        self.lost = [1 - most / bps if bps > most else 0.0 for bps, most in both]
        self.seconds_per_bit = [1 / most if most > 0 else 0.0 for _, most in both]


def uses_of(trees: Iterable[Tree], loads: LinkLoads) -> dict[int, int]:
    """Return what the trees of a group put on directed links by all together, in bit/s, by the links' numbers."""
    own: dict[int, int] = {}
    for tree in trees:
        numbers, own_bps = flows.uses(tree, loads)
        each_bps: Iterable[int] = repeat(flows.sent_bps(tree), len(numbers)) if own_bps is None else own_bps
        for number, bps in zip(numbers, each_bps, strict=True):
            if bps > 0:
                own[number] = own.get(number, 0) + bps
    return own


def fullest(uses: Iterable[int], loads: LinkLoads) -> float:
    """Return load over capacity of the fullest of some directed links, 0.0 where there is none."""
    return max((loads.bps[number] / loads.capacity_bps[number] for number in uses), default=0.0)


def sample_of(
    trees: Sequence[Tree], loads: LinkLoads, states: LinkStates, rate_bps: float, now: float, is_whole: bool = True
) -> GroupSample:
    """Return what is seen of a group whose senders send `rate_bps` together.

    Without `is_whole` only `queue` and `utilisation` are looked at; the others are 0.
    """
    if not rate_bps:
        return GroupSample(now)
    if len(trees) == 1 and (only := trees[0].uses or flows.uses(trees[0], loads)).own_bps is None:
        bps, numbers = flows.sent_bps(trees[0]), only.numbers
        if not numbers or bps <= 0:
            return GroupSample(now, 0.0, 0.0, rate_bps)
        queue = bps * sum(map(states.waiting_per_bps.__getitem__, numbers), 0.0)
        left_bps = min(map(states.spare_bps.__getitem__, numbers)) + bps
        utilisation = bps / left_bps if left_bps > 0 else inf
        if not is_whole:
            return GroupSample(now, queue, utilisation, rate_bps)
        sending = bps * sum(map(states.seconds_per_bit.__getitem__, numbers), 0.0)
        lost = max(map(states.lost.__getitem__, numbers))
        return GroupSample(now, queue, utilisation, rate_bps, bps * len(numbers) / PACKET_BITS, sending, lost)
    queue = utilisation = sending = lost = 0.0
    all_bps = 0
    for number, bps in uses_of(trees, loads).items():
        queue += bps * states.waiting_per_bps[number]
        left_bps = states.spare_bps[number] + bps
        utilisation = max(utilisation, bps / left_bps if left_bps > 0 else inf)
        sending += bps * states.seconds_per_bit[number]
        lost = max(lost, states.lost[number])
        all_bps += bps
    return GroupSample(now, queue, utilisation, rate_bps, all_bps / PACKET_BITS, sending, lost)


class GroupMeasures:
    """The last samples of a group."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[GroupSample] = deque(maxlen=SAMPLES)

    def take(self, sample: GroupSample) -> None:
        """Take one more."""
        self._samples.append(sample)

    def queue(self, window_s: float) -> float:
        """Return the mean of `queue` as `mean` has it."""
        recent = self._recent(window_s)
        return sum(sample.queue for sample in recent) / len(recent)

    def _recent(self, window_s: float) -> list[GroupSample]:
        since_s = self._samples[-1].now_s - window_s
        return [sample for sample in self._samples if sample.now_s > since_s] or [self._samples[-1]]

    def mean(self, window_s: float) -> GroupSample:
        """Return the means of the samples of a time until the last one; 0 for that one alone."""
        recent = self._recent(window_s)
        if len(recent) == 1:
            return recent[0]
        count, columns = len(recent), list(zip(*recent, strict=True))[1:]
        return GroupSample(recent[-1].now_s, *(sum(values) / count for values in columns))


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
