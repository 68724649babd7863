"""Which switches are next: by phases, tiers, and what redundancy groups can spare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, floor

from controller.maintenance.groups import RedundancyGroup

PHASES_PCT = (0, 10, 20, 100)
"""Phases end when so much of all switches is done; the first one is a single switch."""

_ROUNDING = 1e-9


def phase_ends(count: int) -> tuple[int, ...]:
    """Return after how many switches of `count` each phase ends; those without a switch of their own are left out."""
    ends = {min(count, max(1, ceil(count * pct / 100 - _ROUNDING))) for pct in PHASES_PCT}
    return tuple(sorted(ends)) if count else ()


def least_ready(size: int, min_ready_pct: float) -> int:
    """Return how many switches of a group of `size` have to stay in use."""
    return floor(size * min_ready_pct / 100 + _ROUNDING)


def next_switches(
    waiting: Mapping[RedundancyGroup, Sequence[int]],
    spare: Mapping[RedundancyGroup, int],
    width: Mapping[RedundancyGroup, int],
    room: int,
    may_begin: Callable[[int], bool],
    tries: int | None = None,
) -> Iterator[int]:
    """Yield the switches to begin now, at most `room`; each as if those before it had begun.

    The group with most waves left is first, so that none is left over at the end.

    Parameters
    ----------
    waiting
        The switches that are to be begun in this tier, by group.
    spare
        How many more switches each group can do without now; 0 or less for none.
    width
        How many it can do without at best.
    may_begin
        Tells whether a switch can be done without; asked once for each, in the order of their turns.
    tries
        Of how many it is asked; None for as many as there are.
    """
    left = {group: list(switches) for group, switches in waiting.items()}
    can = Counter(spare)
    asked = 0
    while room > 0 and asked != tries:
        ready = [group for group, switches in left.items() if switches and can[group] > 0]
        if not ready:
            return
        group = min(ready, key=lambda group: (-ceil(len(left[group]) / max(1, width[group])), group))
        dpid = left[group].pop(0)
        asked += 1
        if may_begin(dpid):
            can[group] -= 1
            room -= 1
            yield dpid


def widths(sizes: Mapping[RedundancyGroup, int], min_ready_pct: float) -> dict[RedundancyGroup, int]:
    """Return how many switches groups of these sizes can do without at a time."""
    return {group: size - least_ready(size, min_ready_pct) for group, size in sizes.items()}


def waves(
    groups: Mapping[int, RedundancyGroup], width: Mapping[RedundancyGroup, int], max_concurrent: int
) -> list[list[int]]:
    """Return the switches by waves, were all of a wave to end at once; `width` is 1 at least for each group."""
    sizes = Counter(groups.values())
    left: dict[RedundancyGroup, list[int]] = {group: [] for group in sorted(sizes)}
    for dpid in sorted(groups):
        left[groups[dpid]].append(dpid)
    found: list[list[int]] = []
    done = 0
    for end in phase_ends(len(groups)):
        while done < end:
            rank = min(group.rank for group, switches in left.items() if switches)
            tier = {group: switches for group, switches in left.items() if group.rank == rank}
            room = min(max_concurrent, end - done)
            wave = list(next_switches(tier, width, width, room, lambda _dpid: True))
            for dpid in wave:
                left[groups[dpid]].remove(dpid)
            done += len(wave)
            found.append(wave)
    return found


def least_waves(
    groups: Mapping[int, RedundancyGroup], width: Mapping[RedundancyGroup, int], max_concurrent: int
) -> int:
    """Return how many waves there are at least, by what phases, tiers and groups allow; no order has fewer."""
    sizes = Counter(groups.values())
    ranks = sorted({group.rank for group in sizes})
    tier_ends, count = [], 0
    for rank in ranks:
        count += sum(size for group, size in sizes.items() if group.rank == rank)
        tier_ends.append(count)
    cuts = sorted({*tier_ends, *phase_ends(len(groups))})
    total, start, at = Counter[int](), 0, 0
    for end in cuts:
        while end > tier_ends[at]:
            at += 1
        rank = ranks[at]
        at_once = min(max_concurrent, sum(width[group] for group in sizes if group.rank == rank))
        total[rank] += ceil((end - start) / at_once)
        start = end
    for group, size in sizes.items():
        total[group.rank] = max(total[group.rank], ceil(size / width[group]))
    return sum(total.values())
