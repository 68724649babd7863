"""How much a group waits and how full it is, from what the directed links of its trees carry."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import inf
from typing import NamedTuple

MAX_QUEUE = 100.0
"""Packets that count as waiting at one port at most, and where it drops."""

WAITING_SHARE = 0.2
"""Share of arrivals that find all trees of a group busy where its utilisation is only just acceptable."""

LEAST_GAIN = 0.05
"""Part by which one more tree must lower the utilisation of a group's fullest link to be worth it."""


class LinkUse(NamedTuple):
    """What one directed link of a group's trees carries, in bit/s; `load_bps` holds `own_bps`."""

    own_bps: float
    load_bps: float
    capacity_bps: float
    is_dropping: bool = False


def link_queue(load_bps: float, capacity_bps: float, is_dropping: bool = False) -> float:
    """Return the mean number of packets that wait for a link, 0 to `MAX_QUEUE` (M/M/1)."""
    if is_dropping or load_bps >= capacity_bps:
        return MAX_QUEUE
    busy = load_bps / capacity_bps
    return min(MAX_QUEUE, busy * busy / (1 - busy))


def group_queue(uses: Iterable[LinkUse]) -> float:
    """Return the packets of a group that wait, summed over its links, so that a single hot link shows."""
    return sum(
        link_queue(use.load_bps, use.capacity_bps, use.is_dropping) * use.own_bps / use.load_bps
        for use in uses
        if use.load_bps > 0
    )


def group_utilisation(uses: Iterable[LinkUse]) -> float:
    """Return the greatest part that a group takes of what others leave of a link.

    A link of which others leave nothing counts as if it were the group's alone: others have to be moved from there,
    and no number of trees of this group changes that.
    """
    greatest = 0.0
    for use in uses:
        if use.own_bps > 0:
            left_bps = use.capacity_bps - (use.load_bps - use.own_bps)
            if left_bps <= 0:
                left_bps = use.capacity_bps
            greatest = max(greatest, use.own_bps / left_bps if left_bps > 0 else inf)
    return greatest


def waiting_probability(servers: int, utilisation: float) -> float:
    """Return the share of arrivals that wait for one of `servers`, each busy for `utilisation`, 0 to 1 (Erlang C)."""
    if utilisation >= 1:
        return 1.0
    offered, blocked = servers * utilisation, 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - utilisation * (1 - blocked))


@lru_cache(maxsize=256)
def acceptable_utilisation(servers: int) -> float:
    """Return the utilisation, 0 to 1, at which `WAITING_SHARE` of what arrives at so many servers waits.

    Raises
    ------
    ValueError
        For fewer than one server.
    """
    if servers < 1:
        raise ValueError(f"{servers} servers; at least 1 is needed")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if waiting_probability(servers, middle) < WAITING_SHARE:
            low = middle
        else:
            high = middle
    return low


def can_spare_tree(trees: int, utilisation: float) -> bool:
    """Tell whether a group with so many trees, one of them so full, would hardly wait with one tree less."""
    return trees > 1 and utilisation * trees / (trees - 1) < acceptable_utilisation(trees - 1)


def is_gain(fullest_before: float, fullest_after: float) -> bool:
    """Tell whether one more tree lowers the utilisation of a group's fullest link by enough."""
    return fullest_after <= fullest_before * (1 - LEAST_GAIN)
