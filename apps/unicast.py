"""The unicast app: shortest paths between hosts, beside multicast."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from apps.alarm_reports import AlarmReports
from apps.exporters.exposition import Metric
from apps.exporters.figures import entry_figures
from apps.notice_events import NoticeEvents
from apps.openflow.app import FabricApp, TableKeeper
from apps.openflow.bus import AlarmReported, TableSuspected
from apps.policy_file import PolicyFile
from controller.config.policy import Policy
from controller.effects import Notice
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastChanged, UnicastSettings

_REQUIRED_APP = ["apps.discovery"]


class Unicast(FabricApp, TableKeeper):
    """Feeds the unicast core."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected, AlarmReported]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = PolicyFile(self.logger)
        settings = _settings(self.policy_file.load())
        self.core: UnicastCore = UnicastCore(settings)
        self.record(time.monotonic(), settings=settings)
        self._reports = AlarmReports("unicast", self.report)
        self._events = NoticeEvents(self, "unicast")

    def start(self) -> Any:
        """Offer events, then run."""
        self._events.server.start()
        return super().start()

    def stop(self) -> None:
        """Offer events no more, and end."""
        self._events.server.stop()
        super().stop()

    def ticked(self) -> None:
        """Follow the policy file, and report tables that have room again."""
        self._reports.look_at_tables(lambda dpid: self.core.in_sync(dpid) or dpid not in self._datapaths)
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(UnicastChanged(_settings(policy)))

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: flow entries."""
        return [*super().figures(), *entry_figures("unicast", self.core.entries)]

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, make an event of it, and report a table that is full."""
        super().notice(notice)
        self._reports.noticed(notice)
        self._events.add(notice)


def _settings(policy: Policy) -> UnicastSettings:
    return UnicastSettings(check_interval_s=policy.check.interval_s, edits=policy.edits)
