"""Switches are asked what their flow tables have room for, where groups may be out: as they connect, and in doubt.

What they said may have changed where a table refuses an entry, and where one has no ample room for long.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from controller.effects import Effect, Notice
from controller.events import EditFailed, TablesReceived
from controller.multicast.table_accounts import TableAccounts
from controller.multicast.table_limits import AMPLE_PART, UNLIMITED, place_of
from controller.multicast.table_readings import TableReadings
from controller.rules.installer import Installer
from controller.rules.table_capacity import decode_tables

DOUBT_INTERVAL_S, SHORT_INTERVAL_S = 10.0, 60.0
"""Between two questions to a switch at least: while it refuses entries, and while a table has no ample room."""


class TableQuestions:
    """At most one open question per switch; one that refuses to answer, or never does, has said nothing."""

    def __init__(self, installer: Installer, accounts: TableAccounts, readings: TableReadings) -> None:
        self._installer = installer
        self._accounts = accounts
        self._readings = readings
        self._is_used = False
        self._unasked: dict[int, None] = {}
        self._open: dict[int, int] = {}
        self._asked_s: dict[int, float] = {}
        self._answered: set[int] = set()

    def use(self, is_used: bool) -> None:
        """Have switches asked, or not; those that are connected too."""
        if is_used and not self._is_used:
            self.begin(dpid for dpid, _ in self._installer.desired_counts())
        elif not is_used:
            for known in (self._unasked, self._open, self._answered):
                known.clear()
        self._is_used = is_used

    def connected(self, dpid: int) -> None:
        """Have a switch asked that may be another one than it was."""
        self._answered.discard(dpid)
        self.begin((dpid,))

    def begin(self, dpids: Iterable[int]) -> None:
        """Have switches asked anew."""
        for dpid in dpids:
            self._unasked[dpid] = None
            self._open.pop(dpid, None)

    def ask_all(self, now: float) -> list[Effect]:
        """Ask all that have been read and not asked."""
        return [effect for dpid in list(self._unasked) for effect in self.ask(dpid, now)]

    def ask_again(self, now: float) -> list[Effect]:
        """Ask those anew that refused entries since they were asked, or said something and have no ample room."""
        limits, asked_s = self._accounts.limits, self._asked_s
        self.begin(dpid for dpid in limits.doubted if now - asked_s.get(dpid, -inf) >= DOUBT_INTERVAL_S)
        for table, each in self._accounts.tables.tables.items() if limits.have_told else ():
            dpid, _ = place_of(table)
            if each.free < AMPLE_PART * each.capacity and limits.has_told(dpid):
                self.begin((dpid,) if now - asked_s.get(dpid, -inf) >= SHORT_INTERVAL_S else ())
        return self.ask_all(now) if self._unasked else []

    def ask(self, dpid: int, now: float) -> list[Effect]:
        """Ask a switch that has not been asked, once it has been read: it is ours then."""
        if dpid not in self._unasked or not self._installer.is_read(dpid):
            return []
        request = self._installer.read_tables(dpid)
        if request is None:
            return []
        del self._unasked[dpid]
        self._open[dpid], self._asked_s[dpid] = request.xid, now
        return [request]

    def told(self, event: TablesReceived) -> list[Effect]:
        """Take a reply; what answers no question of these is left alone."""
        if self._open.get(event.dpid) != event.xid:
            return []
        answer, accounts = decode_tables(event.message), self._accounts
        changed = accounts.limits.told(event.dpid, answer.entries, is_again=event.dpid in self._answered)
        if not answer.more:
            del self._open[event.dpid]
            self._answered.add(event.dpid)
        accounts.set_capacities(table for table in changed if table in accounts.tables.tables)
        self._readings.schedule()
        less = []
        for table in changed:
            takes, said = accounts.limits.of(table).limit, accounts.limits.said(table)
            if takes < said < UNLIMITED:
                less.append(f"table {place_of(table)[1]} {takes}, not {said}")
        if not less:
            return []
        text = (
            f"Switch {event.dpid} says that its flow tables have room for fewer entries than `overcommit.capacity` "
            f"says: {', '.join(less)}. Groups make do with these."
        )
        return [Notice("tables-say-less", text, (("dpid", event.dpid),))]

    def refused(self, event: EditFailed) -> bool:
        """Take it that a switch refused a message; False where that was no question of these."""
        if self._open.get(event.dpid) != event.xid:
            return False
        del self._open[event.dpid]
        return True
