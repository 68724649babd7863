"""What is advised about the number of monitors, followed by a controller on a thread of the system's."""

from __future__ import annotations

from collections.abc import Callable

from apps.cluster.link import SidecarLink
from apps.cluster.monitor_feed import AGAIN_S, WATCH_WAIT_S
from apps.cluster.scaling_shown import read_said
from apps.cluster.store_reading import StoreSilent, read_below
from apps.system import system_threading
from controller.cluster.engine import KeyChanges
from controller.cluster.keys import Keys
from controller.scaling.advised import Advised, read_advised


class ScalingFeed:
    """Calls `tell`, on its thread, with what is said of intervals that it has not told of, until it is closed."""

    def __init__(self, link: SidecarLink, fabric: str, tell: Callable[[list[Advised]], object]) -> None:
        self._link = link
        self._prefix = Keys(fabric).scaling_said
        self._tell = tell
        self._has_ended = system_threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        system_threading.Thread(target=self._run, name="scaling-feed", daemon=True).start()

    def close(self) -> None:
        """Follow no longer."""
        self._has_ended.set()

    def _run(self) -> None:
        while not self._has_ended.is_set():
            try:
                revision, held = read_below(self._link.ask, self._prefix)
            except StoreSilent:
                self._has_ended.wait(AGAIN_S)
                continue
            if held:
                self._tell(read_said(held))
            watch = self._link.watch(self._prefix, revision)
            while not self._has_ended.is_set():
                report = watch.take(WATCH_WAIT_S)
                if type(report) is KeyChanges:
                    changed = (read_advised(change.value) for change in report.changes if change.value is not None)
                    self._tell([said for said in changed if said is not None])
                elif report is not None:
                    break
            watch.close()
