"""The queues app: `ryu-manager apps/multicast.py apps/queues.py`, or `vsrt run multicast queues`."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from apps.exporters.exposition import Metric
from apps.exporters.figures import class_figures
from apps.openflow.bus import AlarmReported
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import MAIN_DISPATCHER, ofp_event, set_ev_cls
from apps.openflow.stats_app import StatsApp
from apps.ovsdb_session import OvsdbSession
from apps.registry import required_modules
from controller.queues.core import QueueCore
from controller.queues.events import DatabaseEvent, ReadAnew, ServersWanted, Transact
from controller.queues.sections import QueueSections

_REQUIRED_APP = required_modules("queues")


class QueuesApp(DeclaredApp, FabricApp, StatsApp):
    """Feeds the core of queues with what switches and OVSDB servers tell, and has these do its transactions.

    It changes no flow entry: those name the queues by themselves.
    """

    _EVENTS: ClassVar[list[type]] = [AlarmReported]

    core: QueueCore

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sessions: dict[str, OvsdbSession] = {}
        self._perform.update(
            {
                ServersWanted: self._servers_wanted,
                Transact: self._transact,
                ReadAnew: self._read_anew,
            }
        )
        self.sections = QueueSections(self.core)
        self.offer(sections=self.sections.by_name(), refresh=lambda: self.sections.refresh(time.monotonic()))

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: how far classes are from their goals, and what they lack."""
        return [*super().figures(), *class_figures(self.sections.class_documents(list(self.core.ports.reports())))]

    def end(self) -> None:
        """Leave queues as they are, and end all connections."""
        super().end()
        for session in self._sessions.values():
            session.end()
        for session in self._sessions.values():
            session.close()

    def _servers_wanted(self, effect: ServersWanted) -> None:
        for server in [server for server in self._sessions if server not in effect.servers]:
            self._sessions.pop(server).end()
        for server in effect.servers:
            if server not in self._sessions:
                session = self._sessions[server] = OvsdbSession(server, self._told)
                session.start()

    def _told(self, event: DatabaseEvent) -> None:
        self.reactor.call(self._turn, self._heard, event)

    def _heard(self, event: DatabaseEvent) -> None:
        if event.server in self._sessions:
            self.feed(event)

    def _transact(self, effect: Transact) -> None:
        session = self._sessions.get(effect.server)
        if session is not None:
            session.transact(effect)

    def _read_anew(self, effect: ReadAnew) -> None:
        session = self._sessions.get(effect.server)
        if session is not None:
            session.read_anew()

    @set_ev_cls(ofp_event.EventOFPQueueStatsReply, MAIN_DISPATCHER)
    def _stats_received(self, event: Any) -> None:
        self.take_stats(event.msg)
