"""The article's learner: Q-learning over the pool's own size, usage and lateness, led by heuristics at first."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from controller.scaling.heuristics import ScalingHeuristics
from controller.scaling.model import Chance, PoolReading, ScalingAdvice, reward_of
from controller.scaling.values import ActionValues

USAGE_STEP = 0.1
"""Width of the bins of usage."""

LATENESS_BINS = (0.2, 0.5, 0.8, 1.0, 2.0)
"""Upper ends of the bins of lateness, in terms of the SLO; above the last there is one more."""

STEPS = (1, 2, -1, -2)
"""What may become of a tier in one interval."""


class PoolState(NamedTuple):
    """What the article's learner knows of a pool: members of each tier, and the bins of usage and lateness."""

    members: tuple[int, ...]
    usage: int
    lateness: int


class Scaling(NamedTuple):
    """An action: a tier and how many members it is to have more; no change at all is `NO_CHANGE`."""

    tier: int
    change: int


NO_CHANGE = Scaling(0, 0)


def state_of(reading: PoolReading) -> PoolState:
    """Return the state that a reading stands for."""
    usage = min(int(reading.usage / USAGE_STEP), int(2 / USAGE_STEP))
    lateness = sum(reading.pressure > end for end in LATENESS_BINS)
    return PoolState(tuple(tier.members for tier in reading.tiers), usage, lateness)


class VScale:
    """Goes by heuristics where it knows little, by the table of values where it has tried most.

    Parameters
    ----------
    chance
        Draws whether the table or the heuristics decide.
    alpha, beta, gamma, window
        Weight of what was known, weight of what follows, and those of `ScalingHeuristics`.
    has_heuristics
        Whether there are any; else what was not tried yet is tried at random.
    literal
        "With probability epsilon: use heuristics", epsilon being the part of actions explored, has heuristics decide
        more the more is known, against the sentence after it. By default the two are the other way round; True is as
        printed.
    """

    def __init__(
        self,
        chance: Chance,
        alpha: float = 0.5,
        beta: float = 0.5,
        gamma: float = 0.8,
        window: int = 32,
        has_heuristics: bool = True,
        literal: bool = False,
    ) -> None:
        self._chance = chance
        self._gamma = gamma
        self._has_heuristics = has_heuristics
        self._literal = literal
        self._heuristics = ScalingHeuristics(gamma, window)
        self._values: ActionValues[PoolState, Scaling] = ActionValues(alpha, beta)
        self._last: tuple[int, PoolState] | None = None

    def advise(self, reading: PoolReading) -> ScalingAdvice | None:
        """Learn from how the interval went, and return what should change."""
        state = state_of(reading)
        self._heuristics.note(reading)
        self._learn(reading, state)
        self._last = (reading.number, state)
        actions = [NO_CHANGE, *(Scaling(tier, step) for tier in range(len(reading.tiers)) for step in STEPS)]
        known = self._values.known(state)
        explored = len(known) / len(actions)
        by_table = self._chance() < (1 - explored if self._literal else explored)
        if not by_table and self._has_heuristics:
            return self._heuristics.suggestion()
        untried = [action for action in actions if action not in known]
        if not by_table and untried:
            chosen = untried[int(self._chance() * len(untried))]
            return _advice(chosen, f"it is one of {len(untried)} that were not tried in this state")
        chosen = self._values.best(state, known or actions)
        worth = known.get(chosen, 0.0)
        return _advice(chosen, f"it was worth {worth:.2f} here, the most of {len(known)} that were tried")

    def saved(self) -> list[Any]:
        """Return the table of values: each state with the actions that were tried in it."""
        return [
            [list(state.members), state.usage, state.lateness, [[*action, value] for action, value in known.items()]]
            for state, known in self._values.items()
        ]

    def restore(self, saved: Any) -> None:
        """Have this table of values; ValueError where it makes no sense."""
        try:
            self._values.replace(list(map(_read_state, saved)))
        except (TypeError, OverflowError) as error:
            raise ValueError(f"it is no table of values: {error}") from error

    def _learn(self, reading: PoolReading, state: PoolState) -> None:
        """Take in what followed from what was done: by the members that there are now, not by what was advised."""
        if self._last is None or self._last[0] + 1 != reading.number:
            return
        before = self._last[1]
        changes = [now - was for was, now in zip(before.members, state.members, strict=True)]
        done = [Scaling(tier, change) for tier, change in enumerate(changes) if change] or [NO_CHANGE]
        if len(done) == 1 and (done[0].change in STEPS or done[0] == NO_CHANGE):
            self._values.learn(before, done[0], reward_of(reading, self._gamma), state)


def _read_state(saved: Any) -> tuple[PoolState, dict[Scaling, float]]:
    members, usage, lateness, known = saved
    values = {Scaling(int(tier), int(change)): float(value) for tier, change, value in known}
    if not all(map(isfinite, values.values())):
        raise ValueError("a value is no number")
    state = PoolState(tuple(map(int, members)), int(usage), int(lateness))
    if not all(0 <= action.tier < len(state.members) and action.change in (0, *STEPS) for action in values):
        raise ValueError("an action is none that there is")
    return state, values


def _advice(chosen: Scaling, why: str) -> ScalingAdvice | None:
    return None if chosen == NO_CHANGE else ScalingAdvice(chosen.tier, chosen.change, why)
