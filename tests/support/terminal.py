"""A terminal in the place of standard error, which keeps what is drawn on it."""

from __future__ import annotations

import io
import sys

import pytest


class Terminal(io.StringIO):
    """What a command draws, which takes it for a terminal."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True

    def drew(self, what: str) -> bool:
        """Tell whether a progress bar of something was drawn, and none is left."""
        lines = self.getvalue().split("\r")
        return any(line.startswith(f"{what} [") for line in lines) and lines[-1] == ""


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Have commands of this process write their errors to a terminal, and return it."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal
