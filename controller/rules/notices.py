"""Notices about switches: every one is counted, few are given."""

from __future__ import annotations

from collections import Counter

from controller.effects import Notice

NOTICE_INTERVAL_S = 10.0


class Notices:
    """Counts by kind, and gives at most one notice per kind and switch in `NOTICE_INTERVAL_S`."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.given: list[Notice] = []
        self._last: dict[tuple[str, int], float] = {}

    def give(self, kind: str, dpid: int, text: str, now: float, **fields: object) -> None:
        """Count, and add to `given` unless there was one like it lately; `dpid` 0 stands for no switch."""
        self.counters[kind] += 1
        if now - self._last.get((kind, dpid), -NOTICE_INTERVAL_S) >= NOTICE_INTERVAL_S:
            self._last[kind, dpid] = now
            self.given.append(Notice(kind, text, (("dpid", dpid), *fields.items())))

    def take(self) -> list[Notice]:
        """Return the notices given since the last call."""
        given, self.given = self.given, []
        return given
