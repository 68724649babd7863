"""Least rates of the queues at a port, from what classes offer and what their goals need."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import ceil, inf
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


class Need(NamedTuple):
    """What a goal asks of a port, as parts that are added up.

    Attributes
    ----------
    per_offered, most_offered_bps
        Rate per bit/s that is offered, as far as that counts.
    per_packet_bit
        Rate in bit/s per bit of a packet.
    of_capacity
        Part of the port's capacity.
    """

    per_offered: float
    most_offered_bps: float = inf
    per_packet_bit: float = 0.0
    of_capacity: float = 0.0


def need_of(goal: Goal) -> Need:
    """Return what a goal asks of a port for a class that offers anything."""
    match goal.kind:
        case GoalKind.LOSS:
            return Need(HEADROOM * (1 - goal.value / 100))
        case GoalKind.DELAY:
            return Need(DELAY_HEADROOM, per_packet_bit=1000 / goal.value)
        case GoalKind.VELOCITY:
            moving = goal.value / 100
            return Need(DELAY_HEADROOM, of_capacity=moving / (1 - moving))
        case GoalKind.RATE:
            return Need(HEADROOM, goal.value)


def needed_bps(needs: Iterable[Need], offered_bps: float, packet_bytes: float, capacity_bps: float) -> int:
    """Return the rate that meets the most demanding of some goals at a port, in whole bit/s; 0 without any offer."""
    if not offered_bps:
        return 0
    most = 0.0
    for per_offered, most_offered_bps, per_packet_bit, of_capacity in needs:
        counted_bps = offered_bps if offered_bps < most_offered_bps else most_offered_bps
        need = per_offered * counted_bps + per_packet_bit * 8 * packet_bytes + of_capacity * capacity_bps
        if need > most:
            most = need
    return ceil(most - _ROUNDING_BPS)


def share_out(capacity_bps: float, floor_pct: float, needed: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the least rates of some classes or queues at a port, and what is missing of their needs, in bit/s.

    Everyone has the floor, or an equal share where the floors do not fit; beyond it they have what they need, in the
    order given, while there is some.

    Parameters
    ----------
    floor_pct
        Of the capacity, 0 to 100.
    needed
        In bit/s, the most important first.
    """
    if not needed:
        return [], []
    floor = min(int(capacity_bps * floor_pct / 100), int(capacity_bps / len(needed)))
    left = int(capacity_bps) - floor * len(needed)
    rates, missing = [], []
    for need in needed:
        beyond = need - floor if need > floor else 0
        granted = beyond if beyond < left else left
        left -= granted
        rates.append(floor + granted)
        missing.append(beyond - granted)
    return rates, missing


def queue_rates(capacity_bps: float, floor_pct: float, classes: Sequence[PortClass]) -> QueueRates:
    """Return the least rates of the classes at one port, as `share_out` does: by importance, then in the order given.

    Parameters
    ----------
    capacity_bps, floor_pct
        Of the port, and of its capacity, 0 to 100.
    """
    ordered = sorted(classes, key=lambda class_: class_.importance)
    needed = [
        needed_bps(
            () if each.goal is None else (need_of(each.goal),), each.offered_bps, each.packet_bytes, capacity_bps
        )
        for each in ordered
    ]
    rates, missing = share_out(capacity_bps, floor_pct, needed)
    found = {each.name: rate for each, rate in zip(ordered, rates, strict=True)}
    return QueueRates(
        {each.name: found[each.name] for each in classes},
        {each.name: lacking for each, lacking in zip(ordered, missing, strict=True) if lacking},
    )


def is_to_be_written(written: Mapping[Name, int], wanted: Mapping[Name, int], capacity_bps: float) -> bool:
    """Tell whether a port's rates differ by enough from those at the switch to be written, all of them together."""
    if written.keys() != wanted.keys():
        return True
    least_bps = HYSTERESIS * capacity_bps
    for name, rate in written.items():
        change_bps = wanted[name] - rate
        if change_bps >= least_bps or change_bps <= -least_bps:
            return True
    return False
