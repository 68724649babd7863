"""How soon a failure that nothing tells of is found in a fabric of this size, and whether tours are needed for it.

Where the budget reaches to ask every port once an interval, that is done. Where it does not, tours ask the links, and
ports are asked singly as often as what is left allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from controller.discovery.budget import QUICK_SHARE, FrameBudget, FrameUrgency
from controller.discovery.liveness import Liveness
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.tours import BUDGET_SHARE, INTERVAL_SHARE, Tours
from controller.effects import Notice
from controller.kernel.deadlines import Deadlines

DETECTION_LATE, DETECTION_IN_TIME = "detection-late", "detection-in-time"
"""A failure that nothing tells of is found late in a fabric of this size, or is not any more; told at each change."""

TELL_AFTER_S = 30.0
"""How long a change must have lasted before it is told: a fabric that starts is slow for a while."""

_SINGLY_AGAIN_SHARE = 0.5
_LATE_FACTOR = 1.05
_TOLD_AGAIN_FACTOR = 1.25
_TIMER = Timer(TimerKind.DETECTION, None)


class ProbingPace(NamedTuple):
    """Frames sent so far by urgency, and within what time a silent failure is found."""

    sent_counts: dict[str, int]
    within_s: float


class Detection:
    """Counts ports, and says what the budget allows.

    `up_count` ports are up and `trunk_count` lead to switches; the owner keeps both, and calls `review` after changes
    and `tell_due` for the deadline. `tell` takes the notices.
    """

    def __init__(
        self,
        settings: DiscoverySettings,
        deadlines: Deadlines[Timer],
        budget: FrameBudget,
        liveness: Liveness,
        tours: Tours,
        tell: Callable[[Notice], None],
    ) -> None:
        self.settings = settings
        self._deadlines = deadlines
        self._budget = budget
        self._liveness = liveness
        self._tours = tours
        self._tell = tell
        self._told_s: float | None = None
        self.up_count = self.trunk_count = 0

    @property
    def uncovered_count(self) -> int:
        """How many ports that lead to switches no tour asks for."""
        return max(0, self.trunk_count - 2 * self._tours.covered_count)

    @property
    def within_s(self) -> float:
        """Within what time a silent failure is found, as the fabric and its answers are now."""
        interval_s = self.settings.lldp_interval_s
        if not self._tours.wanted:
            return interval_s + self._liveness.reaction_s
        round_s = self._tours.round_s + self._tours.reaction_s
        if self.uncovered_count:
            rest_per_s = self._budget.idle_frames_per_s - len(self._tours) / self._tours.round_s
            round_s = max(round_s, interval_s, self.uncovered_count / (rest_per_s * QUICK_SHARE))
        return round_s + self._liveness.reaction_s

    @property
    def pace(self) -> ProbingPace:
        """Return how discovery fares with its budget."""
        sent_counts = {urgency.name.lower(): self._budget.sent_counts[urgency] for urgency in FrameUrgency}
        return ProbingPace(sent_counts, self.within_s)

    def review(self, now: float) -> None:
        """Begin with tours, or do without them, as the number of ports has it; tell what is not in time."""
        needed_per_s = self.up_count / self.settings.lldp_interval_s
        budget_per_s = self._budget.idle_frames_per_s
        if needed_per_s > budget_per_s:
            self._tours.want(True, now)
        elif needed_per_s < _SINGLY_AGAIN_SHARE * budget_per_s:
            self._tours.want(False, now)
        if self._is_news() and _TIMER not in self._deadlines:
            self._deadlines.set(_TIMER, now + TELL_AFTER_S)

    def tell_due(self, _subject: object, _now: float) -> None:
        """Tell what still differs from what was told last."""
        if self._is_news():
            within_s = self.within_s
            self._told_s = within_s if self._is_late(within_s) else None
            self._tell(self._notice(within_s))

    def _notice(self, within_s: float) -> Notice:
        found = f"A failure that no port status tells of is found within {within_s:.1f} s"
        if self._told_s is None:
            return Notice(DETECTION_IN_TIME, f"{found}, as it should be.", (("within_s", within_s),))
        idle_per_s, needed_per_s = self._budget.idle_frames_per_s, self._needed_per_s()
        too_few = f"{idle_per_s:g} frames a second at rest are too few for this fabric, it takes {needed_per_s:.0f}"
        text = f"{found} only: {too_few} (discovery.idle_frames_per_s)."
        return Notice(DETECTION_LATE, text, (("within_s", within_s), ("needed_per_s", needed_per_s)))

    def _is_late(self, within_s: float) -> bool:
        return within_s > _LATE_FACTOR * (self.settings.lldp_interval_s + self._liveness.reaction_s)

    def _is_news(self) -> bool:
        within_s, told_s = self.within_s, self._told_s
        if not self._is_late(within_s):
            return told_s is not None
        return told_s is None or not told_s / _TOLD_AGAIN_FACTOR <= within_s <= told_s * _TOLD_AGAIN_FACTOR

    def _needed_per_s(self) -> float:
        """Return how many frames per second at rest find a silent failure in time."""
        interval_s = self.settings.lldp_interval_s
        tours_per_s = len(self._tours) / (INTERVAL_SHARE * interval_s)
        singly_per_s = self.uncovered_count / interval_s / QUICK_SHARE
        return max(tours_per_s / BUDGET_SHARE, tours_per_s + singly_per_s)
