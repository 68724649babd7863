"""Goals of service classes, and how far a class is from its goal."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from typing import NamedTuple

MOST_IMPORTANT, DISCRETIONARY = 1, 6
"""Importance of classes of the policy; the last has no goal. 0 is the controller's own traffic."""

CONTROLLER = 0


class GoalKind(StrEnum):
    """What a goal is about; the value is its key in the policy file and in documents."""

    LOSS = "loss_pct"
    DELAY = "delay_ms"
    VELOCITY = "velocity_pct"
    RATE = "rate_bps"


class Goal(NamedTuple):
    """What a class shall have: loss in percent, mean wait at a port in ms, velocity in percent, or rate in bit/s.

    Velocity is the time spent sending over the time spent sending and waiting.
    """

    kind: GoalKind
    value: float


GOAL_BOUNDS: dict[GoalKind, tuple[float, float]] = {
    GoalKind.LOSS: (0.0, 99.999),
    GoalKind.DELAY: (0.001, 60_000.0),
    GoalKind.VELOCITY: (0.1, 99.9),
    GoalKind.RATE: (1.0, 1e13),
}
"""Least and greatest value of each kind, both allowed."""


def performance_index(goal: Goal, measured: float, offered_bps: float = inf) -> float:
    """Return how far a class is from its goal: at most 1 where it is met, infinite where it could not be farther.

    Parameters
    ----------
    measured
        In the goal's unit.
    offered_bps
        What the class offers: no more than that counts as missing of a rate.
    """
    if goal.kind in (GoalKind.LOSS, GoalKind.DELAY):
        return _ratio(measured, goal.value)
    wanted = min(goal.value, offered_bps) if goal.kind is GoalKind.RATE else goal.value
    return _ratio(wanted, measured)


def queue_of(importance: int) -> int:
    """Return the queue of an importance from 0 to 6: 7 to 1; 0 is left for what is unmarked."""
    if not CONTROLLER <= importance <= DISCRETIONARY:
        raise ValueError(f"importance {importance} is not from {CONTROLLER} to {DISCRETIONARY}")
    return 7 - importance


def _ratio(part: float, whole: float) -> float:
    if whole > 0:
        return part / whole
    return inf if part > 0 else 0.0
