"""How many entries of a table each tenant is entitled to.

Shares say how entries are divided, a tax on idle ones that they go to who uses them: an idle entry costs as much as
1 / (1 - tax) active ones (C. A. Waldspurger, "Memory Resource Management in VMware ESX Server", OSDI 2002, 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST_TAX_PCT = 99.0
"""The highest tax: at 100 % an idle entry would cost without end."""


class TenantUse(NamedTuple):
    """What a tenant may have of a switch's table, and uses of it.

    Attributes
    ----------
    shares
        Its weight beside other tenants, above 0.
    active
        Entries of groups that had packets lately.
    reservation, limit
        The least and the most entries that it is entitled to, whatever it uses.
    """

    name: str
    shares: float
    active: float
    reservation: float
    limit: float

    @property
    def swap_slots(self) -> float:
        """Entries that the tenant may have to do without, for which the store must have room."""
        return self.limit - self.reservation


class ReservationError(ValueError):
    """The reservations of all tenants together are above the table."""


def entitlements(table: float, tax_pct: float, tenants: Sequence[TenantUse]) -> dict[str, float]:
    """Return how many entries each tenant is entitled to; they add up to the table, or to all limits if less.

    With shares S, active entries a and tax t a tenant is entitled to cS where that is not above a, else to
    (1 - t) cS + ta, and never to less than its reservation or more than its limit; c is the same for all.

    Parameters
    ----------
    table
        Entries of the table, 0 or more.
    tax_pct
        The tax on idle entries in percent, 0 to 99.

    Raises
    ------
    ReservationError
        The reservations are above the table.
    """
    reserved = sum(tenant.reservation for tenant in tenants)
    if reserved > table:
        raise ReservationError(f"the reservations are {reserved:g} entries together, and the table has {table:g}")
    tax = tax_pct / 100
    if sum(tenant.limit for tenant in tenants) <= table:
        return {tenant.name: tenant.limit for tenant in tenants}

    def total(scale: float) -> float:
        return sum(_entitled(tenant, scale, tax) for tenant in tenants)

    scale = _root(total, table, sorted({bend for tenant in tenants for bend in _bends(tenant, tax)}))
    return {tenant.name: _entitled(tenant, scale, tax) for tenant in tenants}


def _entitled(tenant: TenantUse, scale: float, tax: float) -> float:
    weighted = scale * tenant.shares
    if weighted > tenant.active:
        weighted = (1 - tax) * weighted + tax * tenant.active
    return min(max(weighted, tenant.reservation), tenant.limit)


def _bends(tenant: TenantUse, tax: float) -> list[float]:
    """Return the scales at which a tenant's entitlement begins to grow, grows otherwise, or grows no more."""
    ends = (tenant.reservation, tenant.limit)
    return [tenant.active / tenant.shares, *(_scale_of(tenant, end, tax) for end in ends)]


def _scale_of(tenant: TenantUse, entries: float, tax: float) -> float:
    """Return the scale at which a tenant would be entitled to so many entries, had it no reservation and no limit."""
    if entries > tenant.active:
        entries = (entries - tax * tenant.active) / (1 - tax)
    return entries / tenant.shares


def _root(total: Callable[[float], float], wanted: float, bends: Sequence[float]) -> float:
    """Return where a function that only grows, straight between its bends, has a value."""
    low, high = 0, len(bends) - 1
    while low < high:
        middle = (low + high) // 2
        if total(bends[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    above = bends[low]
    below = bends[low - 1] if low else 0.0
    least, most = total(below), total(above)
    if most <= least:
        return above
    return below + (above - below) * (wanted - least) / (most - least)
