"""What tenants are entitled to: the closed form, against entries that change hands one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.overcommit.entitlement import ReservationError, TenantUse, entitlements

TABLE = 60


def tenant(name: str, **use: float) -> TenantUse:
    return TenantUse(**({"name": name, "shares": 1, "active": 0, "reservation": 0, "limit": TABLE} | use))


def in_quarters(one: TenantUse) -> TenantUse:
    """Return a tenant of a table whose entries are cut in four, so that whole ones round little."""
    return one._replace(active=4 * one.active, reservation=4 * one.reservation, limit=4 * one.limit)


def price(shares: float, entries: int, active: float, tax_pct: float) -> float:
    """Return what a tenant pays for each of its entries: its shares over them, idle ones counted at their tax."""
    if entries <= 0:
        return float("inf")
    used = min(1.0, active / entries)
    return shares / (entries * (used + (1 - used) / (1 - tax_pct / 100)))


def by_revocation(tax_pct: float, tenants: list[TenantUse]) -> dict[str, int]:
    """Hand quarters of entries from who pays least to who pays most until that helps nobody."""
    held = {one.name: int(one.reservation) for one in tenants}
    known = {one.name: one for one in tenants}
    for _ in range(4 * TABLE - sum(held.values())):
        needy = [name for name, count in held.items() if count + 1 <= known[name].limit]
        if not needy:
            break
        most = max(needy, key=lambda name: price(known[name].shares, held[name] + 1, known[name].active, tax_pct))
        held[most] += 1
    for _ in range(10_000):
        givers = [name for name, count in held.items() if count - 1 >= known[name].reservation]
        takers = [name for name, count in held.items() if count + 1 <= known[name].limit]
        if not givers or not takers:
            break
        least = min(givers, key=lambda name: price(known[name].shares, held[name], known[name].active, tax_pct))
        most = max(takers, key=lambda name: price(known[name].shares, held[name] + 1, known[name].active, tax_pct))
        if least == most or price(known[most].shares, held[most] + 1, known[most].active, tax_pct) <= price(
            known[least].shares, held[least], known[least].active, tax_pct
        ):
            break
        held[least] -= 1
        held[most] += 1
    return held


uses = st.builds(
    lambda shares, active, reservation, more: (shares, active, reservation, reservation + more),
    st.integers(1, 5),
    st.integers(0, TABLE),
    st.integers(0, 15),
    st.integers(0, TABLE),
)


@given(st.lists(uses, min_size=1, max_size=4), st.sampled_from([0, 30, 75, 95]))
def test_the_closed_form_is_where_entries_stop_changing_hands(found: list[tuple[int, int, int, int]], tax_pct: int):
    tenants = [TenantUse(str(number), *map(float, use)) for number, use in enumerate(found)]
    entitled = entitlements(TABLE, tax_pct, tenants)
    assert sum(entitled.values()) == pytest.approx(min(TABLE, sum(one.limit for one in tenants)))
    for one in tenants:
        assert one.reservation - 1e-9 <= entitled[one.name] <= one.limit + 1e-9
    for name, quarters in by_revocation(tax_pct, [in_quarters(one) for one in tenants]).items():
        assert abs(entitled[name] - quarters / 4) <= 1 + 1e-6


def test_shares_divide_a_table_that_all_use():
    tenants = [tenant("a", shares=2, active=60), tenant("b", active=60)]
    assert entitlements(TABLE, 75, tenants) == pytest.approx({"a": 40, "b": 20})


def test_idle_entries_go_to_who_uses_them():
    tenants = [tenant("busy", active=60), tenant("idle", active=0)]
    # cS of the busy one, and a quarter of that: c = 48.
    assert entitlements(TABLE, 75, tenants) == pytest.approx({"busy": 48, "idle": 12})
    assert entitlements(TABLE, 0, tenants) == pytest.approx({"busy": 30, "idle": 30})


def test_reservations_and_limits_hold_whatever_is_used():
    tenants = [tenant("kept", reservation=25), tenant("bound", active=60, limit=10), tenant("rest", active=60)]
    assert entitlements(TABLE, 75, tenants) == pytest.approx({"kept": 25, "bound": 10, "rest": 25})


def test_a_table_with_room_for_all_gives_everyone_its_limit():
    assert entitlements(TABLE, 75, [tenant("a", limit=10), tenant("b", limit=20)]) == {"a": 10, "b": 20}
    assert entitlements(TABLE, 75, []) == {}


def test_more_reserved_than_the_table_has_is_refused():
    with pytest.raises(ReservationError, match=r"61 entries together, and the table has 60"):
        entitlements(TABLE, 75, [tenant("a", reservation=61, limit=61)])
