"""The queues that ports have for classes, and how far they are from what their classes want.

Classes of one importance wait in one queue, so a goal of one is a goal of all of them: the queue needs what the most
demanding needs for all that waits there, and for goals of a rate what they want together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from controller.config.service_classes import ServiceClass
from controller.queues.measures import QueueUse
from controller.service_classes.goals import CONTROLLER, DISCRETIONARY, Goal, GoalKind, performance_index, queue_of

UNMARKED_QUEUE = 0
"""Of packets that no entry is about."""

DEFAULT_PACKET_BYTES = 1500.0


class ManagedQueue(NamedTuple):
    """A queue of ports: its classes, and the goals that all that waits there shall meet."""

    queue_id: int
    classes: tuple[ServiceClass, ...]
    goals: tuple[Goal, ...]


def managed_queues(classes: Iterable[ServiceClass]) -> tuple[ManagedQueue, ...]:
    """Return the queues that ports have for some classes, the most important first.

    The controller's own frames have one, and so has what is in no class, which is discretionary.
    """
    members: dict[int, list[ServiceClass]] = {CONTROLLER: [], DISCRETIONARY: []}
    for each in classes:
        members.setdefault(each.importance, []).append(each)
    return tuple(
        ManagedQueue(queue_of(importance), tuple(found), _goals(found))
        for importance, found in sorted(members.items())
    )


def _goals(classes: Iterable[ServiceClass]) -> tuple[Goal, ...]:
    """Return the goals of classes that wait in one queue: of each kind the most demanding, of rates the sum."""
    found: dict[GoalKind, float] = {}
    for each in classes:
        if each.goal is None:
            continue
        kind, value = each.goal
        match kind:
            case GoalKind.RATE:
                found[kind] = found.get(kind, 0.0) + value
            case GoalKind.VELOCITY:
                found[kind] = max(found.get(kind, 0.0), value)
            case GoalKind.LOSS | GoalKind.DELAY:
                found[kind] = min(found.get(kind, inf), value)
    return tuple(Goal(kind, value) for kind, value in found.items())


def performance(
    queues: Iterable[ManagedQueue], uses: Mapping[int, QueueUse], rates: Mapping[int, int], capacity_bps: float
) -> dict[int, float]:
    """Return how far each queue of a port that has goals, and sends, is from the one that it misses most.

    Above 1 a goal is missed (`goals.performance_index`). What is not counted, waits, is estimated: those of M/M/1 at
    the rate that a queue can have.
    """
    return {
        each.queue_id: _index(each, use, _available_bps(each.queue_id, rates, uses, capacity_bps), capacity_bps)
        for each in queues
        if each.goals and (use := uses.get(each.queue_id)) is not None
    }


def _available_bps(
    queue_id: int, rates: Mapping[int, int], uses: Mapping[int, QueueUse], capacity_bps: float
) -> float:
    """Return what a queue can send at: what it is sure of, and what more important ones and sure rates leave."""
    left_bps = capacity_bps
    for other, use in uses.items():
        if other > queue_id:
            left_bps -= use.tx_bps
        elif other < queue_id:
            left_bps -= min(use.tx_bps, rates.get(other, 0))
    return max(float(rates[queue_id]), left_bps)


def _index(queue: ManagedQueue, use: QueueUse, available_bps: float, capacity_bps: float) -> float:
    packet_bits = 8 * (use.packet_bytes or DEFAULT_PACKET_BYTES)
    spare_bps = available_bps - use.offered_bps
    wait_s = packet_bits / spare_bps if spare_bps > 0 else inf
    sending_s = packet_bits / capacity_bps
    worst = 0.0
    for goal in queue.goals:
        match goal.kind:
            case GoalKind.LOSS:
                measured = use.loss_pct
            case GoalKind.DELAY:
                measured = 1000 * wait_s
            case GoalKind.VELOCITY:
                measured = 100 * sending_s / (sending_s + wait_s)
            case GoalKind.RATE:
                measured = use.tx_bps
        worst = max(worst, performance_index(goal, measured, use.offered_bps))
    return worst
