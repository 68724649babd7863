"""What a multicast core does by itself at a time, and the time of grace after its start."""

from __future__ import annotations

from enum import Enum, auto

from controller.kernel.deadlines import Deadlines
from controller.multicast.callbacks import PolicyInForce

RESTART_GRACE_S, RESTART_GRACE_LONGEST_S = 12.0, 60.0
"""After a start, entries that no member accounts for stay this long, or until hosts had time to answer."""

FABRICS_SETTLE_S = 1.0
"""How long after fabrics are joined or split that is told and queriers follow: a link that blinks changes none."""

ANSWER_SLACK_S = 2.0
"""Beyond the time that hosts have to answer a query."""


class Due(Enum):
    """What the core does by itself at a time."""

    READ = auto()
    RELEASE = auto()
    PURGE = auto()
    REBALANCE = auto()
    ROOM = auto()
    FABRICS = auto()
    JUDGE = auto()


class Grace:
    """The time after a start in which what an earlier run left on switches stays."""

    def __init__(self, policy: PolicyInForce, due: Deadlines[Due], now: float) -> None:
        self._policy = policy
        self._due = due
        self._latest_s = 0.0
        self.begin(now)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return Due.RELEASE in self._due

    def begin(self, now: float) -> None:
        """Begin anew: all that an earlier run left is put back."""
        self._latest_s = now + RESTART_GRACE_LONGEST_S
        self._due.set(Due.RELEASE, now + RESTART_GRACE_S)

    def port_served(self, now: float) -> None:
        """Have it last until the hosts of a port that is served now had time to answer."""
        due_s = self._due.at(Due.RELEASE)
        if due_s is not None:
            answered_s = now + self._policy().multicast.querier.response_interval_s + ANSWER_SLACK_S
            self._due.set(Due.RELEASE, min(max(due_s, answered_s), self._latest_s))
