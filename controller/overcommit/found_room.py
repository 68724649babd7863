"""How many entries a table takes, as it tells by what it refuses, whatever was said of it."""

from __future__ import annotations

GROWTH = 1.25
"""How many times as many entries are tried again where nothing was refused for a while.

How many says nothing of what it costs if they are refused: what one entry more would.
"""

GROWS_FIRST_S, GROWS_LAST_S = 60.0, 3600.0
"""How long nothing is to have been refused before more is tried, at first, and where that failed each time."""


class FoundRoom:
    """What a table takes.

    A refusal tells that there is no room beside what the table holds. One that comes with fewer entries than the last
    tells that it takes ever fewer, nobody knows how few: then as many less are tried, and twice as many each time,
    until nothing is refused. What that took too many comes back as room does that was made meanwhile.

    Attributes
    ----------
    entries
        How many entries the table is taken to have room for, at least 1.
    """

    __slots__ = ("_grows_s", "_held", "_is_trial", "_less", "_wait_s", "entries")

    def __init__(self, held: int, now_s: float) -> None:
        self.entries = self._held = max(1, held)
        self._less = 0
        self._is_trial = False
        self._wait_s = GROWS_FIRST_S
        self._grows_s = now_s + GROWS_FIRST_S

    def refused(self, held: int, now_s: float) -> None:
        """Take in that the table refused an entry, for want of room, that held so many."""
        self._less = max(1, 2 * self._less) if held < self._held else 0
        self._held = held
        self.entries = max(1, min(held, self.entries) - self._less)
        self._wait_s = min(2 * self._wait_s, GROWS_LAST_S) if self._is_trial else GROWS_FIRST_S
        self._is_trial = False
        self._grows_s = now_s + self._wait_s

    def grow(self, most: int, now_s: float) -> bool:
        """Have more tried, `most` at most, where that is due; return whether it is."""
        if now_s < self._grows_s or self.entries >= most:
            return False
        if self._is_trial:  # the last one was taken
            self._wait_s = GROWS_FIRST_S
        self.entries = min(most, int(GROWTH * self.entries) + 1)
        self._is_trial = True
        self._grows_s = now_s + self._wait_s
        return True
