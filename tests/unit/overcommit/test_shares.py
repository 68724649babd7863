"""Tenants that share a table: who gives, what each has in the end, and what is never taken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_table import AT, SharedTable, tenant_of

from controller.overcommit.entitlement import TenantUse, entitlements
from controller.overcommit.shares import ACTIVE_S, OTHERS, Allotment, Shares

TABLE = 60


class Shared(SharedTable):
    """A table whose tenants are known."""

    def __init__(self, tenants: dict[str, Allotment], tax_pct: float = 75) -> None:
        self.shares = Shares(tax_pct, tenants)
        super().__init__(TABLE, self.shares)

    def active(self, tenant: str) -> int:
        since_s = self.tables.residence.read_s - ACTIVE_S
        return sum(group[0] == tenant and self.tables.residence.is_active(group, since_s) for group in self.tables)


def groups(tenant: str, count: int, first: int = 0) -> list[tuple[str, int]]:
    return [(tenant, number) for number in range(first, first + count)]


def entitled(world: Shared, active: dict[str, int]) -> dict[str, float]:
    uses = []
    for name, count in active.items():
        share = world.shares.of(name)
        limit = TABLE if share.limit is None else share.limit
        uses.append(TenantUse(name, share.shares, count, share.reservation, limit))
    return entitlements(TABLE, world.shares.tax_pct, uses)


@pytest.mark.parametrize("shares", [(1, 1), (2, 1), (5, 1), (1, 3)])
def test_tenants_that_all_send_have_what_the_closed_form_says(shares):
    world = Shared({"a": Allotment(shares[0]), "b": Allotment(shares[1])})
    world.go_on(groups("a", TABLE), 20)
    assert world.held("a") == TABLE
    world.go_on(groups("a", TABLE) + groups("b", TABLE), 40)
    for name, entries in entitled(world, {"a": TABLE, "b": TABLE}).items():
        assert abs(world.held(name) - entries) <= 1


def test_one_of_many_shares_has_no_more_than_its_part_of_those_that_lack_half_an_entry_each():
    world = Shared({"large": Allotment(5), **{name: Allotment() for name in ("a", "b", "c")}})
    world.go_on([group for name in ("large", "a", "b", "c") for group in groups(name, TABLE)], 40)
    assert 37 <= world.held("large") <= 38  # 5/8 of the table: 37.5
    assert {world.held(name) for name in ("a", "b", "c")} <= {7, 8}


@pytest.mark.parametrize("tax_pct", [0, 50, 75, 95])
def test_idle_entries_go_to_who_sends_as_far_as_the_tax_says(tax_pct):
    world = Shared({"idle": Allotment(), "busy": Allotment()}, tax_pct)
    world.go_on(groups("idle", TABLE), 10)
    world.go_on([], ACTIVE_S + 10)
    assert world.held("idle") == TABLE and world.active("idle") == 0
    world.go_on(groups("busy", TABLE), 20)
    for name, entries in entitled(world, {"idle": 0, "busy": TABLE}).items():
        assert abs(world.held(name) - entries) <= 1


def test_reservations_and_limits_hold():
    world = Shared({"kept": Allotment(reservation=25), "bound": Allotment(limit=10), "rest": Allotment()})
    world.go_on(groups("kept", 25), 10)
    world.go_on([], ACTIVE_S + 10)
    world.go_on(groups("bound", TABLE) + groups("rest", TABLE), 20)
    assert {name: world.held(name) for name in ("kept", "bound", "rest")} == {"kept": 25, "bound": 10, "rest": 25}


def test_a_tenant_at_its_limit_changes_its_own_groups_alone_though_there_is_room():
    world = Shared({"bound": Allotment(limit=3)})
    world.go_on(groups("other", 5), 4)
    world.go_on(groups("bound", 3) + groups("other", 5), 20)
    world.go_on(groups("other", 5), 60)
    assert world.miss(("bound", 9))
    assert (world.held("bound"), world.held("other")) == (3, 5)


def test_below_its_reservation_a_tenant_gets_entries_whatever_others_pay():
    world = Shared({"late": Allotment(0.001, reservation=5), "rich": Allotment(1000)})
    world.go_on(groups("rich", TABLE), 10)
    world.go_on(groups("rich", TABLE) + groups("late", 20), 20)
    assert world.held("late") == 5


def test_ahead_of_need_only_those_above_their_entitlement_give():
    world = Shared({"idle": Allotment(reservation=30), "ended": Allotment()})
    world.go_on(groups("idle", 30) + groups("ended", 30), 10)
    world.is_ahead = True
    world.go_on([], 300)
    assert world.held("idle") == 30
    assert world.held("ended") == TABLE - 30 - int(0.06 * TABLE)


def test_a_lower_limit_has_what_is_beyond_it_leave():
    world = Shared({"a": Allotment()})
    world.is_ahead = True
    world.go_on(groups("a", 20), 10)
    world.tables.use_shares(Shares(75, {"a": Allotment(limit=4)}), lambda group: group[0])
    world.go_on(groups("a", 20), 4)
    assert world.held("a") == 4


def test_groups_of_no_tenant_are_one_tenant_together():
    world = Shared({"a": Allotment(2)})
    world.go_on(groups(OTHERS, TABLE), 20)
    world.go_on(groups(OTHERS, TABLE) + groups("a", TABLE), 40)
    assert abs(world.held("a") - 40) <= 1


def test_without_shares_nobody_is_told_apart():
    world = Shared({"a": Allotment(100)})
    world.tables.use_shares(None, lambda group: group[0])
    world.go_on(groups("b", TABLE), 20)
    world.go_on(groups("b", TABLE) + groups("a", TABLE), 40)
    assert world.held("a") == 0
    assert world.tables.tenants(AT) == []


tenants = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(
        st.builds(
            lambda shares, reservation, more: Allotment(
                shares, reservation, None if more is None else reservation + more
            ),
            st.integers(1, 4),
            st.integers(0, 12),
            st.none() | st.integers(1, 40),
        ),
        st.integers(0, 40),  # idle groups that come first
        st.integers(0, 50),  # groups that send on and on
    ),
    min_size=1,
)


@settings(max_examples=60)
@given(tenants, st.sampled_from([0, 30, 75, 95]))
def test_in_the_end_each_has_what_the_closed_form_says(found, tax_pct):
    world = Shared({name: share for name, (share, _, _) in found.items()}, tax_pct)
    for name, (_, idle, _) in found.items():
        for group in groups(name, idle, first=1000):
            world.miss(group)
    world.go_on([], ACTIVE_S + 10)
    sending = [group for name, (_, _, count) in found.items() for group in groups(name, count)]
    world.go_on(sending, 60)
    held = {name: world.held(name) for name in found}
    active = {name: world.active(name) for name in found}
    views = {view.tenant: view for view in world.tables.tenants(AT)}
    assert {name: (view.entries, view.active) for name, view in views.items()} == {
        name: (held[name], active[name]) for name in found if held[name]
    }
    asking = {tenant_of(group) for group in sending if group not in world.tables}
    uses = []
    for name, (share, _, _) in found.items():
        limit = TABLE if share.limit is None else min(TABLE, share.limit)
        most = limit if name in asking else held[name]
        used = TABLE if name in asking else active[name]
        uses.append(TenantUse(name, share.shares, used, min(share.reservation, most), most))
    for name, entries in entitlements(TABLE, tax_pct, uses).items():
        assert abs(held[name] - entries) <= 1, (name, held)
