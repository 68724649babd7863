"""Packets of trees that a switch does not know: it drops and counts them, and is read again."""

from __future__ import annotations

from collections import Counter

from controller.effects import Effect, Notice
from controller.events import FlowStatsReceived
from controller.kernel.notices import NoticeLimiter
from controller.multicast.aliases import AliasTrees
from controller.multicast.counted_drops import CountedDrops
from controller.rules.cookies import STALE_VERSION_COOKIE
from controller.rules.installer import Installer

NOTICE_INTERVAL_S = 600.0

STALE_VERSION = "stale-version"
"""The counter and the notice."""


class StaleVersions(CountedDrops):
    """Tells of the entries that drop packets of tree versions, where groups may have aliases.

    A switch that has lost entries of a tree shows it so: it is checked at once, which puts back what it lacks.
    """

    def __init__(self, installer: Installer, counters: Counter[str], trees: AliasTrees) -> None:
        super().__init__(installer, STALE_VERSION_COOKIE)
        self._counters = counters
        self._trees = trees
        self._limiter = NoticeLimiter(NOTICE_INTERVAL_S)

    def switch_connected(self, dpid: int, now: float) -> None:
        """Read a switch from now on, where groups may have aliases."""
        if self._trees.is_used:
            super().switch_connected(dpid, now)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> list[Effect]:
        """Count what a switch has dropped since its last answer, and have it checked where that is something."""
        dpid, dropped = event.dpid, self.counted(event, now).total()
        if not dropped:
            return []
        self._counters[STALE_VERSION] += dropped
        effects = self._installer.table_suspected(dpid, now)
        if self._limiter.passes(dpid, now):
            told = f"Switch {dpid} dropped {dropped} packets on trees of groups that it does not know"
            text = f"{told}; it is read again."
            effects.append(Notice(STALE_VERSION, text, (("dpid", dpid),)))
        return effects
