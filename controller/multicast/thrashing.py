"""Tables that more groups need at a time than there is room for: told, with the size that would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from controller.effects import Effect, Notice
from controller.multicast.table_limits import TableLimits, place_of
from controller.overcommit.tables import GroupTables

THRASHING_PART = 0.1
"""Swaps into a table per second, as a part of the table, above which it thrashes."""

THRASHING_S = 10.0
"""How long that must go on."""

ACTIVE_S = 30.0
"""A group that had a packet in this time is active."""

TOLD_INTERVAL_S = 60.0
"""Time between two notices of one table."""

TURNED_AWAY_BOUND = 65536
"""Groups that are remembered as turned away; of more, the one noted longest ago is forgotten."""


class Thrashing:
    """Counts what came into each table, and what would have."""

    def __init__(self) -> None:
        self._swaps: Counter[int] = Counter()
        self._looked_s: float | None = None
        self._since_s: dict[int, float] = {}
        self._told_s: dict[int, float] = {}
        self._turned_away: dict[bytes, tuple[float, Mapping[int, int]]] = {}

    def swapped_in(self, tables: Iterable[int]) -> None:
        """Take in that a group came into these tables."""
        self._swaps.update(tables)

    def turned_away(self, address: bytes, entries: Mapping[int, int], now: float) -> None:
        """Take in that a group stays out that had a packet, and what it would have had in each table."""
        self._turned_away.pop(address, None)
        self._turned_away[address] = (now, entries)
        if len(self._turned_away) > TURNED_AWAY_BOUND:
            del self._turned_away[next(iter(self._turned_away))]

    def look(self, tables: GroupTables[bytes], limits: TableLimits, now: float) -> list[Effect]:
        """Return notices of the tables into which groups came too often since before, all the time."""
        before, self._looked_s = self._looked_s, now
        swaps, self._swaps = self._swaps, Counter()
        if before is None or now <= before:
            return []
        least = THRASHING_PART * (now - before)
        busy = [table for table, count in swaps.items() if count > least * limits.of(table).limit]
        self._since_s = {table: self._since_s.get(table, before) for table in busy}
        notices: list[Effect] = []
        for table, since_s in self._since_s.items():
            if now - since_s >= THRASHING_S and now - self._told_s.get(table, -TOLD_INTERVAL_S) >= TOLD_INTERVAL_S:
                self._told_s[table] = now
                notices.append(self._notice(table, tables, limits, now))
        return notices

    def _notice(self, table: int, tables: GroupTables[bytes], limits: TableLimits, now: float) -> Notice:
        limit, pinned = limits.of(table)
        active = {group: tables.entries(group) for group in tables.residence.active(now - ACTIVE_S)}
        active.update((group, e) for group, (seen_s, e) in self._turned_away.items() if now - seen_s <= ACTIVE_S)
        size = pinned + sum(entries.get(table, 0) for entries in active.values())
        dpid, table_id = place_of(table)
        text = (
            f"Table {table_id} of switch {dpid} has room for {limit} entries, and more groups send at a time: they "
            f"push each other out. Room for {size} would do."
        )
        return Notice("thrashing", text, (("dpid", dpid), ("table_id", table_id), ("size", size)))
