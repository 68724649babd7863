"""What becomes of monitors that share the switches, followed by a controller on a thread of the system's."""

from __future__ import annotations

from collections.abc import Callable

from apps.cluster.link import SidecarLink
from apps.cluster.store_reading import StoreSilent, read_below
from apps.system import system_threading
from controller.cluster.engine import KeyChanges
from controller.cluster.keys import Keys
from controller.cluster.monitor_states import MonitorsSeen, seen_of
from controller.cluster.share_records import ShareView

AGAIN_S = 1.0
"""How soon the store is read again where it gave no answer."""

WATCH_WAIT_S = 0.5


class MonitorFeed:
    """Calls `tell`, on its thread, with `MonitorsSeen` whenever that is otherwise, until it is closed."""

    def __init__(self, link: SidecarLink, fabric: str, tell: Callable[[MonitorsSeen], object]) -> None:
        self._link = link
        self._keys = Keys(fabric)
        self._tell = tell
        self._told: MonitorsSeen | None = None
        self._has_ended = system_threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        system_threading.Thread(target=self._run, name="monitor-feed", daemon=True).start()

    def close(self) -> None:
        """Follow no longer."""
        self._has_ended.set()

    def _run(self) -> None:
        view = ShareView(self._keys)
        while not self._has_ended.is_set():
            try:
                revision, held = read_below(self._link.ask, self._keys.share)
            except StoreSilent:
                self._has_ended.wait(AGAIN_S)
                continue
            view.replace(held)
            watch = self._link.watch(self._keys.share, revision)
            self._look(view)
            while not self._has_ended.is_set():
                report = watch.take(WATCH_WAIT_S)
                if type(report) is KeyChanges:
                    view.follow(report.changes)
                    self._look(view)
                elif report is not None:
                    break
            watch.close()

    def _look(self, view: ShareView) -> None:
        seen = seen_of(view)
        if seen != self._told:
            self._told = seen
            self._tell(seen)
