"""How many entries of groups the flow tables of switches have room for, beside those that stay whatever groups do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controller.config.overcommit_settings import Capacities
from controller.multicast.shared_entries import SharedEntries
from controller.overcommit.found_room import FoundRoom
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
    """The capacities of tables: the least of what the policy says, what their switch does, and what it had when it
    refused an entry.

    Where that was a while ago, it is tried whether it takes more by now. `due` are the switches whose entries are to
    be counted, `outdated` those where that is to wait until it is noted what entries groups have, and `doubted` those
    that refused some since they said what they have room for. Entries that groups share are known at any time.
    """

    def __init__(self, installer: Installer, shared: SharedEntries) -> None:
        self._installer = installer
        self._default: int | None = None
        self._own: dict[int, int] = {}
        self._told: dict[int, int] = {}
        self._least_told: dict[int, int] = {}
        self._follows_limits: set[int] = set()
        self.doubted: dict[int, None] = {}
        self._found: dict[int, FoundRoom] = {}
        self._pinned: dict[int, int] = {}
        self._elsewhere: dict[int, int] = {}
        self._shared = shared
        self._shared_counted: dict[int, int] = {}
        self.due: dict[int, None] = {}
        self.outdated: dict[int, None] = {}

    def use(self, settings: Capacities) -> None:
        """Go by another policy."""
        self._default = settings.default
        self._own = {entry.dpid: entry.entries for entry in settings.switches}

    def __bool__(self) -> bool:
        """Tell whether any table is known to be bounded."""
        return self._default is not None or bool(self._own) or bool(self._told) or bool(self._found)

    def of(self, table: int) -> TableCount:
        """Return what is known of a table."""
        limit, found = self._most(table), self._found.get(table)
        if found is not None and found.entries < limit:
            limit = found.entries
        pinned = self._pinned.get(table, 0)
        if self._shared_counted or self._shared.counts:
            pinned += self._shared.counts[place_of(table)] - self._shared_counted.get(table, 0)
        return TableCount(limit, pinned)

    def said(self, table: int) -> int:
        """Return what the policy says that a table has room for, `UNLIMITED` where it says nothing."""
        said = self._own.get(place_of(table)[0], self._default)
        return UNLIMITED if said is None else said

    def _most(self, table: int) -> int:
        """Return what the policy and the switch of a table say, whichever is less.

        A switch is not believed that says less than its table has of entries that stay.
        """
        said, told = self.said(table), self._told.get(table, UNLIMITED)
        return told if self._pinned.get(table, 0) <= told < said else said

    def told(self, dpid: int, entries: Mapping[int, int], *, is_again: bool) -> list[int]:
        """Take in what a switch says that its tables, by their numbers there, have room for; return those known.

        What one says whose answer has changed on this connection (`is_again`) counts for more than what it refused.
        """
        self.doubted.pop(dpid, None)
        known = {table_of(dpid, number): count for number, count in entries.items()}
        if is_again and any(self._told.get(table) != count for table, count in known.items()):
            self._follows_limits.add(dpid)
        self._told.update(known)
        for table in known if dpid in self._follows_limits else ():
            self._found.pop(table, None)
        told = [count for table, count in self._told.items() if place_of(table)[0] == dpid]
        if told:
            self._least_told[dpid] = min(told)
        return list(known)

    @property
    def have_told(self) -> bool:
        """Whether any switch said what a table has room for."""
        return bool(self._told)

    def has_told(self, dpid: int) -> bool:
        """Tell whether a switch said what a table has room for."""
        return dpid in self._least_told

    def refused(self, dpid: int, tables: Iterable[int], now: float) -> list[int]:
        """Take in that tables of a switch, by their numbers there, had no room for one entry more; return them."""
        held = self._installer.by_table(dpid, confirmed=True)
        self.doubted[dpid] = None
        changed = []
        for table_id in tables:
            table = table_of(dpid, table_id)
            changed.append(table)
            if (found := self._found.get(table)) is None:
                self._found[table] = FoundRoom(held[table_id], now)
            else:
                found.refused(held[table_id], now)
        return changed

    def grow(self, tables: Iterable[int], now: float) -> list[int]:
        """Have those of some tables take more that refused nothing for a while; return them."""
        found = ((table, self._found.get(table)) for table in tables)
        return [table for table, room in found if room is not None and room.grow(self._most(table), now)]

    def forget(self, dpid: int) -> None:
        """Forget what was found of a switch, which is another one now for all that is known."""
        for known in (self._found, self._told):
            for table in [table for table in known if place_of(table)[0] == dpid]:
                del known[table]
        self._follows_limits.discard(dpid)
        for noted in (self._least_told, self._elsewhere, self.doubted):
            noted.pop(dpid, None)

    def are_ample(self) -> bool:
        """Tell whether no table can be short of free entries for some time, by how many its switch has in all."""
        if not self:
            return True
        bounds = dict(self._own)
        default = UNLIMITED if self._default is None else self._default
        for table, found in self._found.items():
            dpid, _ = place_of(table)
            bounds[dpid] = min(bounds.get(dpid, default), found.entries)
        for dpid, entries in self._least_told.items():
            bounds[dpid] = min(bounds.get(dpid, default), entries)
        elsewhere = self._elsewhere
        return all(
            count - elsewhere.get(dpid, 0) <= (1 - AMPLE_PART) * bounds.get(dpid, default)
            for dpid, count in self._installer.desired_counts()
        )

    # What stays

    def count_soon(self, dpids: Iterable[int]) -> None:
        """Have the entries of switches counted anew."""
        self.due.update(dict.fromkeys(dpids))

    def count_later(self, dpids: Iterable[int]) -> None:
        """Have the entries of switches counted anew once it is noted what entries groups have."""
        self.outdated.update(dict.fromkeys(dpids))

    def count_outdated(self) -> None:
        """Take it that this is noted."""
        self.count_soon(self.outdated)
        self.outdated.clear()

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
