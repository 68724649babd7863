"""SIGINT and SIGTERM, by which a controller is asked to end: once or many times, in whatever mixture."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Any, Self


class EndSignals:
    """A context within which the signals only set `asked`; those that the process was started to ignore stay so."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, _number: int, _frame: Any) -> None:
        self.asked = True
