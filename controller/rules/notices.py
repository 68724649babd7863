"""Notices about switches: every one is counted, few are given."""

from __future__ import annotations

from collections import Counter

from controller.effects import Notice
from controller.kernel.notices import NoticeLimiter


class Notices:
    """Counts by kind, and gives a notice of each kind and switch now and then."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.given: list[Notice] = []
        self._limiter = NoticeLimiter()

    def give(self, kind: str, dpid: int, text: str, now: float, **fields: object) -> None:
        """Count, and add to `given` unless there was one like it lately; `dpid` 0 stands for no switch."""
        self.counters[kind] += 1
        if self._limiter.passes((kind, dpid), now):
            self.given.append(Notice(kind, text, (("dpid", dpid), *fields.items())))

    def take(self) -> list[Notice]:
        """Return the notices given since the last call."""
        given, self.given = self.given, []
        return given
