"""What a controller shows of monitors that share the switches: which there are, and what is advised about them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apps.cluster.link import SidecarLink
from apps.cluster.monitor_feed import MonitorFeed
from apps.cluster.monitors_shown import MonitorsSection
from apps.cluster.scaling_feed import ScalingFeed
from apps.cluster.scaling_shown import ScalingSection
from controller.cluster.monitor_states import MonitorsSeen
from controller.snapshot.log import DocumentLog


class MonitorWatch:
    """Follows both in the store; `later` has a function called on the app's loop.

    Attributes
    ----------
    seen
        The monitors, as of the last look.
    """

    def __init__(self, link: SidecarLink, fabric: str, later: Callable[..., object]) -> None:
        self.seen = MonitorsSeen({}, 0)
        self.shown, self.advice = MonitorsSection(), ScalingSection()
        self._feeds = (
            MonitorFeed(link, fabric, lambda seen: later(self._see, seen)),
            ScalingFeed(link, fabric, lambda said: later(self.advice.see, said)),
        )

    def sections(self) -> dict[str, DocumentLog[Any]]:
        """Return what readers follow, by name."""
        return {"monitors": self.shown.section, "scaling": self.advice.section}

    def start(self) -> None:
        """Begin to follow."""
        for feed in self._feeds:
            feed.start()

    def close(self) -> None:
        """Follow no longer."""
        for feed in self._feeds:
            feed.close()

    def _see(self, seen: MonitorsSeen) -> None:
        self.seen = seen
        self.shown.see(seen.states, seen.unowned, time.time())
