"""Slots of the store: how many groups may be out of the flow tables, and whose they are.

A group that is in may have to go out at any moment, so it takes a slot as long as it is there. A tenant has slots
kept for as many entries as it may have to do without, its limit less its reservation; those that are kept for nobody
go to whoever comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple

from controller.overcommit.draws import G


class SlotClaim(NamedTuple):
    """What a tenant may have of each flow table: the most and the least entries, as the policy says."""

    limit: int
    reservation: int

    @property
    def slots(self) -> int:
        """Entries that the tenant may have to do without."""
        return max(0, self.limit - self.reservation)


class SlotView(NamedTuple):
    """How many slots are kept for a tenant, and how many groups of it have one."""

    tenant: str
    kept: int
    taken: int


class Slots(Generic[G]):
    """The slots of a store.

    Attributes
    ----------
    store
        How many there are.
    """

    def __init__(self) -> None:
        self.store = 0
        self._least: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._tenants: dict[G, str] = {}
        self._taken: Counter[str] = Counter()
        self._beyond = 0

    def __contains__(self, group: G) -> bool:
        return group in self._tenants

    def __len__(self) -> int:
        return len(self._tenants)

    def use(self, store: int, claims: Mapping[str, SlotClaim]) -> None:
        """Have another store, and slots kept for other tenants; groups that have a slot go on having it.

        A reservation that is lower than before has more slots kept, one that is higher has none given back, as long
        as the store has room for those that the policy says of all.
        """
        self.store = store
        least = self._least
        self._least = {
            name: min(claim.reservation, least.get(name, claim.reservation)) for name, claim in claims.items()
        }
        left = store
        self._kept = {}
        for name, claim in claims.items():
            self._kept[name] = min(claim.slots, left)
            left -= self._kept[name]
        for name, claim in claims.items():
            more = min(claim._replace(reservation=self._least[name]).slots - self._kept[name], left)
            self._kept[name] += more
            left -= more
        self._beyond = sum(max(0, count - self._kept.get(name, 0)) for name, count in self._taken.items())

    def clear(self, groups: Iterable[G] = ()) -> None:
        """Forget all that was, and have groups that are there take slots of no tenant."""
        self._least.clear()
        self._kept.clear()
        self._tenants = dict.fromkeys(groups, "")
        self._taken = Counter(self._tenants.values())
        self._beyond = len(self._tenants)

    def has_room(self, tenant: str) -> bool:
        """Tell whether there is a slot for one more group of a tenant, an empty name standing for those of none."""
        if len(self._tenants) >= self.store:
            return False
        return self._taken[tenant] < self._kept.get(tenant, 0) or self._beyond < self.store - sum(self._kept.values())

    def take(self, group: G, tenant: str) -> None:
        """Have a group that has no slot take one, though there be none left."""
        self._beyond += self._taken[tenant] >= self._kept.get(tenant, 0)
        self._tenants[group] = tenant
        self._taken[tenant] += 1

    def give_back(self, group: G) -> None:
        """Have a group give its slot back, where it has one."""
        tenant = self._tenants.pop(group, None)
        if tenant is not None:
            self._beyond -= self._taken[tenant] > self._kept.get(tenant, 0)
            self._taken[tenant] -= 1
            if not self._taken[tenant]:
                del self._taken[tenant]

    def of(self, tenant: str) -> SlotView:
        """Return what is kept for a tenant, and what it has."""
        return SlotView(tenant, self._kept.get(tenant, 0), self._taken[tenant])

    def views(self) -> list[SlotView]:
        """Return the same of all tenants that have slots, or are kept some."""
        return [self.of(tenant) for tenant in dict.fromkeys((*self._kept, *self._taken))]
