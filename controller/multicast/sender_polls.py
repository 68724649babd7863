"""Questions about the counters of sender entries: which are unanswered, and when each switch was read last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from controller.multicast.group import SenderKey
from topology.aggregations import Place

GIVE_UP_S = 60.0
"""A question that is unanswered for so long is asked again."""


class SenderPolls:
    """At most one open question per switch: a slow answer is as good as a quick one, and none says nothing.

    Attributes
    ----------
    round_s
        When switches were asked last, those that owe no answer; -inf where they never were.
    """

    def __init__(self) -> None:
        self.round_s = -inf
        self._open: dict[int, tuple[int, float]] = {}
        self._read_s: dict[int, float] = {}
        self._switches: Collection[int] = ()

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

    def late(self, senders: Mapping[Place, Iterable[tuple[bytes, SenderKey]]]) -> dict[bytes, float]:
        """Return the groups with a sender at a switch that owes its last answer, and until when they are known.

        Parameters
        ----------
        senders
            The senders at each port.

        Returns
        -------
        dict
            `read_s` of the switch, of several that of the one read first.
        """
        read_s = ((dpid, self.read_s(dpid)) for dpid in self._switches)
        at_switches = {dpid: known_s for dpid, known_s in read_s if known_s < self.round_s}
        late: dict[bytes, float] = {}
        for (dpid, _), at_port in senders.items() if at_switches else ():
            if (known_s := at_switches.get(dpid)) is not None:
                late.update((group, min(known_s, late.get(group, known_s))) for group, _ in at_port)
        return late

    def connected_anew(self, dpid: int) -> None:
        """Forget the question of a connection that has ended."""
        self._open.pop(dpid, None)

    def begin(self, dpids: set[int], now: float) -> None:
        """Take it that the switches with senders are these, and are about to be asked; forget others."""
        self.round_s, self._switches = now, dpids
        for known in (self._open, self._read_s):
            for dpid in known.keys() - dpids:
                del known[dpid]
