"""Tenants that share a table: what each has of it, what it is entitled to, and in which order they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple

from controller.overcommit.draws import G
from controller.overcommit.entitlement import ReservationError, TenantUse, entitlements
from controller.overcommit.residence import TableGroups
from controller.overcommit.states import FREED_PCT

ACTIVE_S = 30.0
"""Entries of a group that had a packet in this time are active."""

OTHERS = ""
"""The tenant of all groups that are of none."""


class Allotment(NamedTuple):
    """What a tenant may have of each table: its weight beside others, and its least and most entries."""

    shares: float = 1.0
    reservation: int = 0
    limit: int | None = None


class Shares(NamedTuple):
    """What each tenant may have of each table, one that is not named as by default, and the tax on idle entries."""

    tax_pct: float
    tenants: Mapping[str, Allotment]

    def of(self, tenant: str) -> Allotment:
        """Return what a tenant may have."""
        return self.tenants.get(tenant, Allotment())


class TenantEntries(Generic[G]):
    """What a tenant has in a table: its groups, their entries, and how many of these are active.

    Active ones are counted anew after each reading, `counted_s` says of which.
    """

    __slots__ = ("active", "counted_s", "groups", "used")

    def __init__(self) -> None:
        self.groups: TableGroups[G] = TableGroups()
        self.used = 0
        self.active = 0
        self.counted_s = -1.0


class TenantView(NamedTuple):
    """What a tenant has of a table and may have, in entries."""

    tenant: str
    entries: int
    active: int
    entitled: float


class Holding(NamedTuple):
    """What a tenant holds of a table at the moment, less what is to leave."""

    tenant: str
    entries: int
    active: int


def givers(
    shares: Shares, capacity: int, holdings: Sequence[Holding], taker: Holding, wanted: int
) -> list[str] | None:
    """Return the tenants other than `taker` that give it entries, the one farthest above its entitlement first.

    Each is farther above what it is entitled to than `taker` would be with `wanted` active entries more, and has more
    than its reservation. Below its own reservation `taker` gets entries of whoever has more than that.

    Returns
    -------
    list or None
        None where the tenant has reached its limit, so that only its own groups can leave.
    """
    own = shares.of(taker.tenant)
    after = Holding(taker.tenant, taker.entries + wanted, taker.active + wanted)
    if own.limit is not None and after.entries > own.limit:
        return None
    others = [each for each in holdings if each.tenant != taker.tenant]
    entitled = entitled_of(shares, capacity, [*others, after])
    is_due = after.entries <= own.reservation
    least = after.entries - entitled[after.tenant]
    found = []
    for each in others:
        above = each.entries - entitled[each.tenant]
        if each.entries > shares.of(each.tenant).reservation and (is_due or above > least):
            found.append((-above, each.tenant))
    return [tenant for _, tenant in sorted(found)]


def entitled_of(shares: Shares, capacity: int, holdings: Iterable[Holding]) -> dict[str, float]:
    """Return how many entries of a table each tenant with entries there is entitled to.

    Reservations above the table are met as far as each goes by itself.
    """
    uses = []
    for each in holdings:
        share = shares.of(each.tenant)
        limit = capacity if share.limit is None else min(share.limit, capacity)
        uses.append(TenantUse(each.tenant, share.shares, each.active, min(share.reservation, limit), limit))
    try:
        return entitlements(capacity, shares.tax_pct, uses)
    except ReservationError:
        return {use.name: use.reservation for use in uses}


def above_entitlement(shares: Shares, capacity: int, holdings: list[Holding]) -> list[str]:
    """Return the tenants that have more than they are entitled to of a table in which some is kept free.

    The one that is farthest above it is first.
    """
    kept = int(capacity * (1 - FREED_PCT / 100))
    entitled = entitled_of(shares, kept, holdings)
    above = [(entitled[each.tenant] - each.entries, each.tenant) for each in holdings]
    return [tenant for missing, tenant in sorted(above) if missing < 0]
