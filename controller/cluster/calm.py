"""How often the lead has changed of late, and until when nobody takes it for that."""

from __future__ import annotations

from collections import deque

BACK_OFF_S = (0.5, 16.0)
"""How long nobody leads after the third change in `CHANGES_S`, doubled with each further one; and at most."""

CHANGES_S = 60.0
CALM_CHANGES = 2


class Calm:
    """The changes of the lead within the last `CHANGES_S`."""

    def __init__(self) -> None:
        self._changes_s: deque[float] = deque()

    def changed(self, now: float) -> None:
        """Take it that the lead has changed."""
        self._changes_s.append(now)

    def not_before_s(self, now: float) -> float:
        """Return until when nobody stands, since the lead has changed often; minus infinity where it has not."""
        while self._changes_s and self._changes_s[0] < now - CHANGES_S:
            self._changes_s.popleft()
        excess = len(self._changes_s) - CALM_CHANGES
        if excess <= 0:
            return float("-inf")
        return self._changes_s[-1] + min(BACK_OFF_S[0] * 2.0 ** min(excess - 1, 16), BACK_OFF_S[1])
