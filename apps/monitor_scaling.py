"""What a monitor shows of advice about their number, and how it waits longer between polls where it is to."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from apps.exporters.sink import ScalingState
from controller.config.settings import Monitor

if TYPE_CHECKING:
    from apps.cluster.scaling_thread import ScalingHeard

ACTIONS = ("start", "drain", "rarer", "oftener", "failed")
"""What may have been done: monitors started or drained, polls made rarer or more frequent again, or neither."""


class MonitorScaling:
    """What this monitor has heard; on its loop."""

    def __init__(self) -> None:
        # Loaded here: a monitor that polls all switches needs nothing of what several share.
        from apps.cluster.scaling_shown import ScalingSection

        self._shown = ScalingSection()
        self.section = self._shown.section
        self._pace = 1
        self._met_ratio: float | None = None
        self._actions: Counter[str] = Counter(dict.fromkeys(ACTIONS, 0))

    def state(self) -> ScalingState:
        """Return what outputs tell."""
        latest = self._shown.latest
        return ScalingState(None if latest is None else latest.wanted, self._met_ratio, dict(self._actions))

    def heard(self, heard: ScalingHeard, settings: Monitor) -> Monitor | None:
        """Take in what is advised; return settings with other times between polls, None where these stand."""
        self._shown.see(heard.said)
        self._met_ratio = heard.met_ratio
        self._actions.update(heard.actions)
        if heard.pace == self._pace:
            return None
        former, self._pace = self._pace, heard.pace
        return paced(settings, former, heard.pace)

    def paced(self, settings: Monitor) -> Monitor:
        """Return settings of the policy with the times between polls that are to be waited now."""
        return paced(settings, 1, self._pace)


def paced(settings: Monitor, former: int, pace: int) -> Monitor:
    """Return settings with other times between polls, all of them by the same factor."""

    def of(interval_s: int) -> int:
        return max(1, round(interval_s * pace / former))

    classes = {entry.name: getattr(settings.intervals, entry.name) for entry in fields(settings.intervals)}
    intervals = replace(
        settings.intervals,
        **{name: of(interval_s) for name, interval_s in classes.items() if interval_s is not None},
    )
    return replace(settings, interval_s=of(settings.interval_s), intervals=intervals)
