"""Selection of ports: redundancy first, then the least used; every pick tells how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.candidates import NONE, Candidates, Level, Mode, PortId

Ports = NDArray[np.intp]


class Affinity(NamedTuple):
    """How many more ports each entity of a level is to get; stands before the level's own filter."""

    level: str
    budget: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Carried:
    """What one selection hands on to the next: by level, the entities used in its round and the one used last."""

    used: Mapping[str, Sequence[str]] = field(default_factory=dict)
    last: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for.

    Ports `previously_allocated` count and come first. Entities that are `carried` are avoided; those that other
    requests used `lately` only decide among ports that are used equally.
    """

    count: int
    allow_fewer: bool = False
    previously_allocated: Sequence[PortId] = ()
    carried: Carried = field(default_factory=Carried)
    lately: Carried = field(default_factory=Carried)
    affinity: Affinity | None = None
    mode: Mode = Mode.DEFAULT

    def fewer(self) -> Wish:
        """Return the same wish, content with fewer ports."""
        return replace(self, allow_fewer=True)


class Filtered(NamedTuple):
    """What one level left: `ports` in input order, and why it took some out or did not."""

    level: str
    ports: Ports
    reason: str


class PortPick(NamedTuple):
    """One pick. `tied` are the ports that were used as little as the chosen one, which is the first in input order of
    those on entities that other requests did not use lately."""

    chosen: PortId
    filters: tuple[Filtered, ...]
    tied: Ports
    reason: str


class PortSelection(NamedTuple):
    """Ports in the order of their allocation, the picks among them, and what the next selection should know.

    `carried` is for the next network of the same request, `lately` for other requests.
    """

    ports: tuple[PortId, ...]
    steps: tuple[PortPick, ...]
    carried: Carried
    lately: Carried
    available: int
    requested: int

    @property
    def enough(self) -> bool:
        """Whether there are as many as were asked for."""
        return len(self.ports) >= self.requested


class TooFewPortsError(Exception):
    """There are not as many ports as were asked for."""

    def __init__(self, requested: int, allocated: int, available: int) -> None:
        super().__init__(f"{requested} ports requested, {allocated} allocated, {available} available")
        self.requested, self.allocated, self.available = requested, allocated, available


class _Rounds:
    """Which entities of one level were used in its present round."""

    def __init__(self, level: Level, connected: Ports, carried: Carried, mode: Mode) -> None:
        self.level = level
        self._mode = mode
        entities = len(level.entities)
        codes = level.codes[connected] if mode is Mode.DEFAULT else level.codes
        self._left = np.bincount(codes[codes != NONE], minlength=entities)
        self._used = np.zeros(entities, np.bool_)
        self._ever = np.zeros(entities, np.bool_)
        self._last = level.numbers.get(carried.last.get(level.name), NONE)
        used = carried.used.get(level.name, ())
        self._outside = [entity for entity in used if entity not in level.numbers]
        for entity in used:
            if entity in level.numbers:
                self._used[level.numbers[entity]] = self._ever[level.numbers[entity]] = True

    def filter(self, ports: Ports) -> Filtered:
        """Return what is left of `ports` without those on entities used already."""
        name, codes = self.level.name, self.level.codes[ports]
        if not self.level.entities:
            return Filtered(name, ports, "no port has one")
        avoided, reason = self._used, "entities used in this round are avoided"
        if not (~self._used & (self._left > 0)).any():
            self._used[:] = False
            if self._mode is Mode.VIPR:
                return Filtered(name, ports, "all are used: a new round, no filter")
            avoided, reason = self._used.copy(), "all are used: a new round, the one used last is avoided"
            if self._last != NONE:
                avoided[self._last] = True
        without = codes == NONE
        keep = ~avoided[codes] | without
        if self._mode is Mode.VIPR:
            keep &= ~without
        if keep.all():
            return Filtered(name, ports, "none is on a used one")
        if not keep.any():
            return Filtered(name, ports, "every one left is used: no filter")
        return Filtered(name, ports[keep], reason)

    def among(self, ports: Ports) -> Ports:
        """Return those of equally used ports that are on entities not used in this round, all where none is."""
        codes = self.level.codes[ports]
        self._left = np.bincount(codes[codes != NONE], minlength=len(self.level.entities))
        return self.filter(ports).ports

    def mark(self, port: int, *, allocatable: bool) -> None:
        """Note that a port was allocated; `allocatable` where it was counted among those that can be."""
        code = int(self.level.codes[port])
        if code == NONE:
            return
        self._used[code] = self._ever[code] = True
        self._last = code
        if allocatable and self._mode is Mode.DEFAULT:
            self._left[code] -= 1

    def used(self) -> tuple[str, ...]:
        """Return the entities that the next network should avoid: of this round, or in mode `vipr` of all rounds."""
        marked = self._ever if self._mode is Mode.VIPR else self._used
        return (*self._outside, *(self.level.entities[code] for code in np.flatnonzero(marked).tolist()))

    def last(self) -> str | None:
        """Return the entity used last, None where none was."""
        return None if self._last == NONE else self.level.entities[self._last]


def select(candidates: Candidates, wish: Wish) -> PortSelection:
    """Return the ports to allocate.

    Parameters
    ----------
    candidates
        Ports that passed status and ceilings, and those that are not connected.
    wish
        What is asked for; the names in it are those of `candidates`, affinity names one of its levels.

    Returns
    -------
    PortSelection
        At each pick the connected ports that are left pass the levels in their order. A level keeps those on entities
        that it did not use in this round; where that leaves none, it keeps all. When every entity that still has a
        port is used, a new round begins, and only the entity used last is avoided. A port without an entity passes.
        Of those that remain the least used is taken; among equals one on entities that other requests did not use
        lately, and of these the first in input order.

    Raises
    ------
    TooFewPortsError
        Too few ports, where fewer are not allowed.
    KeyError
        A port or level is not known.

    Notes
    -----
    Metrics based port selection, "Port Allocation Algorithm". Mode `vipr` does as the published code: entities of
    ports that are not connected count too, the pick that begins a round is not filtered and may take the entity used
    last, a port without an entity goes where another has an unused one, and one port without a metric puts all back
    to volumes.
    """
    free = candidates.connected.copy()
    previous = [candidates.numbers[name] for name in dict.fromkeys(wish.previously_allocated)]
    rounds = [_Rounds(level, np.flatnonzero(free), wish.carried, wish.mode) for level in candidates.levels]
    others = [_Rounds(level, np.flatnonzero(free), wish.lately, Mode.DEFAULT) for level in candidates.levels]
    for port in previous:
        for each in rounds:
            each.mark(port, allocatable=bool(free[port]))
        free[port] = False
    ranks, lacking = candidates.ranks(wish.mode), candidates.by_volumes(wish.mode)
    affinity = None if wish.affinity is None else _Budget(candidates, wish.affinity)
    chosen = list(previous)
    steps: list[PortPick] = []
    left = np.flatnonzero(free)
    while len(chosen) < wish.count and left.size:
        filters: list[Filtered] = []
        ports = left
        for each in rounds:
            if affinity is not None and affinity.level is each.level:
                filters.append(affinity.filter(ports))
                ports = filters[-1].ports
            filters.append(each.filter(ports))
            ports = filters[-1].ports
        rank = ranks[ports]
        tied = ports[rank == rank.min()]
        first = tied
        if wish.lately.used and len(tied) > 1:
            for each in others:
                first = each.among(first)
        port = int(first[0])
        reason = _reason(candidates, lacking, ports, tied, port)
        steps.append(PortPick(candidates.ids[port], tuple(filters), tied, reason))
        chosen.append(port)
        left = left[left != port]
        for each in rounds:
            each.mark(port, allocatable=True)
        for each in others:
            each.mark(port, allocatable=False)
        if affinity is not None:
            affinity.spend(port)
    if len(chosen) < wish.count and not wish.allow_fewer:
        raise TooFewPortsError(wish.count, len(chosen), int(candidates.connected.sum()))
    names = tuple(candidates.ids[port] for port in chosen)
    carried, lately = _handed_on(wish.carried, rounds), _handed_on(wish.lately, others)
    return PortSelection(names, tuple(steps), carried, lately, int(candidates.connected.sum()), wish.count)


def _handed_on(before: Carried, rounds: Sequence[_Rounds]) -> Carried:
    return Carried(
        {**before.used, **{each.level.name: each.used() for each in rounds}},
        {**before.last, **{each.level.name: last for each in rounds if (last := each.last()) is not None}},
    )


class _Budget:
    """The budgets of an affinity, spent by each pick."""

    def __init__(self, candidates: Candidates, affinity: Affinity) -> None:
        levels = [level for level in candidates.levels if level.name == affinity.level]
        if not levels:
            raise KeyError(affinity.level)
        self.level = levels[0]
        self._left = np.zeros(len(self.level.entities) + 1, np.int64)
        for entity, amount in affinity.budget.items():
            if entity in self.level.numbers:
                self._left[self.level.numbers[entity]] = min(amount, len(candidates))

    def filter(self, ports: Ports) -> Filtered:
        name = f"{self.level.name} affinity"
        keep = self._left[self.level.codes[ports]] > 0
        if keep.all() or not keep.any():
            return Filtered(name, ports, "all have budget" if keep.any() else "no budget left: no filter")
        return Filtered(name, ports[keep], "entities with budget are preferred")

    def spend(self, port: int) -> None:
        code = self.level.codes[port]
        if self._left[code] > 0:
            self._left[code] -= 1


def _reason(candidates: Candidates, lacking: NDArray[np.bool_], ports: Ports, tied: Ports, port: int) -> str:
    if lacking[port]:
        least = f"fewest volumes ({candidates.volumes[port]:g}), compared without metrics"
    else:
        least = f"least usage ({candidates.usage_pct[port]:g} %)"
    reason = f"{least} of {len(ports)}" if len(ports) > 1 else f"the only one left, {least}"
    if len(tied) == 1:
        return reason
    why = "first in input order" if port == int(tied[0]) else "elsewhere than what other requests took lately"
    return f"{reason}; tied with {len(tied) - 1}, {why}"
