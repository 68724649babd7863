"""What the server counts of itself: requests refused, by reason and logged at a bounded rate; what is open."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from typing import Any

LINES_PER_S = 10

logger = logging.getLogger("vsrt.dashboard.refused")


class RequestTally:
    """Counts; the log has at most `LINES_PER_S` lines a second, and says how many it left out."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.connections = 0
        self.streams = 0
        self._second = 0
        self._lines = 0

    def document(self) -> dict[str, Any]:
        """Return the counts for the status document."""
        return {
            "refused": dict(sorted(self.refused.items())),
            "connections": self.connections,
            "streams": self.streams,
        }

    def refuse(self, reason: str, client: object, text: str) -> None:
        """Count and log one refused; what the client sent is in `text` quoted, and is never a secret."""
        self.refused[reason] += 1
        second = int(time.monotonic())
        if second != self._second:
            if self._lines > LINES_PER_S:
                logger.warning("%d more requests were refused.", self._lines - LINES_PER_S)
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_PER_S:
            logger.warning("A request of %s was refused (%s): %s.", client, reason, text)


def quoted(raw: bytes, limit: int = 200) -> str:
    """Return bytes of a client as one line of text in quotes, control characters escaped."""
    return json.dumps(raw[:limit].decode("ascii", "backslashreplace"))
