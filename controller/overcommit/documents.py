"""Documents of `vsrt overcommit`: what is read from them, with the place of every fault, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.allocation.fields import RequestError, items, names, number, record, text, within
from controller.overcommit.entitlement import MOST_TAX_PCT, ReservationError, TenantUse, entitlements
from controller.overcommit.shares import Allotment, Shares

_SHARES = frozenset({"table", "tax_pct", "tenants"})
_TENANT = frozenset({"name", "shares", "active", "reservation", "limit"})
_OPTIONAL = frozenset({"shares", "reservation", "limit"})
_SHARING = frozenset({"tax_pct", "tenants"})
_OWNER = frozenset({"name", "groups"}) | _OPTIONAL
_DIGITS = 6


def shares_of(document: Any) -> dict[str, Any]:
    """Return what each tenant is entitled to of a table, and its swap slots, both in entries.

    Raises
    ------
    RequestError
        The document is none; the text begins with the field at fault.
    """
    root = record(document, "input", _SHARES)
    table = number(root["table"], "table")
    tax_pct = within(number(root["tax_pct"], "tax_pct"), "tax_pct", 0, MOST_TAX_PCT)
    tenants: dict[str, TenantUse] = {}
    for index, item in enumerate(items(root["tenants"], "tenants")):
        tenant = _tenant(item, f"tenants[{index}]", table)
        if tenant.name in tenants:
            raise RequestError(f"tenants[{index}].name: {tenant.name!r} is the name of another tenant")
        tenants[tenant.name] = tenant
    try:
        entitled = entitlements(table, tax_pct, list(tenants.values()))
    except ReservationError as error:
        raise RequestError(f"tenants: {error}") from None
    return {
        "tenants": {
            name: {"entitled": round(entitled[name], _DIGITS), "swap_slots": round(tenant.swap_slots, _DIGITS)}
            for name, tenant in tenants.items()
        }
    }


def sharing_of(document: Any, table: int) -> tuple[Shares, dict[str, str]]:
    """Return what tenants may have of a table of so many entries, and the tenant of each group that has one.

    Raises
    ------
    RequestError
        The document is none; the text begins with the field at fault.
    """
    root = record(document, "tenants", _SHARING)
    tax_pct = within(number(root["tax_pct"], "tax_pct"), "tax_pct", 0, MOST_TAX_PCT)
    allotments: dict[str, Allotment] = {}
    owners: dict[str, str] = {}
    for index, item in enumerate(items(root["tenants"], "tenants")):
        path = f"tenants[{index}]"
        found = record(item, path, _OWNER, _OPTIONAL)
        name = text(found["name"], f"{path}.name")
        if name in allotments:
            raise RequestError(f"{path}.name: {name!r} is the name of another tenant")
        shares, reservation, limit = _allotment(found, path, table)
        for group in names(found["groups"], f"{path}.groups"):
            if owners.setdefault(group, name) != name:
                raise RequestError(f"{path}.groups: {group!r} is of tenant {owners[group]!r} already")
        allotments[name] = Allotment(shares, int(reservation), None if limit >= table else int(limit))
    reserved = sum(each.reservation for each in allotments.values())
    if reserved > table:
        raise RequestError(f"tenants: the reservations are {reserved} entries together, and the table has {table}")
    return Shares(tax_pct, allotments), owners


def _tenant(item: Any, path: str, table: float) -> TenantUse:
    found = record(item, path, _TENANT, _OPTIONAL)
    shares, reservation, limit = _allotment(found, path, table)
    active = number(found["active"], f"{path}.active")
    return TenantUse(text(found["name"], f"{path}.name"), shares, active, reservation, limit)


def _allotment(found: Mapping[str, Any], path: str, table: float) -> tuple[float, float, float]:
    """Return the shares, reservation and limit of a tenant."""
    shares = number(found.get("shares", 1), f"{path}.shares")
    if shares == 0:
        raise RequestError(f"{path}.shares: 0 is not above 0")
    reservation = number(found.get("reservation", 0), f"{path}.reservation")
    limit = found.get("limit")
    limit = table if limit is None else number(limit, f"{path}.limit")
    if reservation > limit:
        raise RequestError(f"{path}.reservation: {reservation:g} is above the limit, {limit:g}")
    return shares, reservation, limit
