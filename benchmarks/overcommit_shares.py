"""What tenants have of a table in the end, beside what the closed form says that they are entitled to.

    python benchmarks/overcommit_shares.py [--draws 60] [--seed 1] [--table 500] [--json]

Tenants are drawn: their shares, reservations and limits, and whether they fill the table first and fall silent, or
come then with more groups than there is room for, which send 10 packets a second each. The anchor is the same choice
of groups where tenants are not told apart. Told is, for each draw, by how many entries the tenant is off that is
farthest from what it is entitled to.
"""

from __future__ import annotations

import argparse
from random import Random
from typing import NamedTuple

from measure import Measurement, report
from shared_table import READING_S, SharedTable

from controller.overcommit.entitlement import TenantUse, entitlements
from controller.overcommit.shares import ACTIVE_S, Allotment, Shares

ROUNDS = 12


class Drawn(NamedTuple):
    """A tenant: what it may have, and whether it sends on or was there first."""

    name: str
    allotment: Allotment
    is_busy: bool


def draw(random: Random, size: int) -> list[Drawn]:
    """Return tenants of which one at least sends on and one was there first."""
    count = random.randint(2, 6)
    busy = [True, False, *(random.random() < 0.6 for _ in range(count - 2))]
    tenants = []
    for number in range(count):
        reservation = random.choice([0, 0, random.randint(1, size // (2 * count))])
        limit = random.choice([None, None, random.randint(reservation + 1, size)])
        tenants.append(Drawn(f"t{number}", Allotment(random.randint(1, 5), reservation, limit), busy[number]))
    return tenants


def farthest(tenants: list[Drawn], size: int, tax_pct: float, seed: int, *, is_shared: bool) -> float:
    """Return by how many entries the tenant is off that is farthest from what it is entitled to."""
    shares = Shares(tax_pct, {each.name: each.allotment for each in tenants})
    table = SharedTable(size, shares if is_shared else None, seed=seed)
    first = [(each.name, number) for number in range(size) for each in tenants if not each.is_busy]
    table.go_on(first, READING_S)
    table.go_on([], ACTIVE_S + READING_S)
    before = {each.name: table.held(each.name) for each in tenants}
    busy = [(each.name, number) for number in range(size) for each in tenants if each.is_busy]
    table.go_on(busy, ROUNDS * READING_S)
    uses = []
    for each in tenants:
        limit = size if each.allotment.limit is None else each.allotment.limit
        most = limit if each.is_busy else min(limit, before[each.name])
        active, reservation = (size, each.allotment.reservation) if each.is_busy else (0, each.allotment.reservation)
        uses.append(TenantUse(each.name, each.allotment.shares, active, min(reservation, most), most))
    entitled = entitlements(size, tax_pct, uses)
    return max(abs(table.held(each.name) - entitled[each.name]) for each in tenants)


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    random, found = Random(args.seed), dict[str, list[float]]()
    for number in range(args.draws):
        tenants, tax_pct = draw(random, args.table), random.choice([0.0, 50.0, 75.0, 95.0])
        for name, is_shared in (("tenants share the table", True), ("not told apart", False)):
            off = farthest(tenants, args.table, tax_pct, number, is_shared=is_shared)
            found.setdefault(f"entries off, {name}", []).append(off)
    report([Measurement(name, "", off) for name, off in found.items()], as_json=args.json, source="overcommit_shares")


if __name__ == "__main__":
    main()
