"""Apps without documents of their own: operators see their notices, as events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from apps.openflow.app import TableKeeper
from apps.openflow.declared import DeclaredApp
from apps.openflow.framework import running_apps
from controller.effects import Notice
from controller.multicast.sections import CRITICAL
from controller.snapshot.events import EventRing, Severity

TOLD_BY_ALARMS = frozenset({"switch-lost"})
"""Notices that are no events of these apps where there are alarms, which tell of the same."""


class NoticeApp(DeclaredApp, TableKeeper):
    """Keeps its newest notices as `events`, and offers them beside the checks of its tables."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told_events = EventRing(self.name.lower(), lambda text: self.names.spoken(text))
        self.told_events.offset_s = time.time() - time.monotonic()
        actions = {**self.table_checks.actions(), **self.own_actions()}
        self.offer(actions=actions, sections={"events": self.told_events.section})

    def own_actions(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        """Return what else the app answers on the status socket."""
        return {}

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, and make an event of it where nobody else does."""
        super().notice(notice)
        if notice.kind in TOLD_BY_ALARMS and "alarms" in running_apps():
            return
        fields = dict(notice.fields)
        dpid, port_no = fields.get("dpid"), fields.get("port_no")
        self.told_events.add(
            time.monotonic(),
            notice.kind,
            notice.text,
            severity=Severity.CRITICAL if notice.kind in CRITICAL else Severity.WARNING,
            dpid=dpid if isinstance(dpid, int) else None,
            port_no=port_no if isinstance(port_no, int) and port_no else None,
        )
