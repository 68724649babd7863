"""Questions about the counters of sender entries: which are unanswered, and when each switch was read last."""

from __future__ import annotations

from math import inf

GIVE_UP_S = 60.0
"""A question that is unanswered for so long is asked again."""


class SenderPolls:
    """At most one open question per switch: a slow answer is as good as a quick one, and none says nothing."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, float]] = {}
        self._read_s: dict[int, float] = {}

    def may_ask(self, dpid: int, now: float) -> bool:
        """Tell whether a switch has no question open that it may still answer."""
        _, asked_s = self._open.get(dpid, (0, -inf))
        return now - asked_s >= GIVE_UP_S

    def asked(self, dpid: int, xid: int, now: float) -> None:
        """Note a question."""
        self._open[dpid] = (xid, now)

    @property
    def are_open(self) -> bool:
        """Whether a switch owes an answer."""
        return bool(self._open)

    def owns(self, dpid: int, xid: int) -> bool:
        """Tell whether a statistics reply answers an open question."""
        return dpid in self._open and self._open[dpid][0] == xid

    def answered(self, dpid: int, *, whole: bool) -> None:
        """Note the last message of an answer; one that is not `whole` does not count as a reading."""
        _, asked_s = self._open.pop(dpid)
        if whole:
            self._read_s[dpid] = asked_s

    def read_s(self, dpid: int) -> float:
        """Return the time that a switch's counters were certainly read after, -inf where they never were."""
        return self._read_s.get(dpid, -inf)

    def connected_anew(self, dpid: int) -> None:
        """Forget the question of a connection that has ended."""
        self._open.pop(dpid, None)

    def keep(self, dpids: set[int]) -> None:
        """Forget switches without senders."""
        for known in (self._open, self._read_s):
            for dpid in known.keys() - dpids:
                del known[dpid]
