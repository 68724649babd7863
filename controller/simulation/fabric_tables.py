"""Packets of groups over a fabric whose tables are too small for all: what misses, and who leaves for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from controller.overcommit.tables import GroupTables
from controller.simulation.data_centre import DataCentre, Ints
from controller.simulation.groups import SimulatedGroups
from controller.simulation.switch_state import cable_ends, entries_of_placed
from controller.simulation.table_trace import Trace
from controller.simulation.trees import TreeLinks


class FabricChoice(Protocol):
    """Chooses which groups are in at the switches of their trees."""

    readings: int

    def __contains__(self, group: int) -> bool:
        """Tell whether a group is in."""

    def hit(self, group: int) -> None:
        """Take in a packet of a group that is in."""

    def missed(self, group: int, now_s: float) -> bool:
        """Take in a packet of a group that is out, and return whether the group is to come in."""

    def find_leaving(self, group: int, now_s: float) -> Sequence[int] | None:
        """Return which groups leave for one that is to come in, None where it stays out after all."""

    def came_in(self, group: int, now_s: float) -> None:
        """Take in that a group is in."""

    def went_out(self, group: int) -> None:
        """Take in that a group is out."""

    def due(self, now_s: float) -> Sequence[int]:
        """Return which groups leave now, whoever comes."""


class FabricTraceResult(NamedTuple):
    """What became of the packets of a trace, counted after the warm-up.

    Attributes
    ----------
    packets, misses
        Packets in all, and those that found no entry.
    swaps_in, swaps_out
        Groups that got their entries, and that lost them.
    needing, victims
        Groups that came in where a table was full, and those that left for them at once.
    turned_away
        Misses of groups that were to come in, and stayed out since nobody was to leave for them.
    readings
        Times that counters were read.
    """

    packets: int
    misses: int
    swaps_in: int
    swaps_out: int
    needing: int
    victims: int
    turned_away: int
    readings: int

    def document(self) -> dict[str, Any]:
        """Return all, with `victims_per_need`; None where nobody needed any."""
        return {**self._asdict(), "victims_per_need": self.victims / self.needing if self.needing else None}


class WholeTrees:
    """The controller's choice: misses are seen at once, other packets when counters are read.

    Parameters
    ----------
    tables
        The fabric's, whose capacities are set.
    entries
        By group how many it needs at each switch.
    """

    def __init__(self, tables: GroupTables[int], entries: Sequence[Mapping[int, int]]) -> None:
        self.readings = 0
        self._tables = tables
        self._entries = entries
        self._counted: dict[int, int] = {}

    def __contains__(self, group: int) -> bool:
        return group in self._tables

    def hit(self, group: int) -> None:
        """Count a packet at its switch."""
        self._counted[group] = self._counted.get(group, 0) + 1

    def missed(self, group: int, now_s: float) -> bool:
        """Take a packet of a group that is out."""
        return self._tables.residence.missed(group, now_s)

    def find_leaving(self, group: int, now_s: float) -> Sequence[int] | None:
        """Return the groups that are expected to send least and free what is missing."""
        return self._tables.find_leaving(group, self._entries[group], now_s)

    def came_in(self, group: int, now_s: float) -> None:
        """Note that a group is in."""
        self._tables.came_in(group, self._entries[group], now_s)

    def went_out(self, group: int) -> None:
        """Note that a group is out."""
        self._tables.went_out(group)
        self._counted.pop(group, None)

    def due(self, now_s: float) -> Sequence[int]:
        """Read the counters when they are due, and have groups that have ended leave ahead of need."""
        return self._tables.take_ended() if self._is_read(now_s) else ()

    def _is_read(self, now_s: float) -> bool:
        """Read the counters if they are due, and tell whether they were."""
        residence = self._tables.residence
        if now_s < residence.next_reading_s():
            return False
        residence.read(self._counted, now_s)
        self._counted.clear()
        self.readings += 1
        return True


def run_fabric_trace(
    trace: Trace, choice: FabricChoice, *, latency_s: float = 0.01, warmup_s: float = 0.0
) -> FabricTraceResult:
    """Return what becomes of a trace's packets.

    A packet that misses is served by the controller; where its group comes in, all that follow within `latency_s`
    miss too. Groups that leave do so at once.
    """
    ready_s: dict[int, float] = {}
    packets = misses = swaps_in = swaps_out = needing = victims = turned_away = readings_before = 0
    for now_s, group in zip(trace.times_s, trace.groups, strict=True):
        counts = now_s >= warmup_s
        if not counts:
            readings_before = choice.readings
        for left in choice.due(now_s):
            choice.went_out(left)
            swaps_out += counts
        packets += counts
        if group in choice:
            choice.hit(group)
            misses += counts and ready_s[group] > now_s
            continue
        misses += counts
        if not choice.missed(group, now_s):
            continue
        leaving = choice.find_leaving(group, now_s)
        if leaving is None:
            turned_away += counts
            continue
        for left in leaving:
            choice.went_out(left)
        needing += counts and bool(leaving)
        victims += len(leaving) if counts else 0
        swaps_out += len(leaving) if counts else 0
        ready_s[group] = now_s + latency_s
        choice.came_in(group, now_s)
        swaps_in += counts
    readings = choice.readings - readings_before
    return FabricTraceResult(packets, misses, swaps_in, swaps_out, needing, victims, turned_away, readings)


def entries_of_groups(
    centre: DataCentre, groups: SimulatedGroups, links: Sequence[TreeLinks]
) -> list[dict[int, int]]:
    """Return by group how many entries its tree takes at each switch, by the centre's number of it."""
    group, switch = entries_of_placed(centre, groups, links)
    found: list[dict[int, int]] = [{} for _ in range(len(groups))]
    for one, at in zip(group.tolist(), switch.tolist(), strict=True):
        found[one][at] = 1
    return found


def fullest_need(entries: Sequence[Mapping[int, int]], switch_count: int) -> Ints:
    """Return how many entries each switch would have with all groups in, shape (switches,)."""
    need = np.zeros(switch_count, dtype=np.int64)
    for held in entries:
        for at, count in held.items():
            need[at] += count
    return need


def shared_need(centre: DataCentre, groups: SimulatedGroups, links: Sequence[TreeLinks]) -> Ints:
    """Return how many entries each switch would have if groups that go on alike there shared one, shape (switches,).

    Groups go on alike that have the same neighbours on their trees, and no member at the switch: ports of members
    are no address's to name.
    """
    near: list[dict[int, int]] = [{} for _ in range(len(groups))]
    u, v = (ends.tolist() for ends in cable_ends(centre).T)
    for part in links:
        for group, cable in zip(part.group.tolist(), part.cable.tolist(), strict=True):
            sets = near[group]
            sets[u[cable]] = sets.get(u[cable], 0) | 1 << v[cable]
            sets[v[cable]] = sets.get(v[cable], 0) | 1 << u[cable]
    need = np.zeros(len(centre.switches), dtype=np.int64)
    for group, at in zip(groups.group_of_terminal().tolist(), groups.terminals.tolist(), strict=True):
        near[group].pop(at, None)
        need[at] += 1
    for at, _ in {place for sets in near for place in sets.items()}:
        need[at] += 1
    return need
