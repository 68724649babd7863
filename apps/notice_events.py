"""What an app without documents of its own tells operators: its notices, as events on the socket that apps share."""

from __future__ import annotations

import time

from apps.openflow.app import App
from apps.state_dir import socket_path
from apps.status_server import StatusServer
from controller.effects import Notice
from controller.multicast.sections import CRITICAL
from controller.snapshot.events import EventLog, Severity


class NoticeEvents:
    """Keeps the newest notices of an app as events in `log`, offered under its name while `server` runs."""

    def __init__(self, app: App, name: str) -> None:
        self.log = EventLog(name)
        self.log.offset_s = time.time() - time.monotonic()
        self.server = StatusServer(
            socket_path(), {}, app.ask, app.logger, app=name, sections={"events": self.log.section}
        )

    def add(self, notice: Notice) -> None:
        """Make an event of a notice."""
        fields = dict(notice.fields)
        dpid, port_no = fields.get("dpid"), fields.get("port_no")
        self.log.add(
            time.monotonic(),
            notice.kind,
            notice.text,
            severity=Severity.CRITICAL if notice.kind in CRITICAL else Severity.WARNING,
            dpid=dpid if isinstance(dpid, int) else None,
            port_no=port_no if isinstance(port_no, int) else None,
        )
