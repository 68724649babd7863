"""Least rates of the queues at a port, from what classes offer and what their goals need."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypeVar

from controller.service_classes.goals import Goal, GoalKind

HEADROOM = 1.05
"""What is reserved per bit that must pass, for goals of loss and rate."""

DELAY_HEADROOM = 1.1
"""The same for goals of delay and velocity, beside what keeps the wait short."""

HYSTERESIS = 0.05
"""Part of a port's capacity by which a rate must change to be written."""

_ROUNDING_BPS = 1e-3

Name = TypeVar("Name", bound=Hashable)


class PortClass(NamedTuple):
    """A class at a port: its importance, 1 to 6, what it offers, and the size of its packets."""

    name: str
    importance: int
    offered_bps: float
    packet_bytes: float
    goal: Goal | None = None


class QueueRates(NamedTuple):
    """Rates in whole bit/s by class: what each is sure of, and what is missing of needs that do not fit."""

    min_rate_bps: dict[str, int]
    infeasible: dict[str, int]


def needed_bps(class_: PortClass, capacity_bps: float) -> int:
    """Return the rate that a class needs at a port to meet its goal, in whole bit/s; 0 where it has none."""
    goal, offered_bps = class_.goal, class_.offered_bps
    if goal is None or not offered_bps:
        return 0
    packet_bits = 8 * class_.packet_bytes
    match goal.kind:
        case GoalKind.LOSS:
            need = HEADROOM * offered_bps * (1 - goal.value / 100)
        case GoalKind.DELAY:
            need = DELAY_HEADROOM * offered_bps + packet_bits / (goal.value / 1000)
        case GoalKind.VELOCITY:
            moving = goal.value / 100
            need = DELAY_HEADROOM * offered_bps + capacity_bps * moving / (1 - moving)
        case GoalKind.RATE:
            need = HEADROOM * min(goal.value, offered_bps)
    return ceil(need - _ROUNDING_BPS)


def queue_rates(capacity_bps: float, floor_pct: float, classes: Sequence[PortClass]) -> QueueRates:
    """Return the least rates of the classes at one port.

    Everyone has the floor, or an equal share where the floors do not fit; beyond it classes have what they need, by
    importance and then in the order given, while there is some.

    Parameters
    ----------
    capacity_bps
        Of the port.
    floor_pct
        Of the capacity, 0 to 100.
    """
    if not classes:
        return QueueRates({}, {})
    floor = min(int(capacity_bps * floor_pct / 100), int(capacity_bps / len(classes)))
    left = int(capacity_bps) - floor * len(classes)
    rates = {class_.name: floor for class_ in classes}
    infeasible = {}
    for class_ in sorted(classes, key=lambda class_: class_.importance):
        beyond = max(0, needed_bps(class_, capacity_bps) - floor)
        granted = min(beyond, left)
        left -= granted
        rates[class_.name] += granted
        if granted < beyond:
            infeasible[class_.name] = beyond - granted
    return QueueRates(rates, infeasible)


def is_to_be_written(written: Mapping[Name, int], wanted: Mapping[Name, int], capacity_bps: float) -> bool:
    """Tell whether a port's rates differ by enough from those at the switch to be written, all of them together."""
    return written.keys() != wanted.keys() or any(
        abs(wanted[name] - rate) >= HYSTERESIS * capacity_bps for name, rate in written.items()
    )
