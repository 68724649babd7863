"""A mean rate with bursts."""

from __future__ import annotations

_ROUNDING = 1e-9


class TokenBucket:
    """At most `burst` events at once and `rate_per_s` on average."""

    __slots__ = ("_burst", "_level", "_rate_per_s", "_updated")

    def __init__(self, burst: float, rate_per_s: float, now: float) -> None:
        self._burst = burst
        self._rate_per_s = rate_per_s
        self._level = burst
        self._updated = now

    def take(self, now: float, count: int = 1, leave: float = 0.0) -> bool:
        """Take `count` tokens, or none where so many and `leave` others are not there; tell whether they were."""
        if now > self._updated:
            self._level = min(self._burst, self._level + (now - self._updated) * self._rate_per_s)
            self._updated = now
        if self._level < count + leave - _ROUNDING:
            return False
        self._level -= count
        return True

    def wait_s(self, now: float) -> float:
        """Return the time until there is a token, 0 where there is one."""
        level = min(self._burst, self._level + max(0.0, now - self._updated) * self._rate_per_s)
        return max(0.0, (1.0 - level) / self._rate_per_s)
