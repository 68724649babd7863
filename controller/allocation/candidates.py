"""Ports that may be allocated, in columns: what they use, and to which failure domains they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from enum import StrEnum
from types import MappingProxyType
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

PortId: TypeAlias = str | int
"""What a port is called."""

NONE = -1
"""The code of a port that has no entity at a level."""


class Mode(StrEnum):
    """How rounds of entities and ports without metrics are treated."""

    DEFAULT = "default"
    VIPR = "vipr"


class Level:
    """One kind of failure domain: the entity of each port, as a code."""

    __slots__ = ("codes", "entities", "name", "numbers")

    def __init__(self, name: str, entity_of_port: Sequence[str | None]) -> None:
        self.name = name
        numbers: dict[str | None, int] = {None: NONE}
        self.codes = np.fromiter(
            (numbers.setdefault(entity, len(numbers) - 1) for entity in entity_of_port),
            np.int32,
            len(entity_of_port),
        )
        del numbers[None]
        self.entities: list[str] = [entity for entity in numbers if entity is not None]
        self.numbers: Mapping[str | None, int] = numbers

    def narrowed(self, ports: NDArray[np.intp]) -> Self:
        """Return the level of some of the ports."""
        other = copy(self)
        other.codes = self.codes[ports]
        return other

    def entity(self, port: int) -> str | None:
        """Return the entity of a port."""
        code = int(self.codes[port])
        return None if code == NONE else self.entities[code]


class Candidates:
    """Ports of one network.

    Parameters
    ----------
    ids
        Names of the ports, all different; their order decides ties.
    usage_pct
        float64[ports], usage; NaN where a port has no valid metric.
    volumes
        float64[ports], volumes (attachments): what ports without valid metrics are compared by.
    connected
        bool[ports]; the others keep their entities and are never chosen.
    levels
        For each level, the highest priority first, the entity of each port; None where it has none.
    excluded
        Ports that are no candidates, each with the reason.

    Raises
    ------
    ValueError
        Lengths differ, or a port is named twice.
    """

    def __init__(
        self,
        ids: Sequence[PortId],
        usage_pct: NDArray[np.float64],
        volumes: NDArray[np.float64],
        connected: NDArray[np.bool_],
        levels: Mapping[str, Sequence[str | None]],
        excluded: Mapping[PortId, str] = MappingProxyType({}),
    ) -> None:
        n = len(ids)
        if {len(usage_pct), len(volumes), len(connected), *map(len, levels.values())} != {n}:
            raise ValueError("the columns of the ports differ in length")
        self.ids = list(ids)
        self.numbers = {name: number for number, name in enumerate(ids)}
        if len(self.numbers) != n:
            raise ValueError("a port is named twice")
        self.usage_pct, self.volumes, self.connected = usage_pct, volumes, connected
        self.excluded = excluded
        self.levels = [Level(name, entities) for name, entities in levels.items()]

    def __len__(self) -> int:
        return len(self.ids)

    def measured(self, usage_pct: NDArray[np.float64], volumes: NDArray[np.float64]) -> Self:
        """Return the same ports with other usage and volumes."""
        other = copy(self)
        other.usage_pct, other.volumes = usage_pct, volumes
        return other

    def narrowed(self, ports: NDArray[np.intp], connected: NDArray[np.bool_], excluded: Mapping[PortId, str]) -> Self:
        """Return some of the ports, by position, with what of these is connected; others are excluded besides."""
        other = self.measured(self.usage_pct[ports], self.volumes[ports])
        other.ids = [self.ids[port] for port in ports.tolist()]
        other.numbers = {name: number for number, name in enumerate(other.ids)}
        other.connected = connected
        other.levels = [level.narrowed(ports) for level in self.levels]
        other.excluded = {**self.excluded, **excluded}
        return other

    def raised(self, by_pct: NDArray[np.float64], by_volumes: NDArray[np.float64]) -> Self:
        """Return the same ports with more usage, or more volumes where these stand in for it."""
        return self.measured(self.usage_pct + by_pct, self.volumes + by_volumes)

    def by_volumes(self, mode: Mode) -> NDArray[np.bool_]:
        """Return which ports are compared by volumes: those without metrics; in mode `vipr` all if one is."""
        lacking: NDArray[np.bool_] = np.isnan(self.usage_pct)
        if mode is Mode.VIPR and lacking[self.connected].any():
            lacking = np.ones(len(self), np.bool_)
        return lacking

    def ranks(self, mode: Mode) -> NDArray[np.int64]:
        """Return each port's place among all by usage, equal usages sharing one; those without metrics are last."""
        lacking = self.by_volumes(mode)
        value = np.where(lacking, self.volumes, self.usage_pct)
        order = np.lexsort((value, lacking))
        rises = np.zeros(len(self), np.int64)
        rises[1:] = (value[order][1:] != value[order][:-1]) | (lacking[order][1:] != lacking[order][:-1])
        ranks = np.empty(len(self), np.int64)
        ranks[order] = np.cumsum(rises)
        return ranks
