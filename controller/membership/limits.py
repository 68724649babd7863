"""Rate limits, counters, and notices that a peer cannot multiply."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Protocol

from controller.effects import Notice
from controller.membership.events import MembershipEffect


class Noticed(Protocol):
    """A port; `noticed_at` has the time of its last notice of each kind."""

    dpid: int
    port_no: int
    noticed_at: dict[str, float]


class SmallTokenBucket:
    """Permits a mean rate with bursts; full at first use."""

    __slots__ = ("_at", "_tokens")

    def __init__(self) -> None:
        self._at = 0.0
        self._tokens = inf

    def take(self, now: float, rate: float, burst: float) -> bool:
        """Take one token, of `rate` per second and at most `burst`; False where there is none."""
        tokens = self._tokens + (now - self._at) * rate
        if tokens > burst:
            tokens = burst
        self._at = now
        if tokens < 1:
            self._tokens = tokens
            return False
        self._tokens = tokens - 1
        return True

    def spend(self, now: float, rate: float, burst: float, count: int) -> bool:
        """Take `count` tokens, beyond those that are there if need be; False where what was overdrawn is not back."""
        tokens = min(burst, self._tokens + (now - self._at) * rate)
        self._at = now
        if tokens <= 0:
            self._tokens = tokens
            return False
        self._tokens = tokens - count
        return True


class MembershipTally:
    """Counters by reason, and one notice per port, kind and interval for those that an operator should see."""

    __slots__ = ("counters", "interval_s")

    def __init__(self, interval_s: float) -> None:
        self.counters: Counter[str] = Counter()
        self.interval_s = interval_s

    def count(self, reason: str) -> None:
        """Count an occurrence."""
        self.counters[reason] += 1

    def warn(self, port: Noticed, reason: str, does: str, now: float, effects: list[MembershipEffect]) -> bool:
        """Count an occurrence and emit a notice of what the port does, unless one of the kind went out just now.

        Tell whether it was emitted.

        The notice's field ``count`` is the total of this reason so far, those passed over in silence included.
        """
        self.count(reason)
        last = port.noticed_at.get(reason)
        if last is not None and now - last < self.interval_s:
            return False
        port.noticed_at[reason] = now
        fields = (("dpid", port.dpid), ("port_no", port.port_no), ("count", self.counters[reason]))
        effects.append(Notice(f"membership-{reason}", f"Port {port.dpid}:{port.port_no} {does}.", fields))
        return True
