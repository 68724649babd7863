"""How many entries of groups the flow tables of switches have room for, beside those that stay whatever groups do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controller.config.overcommit_settings import Capacities
from controller.multicast.shared_entries import SharedEntries
from controller.rules.compile_shared import is_shared
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry
from controller.rules.pipeline import SENDER_COOKIE_BIT

TABLE_BITS = 8
"""Bits of the number of a table in its switch."""

UNLIMITED = 1 << 40
"""Entries of a table of which nobody said how many it has room for, and which refused none yet."""

SWITCHES_AT_ONCE = 4
"""Switches whose entries are counted in one turn."""

AMPLE_PART = 0.25
"""Part of a table that is free where it has ample room: more than groups need until it is looked again."""


class TableCount(NamedTuple):
    """What a table has room for, and how many entries it has that are of no group that may leave."""

    limit: int
    pinned: int


def table_of(dpid: int, table_id: int) -> int:
    """Return the number of a table among those of all switches."""
    return dpid << TABLE_BITS | table_id


def place_of(table: int) -> tuple[int, int]:
    """Return the switch of a table, and its number there."""
    return table >> TABLE_BITS, table & ((1 << TABLE_BITS) - 1)


def entries_of(rules: Mapping[int, Iterable[FlowEntry]]) -> dict[int, int]:
    """Return how many entries a group with these at each switch has in each table that would leave with it.

    Those that drop refused senders stay, and so do those that groups share.
    """
    counts: dict[int, int] = {}
    for dpid, at_switch in rules.items():
        for rule in at_switch:
            if (rule.actions or not rule.cookie & SENDER_COOKIE_BIT) and not is_shared(rule):
                table = dpid << TABLE_BITS | rule.key.table
                counts[table] = counts.get(table, 0) + 1
    return counts


class TableLimits:
    """The capacities of tables: what the policy says, or fewer where a switch refused an entry with fewer there.

    `due` are the switches whose entries are to be counted. Those that groups share are known at any time.
    """

    def __init__(self, installer: Installer, shared: SharedEntries) -> None:
        self._installer = installer
        self._default: int | None = None
        self._own: dict[int, int] = {}
        self._found: dict[int, int] = {}
        self._pinned: dict[int, int] = {}
        self._elsewhere: dict[int, int] = {}
        self._shared = shared
        self._shared_counted: dict[int, int] = {}
        self.due: dict[int, None] = {}

    def use(self, settings: Capacities) -> None:
        """Go by another policy."""
        self._default = settings.default
        self._own = {entry.dpid: entry.entries for entry in settings.switches}

    def __bool__(self) -> bool:
        """Tell whether any table is known to be bounded."""
        return self._default is not None or bool(self._own) or bool(self._found)

    def of(self, table: int) -> TableCount:
        """Return what is known of a table."""
        dpid, _ = place_of(table)
        said = self._own.get(dpid, self._default)
        limit = min(UNLIMITED if said is None else said, self._found.get(table, UNLIMITED))
        pinned = self._pinned.get(table, 0)
        if self._shared_counted or self._shared.counts:
            pinned += self._shared.counts[place_of(table)] - self._shared_counted.get(table, 0)
        return TableCount(limit, pinned)

    def refused(self, dpid: int, tables: Iterable[int]) -> None:
        """Take in that tables of a switch, by their numbers there, had no room for one entry more."""
        held = self._installer.by_table(dpid, confirmed=True)
        for table_id in tables:
            table = table_of(dpid, table_id)
            self._found[table] = min(self._found.get(table, UNLIMITED), max(1, held[table_id]))

    def forget(self, dpid: int) -> None:
        """Forget what was found of a switch, which is another one now for all that is known."""
        for table in [table for table in self._found if place_of(table)[0] == dpid]:
            del self._found[table]
        self._elsewhere.pop(dpid, None)

    def are_ample(self) -> bool:
        """Tell whether no table can be short of free entries for some time, by how many its switch has in all."""
        if not self:
            return True
        bounds = dict(self._own)
        for table, entries in self._found.items():
            dpid, _ = place_of(table)
            bounds[dpid] = min(bounds.get(dpid, UNLIMITED), entries)
        default = UNLIMITED if self._default is None else self._default
        elsewhere = self._elsewhere
        return all(
            count - elsewhere.get(dpid, 0) <= (1 - AMPLE_PART) * bounds.get(dpid, default)
            for dpid, count in self._installer.desired_counts()
        )

    # What stays

    def count_soon(self, dpids: Iterable[int]) -> None:
        """Have the entries of switches counted anew."""
        self.due.update(dict.fromkeys(dpids))

    def count_some(self, known: Mapping[int, int]) -> Iterator[int]:
        """Count the entries of some switches that stay; yield the tables that have others than before.

        Parameters
        ----------
        known
            How many entries of groups that may leave each table shall have at the moment.
        """
        for dpid in list(self.due)[:SWITCHES_AT_ONCE]:
            del self.due[dpid]
            counts = self._installer.by_table(dpid)
            self._elsewhere[dpid] = counts.total() - max(counts.values(), default=0)
            for table_id, count in counts.items():
                table = table_of(dpid, table_id)
                pinned, shared = count - known.get(table, 0), self._shared.counts[dpid, table_id]
                if shared or table in self._shared_counted:
                    self._shared_counted[table] = shared
                if pinned != self._pinned.get(table, 0):
                    self._pinned[table] = pinned
                    yield table
