"""How busy the ports between switches are, by which paths of equal length are taken the less often the busier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

FULL_LEVEL: Final = 10
"""The level of a port that is full; one that is idle has 0."""

IDLE: Final[Mapping[int, int]] = {}


class PortsWeighed(NamedTuple):
    """How busy some ports are: (datapath id, port number, level). Of ports that are not named nothing is new."""

    ports: tuple[tuple[int, int, int], ...]


class PortLevels:
    """The levels of ports that are not idle, by switch."""

    def __init__(self) -> None:
        self._of_switch: dict[int, dict[int, int]] = {}

    def of(self, dpid: int) -> Mapping[int, int]:
        """Return the levels of a switch's ports by their numbers; a port that is not there is idle."""
        return self._of_switch.get(dpid, IDLE)

    def take(self, ports: Iterable[tuple[int, int, int]]) -> set[int]:
        """Take levels, and return the switches at which one is another than before."""
        changed: set[int] = set()
        for dpid, port_no, level in ports:
            levels = self._of_switch.setdefault(dpid, {})
            if levels.get(port_no, 0) != level:
                changed.add(dpid)
                if level:
                    levels[port_no] = level
                else:
                    del levels[port_no]
            if not levels:
                del self._of_switch[dpid]
        return changed


def weight(level: int) -> int:
    """Return how often a port is taken beside others: as often as it has room, a full one a tenth as often."""
    return max(1, FULL_LEVEL - level)
