"""How full flow tables are, and of which groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import starmap

from controller.config.overcommit_settings import Overcommit
from controller.effects import Effect
from controller.multicast.group import Group
from controller.multicast.group_rules import Needs
from controller.multicast.groups import GroupPlane
from controller.multicast.table_limits import TableLimits, entries_of, place_of, table_of
from controller.overcommit.draws import HashedChance
from controller.overcommit.tables import GroupTables
from controller.rules.compile import SwitchDuty
from controller.rules.compile_shared import is_shared
from controller.rules.installer import Installer


class TableAccounts:
    """What groups that may leave have in the tables of a plane's switches, beside what these have room for.

    Attributes
    ----------
    reserved
        Entries of groups that are to come in and have none yet, by table.
    is_ample
        Whether all tables have so much room that nobody needs to know what entries groups have.
    behind
        Groups in of which it is not noted what entries they have now.
    """

    def __init__(self, plane: GroupPlane, installer: Installer, settings: Overcommit) -> None:
        self.limits = TableLimits(installer, plane.shared)
        self.tables: GroupTables[bytes] = GroupTables(HashedChance(0), settings.store)
        self.reserved: Counter[int] = Counter()
        self.is_ample = True
        self.behind: dict[bytes, None] = {}
        self._plane = plane

    def use(self, policy: Overcommit) -> None:
        """Go by another policy."""
        self.limits.use(policy.capacity)
        self.tables.residence.remember(policy.store)
        self.set_capacities(self.tables.tables)

    def clear(self) -> None:
        """Forget all groups, which are all in from here on."""
        for address in list(self.tables):
            self.tables.forget(address)
        self.reserved.clear()
        self.behind.clear()

    def needs(self, group: Group, effects: list[Effect]) -> tuple[Needs, dict[int, int]]:
        """Return what a group that is to come in needs at switches, and how many entries that is in each table."""
        duties, lower = self._plane.tree_duties.of(group, effects), self._plane.rules.lower
        rules = {dpid: lower(group, dpid, duty) for dpid, duty in duties.items()}
        return Needs(duties, rules), entries_of({dpid: at_switch.values() for dpid, at_switch in rules.items()})

    def with_shared(self, needs: Needs, entries: Mapping[int, int]) -> Mapping[int, int]:
        """Return what is missing in each table: what leaves with the group, and what nobody shares with it yet."""
        unshared = [
            table_of(dpid, key.table)
            for dpid, duty in needs.duties.items()
            if type(duty) is not SwitchDuty
            for key, rule in needs.rules[dpid].items()
            if is_shared(rule) and (dpid, key) not in self._plane.shared
        ]
        return Counter(entries) + Counter(unshared) if unshared else entries

    def follow_shared(self) -> None:
        """Take in where groups share other entries than before."""
        if changed := self._plane.shared.changed:
            self.set_capacities(table for table in starmap(table_of, changed) if table in self.tables.tables)
            changed.clear()

    def account(self, group: Group, now: float) -> Mapping[int, int]:
        """Note and return what entries a group has that is in and may leave."""
        if group.address in self.tables:
            return self.follow(group)
        entries = entries_of(group.rules)
        self.know(entries)
        self.tables.came_in(group.address, entries, now)
        return entries

    def follow(self, group: Group) -> Mapping[int, int]:
        """Do the same for a group of which it was noted that it is in."""
        entries = entries_of(group.rules)
        if entries != self.tables.entries(group.address):
            self.know(entries)
            self.tables.changed(group.address, entries)
        return entries

    def look_for_room(self) -> None:
        """Find whether all tables have ample room."""
        self.is_ample = self.limits.are_ample()

    def know(self, entries: Iterable[int]) -> None:
        """Have it known what these tables have room for."""
        known = self.tables.tables
        for table in entries:
            if table not in known:
                self.set_capacities((table,))

    def set_capacities(self, tables: Iterable[int]) -> None:
        """Take in what tables have room for now."""
        for table in list(tables):
            count = self.limits.of(table)
            self.tables.set_capacity(table, max(0, count.limit - count.pinned))

    def switch_connected(self, dpid: int) -> None:
        """Take it that a switch may be another one than it was: nothing is known of its tables but what is said."""
        self.limits.forget(dpid)
        self.limits.count_soon((dpid,))
        self.set_capacities(table for table in self.tables.tables if place_of(table)[0] == dpid)

    def count(self) -> None:
        """Count entries that stay whatever groups do, at some of the switches where that is due."""
        known = {table: each.used - self.reserved[table] for table, each in self.tables.tables.items()}
        changed = list(self.limits.count_some(known))
        self.set_capacities(table for table in changed if table in self.tables.tables)
