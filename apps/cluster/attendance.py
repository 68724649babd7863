"""Who of a cluster was there before and is not now: what operators look for when something is wrong."""

from __future__ import annotations

from collections.abc import Iterable

REMEMBERED_S = 86400.0
"""How long one that is gone is told of."""

REMEMBERED_BOUND = 64
"""How many that are gone are told of at most; beyond it the one that is gone longest is forgotten."""


class Attendance:
    """Names that come and go.

    Attributes
    ----------
    gone_s
        Who is gone, and since when, in seconds since 1970.
    """

    def __init__(self) -> None:
        self.gone_s: dict[str, float] = {}
        self._there: frozenset[str] = frozenset()

    def see(self, there: Iterable[str], now_s: float) -> None:
        """Take it that these are there, and no others, at `now_s` in seconds since 1970."""
        former, self._there = self._there, frozenset(there)
        for name in sorted(former - self._there):
            self.gone_s[name] = now_s
        gone = ((name, at_s) for name, at_s in self.gone_s.items() if name not in self._there)
        kept = [(name, at_s) for name, at_s in gone if at_s > now_s - REMEMBERED_S]
        self.gone_s = dict(kept[-REMEMBERED_BOUND:])
