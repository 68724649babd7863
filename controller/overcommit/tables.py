"""The tables of a fabric's switches: each group in at all switches of its tree, or out at all of them.

A packet inside the fabric never meets a switch that has no entry for its group: a group is swapped whole. So a group
that comes in may need room at several switches at once; who leaves for it frees as many of the full ones as can be.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Generic

from controller.overcommit.draws import Chance, G
from controller.overcommit.residence import Residence, TableGroups
from controller.overcommit.states import FREED_PCT, TableRoom, is_short, next_room


class SwitchTable(Generic[G]):
    """A switch's table: its entries, how many are taken, by whom, and how short it is of free ones."""

    __slots__ = ("capacity", "groups", "room", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.room = TableRoom.HIGH
        self.groups: TableGroups[G] = TableGroups()

    @property
    def free(self) -> int:
        """Entries that are free; below 0 where the table was found to have fewer than are taken."""
        return self.capacity - self.used

    @property
    def missing_ahead(self) -> int:
        """Entries that are to be freed before they are needed."""
        return int(FREED_PCT / 100 * self.capacity) - self.free


class GroupTables(Generic[G]):
    """Which groups are in, and which of them change places, over the tables of many switches.

    `short` are the tables that have fewer free entries than they should.

    Parameters
    ----------
    chance
        Draws the groups of which the slowest leaves.
    remembered
        Groups out of which the rate is known, at most.
    """

    def __init__(self, chance: Chance, remembered: int) -> None:
        self.residence: Residence[G] = Residence(chance, remembered)
        self.tables: dict[int, SwitchTable[G]] = {}
        self._entries: dict[G, Mapping[int, int]] = {}
        self._tight: set[int] = set()
        self.short: set[int] = set()

    def set_capacity(self, dpid: int, capacity: int) -> None:
        """Take it that a switch's table has room for so many entries."""
        table = self.tables.get(dpid)
        if table is None:
            self.tables[dpid] = SwitchTable(capacity)
        else:
            table.capacity = capacity
            self._look_at(dpid, table)

    def __contains__(self, group: G) -> bool:
        return group in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[G]:
        return iter(self._entries)

    def entries(self, group: G) -> Mapping[int, int]:
        """Return how many entries a group has at each switch, none where it is out."""
        return self._entries.get(group, {})

    def find_leaving(self, group: G, entries: Mapping[int, int], now_s: float) -> tuple[G, ...] | None:
        """Return which groups leave for one that is to come in, of which a packet has missed.

        Parameters
        ----------
        entries
            How many it needs at each switch.

        Returns
        -------
        tuple or None
            None where it stays out, since it sends less than those who would have to leave.
        """
        short = self._short_of(entries)
        leaving: dict[G, TableGroups[G]] = {}
        while short:
            at = self.tables[_fullest(short)].groups
            left = self.residence.find_leaving(group, now_s, at, lambda other: self._frees(other, short, leaving))  # noqa: B023
            if left is None:
                for other, groups in leaving.items():
                    self.residence.stays(other, groups)
                return None
            leaving[left] = at
            short = _without(short, self._entries[left])
        return tuple(leaving)

    def take_ended(self) -> tuple[G, ...]:
        """Return the groups that leave ahead of need: ended ones, until full tables have room or none is left."""
        short = {dpid: missing for dpid in self._tight if (missing := self.tables[dpid].missing_ahead) > 0}
        leaving: dict[G, None] = {}
        while short:
            dpid = _fullest(short)
            at = self.tables[dpid].groups
            left = self.residence.take_ended(at, lambda other: self._frees(other, short, leaving))  # noqa: B023
            if left is None:
                del short[dpid]
                continue
            leaving[left] = None
            short = _without(short, self._entries[left])
        return tuple(leaving)

    def came_in(self, group: G, entries: Mapping[int, int], now_s: float) -> None:
        """Note that a group is in, brought by a packet of it."""
        self.residence.came_in(group, now_s)
        self._entries[group] = entries
        for dpid, count in entries.items():
            table = self.tables[dpid]
            table.groups.urn.add(group)
            table.used += count
            self._look_at(dpid, table)

    def changed(self, group: G, entries: Mapping[int, int]) -> None:
        """Note that a group that is in has other entries, as its members or its tree changed."""
        before, self._entries[group] = self._entries[group], entries
        for dpid, count in before.items():
            more = entries.get(dpid, 0) - count
            if more:
                table = self.tables[dpid]
                table.used += more
                if more == -count:
                    table.groups.urn.remove(group)
                self._look_at(dpid, table)
        for dpid, count in entries.items():
            if dpid not in before:
                table = self.tables[dpid]
                table.groups.urn.add(group)
                table.used += count
                self._look_at(dpid, table)

    def went_out(self, group: G) -> None:
        """Note that a group is out."""
        self.residence.went_out(group)
        self._give_back(group)

    def forget(self, group: G) -> None:
        """Drop a group that is no more."""
        self.residence.forget(group)
        if group in self._entries:
            self._give_back(group)

    def _give_back(self, group: G) -> None:
        for dpid, count in self._entries.pop(group).items():
            table = self.tables[dpid]
            table.groups.urn.remove(group)
            table.used -= count
            self._look_at(dpid, table)

    def _look_at(self, dpid: int, table: SwitchTable[G]) -> None:
        if table.room is TableRoom.HIGH and not is_short(table.capacity - table.used, table.capacity):
            return
        table.room = next_room(table.room, table.free, table.capacity)
        for among, least in ((self._tight, TableRoom.HARD), (self.short, TableRoom.SOFT)):
            if table.room >= least:
                among.add(dpid)
            else:
                among.discard(dpid)

    def _short_of(self, entries: Mapping[int, int]) -> dict[int, int]:
        tables = self.tables
        return {dpid: count - tables[dpid].free for dpid, count in entries.items() if count > tables[dpid].free}

    def _frees(self, group: G, short: Mapping[int, int], leaving: Container[G]) -> int:
        if group in leaving:
            return 0
        held = self._entries[group]
        return sum(min(missing, held.get(dpid, 0)) for dpid, missing in short.items())


def _without(short: Mapping[int, int], freed: Mapping[int, int]) -> dict[int, int]:
    """Return how many entries are missing at each switch after some are freed."""
    left: Iterable[tuple[int, int]] = ((dpid, missing - freed.get(dpid, 0)) for dpid, missing in short.items())
    return {dpid: missing for dpid, missing in left if missing > 0}


def _fullest(short: Mapping[int, int]) -> int:
    """Return the switch at which most entries are missing, of equal ones the last."""
    return max(short, key=lambda dpid: (short[dpid], dpid))
