"""SIGINT and SIGTERM, by which a process is asked to end: once or many times, in whatever mixture.

Who has been asked once is on its way to the end, and what asks again changes nothing: not while the work is closed,
and not while the interpreter goes down, where a signal without a handler of its own would end the process with
another status than the one it has earned.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_come: list[int] = []


class EndSignals:
    """A context within which the signals only set `asked`; those that the process was started to ignore stay so.

    After it the signals do what they did before, unless one has come: then they do nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._wake = -1

    def __enter__(self) -> Self:
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._before = _handled(self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _leave(self._before, asked=self.asked)
        os.close(self._wake)

    def wait(self, duration_s: float) -> None:
        """Wait until a signal has come, no longer than so long."""
        select.select([self._wake], [], [], duration_s)

    def _ask(self, number: int, _frame: Any) -> None:
        _come.append(number)
        self.asked = True
        os.eventfd_write(self._wake, 1)


@contextmanager
def raised_once(error: Callable[[], BaseException]) -> Iterator[None]:
    """A context within which the first of the signals raises what `error` makes, and further ones do nothing.

    After it the signals do what they did before, unless one has come: then they do nothing.
    """
    asked = False

    def end(_number: int, _frame: Any) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise error()

    before = _handled(end)
    try:
        yield
    finally:
        _leave(before, asked=asked)


def let_end() -> bool:
    """Have the signals end this process at once from here on, unless one has come; return whether none has.

    So one that comes before this process has become another program (`os.execv`) is not lost with its handler.
    Threads other than the main one may not say what signals do, and only learn whether one has come.
    """
    try:
        before = _handled(signal.SIG_DFL)
    except ValueError:
        return not _come
    if _come:
        for number, handler in before.items():
            signal.signal(number, handler)
    return not _come


def _handled(handler: Callable[[int, Any], None] | signal.Handlers) -> dict[signal.Signals, Any]:
    before = {}
    for number in END_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    return before


def _leave(before: dict[signal.Signals, Any], *, asked: bool) -> None:
    for number, handler in before.items():
        signal.signal(number, signal.SIG_IGN if asked else handler)
