"""The tables of a fabric's switches: each group in at all switches of its tree, or out at all of them.

A packet inside the fabric never meets a switch that has no entry for its group: a group is swapped whole. So a group
that comes in may need room at several switches at once; who leaves for it frees as many of the full ones as can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Generic

from controller.overcommit.draws import Chance, G
from controller.overcommit.residence import Residence, TableGroups
from controller.overcommit.shares import (
    ACTIVE_S,
    OTHERS,
    Holding,
    Shares,
    TenantEntries,
    TenantView,
    above_entitlement,
    entitled_of,
    givers,
)
from controller.overcommit.states import FREED_PCT, TableRoom, is_short, next_room


class SwitchTable(Generic[G]):
    """A switch's table: its entries, how many are taken, by whom, and how short it is of free ones.

    Where tenants share it `tenants` has what each of them has there.
    """

    __slots__ = ("capacity", "groups", "room", "tenants", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.room = TableRoom.HIGH
        self.groups: TableGroups[G] = TableGroups()
        self.tenants: dict[str, TenantEntries[G]] = {}

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
        self._shares: Shares | None = None
        self._tenant_of: Callable[[G], str] = _no_tenant
        self._tenants: dict[G, str] = {}
        self._over: set[tuple[int, str]] = set()

    def use_shares(self, shares: Shares | None, tenant_of: Callable[[G], str]) -> None:
        """Have tenants share all tables, or None; a group is of the tenant that it is of when it comes in."""
        self._shares, self._tenant_of = shares, tenant_of
        self._tenants.clear()
        self._over.clear()
        for table in self.tables.values():
            table.tenants.clear()
        for group, entries in self._entries.items() if shares is not None else ():
            self._tenants[group] = tenant_of(group)
            for dpid, count in entries.items():
                self._charge(group, dpid, count, is_new=True)

    def tenants(self, dpid: int) -> list[TenantView]:
        """Return what each tenant has of a table and is entitled to, none where nobody shares it."""
        table = self.tables[dpid]
        if self._shares is None or not table.tenants:
            return []
        holdings = self._holdings(dpid, table, ())
        entitled = entitled_of(self._shares, table.capacity, holdings)
        return [TenantView(*each, entitled[each.tenant]) for each in holdings]

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

    def is_in_short(self, group: G) -> bool:
        """Tell whether a group has entries in a table that is short of free ones."""
        return not self.short.isdisjoint(self.entries(group))

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
        short = self._short_of(entries) if self._shares is None else self._short_for_tenant(group, entries)
        leaving: dict[G, TableGroups[G]] = {}
        while short:
            left, at = self._find_one(group, entries, now_s, short, leaving)
            if left is None:
                for other, groups in leaving.items():
                    self.residence.stays(other, groups)
                return None
            leaving[left] = at
            short = _without(short, self._entries[left])
        return tuple(leaving)

    def _find_one(
        self,
        group: G,
        entries: Mapping[int, int],
        now_s: float,
        short: Mapping[int, int],
        leaving: Mapping[G, TableGroups[G]],
    ) -> tuple[G | None, TableGroups[G]]:
        """Return a group that leaves for one that is to come in, and what it was chosen from."""
        dpid = _fullest(short)
        table, at = self.tables[dpid], self.tables[dpid].groups
        if self._shares is not None:
            tenant = self._tenant_of(group)
            holdings = self._holdings(dpid, table, leaving)
            own = next((each for each in holdings if each.tenant == tenant), Holding(tenant, 0, 0))
            for name in givers(self._shares, table.capacity, holdings, own, entries[dpid]) or ():
                at = table.tenants[name].groups
                left = self.residence.revoke(at, lambda other: self._spares(other, short, leaving))
                if left is not None:
                    return left, at
            at = table.tenants[tenant].groups if tenant in table.tenants else TableGroups()
        return self.residence.find_leaving(group, now_s, at, lambda other: self._frees(other, short, leaving)), at

    def short_ahead(self) -> dict[int, int]:
        """Return how many entries are to be freed before they are needed, of each table that is short of them."""
        missing = {dpid: self.tables[dpid].missing_ahead for dpid in self._tight}
        return {dpid: count for dpid, count in missing.items() if count > 0}

    def take_ended(self) -> tuple[G, ...]:
        """Return the groups that leave ahead of need: ended ones, until full tables have room or none is left.

        Those leave too that their tenant has beyond its limit, for that is lower now or they have more members.
        """
        leaving = self._beyond_limits()
        freed: Counter[int] = Counter()
        for group in leaving:
            freed.update(self._entries[group])
        missing = {dpid: self.tables[dpid].missing_ahead - freed[dpid] for dpid in self._tight}
        short = {dpid: count for dpid, count in missing.items() if count > 0}
        while short:
            dpid = _fullest(short)
            left = self._take_one_ended(dpid, short, leaving)
            if left is None:
                del short[dpid]
                continue
            leaving[left] = None
            short = _without(short, self._entries[left])
        return tuple(leaving)

    def revoke(self, dpid: int, count: int) -> tuple[G, ...]:
        """Return which groups leave so that so many entries more of a switch are free, whatever these send."""
        leaving: dict[G, None] = {}
        short: Mapping[int, int] = {dpid: count} if count > 0 else {}
        while short:
            left = self.residence.revoke(
                self.tables[dpid].groups,
                lambda other: self._frees(other, short, leaving),  # noqa: B023
            )
            if left is None:
                break
            leaving[left] = None
            short = _without(short, self._entries[left])
        return tuple(leaving)

    def _beyond_limits(self) -> dict[G, None]:
        leaving: dict[G, None] = {}
        over, self._over = self._over, set()
        for dpid, tenant in sorted(over):
            held = self.tables[dpid].tenants.get(tenant)
            limit = None if self._shares is None else self._shares.of(tenant).limit
            if held is None or limit is None:
                continue
            gone = (self._entries[other].get(dpid, 0) for other in leaving if self._tenants[other] == tenant)
            short = {dpid: held.used - limit - sum(gone)}
            while short.get(dpid, 0) > 0:
                left = self.residence.revoke(held.groups, lambda other: self._frees(other, short, leaving))  # noqa: B023
                if left is None:
                    break
                leaving[left] = None
                short = _without(short, self._entries[left])
        return leaving

    def _take_one_ended(self, dpid: int, short: Mapping[int, int], leaving: Mapping[G, None]) -> G | None:
        table = self.tables[dpid]
        if self._shares is None:
            return self.residence.take_ended(table.groups, lambda other: self._frees(other, short, leaving))
        holdings = self._holdings(dpid, table, leaving)
        for name in above_entitlement(self._shares, table.capacity, holdings):
            at = table.tenants[name].groups
            left = self.residence.take_ended(at, lambda other: self._spares(other, short, leaving))
            if left is not None:
                return left
        return None

    def came_in(self, group: G, entries: Mapping[int, int], now_s: float) -> None:
        """Note that a group is in, brought by a packet of it."""
        self.residence.came_in(group, now_s)
        self._entries[group] = entries
        is_shared = self._shares is not None
        if is_shared:
            self._tenants[group] = self._tenant_of(group)
        for dpid, count in entries.items():
            table = self.tables[dpid]
            table.groups.urn.add(group)
            table.used += count
            if is_shared:
                self._charge(group, dpid, count, is_new=True)
            self._look_at(dpid, table)

    def changed(self, group: G, entries: Mapping[int, int]) -> None:
        """Note that a group that is in has other entries, as its members or its tree changed."""
        before, self._entries[group] = self._entries[group], entries
        for dpid, count in before.items():
            more = entries.get(dpid, 0) - count
            if more:
                table = self.tables[dpid]
                table.used += more
                if self._shares is not None:
                    self._charge(group, dpid, more, is_gone=more == -count)
                if more == -count:
                    table.groups.urn.remove(group)
                self._look_at(dpid, table)
        for dpid, count in entries.items():
            if dpid not in before:
                table = self.tables[dpid]
                table.groups.urn.add(group)
                table.used += count
                if self._shares is not None:
                    self._charge(group, dpid, count, is_new=True)
                self._look_at(dpid, table)

    def went_out(self, group: G) -> None:
        """Note that a group is out."""
        self._give_back(group)
        self.residence.went_out(group)

    def forget(self, group: G) -> None:
        """Drop a group that is no more."""
        if group in self._entries:
            self._give_back(group)
        self.residence.forget(group)

    def _give_back(self, group: G) -> None:
        for dpid, count in self._entries.pop(group).items():
            table = self.tables[dpid]
            table.groups.urn.remove(group)
            table.used -= count
            if self._shares is not None:
                self._charge(group, dpid, -count, is_gone=True)
            self._look_at(dpid, table)
        self._tenants.pop(group, None)

    def _charge(self, group: G, dpid: int, more: int, *, is_new: bool = False, is_gone: bool = False) -> None:
        """Have the tenant of a group have more entries of a table, or fewer."""
        table, tenant = self.tables[dpid], self._tenants[group]
        held = table.tenants.get(tenant)
        if held is None:
            held = table.tenants[tenant] = TenantEntries()
        held.used += more
        limit = None if self._shares is None else self._shares.of(tenant).limit
        if limit is not None and held.used > limit:
            self._over.add((dpid, tenant))
        if self.residence.is_active(group, held.counted_s - ACTIVE_S):
            held.active += more
        if is_new:
            held.groups.urn.add(group)
        elif is_gone:
            held.groups.urn.remove(group)
            if not held.used:
                del table.tenants[tenant]

    def _holdings(self, dpid: int, table: SwitchTable[G], leaving: Iterable[G]) -> list[Holding]:
        """Return what each tenant holds of a table, less what is to leave."""
        read_s, entries = self.residence.read_s, self._entries
        held: dict[str, list[int]] = {}
        for tenant, each in table.tenants.items():
            if each.counted_s != read_s:
                since_s, each.counted_s = read_s - ACTIVE_S, read_s
                is_active = self.residence.is_active
                each.active = sum(entries[group][dpid] for group in each.groups.urn if is_active(group, since_s))
            held[tenant] = [each.used, each.active]
        for group in leaving:
            count = entries[group].get(dpid, 0)
            if count:
                of_tenant = held[self._tenants[group]]
                of_tenant[0] -= count
                if self.residence.is_active(group, read_s - ACTIVE_S):
                    of_tenant[1] -= count
        return [Holding(tenant, used, active) for tenant, (used, active) in held.items()]

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

    def _short_for_tenant(self, group: G, entries: Mapping[int, int]) -> dict[int, int]:
        """Return how many entries are missing at each switch, be it that a group's tenant has reached its limit."""
        short, tenant = self._short_of(entries), self._tenant_of(group)
        limit = None if self._shares is None else self._shares.of(tenant).limit
        if limit is None:
            return short
        for dpid, count in entries.items():
            held = self.tables[dpid].tenants.get(tenant)
            missing = (0 if held is None else held.used) + count - limit
            if missing > short.get(dpid, 0):
                short[dpid] = missing
        return short

    def _spares(self, group: G, short: Mapping[int, int], leaving: Mapping[G, object]) -> int:
        """Return how many entries that are missing a group frees; none where its tenant has reserved them."""
        if self._shares is not None and (reservation := self._shares.of(self._tenants[group]).reservation):
            tenant = self._tenants[group]
            for dpid, count in self._entries[group].items():
                others = (other for other in leaving if self._tenants[other] == tenant)
                gone = sum(self._entries[other].get(dpid, 0) for other in others)
                if self.tables[dpid].tenants[tenant].used - gone - count < reservation:
                    return 0
        return self._frees(group, short, leaving)

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


def _no_tenant(_group: object) -> str:
    return OTHERS
