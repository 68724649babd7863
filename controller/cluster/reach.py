"""How many switches a member is connected to, beside the others: who is cut off from them gives the lead away."""

from __future__ import annotations

from collections.abc import Mapping

from controller.cluster.keys import Present

BEHIND_S = 2.0
"""A leader that was connected to fewer switches than another member for so long, and to no more meanwhile, hands over
to it."""

TOLD_S = 0.5
"""How often others are told at most to how many switches a member is connected."""


class Reach:
    """The switches that a member is connected to.

    Attributes
    ----------
    count
        How many there are.
    """

    def __init__(self, member: str, now: float) -> None:
        self.count = 0
        self._member = member
        self._told = 0
        self._told_s = now
        self._behind_since_s: float | None = None

    def take(self, count: int) -> None:
        """Take it that there are so many switches; while they become more, the others are waited for."""
        if count > self.count:
            self._behind_since_s = None
        self.count = count

    def told(self, count: int, now: float) -> None:
        """Take it that the others know of so many."""
        self._told, self._told_s = count, now

    def is_untold(self, now: float) -> bool:
        """Tell whether the others are to be told otherwise."""
        return self._told != self.count and now >= self._told_s + TOLD_S

    def best(self, present: Mapping[str, Present]) -> str:
        """Return the other member that is connected to most switches, '' where there is no other."""
        others = {name: each.switches for name, each in present.items() if name != self._member}
        return max(others, key=lambda name: others[name], default="")

    def better(self, present: Mapping[str, Present], now: float) -> str:
        """Return who is to lead in this member's place, '' where it may go on."""
        best = self.best(present)
        if not best or present[best].switches <= self.count:
            self._behind_since_s = None
            return ""
        if self._behind_since_s is None:
            self._behind_since_s = now
        return best if now >= self._behind_since_s + BEHIND_S else ""

    def leads_no_more(self) -> None:
        """Take it that another one is to lead."""
        self._behind_since_s = None

    def deadlines(self) -> list[float]:
        """Return when something is due."""
        due = [] if self._told == self.count else [self._told_s + TOLD_S]
        return due if self._behind_since_s is None else [*due, self._behind_since_s + BEHIND_S]
