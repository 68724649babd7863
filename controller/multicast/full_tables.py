"""Switches that refuse entries of groups for want of room: what they have room for, and what goes out for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Notice
from controller.kernel.domains import in_domain
from controller.kernel.notices import NoticeLimiter
from controller.multicast.failed_swaps import FailedSwaps
from controller.multicast.groups import GroupPlane
from controller.multicast.table_accounts import TableAccounts
from controller.multicast.table_limits import UNLIMITED, place_of, table_of
from controller.rules.installer import Installer
from controller.rules.model import FlowKey, Key

TOLD_INTERVAL_S = 60.0
"""Time between two notices of one table."""


class FullTables:
    """Takes in what switches have no room for.

    Parameters
    ----------
    out
        Has a group go out of all tables.

    Attributes
    ----------
    is_used
        Whether groups may be out.
    is_due
        Whether `look` has something to do.
    failed
        The groups that wait until they are tried again.
    """

    def __init__(
        self,
        plane: GroupPlane,
        installer: Installer,
        accounts: TableAccounts,
        out: Callable[[bytes, float, Urgency], list[Effect]],
    ) -> None:
        self.is_used = self.is_due = False
        self.failed = FailedSwaps()
        self._plane = plane
        self._installer = installer
        self._accounts = accounts
        self._out = out
        self._refused: dict[int, dict[FlowKey, None]] = {}
        self._untold: dict[int, None] = {}
        self._limiter = NoticeLimiter(TOLD_INTERVAL_S)
        installer.refusals.found_full = self._found_no_room

    def _found_no_room(self, dpid: int, key: Key) -> None:
        """Take it that a switch refused an entry for want of room."""
        if self.is_used and isinstance(key, FlowKey):
            self._refused.setdefault(dpid, {})[key] = None
            self.is_due = True

    def use(self, is_used: bool) -> None:
        """Have groups be out where there is no room for all, or never; what waits for room by now counts too."""
        self.is_used = is_used
        self._refused.clear()
        for dpid in self._installer.full_switches():
            for key in self._installer.without_room(dpid):
                self._found_no_room(dpid, key)
        if not is_used:
            self.failed.clear()

    def look(self, carried_per_second: float, now: float) -> list[Effect] | None:
        """Follow switches that refused entries, None where there are none: groups that they refused go out and wait.

        Parameters
        ----------
        carried_per_second
            How many packets of such a group the controller hands on meanwhile.
        """
        self.is_due = False
        accounts, is_confirmed = self._accounts, self._installer.is_confirmed
        refused = {dpid: [key for key in keys if not is_confirmed(dpid, key)] for dpid, keys in self._refused.items()}
        self._refused.clear()
        if not any(refused.values()):
            return None
        for dpid, keys in refused.items():
            changed = accounts.limits.refused(dpid, {key.table for key in keys}, now)
            self._untold.update(dict.fromkeys(changed))
            accounts.limits.count_soon((dpid,))
            accounts.know(changed)
            accounts.set_capacities(changed)
        accounts.count()
        effects: list[Effect] = []
        lacking: Counter[int] = Counter()
        for dpid, keys in refused.items():
            groups = {}
            for key in keys:
                found = self._groups_of(dpid, key)
                groups.update(dict.fromkeys(found))
                lacking[table_of(dpid, key.table)] += not found
            for address in groups:
                if address in accounts.tables:  # it has not left for another switch
                    effects += self._out(address, now, Urgency.PROMPT)
                    effects += self.failed.failed(address, dpid, carried_per_second, now)
        for table, count in lacking.items():
            for address in accounts.tables.revoke(table, count):
                effects += self._out(address, now, Urgency.PROMPT)
        return effects

    def _groups_of(self, dpid: int, key: FlowKey) -> list[bytes]:
        """Return the groups that are in and need an entry at a switch; none where it stays whatever groups do."""
        plane, match = self._plane, key.match
        if match.ip_dst is None:
            users = [user for user in plane.shared.users(dpid, key) if isinstance(user, bytes)]
        else:  # in OpenFlow 1.0 the match of a sender's entry does not tell its VLAN
            users = [in_domain(match.ip_dst, vlan_id) for vlan_id in (0, *plane.vlan_groups)]
        tables, groups = self._accounts.tables, plane.groups
        return [
            address
            for address in users
            if address in tables and any(rule.key == key for rule in groups[address].rules.get(dpid, ()))
        ]

    def try_more(self, now: float) -> list[Effect]:
        """Have tables that are short take more than they refused a while ago; tell of those that take too little."""
        accounts = self._accounts
        accounts.set_capacities(accounts.limits.grow(accounts.tables.short, now))
        return [notice for table in list(self._untold) for notice in self._tell(table, now)]

    def _tell(self, table: int, now: float) -> Iterator[Notice]:
        said, takes = self._accounts.limits.said(table), self._accounts.limits.of(table).limit
        if said == UNLIMITED or takes >= said:
            del self._untold[table]
        elif self._limiter.passes(table, now):
            del self._untold[table]
            dpid, table_id = place_of(table)
            text = (
                f"Table {table_id} of switch {dpid} has room for {takes} entries, as it refuses more, and for {said} "
                f"by `overcommit.capacity`: groups make do with these, and more are tried now and then."
            )
            yield Notice("table-smaller", text, (("dpid", dpid), ("table_id", table_id), ("entries", takes)))
