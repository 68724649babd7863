"""The least rates of the queues at a port, from what is measured there and from the goals of their classes.

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
from controller.service_classes.rates import PortClass, needed_bps, queue_rates

UNMARKED_QUEUE = 0
"""Of packets that no entry is about."""

DEFAULT_PACKET_BYTES = 1500.0


class ManagedQueue(NamedTuple):
    """A queue of ports: its importance, its classes, and the goals that all that waits there shall meet."""

    queue_id: int
    importance: int
    classes: tuple[ServiceClass, ...]
    goals: tuple[Goal, ...]


class PortDecision(NamedTuple):
    """Least rates in bit/s by queue, and what is missing of needs."""

    min_rate_bps: dict[int, int]
    missing_bps: dict[int, int]


def managed_queues(classes: Iterable[ServiceClass]) -> tuple[ManagedQueue, ...]:
    """Return the queues that ports have for some classes, the most important first.

    The controller's own frames have one, and so has what is in no class, which is discretionary.
    """
    members: dict[int, list[ServiceClass]] = {CONTROLLER: [], DISCRETIONARY: []}
    for each in classes:
        members.setdefault(each.importance, []).append(each)
    return tuple(
        ManagedQueue(queue_of(importance), importance, tuple(found), _goals(found))
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


def floor_rates(queues: Iterable[ManagedQueue], capacity_bps: float, floor_pct: float) -> dict[int, int]:
    """Return the least rates of queues of which nothing is asked but the floor; that of unmarked packets has none."""
    alike = [PortClass(str(each.queue_id), each.importance, 0.0, DEFAULT_PACKET_BYTES) for each in queues]
    rates = queue_rates(capacity_bps, floor_pct, alike).min_rate_bps
    return {UNMARKED_QUEUE: 0, **{int(name): rate for name, rate in rates.items()}}


def decide(
    queues: Iterable[ManagedQueue],
    uses: Mapping[int, QueueUse],
    competing: Iterable[int],
    capacity_bps: float,
    floor_pct: float,
) -> PortDecision:
    """Return what the queues of a port are sure of.

    Parameters
    ----------
    queues
        All that the port has.
    uses
        What of them sent or dropped anything, in bit/s and packets/s.
    competing
        The queues among which the port is divided: those of its cluster. Others have no floor and no need here.
    capacity_bps, floor_pct
        Of the port; the floor in percent of the capacity.
    """
    among = set(competing)
    asked = [_demand(each, uses.get(each.queue_id), capacity_bps) for each in queues if each.queue_id in among]
    found = queue_rates(capacity_bps, floor_pct, asked)
    rates = {each.queue_id: 0 for each in queues}
    rates[UNMARKED_QUEUE] = 0
    rates |= {int(name): rate for name, rate in found.min_rate_bps.items()}
    return PortDecision(rates, {int(name): bps for name, bps in found.infeasible.items()})


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


def _demand(queue: ManagedQueue, use: QueueUse | None, capacity_bps: float) -> PortClass:
    """Return a queue as a class at the port, with the goal that needs most."""
    name = str(queue.queue_id)
    if use is None:
        return PortClass(name, queue.importance, 0.0, DEFAULT_PACKET_BYTES)
    plain = PortClass(name, queue.importance, use.offered_bps, use.packet_bytes or DEFAULT_PACKET_BYTES)
    if len(queue.goals) < 2:
        return plain._replace(goal=queue.goals[0]) if queue.goals else plain
    wanted = [plain._replace(goal=goal) for goal in queue.goals]
    return max(wanted, key=lambda each: needed_bps(each, capacity_bps), default=plain)


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
