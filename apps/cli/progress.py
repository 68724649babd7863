"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

import sys
from time import monotonic

WIDTH = 30
EVERY_S = 0.1


class ProgressBar:
    """One line that is drawn over itself; nothing at all where standard error is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._drawn_at = 0.0
        self._length = 0

    def draw(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of `what` are done."""
        now = monotonic()
        if not self._shown or now - self._drawn_at < EVERY_S:
            return
        self._drawn_at = now
        full = WIDTH * done // max(1, total)
        line = f"{what} [{'#' * full}{'.' * (WIDTH - full)}] {done:,} of {total:,}"
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()
            self._length = 0
