"""Times of a loop at which scripts look: the periods of a timer, and what the loop is doing so often in a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from apps.openflow.reactor import Reactor
from apps.system import system_threading
from controller.probes.points import StackSample, TimerTick

FRAMES = 64
"""Functions of a stack, the innermost ones."""


class LoopTimer:
    """Calls a watcher on a loop each time that a period is over; periods that the loop missed are left out."""

    def __init__(self, reactor: Reactor, period_s: float, watcher: Callable[[TimerTick], None]) -> None:
        self.deadline_s = time.monotonic() + period_s
        self._reactor = reactor
        self._period_s = period_s
        self._watcher = watcher
        reactor.add(self)

    def due(self) -> None:
        """Tell that a period is over."""
        late_s = max(0.0, time.monotonic() - self.deadline_s)
        self.deadline_s += self._period_s * (1 + late_s // self._period_s)
        self._watcher(TimerTick(int(late_s * 1e6)))

    def stop(self) -> None:
        """Call no more; on the loop."""
        self._reactor.remove(self)


class LoopProfile:
    """Looks so often what a loop is doing, on a thread of the system's, and has the loop call a watcher with it.

    A loop that waits, and one that has no turn while others of its thread have theirs, is not told of. Functions that
    are compiled leave no trace in stacks.
    """

    def __init__(self, reactor: Reactor, period_s: float, watcher: Callable[[StackSample], None]) -> None:
        self._reactor = reactor
        self._period_s = period_s
        self._watcher = watcher
        self._is_over = system_threading.Event()
        system_threading.Thread(target=self._run, name=f"profile-{reactor.name}", daemon=True).start()

    def stop(self) -> None:
        """Call no more; on the loop."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(self._period_s):
            if self._reactor.is_asleep:
                continue
            stack = next((found for frame in sys._current_frames().values() if (found := self._stack(frame))), ())
            if stack:
                self._reactor.call(self._take, StackSample(stack))

    def _take(self, sample: StackSample) -> None:
        if not self._is_over.is_set():
            self._watcher(sample)

    def _stack(self, frame: FrameType) -> tuple[str, ...]:
        """Return what a thread is doing for the loop, from the innermost function on; () where it does nothing."""
        found: list[str] = []
        for each in _callers(frame):
            if each.f_code is _TURN and each.f_locals.get("self") is self._reactor:
                return tuple(found[:FRAMES])
            found.append(f"{each.f_globals.get('__name__', '?')}.{each.f_code.co_qualname}")
        return ()


_TURN = Reactor._turn.__code__


def _callers(frame: Any) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
