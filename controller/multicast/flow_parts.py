"""Parts of flows: what the senders of a group at one switch send, divided by a hash of addresses and ports."""

from __future__ import annotations

from typing import NamedTuple

from controller.multicast.rate_meter import CounterReading, RateMeter
from controller.rules.model import FLOW_PARTS

RATE_CHANGE = 0.2
"""A measured rate is news to the trees when it differs by this fraction."""


class PartKey(NamedTuple):
    """A part of the flows that a group's senders at a switch send."""

    dpid: int
    part: int


class FlowParts:
    """The parts of a group's flows at a switch, and the tree that each takes.

    Attributes
    ----------
    trees
        The number of the tree of each part.
    rates_bps
        What each part sends: an equal share of `total_bps` before it was measured.
    is_used
        Whether the entries of the senders at the switch divide their packets.
    is_leaving
        Whether they are to do so no more.
    """

    __slots__ = ("_meters", "is_leaving", "is_used", "rates_bps", "trees")

    def __init__(self, trees: list[int], total_bps: float) -> None:
        self.trees = trees
        self.rates_bps = [total_bps / FLOW_PARTS] * FLOW_PARTS
        self.is_used = self.is_leaving = False
        self._meters = [RateMeter() for _ in range(FLOW_PARTS)]

    def rate_of(self, number: int) -> float:
        """Return what all parts that take a tree send, in bit/s."""
        return sum([rate for tree, rate in zip(self.trees, self.rates_bps, strict=True) if tree == number], 0.0)

    def measured(self, part: int, reading: CounterReading) -> bool:
        """Take in what the entry of a part counted; True where its rate is news to the trees."""
        meter = self._meters[part]
        meter.take(reading)
        if meter.rate_bps is None:
            return False
        placed_bps = self.rates_bps[part]
        if abs(meter.rate_bps - placed_bps) <= RATE_CHANGE * max(placed_bps, 1.0):
            return False
        self.rates_bps[part] = meter.rate_bps
        return True
