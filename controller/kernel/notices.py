"""Notices that a peer cannot multiply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable

from controller.effects import Notice

NOTICE_INTERVAL_S = 10.0
NOTICED_BOUND = 65536


class NoticeLimiter:
    """Lets at most one notice per key pass in an interval.

    It remembers `NOTICED_BOUND` keys; with one more it forgets them all, so that some are told again too soon.
    """

    __slots__ = ("_interval_s", "_told_s")

    def __init__(self, interval_s: float = NOTICE_INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._told_s: dict[Hashable, float] = {}

    def passes(self, key: Hashable, now: float) -> bool:
        """Tell whether to give a notice now, which counts as given then."""
        if now - self._told_s.get(key, float("-inf")) < self._interval_s:
            return False
        if len(self._told_s) >= NOTICED_BOUND:
            self._told_s.clear()
        self._told_s[key] = now
        return True


class PortNotices:
    """Counts by kind what ports do, and tells of it once per kind and port in `NOTICE_INTERVAL_S`.

    `tell` takes the notices.
    """

    def __init__(self, tell: Callable[[Notice], None]) -> None:
        self.counters: Counter[str] = Counter()
        self._tell = tell
        self._limiter = NoticeLimiter()

    def counted(self, kind: str, end: tuple[int, int], does: str, now: float) -> None:
        """Count, and tell what a port does, as datapath id and number; number 0 stands for its switch."""
        self.counters[kind] += 1
        if self._limiter.passes((kind, end), now):
            dpid, port_no = end
            text = f"Port {dpid}:{port_no} {does}." if port_no else f"Switch {dpid} {does}."
            self._tell(Notice(kind, text, (("dpid", dpid), ("port_no", port_no))))
