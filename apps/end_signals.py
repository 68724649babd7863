"""SIGINT and SIGTERM, by which a controller is asked to end: once or many times, in whatever mixture."""

from __future__ import annotations

import os
import select
import signal
from types import TracebackType
from typing import Any, Self


class EndSignals:
    """A context within which the signals only set `asked`; those that the process was started to ignore stay so."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._wake = -1

    def __enter__(self) -> Self:
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)

    def wait(self, duration_s: float) -> None:
        """Wait until a signal has come, no longer than so long."""
        select.select([self._wake], [], [], duration_s)

    def _ask(self, _number: int, _frame: Any) -> None:
        self.asked = True
        os.eventfd_write(self._wake, 1)
