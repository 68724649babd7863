"""A learner that goes by the load now and one period ago, and learns how much head-room that takes."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from controller.scaling.model import Chance, PoolReading, ScalingAdvice, members_for
from controller.scaling.rules import farthest, needed_loads

HEAD_ROOMS = (2, 1, 3, 0, 4)
"""Tenths of the need that a tier has beside it; the first one is the policy of who has learnt nothing."""

MISS_COST = 20.0
"""What an interval costs in which the SLO was not met, in pools of the size that was needed: one such interval in 200
costs as much as a tenth more members all the time."""

PRIOR_WEIGHT = 8.0
"""Intervals that what is expected before anything was tried counts as."""

MEMORY_INTERVALS = 2000.0
"""Intervals that a value goes by at most: later ones push earlier ones out, so that it follows a changing pool."""

FIRST_EXPLORATION = 0.05
LEAST_EXPLORATION = 0.005
"""The part of intervals in which a neighbour of the best head-room is tried: at first in a state, and at last."""

FALLS_BY = 0.98
"""By what that part is multiplied at each interval that was learnt from in the state."""


class SeasonalState(NamedTuple):
    """What makes one forecast more certain than another: whether a period ago is known, and where the load goes."""

    is_known: bool
    rises: bool
    is_late: bool


class SeasonalQ:
    """Has each tier take the larger of its loads now and one period before the next interval, and some head-room.

    How much, in tenths of the need, is learnt by state: the value of a head-room is the mean of what intervals with
    it cost. A head-room is chosen anew each time and leaves nothing behind, so that what follows later has no part in
    its value, as it has in Q-learning where beta is above 0.

    Parameters
    ----------
    chance
        Draws when another head-room is tried, and which.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._costs: dict[tuple[SeasonalState, int], tuple[float, float]] = {}
        self._visits: dict[SeasonalState, int] = {}
        self._last: tuple[int, SeasonalState, int, tuple[float, ...], tuple[int, ...]] | None = None

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Learn from how the interval went, and return what should change."""
        self._learn(reading)
        loads = needed_loads(reading)
        rises = sum(loads) > 1.05 * sum(tier.load for tier in reading.tiers)
        state = SeasonalState(reading.load_next is not None, rises, reading.pressure > 0.5)
        head_room = self._head_room(state)
        wanted = tuple(members_for(load * (1 + head_room / 10)) for load in loads)
        self._last = (reading.number, state, head_room, loads, wanted)
        why = f"the load now, or one period before the next interval, and {head_room} tenths of head-room"
        return farthest(reading, wanted, f"{why}, which did best,")

    def saved(self) -> list[Any]:
        """Return the mean cost of each head-room in each state, over how many intervals, and visits of the states."""
        costs = [[*map(int, state), room, *cost] for (state, room), cost in self._costs.items()]
        return [costs, [[*map(int, state), count] for state, count in self._visits.items()]]

    def restore(self, saved: Any) -> None:
        """Have these costs; ValueError where they make no sense."""
        try:
            costs, visits = saved
            found = {(_state(each[:3]), int(each[3])): (float(each[4]), float(each[5])) for each in costs}
            seen = {_state(each[:3]): int(each[3]) for each in visits}
        except (TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"it has no costs of head-rooms: {error}") from error
        for (_, room), (mean, count) in found.items():
            if room not in HEAD_ROOMS or not (isfinite(mean) and 0 < count <= MEMORY_INTERVALS):
                raise ValueError(f"a head-room of {room} that cost {mean} in {count} intervals makes no sense")
        if min(seen.values(), default=0) < 0:
            raise ValueError("a state was visited less than never")
        self._costs, self._visits = found, seen

    def _learn(self, reading: PoolReading) -> None:
        if self._last is None or self._last[0] + 1 != reading.number:
            return
        _, state, head_room, loads, wanted = self._last
        if tuple(tier.members for tier in reading.tiers) != wanted:
            return
        cost = sum(tier.members for tier in reading.tiers) / max(sum(loads), 1.0)
        cost += 0.0 if reading.is_met else MISS_COST
        mean, count = self._costs.get((state, head_room), (_expected(head_room), PRIOR_WEIGHT))
        count = min(count + 1, MEMORY_INTERVALS)
        self._costs[state, head_room] = (mean + (cost - mean) / count, count)
        self._visits[state] = self._visits.get(state, 0) + 1

    def _head_room(self, state: SeasonalState) -> int:
        best = min(HEAD_ROOMS, key=lambda head_room: self._cost(state, head_room))
        part = max(LEAST_EXPLORATION, FIRST_EXPLORATION * FALLS_BY ** self._visits.get(state, 0))
        if self._chance() < part:
            near = best + (1 if self._chance() < 0.5 else -1)
            return near if near in HEAD_ROOMS else best
        return best

    def _cost(self, state: SeasonalState, head_room: int) -> float:
        return self._costs.get((state, head_room), (_expected(head_room), 0.0))[0]


def _state(saved: Any) -> SeasonalState:
    is_known, rises, is_late = map(bool, saved)
    return SeasonalState(is_known, rises, is_late)


def _expected(head_room: int) -> float:
    """Return what a head-room is expected to cost before it was tried: more than the first one does."""
    return 1.5 + 0.1 * HEAD_ROOMS.index(head_room)
