"""Documents of `vsrt overcommit`: what is read from them, with the place of every fault, and what is answered."""

from __future__ import annotations

from typing import Any

from controller.allocation.fields import RequestError, items, number, record, text, within
from controller.overcommit.entitlement import MOST_TAX_PCT, ReservationError, TenantUse, entitlements

_SHARES = frozenset({"table", "tax_pct", "tenants"})
_TENANT = frozenset({"name", "shares", "active", "reservation", "limit"})
_OPTIONAL = frozenset({"shares", "reservation", "limit"})
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


def _tenant(item: Any, path: str, table: float) -> TenantUse:
    found = record(item, path, _TENANT, _OPTIONAL)
    shares = number(found.get("shares", 1), f"{path}.shares")
    if shares == 0:
        raise RequestError(f"{path}.shares: 0 is not above 0")
    reservation = number(found.get("reservation", 0), f"{path}.reservation")
    limit = found.get("limit")
    limit = table if limit is None else number(limit, f"{path}.limit")
    if reservation > limit:
        raise RequestError(f"{path}.reservation: {reservation:g} is above the limit, {limit:g}")
    active = number(found["active"], f"{path}.active")
    return TenantUse(text(found["name"], f"{path}.name"), shares, active, reservation, limit)
