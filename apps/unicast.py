"""The unicast app: shortest paths between hosts, beside multicast."""

from __future__ import annotations

from typing import Any, ClassVar

from apps.exporters.exposition import Metric
from apps.exporters.figures import counted_figures, entry_figures
from apps.openflow.bus import AlarmReported, DrainsChanged, LinksMeasured, PathsWeighed, PoolShared, TableSuspected
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import set_ev_cls
from apps.openflow.notice_app import NoticeApp
from apps.registry import required_modules
from controller.effects import Notice
from controller.service_classes.pool import AliasesUsed, FlowsUsed
from controller.unicast.core import UnicastCore

_REQUIRED_APP = required_modules("unicast")


class UnicastApp(NoticeApp, FabricApp):
    """Feeds the unicast core."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected, AlarmReported, PoolShared]
    takes_ipv4_groups = False
    core: UnicastCore

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._perform[FlowsUsed] = lambda effect: self.send_event_to_observers(PoolShared(effect))

    @set_ev_cls(LinksMeasured)
    def _links_measured(self, event: Any) -> None:
        self.feed(event.loads)

    @set_ev_cls(PoolShared)
    def _pool_shared(self, event: Any) -> None:
        if isinstance(event.used, AliasesUsed):
            self.feed(event.used)

    @set_ev_cls(PathsWeighed)
    def _paths_weighed(self, event: Any) -> None:
        self.feed(event.weighed)

    def ticked(self) -> None:
        """Look after files, and report tables that have room again."""
        super().ticked()
        self._reports.look_at_tables(lambda dpid: self.core.in_sync(dpid) or dpid not in self._datapaths)

    @set_ev_cls(DrainsChanged)
    def _drains_changed(self, event: Any) -> None:
        self.feed(event.drained)

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told: flow entries."""
        counted = counted_figures("unicast", self.core.counters)
        return [*super().figures(), *entry_figures("unicast", self.core.entries), *counted]

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, make an event of it, and report a table that is full."""
        super().notice(notice)
        self._reports.noticed(notice)
