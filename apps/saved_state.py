"""What an app keeps over restarts in a database, a part at a time, and when that cannot be written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

RETRY_S = 10.0
"""How long after a failure it is tried again."""


class Database(Protocol):
    """Where state is kept."""

    @property
    def trouble(self) -> str | None:
        """Why nothing is kept at present; None where all is well."""

    def write(self, changes: Any) -> bool:
        """Keep changes, and return whether that was done."""

    def close(self) -> None:
        """Close the database."""


class SavedState:
    """Writes what changed of an app's state to `database`; on the app's own loop.

    Parameters
    ----------
    database
        Where it is kept.
    take
        Returns changes, about as many as asked for, which count as kept from then on, and whether there are more.
    take_all_again
        Has everything count as changed, after a failure.
    tell
        Takes what is wrong with the database, or None, each time that is looked at.
    at_once
        How much is written in one turn, so that the loop is soon free again.
    """

    def __init__(
        self,
        database: Database,
        take: Callable[[int], tuple[Any, bool]],
        take_all_again: Callable[[], None],
        tell: Callable[[str | None], None],
        at_once: int,
    ) -> None:
        self._database = database
        self._take = take
        self._take_all_again = take_all_again
        self._tell = tell
        self._at_once = at_once
        self._from_s = 0.0

    def look(self, now: float) -> None:
        """Keep some of what changed, unless it failed a short while ago."""
        if now >= self._from_s:
            self.save()
        self._tell(self._database.trouble)

    def save(self) -> bool:
        """Keep some of what changed; return whether more is left that can be kept."""
        changes, is_more = self._take(self._at_once)
        if not self._database.write(changes):
            self._take_all_again()
            self._from_s = time.monotonic() + RETRY_S
            return False
        return is_more

    def close(self) -> None:
        """Keep all that changed, and close the database."""
        while self.save():
            pass
        self._database.close()
