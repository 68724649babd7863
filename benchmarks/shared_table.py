"""A flow table that tenants share, driven by groups that send: for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from controller.overcommit.shares import Shares
from controller.overcommit.tables import GroupTables

AT = 1
READING_S = 2.0
PACKETS_PER_S = 10

Named = tuple[str, int]
"""A group of one entry: its tenant and a number."""


class SharedTable:
    """A table of so many groups, of which those that send miss or are counted every 2 s.

    Parameters
    ----------
    shares
        What tenants may have, None where they are not told apart.
    is_ahead
        Whether groups leave ahead of need.
    """

    def __init__(self, size: int, shares: Shares | None, *, seed: int = 1, is_ahead: bool = False) -> None:
        self.tables: GroupTables[Named] = GroupTables(Random(seed), 1 << 20)
        self.tables.set_capacity(AT, size)
        self.tables.use_shares(shares, tenant_of)
        self.now_s = 0.0
        self.is_ahead = is_ahead

    def miss(self, group: Named) -> bool:
        """Have a packet come to a group that is out; return whether it came in."""
        self.tables.residence.missed(group, self.now_s)
        leaving = self.tables.find_leaving(group, {AT: 1}, self.now_s)
        if leaving is None:
            return False
        for other in leaving:
            self.tables.went_out(other)
        self.tables.came_in(group, {AT: 1}, self.now_s)
        return True

    def go_on(self, sending: Sequence[Named], for_s: float) -> None:
        """Have groups send 10 packets a second: those that are out come in if they may."""
        for _ in range(round(for_s / READING_S)):
            self.now_s += READING_S
            count = round(PACKETS_PER_S * READING_S)
            self.tables.residence.read({group: count for group in sending if group in self.tables}, self.now_s)
            for group in self.tables.take_ended() if self.is_ahead else ():
                self.tables.went_out(group)
            for group in sending:
                if group not in self.tables:
                    self.miss(group)

    def held(self, tenant: str) -> int:
        """Return how many groups of a tenant are in."""
        return sum(tenant_of(group) == tenant for group in self.tables)


def tenant_of(group: Named) -> str:
    """Return the tenant of a group."""
    return group[0]
