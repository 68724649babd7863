"""The leader as a member hears of it beside the store: whether it is there, and whether it was asked to say so."""

from __future__ import annotations

from controller.cluster.keys import Leader

CHALLENGE_S = 0.2
"""Within this time a leader answers who challenges it."""

FRESH_S = CHALLENGE_S / 2
"""How long after it was asked a store's word counts that a member leads: nobody is elected sooner after it."""


class HeardLeader:
    """The leader that is followed, and what was heard of it.

    Attributes
    ----------
    leader
        Who it is, None where nobody leads.
    is_gone
        Whether nobody listens any more where it was heard.
    challenged
        The revision of its key that it is to put again, and since when; None where it is not challenged.
    awaited_until_s
        Until when it is left the time to put its key again, which is gone; None where that is there.
    """

    def __init__(self, silence_s: float, now: float) -> None:
        self.leader: Leader | None = None
        self.is_gone = False
        self.challenged: tuple[int, float] | None = None
        self.awaited_until_s: float | None = None
        self._silence_s = silence_s
        self._heard_s = now
        self._was_heard = False

    def follow(self, leader: Leader | None, now: float) -> None:
        """Take it that another one leads, or none."""
        self.leader, self.awaited_until_s = leader, None
        self._heard_s, self._was_heard, self.is_gone, self.challenged = now, False, False, None

    def take(self, incarnation: str, now: float) -> None:
        """Take it that a leader with this incarnation says that it is there."""
        if self.leader is not None and self.leader.incarnation == incarnation:
            self._heard_s, self._was_heard, self.is_gone, self.challenged = now, True, False, None

    def end(self, incarnation: str) -> None:
        """Take it that nobody listens where it was heard; others may be where no connection of ours gets to."""
        if self.leader is not None and self.leader.incarnation == incarnation and self._was_heard:
            self.is_gone = True

    def answered(self, now: float) -> None:
        """Take it that it has put its key again, as it was asked to."""
        self._heard_s, self.challenged = now, None

    def is_silent(self, now: float) -> bool:
        """Tell whether nothing was heard of it for `silence_s`."""
        return now >= self._heard_s + self._silence_s

    def is_heard(self, now: float) -> bool:
        """Tell whether it says by a connection of its own that it is there."""
        return self._was_heard and not self.is_gone and not self.is_silent(now)

    def is_awaited(self, now: float) -> bool:
        """Tell whether it is left the time to put its key again."""
        return self.awaited_until_s is not None and now < self.awaited_until_s and self.is_heard(now)

    def has_not_answered(self, now: float) -> bool:
        """Tell whether it was challenged, and has let the time pass in which it was to answer."""
        return self.challenged is not None and now >= self.challenged[1] + CHALLENGE_S

    def deadlines(self) -> list[float]:
        """Return when something is due."""
        due = [self._heard_s + self._silence_s]
        if self.awaited_until_s is not None:
            due.append(self.awaited_until_s)
        return due if self.challenged is None else [*due, self.challenged[1] + CHALLENGE_S]
