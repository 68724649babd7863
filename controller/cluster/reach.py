"""Which switches a member is connected to, beside the others: who is cut off from them gives the lead away."""

from __future__ import annotations

from collections.abc import Mapping

from controller.cluster.keys import Leader, Present
from controller.cluster.strangers import REFUSED_S, are_apart

BEHIND_S = 2.0
"""A leader that was connected to fewer switches than another member for so long, and to no more meanwhile, hands over
to it."""

APART_S = REFUSED_S + 5.0
"""How long it is where the other one is connected to none of the leader's: one of another fabric has gone by then."""

YIELD_S = 0.5
"""How long a member leaves a lead that nobody has to another one that is connected to more switches."""

TOLD_S = 0.5
"""How often others are told at most to which switches a member is connected."""


class Reach:
    """The switches that a member is connected to.

    Attributes
    ----------
    switches
        Which these are.
    """

    def __init__(self, member: str, now: float) -> None:
        self.switches: frozenset[int] = frozenset()
        self._member = member
        self._told: frozenset[int] = frozenset()
        self._told_s = now
        self._behind_since_s: float | None = None
        self._yields = (-1, now)

    def take(self, switches: frozenset[int]) -> None:
        """Take it that these are the switches; while they become more, the others are waited for."""
        if len(switches) > len(self.switches):
            self._behind_since_s = None
        self.switches = switches

    def told(self, switches: frozenset[int], now: float) -> None:
        """Take it that the others know of these."""
        self._told, self._told_s = switches, now

    def is_untold(self, now: float) -> bool:
        """Tell whether the others are to be told otherwise."""
        return self._told != self.switches and now >= self._told_s + TOLD_S

    def best(self, present: Mapping[str, Present], above: int = -1) -> str:
        """Return the other member that is connected to most switches, and to more than `above`; '' for none.

        Those that have switches in common with this one come before those that are apart from it.
        """
        others = {
            name: (not self._is_apart(each), each.switches)
            for name, each in present.items()
            if name != self._member and each.switches > above
        }
        return max(others, key=lambda name: others[name], default="")

    def better(self, present: Mapping[str, Present], now: float) -> str:
        """Return who is to lead in this member's place, '' where it may go on."""
        best = self.best(present, len(self.switches))
        if not best:
            self._behind_since_s = None
            return ""
        if self._behind_since_s is None:
            self._behind_since_s = now
        patience_s = APART_S if self._is_apart(present[best]) else BEHIND_S
        return best if now >= self._behind_since_s + patience_s else ""

    def yields(self, present: Mapping[str, Present], former: Leader | None, epoch: int, now: float) -> bool:
        """Tell whether the lead, which `former` had in `epoch` or before, is left to another member for now.

        One that has just begun has no switch yet, and could serve nobody.
        """
        others = {name: each for name, each in present.items() if former is None or name != former.member}
        if not self.best(others, len(self.switches)):
            return False
        if self._yields[0] != epoch:
            self._yields = (epoch, now + YIELD_S)
        return now < self._yields[1]

    def _is_apart(self, other: Present) -> bool:
        return are_apart(self.switches, other.dpids)

    def leads_no_more(self) -> None:
        """Take it that another one is to lead."""
        self._behind_since_s = None

    def deadlines(self) -> list[float]:
        """Return when something is due."""
        due = [self._yields[1]] if self._told == self.switches else [self._yields[1], self._told_s + TOLD_S]
        since_s = self._behind_since_s
        return due if since_s is None else [*due, since_s + BEHIND_S, since_s + APART_S]
