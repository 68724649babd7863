"""Least rates of the queues at a port, from what classes offer and what their goals need."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controller.service_classes.goals import Goal, GoalKind

HEADROOM = 1.05
"""What is reserved per bit that must pass, for goals of loss and rate."""

DELAY_HEADROOM = 1.1
"""The same for goals of delay and velocity, beside what keeps the wait short."""

HYSTERESIS = 0.05
"""Part of a port's capacity by which a rate must change to be written."""

MARGIN = 1.01
"""By how much a queue is sure of more than what comes to it at least, and a rate of less than is wanted at most."""

_ROUNDING_BPS = 1e-3

Values = NDArray[np.float64]


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


class _Need(NamedTuple):
    """What a goal asks of a port, as parts that are added up.

    Attributes
    ----------
    per_offered, most_offered_bps
        Rate per bit/s that is offered, as far as that counts.
    per_packet_byte
        Rate in bit/s per byte of a packet.
    of_capacity
        Part of the port's capacity.
    """

    per_offered: float = 0.0
    most_offered_bps: float = inf
    per_packet_byte: float = 0.0
    of_capacity: float = 0.0


def _need_of(goal: Goal) -> _Need:
    match goal.kind:
        case GoalKind.LOSS:
            return _Need(HEADROOM * (1 - goal.value / 100))
        case GoalKind.DELAY:
            return _Need(DELAY_HEADROOM, per_packet_byte=8 * (1000 / goal.value))
        case GoalKind.VELOCITY:
            moving = goal.value / 100
            return _Need(DELAY_HEADROOM, of_capacity=moving / (1 - moving))
        case GoalKind.RATE:
            return _Need(HEADROOM, goal.value)


class GoalNeeds:
    """What the goals of some classes or queues ask of ports; of several goals of one the most demanding counts."""

    def __init__(self, goals: Sequence[Sequence[Goal]]) -> None:
        depth = max(map(len, goals), default=0)
        asked = [[_need_of(each) for each in found] + [_Need()] * (depth - len(found)) for found in goals]
        self._layers = [
            tuple(np.array(column) for column in zip(*layer, strict=True)) for layer in zip(*asked, strict=True)
        ]

    def bps(self, offered_bps: Values, packet_bytes: Values, capacity_bps: Values) -> Values:
        """Return the rates that meet the goals, in whole bit/s; 0 where nothing is offered.

        Parameters
        ----------
        offered_bps, packet_bytes
            By port and queue, shape (ports, queues), the queues in the order of the goals.
        capacity_bps
            Of the ports, shape (ports, 1).
        """
        most: Values | None = None
        for per_offered, most_offered_bps, per_packet_byte, of_capacity in self._layers:
            need = np.minimum(offered_bps, most_offered_bps)
            need *= per_offered
            need += per_packet_byte * packet_bytes
            need += of_capacity * capacity_bps
            most = need if most is None else np.maximum(most, need, out=most)
        if most is None:
            return np.zeros_like(offered_bps)
        most -= _ROUNDING_BPS
        np.ceil(most, out=most)
        most *= offered_bps > 0
        return most


class PortFloors(NamedTuple):
    """What is sure at ports before needs are looked at, in whole bit/s.

    Attributes
    ----------
    floor_bps
        What each queue is sure of, shape (ports, queues); 0 for those that do not compete.
    met_bps
        Needs up to which each queue asks for nothing more, of the same shape: the floor, infinite for those that do
        not compete.
    left_bps
        What floors leave of each port, shape (ports, 1).
    """

    floor_bps: Values
    met_bps: Values
    left_bps: Values


def port_floors(capacity_bps: Values, floor_pct: float, competing: NDArray[np.bool_]) -> PortFloors:
    """Return the floors at ports: `floor_pct` of the capacity, or equal shares where these do not fit.

    Parameters
    ----------
    capacity_bps
        Shape (ports, 1).
    floor_pct
        0 to 100.
    competing
        Which queues share a port, shape (ports, queues). Others have no floor and no need there.
    """
    count = competing.sum(axis=1, keepdims=True)
    equal_bps = np.floor(capacity_bps / np.maximum(count, 1))
    floor_bps = np.minimum(np.floor(capacity_bps * floor_pct / 100), equal_bps)
    left_bps = np.floor(capacity_bps) - floor_bps * count
    return PortFloors(np.where(competing, floor_bps, 0.0), np.where(competing, floor_bps, inf), left_bps)


def share_out(sure: PortFloors, needed_bps: Values) -> tuple[Values, Values]:
    """Return the least rates of the queues of ports, and what is missing of their needs, in whole bit/s.

    Beyond floors queues have what they need, in the order given, while there is some.

    Parameters
    ----------
    needed_bps
        Shape (ports, queues), the most important queue first; results have the same.
    """
    beyond = needed_bps - sure.met_bps
    np.maximum(beyond, 0.0, out=beyond)
    up_to_here = beyond.cumsum(axis=1)
    np.minimum(up_to_here, sure.left_bps, out=up_to_here)
    granted = up_to_here.copy()
    granted[:, 1:] -= up_to_here[:, :-1]
    beyond -= granted
    granted += sure.floor_bps
    return granted, beyond


def queue_rates(capacity_bps: float, floor_pct: float, classes: Sequence[PortClass]) -> QueueRates:
    """Return the least rates of the classes at one port, as `share_out` does: by importance, then in the order given.

    Parameters
    ----------
    capacity_bps, floor_pct
        Of the port, and of its capacity, 0 to 100.
    """
    if not classes:
        return QueueRates({}, {})
    ordered = sorted(classes, key=lambda class_: class_.importance)
    capacity = np.array([[capacity_bps]], dtype=np.float64)
    offered_bps = np.array([[each.offered_bps for each in ordered]], dtype=np.float64)
    packet_bytes = np.array([[each.packet_bytes for each in ordered]], dtype=np.float64)
    needs = GoalNeeds([() if each.goal is None else (each.goal,) for each in ordered])
    sure = port_floors(capacity, floor_pct, np.ones(offered_bps.shape, dtype=np.bool_))
    rates, missing = share_out(sure, needs.bps(offered_bps, packet_bytes, capacity))
    found = {each.name: int(rate) for each, rate in zip(ordered, rates[0].tolist(), strict=True)}
    return QueueRates(
        {each.name: found[each.name] for each in classes},
        {each.name: int(lacking) for each, lacking in zip(ordered, missing[0].tolist(), strict=True) if lacking},
    )


def are_to_be_written(written_bps: Values, wanted_bps: Values, capacity_bps: ArrayLike) -> NDArray[np.bool_]:
    """Tell at which ports a rate differs by enough from the switch's for all of the port to be written.

    Parameters
    ----------
    written_bps, wanted_bps
        Shape (ports, queues).
    capacity_bps
        Shape (ports, 1), or one of all ports.

    Returns
    -------
    numpy.ndarray
        Shape (ports,).
    """
    change_bps = np.abs(wanted_bps - written_bps)
    return np.asarray((change_bps >= HYSTERESIS * np.asarray(capacity_bps)).any(axis=1))


def are_short(written_bps: Values, wanted_bps: Values, offered_bps: Values) -> NDArray[np.bool_]:
    """Tell at which ports a queue is sure of too little for what comes to it, and shall be sure of more.

    There a rate is to be written however little it changes: the queue would fill, and its class miss its goal, for
    as long as it offers the same.

    Parameters
    ----------
    written_bps, wanted_bps, offered_bps
        Shape (ports, queues).

    Returns
    -------
    numpy.ndarray
        Shape (ports,).
    """
    short = np.minimum(MARGIN * offered_bps, wanted_bps / MARGIN) > written_bps
    return np.asarray(short.any(axis=1))
