"""What apps share that follow the fabric which discovery finds: changes in order, some in a turn of the loop."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from apps.openflow.app import App
from apps.openflow.bus import TopologyChanged
from apps.openflow.framework import set_ev_cls
from topology.events import TopologyEvent

FOLLOW_S = 0.005
"""How long an app follows changes of the fabric in one turn of its loop, each change to its end."""

CHANGES_BOUND = 4096
"""Changes of the fabric that wait for further turns at most; what comes beyond is followed at once."""


class FabricApp(App):
    """An app whose core follows the fabric that discovery finds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fabric_changes: deque[TopologyEvent] = deque()

    def follow(self, change: TopologyEvent) -> None:
        """Follow one change of the fabric."""
        self.feed(change)

    @set_ev_cls(TopologyChanged)
    def _topology_changed(self, event: Any) -> None:
        is_following = bool(self._fabric_changes)
        self._fabric_changes.extend(event.changes)
        if not is_following:
            self._follow_some()

    def _follow_some(self) -> None:
        """Follow changes in order; when it has taken a while the others have their turns on the loop in between."""
        changes, end_s = self._fabric_changes, time.perf_counter() + FOLLOW_S
        while changes:
            self._follow_next()
            is_long = time.perf_counter() > end_s and 0 < len(changes) <= CHANGES_BOUND
            if is_long and self.reactor.call(self._turn, self._follow_some):
                return

    def _follow_next(self) -> None:
        change = self._fabric_changes[0]
        try:
            self.follow(change)
        except Exception:
            self.failed(type(change).__name__)
        self._fabric_changes.popleft()

    def _leave(self) -> None:
        while self._fabric_changes:
            self._follow_next()
        super()._leave()
