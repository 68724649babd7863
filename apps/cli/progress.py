"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

import os
import sys
from time import monotonic

WIDTH, LEAST_WIDTH = 30, 5
USUAL_COLUMNS = 80
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
        line = _line(what, done, total, _columns() - 1)
        sys.stderr.write("\r" + line.ljust(min(self._length, _columns() - 1)))
        sys.stderr.flush()
        self._length = len(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._length:
            sys.stderr.write("\r" + " " * min(self._length, _columns() - 1) + "\r")
            sys.stderr.flush()
            self._length = 0


def _line(what: str, done: int, total: int, columns: int) -> str:
    """Return the line, with as much of the bar as there is room for: what is longer than the terminal stays there."""
    count = f"{done:,} of {total:,}"
    width = min(WIDTH, columns - len(f"{what} [] {count}"))
    if width < LEAST_WIDTH:
        return f"{what} {count}"[:columns]
    full = width * done // max(1, total)
    return f"{what} [{'#' * full}{'.' * (width - full)}] {count}"


def _columns() -> int:
    """Return how wide the terminal is; at least 2."""
    try:
        return max(2, os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS)
    except OSError:
        return USUAL_COLUMNS
