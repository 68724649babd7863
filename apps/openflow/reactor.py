"""The loop of an app, or of several: what switches send, what other threads bring, and what is due, one at a time."""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol
from weakref import finalize

LOGGER = logging.getLogger("vsrt")

WAITING_BOUND = 65536
"""Work that waits for a loop at most; what comes beyond it is not done, and counted (`Reactor.dropped_count`)."""

READY_AT_ONCE = 16
"""Connections that are served between two looks at what other threads brought and at what is due."""

OWN_TURN_S = 0.01
"""What other threads brought is done for so long at a time, or for as long as connections and what is due took; then
it is their turn."""

GRAIN_S = 0.005
"""A loop that rests wakes for what is due at multiples of this alone: a thousand timers a second cost 200 turns."""


class LoopMember(Protocol):
    """What has something done on a loop at a time of its choice."""

    @property
    def deadline_s(self) -> float | None:
        """When `due` is to be called, None for never; it changes on the loop alone."""

    def due(self) -> None:
        """Do what has come due."""


class Reactor:
    """One loop; everything that it calls is called on it alone, and runs to its end before the next begins.

    Parameters
    ----------
    name
        What it is called in the log.
    epoll
        A new ``select.epoll``.
    poll
        Waits on it: takes the object, seconds (None for ever) and how many are to be returned at most.
    spawn
        Runs a function on a thread of the framework.
    current
        Returns what tells threads apart.
    """

    def __init__(
        self,
        name: str,
        epoll: Any,
        poll: Callable[[Any, float | None, int], list[tuple[int, int]]],
        spawn: Callable[[Callable[[], None]], Any],
        current: Callable[[], Any],
    ) -> None:
        self.name = name
        self.dropped_count = 0
        self.now_s = time.monotonic()
        """When the loop last looked at the clock."""
        self.unsent: dict[Callable[[], None], None] = {}
        """What sends the messages left for a connection; called when whatever left them has ended."""
        self._epoll = epoll
        self._poll = poll
        self._spawn = spawn
        self._current = current
        self._thread: Any = None
        self.has_begun = False
        """Whether it runs, or did."""
        self._is_asleep = self._has_ended = False
        self._due_took_s = 0.0
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._watchers: dict[int, Callable[[int], None]] = {}
        self._members: list[LoopMember] = []
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        finalize(self, os.close, self._wake)  # not with the loop: others may be about to wake it
        self.watch(self._wake, lambda _mask: None)

    def start(self) -> None:
        """Begin to run, unless it runs already."""
        if not self.has_begun:
            self.has_begun = True
            self._spawn(self._run)

    def end(self) -> None:
        """Have the loop end; on the loop."""
        self._has_ended = True

    def is_current(self) -> bool:
        """Tell whether the caller is on this loop."""
        return self._thread is not None and self._current() == self._thread

    @property
    def is_asleep(self) -> bool:
        """Whether it waits, for whatever comes."""
        return self._is_asleep

    @property
    def backlog(self) -> int:
        """How much waits for the loop."""
        return len(self._waiting)

    def call(self, work: Callable[..., None], *arguments: Any) -> bool:
        """Have work done on the loop, in the order of calls; from any thread, and without waiting.

        False where `WAITING_BOUND` waits already: it is not done then.
        """
        if len(self._waiting) >= WAITING_BOUND:
            self.dropped_count += 1
            return False
        self._waiting.append((work, arguments))
        if self._is_asleep:
            os.eventfd_write(self._wake, 1)
        return True

    def add(self, member: LoopMember, *, is_first: bool = False) -> None:
        """Call a member's `due` when it wants to, before others' perhaps; on the loop, or before it begins."""
        self._members.insert(0 if is_first else len(self._members), member)

    def remove(self, member: LoopMember) -> None:
        """Call a member no more; on the loop."""
        if member in self._members:
            self._members.remove(member)

    def watch(self, descriptor: int, ready: Callable[[int], None], mask: int = 1) -> None:
        """Call `ready` with the mask of epoll's events whenever some of `mask` are there; by default: readable."""
        self._watchers[descriptor] = ready
        self._epoll.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for other events than before on a file descriptor that is watched."""
        self._epoll.modify(descriptor, mask)

    def unwatch(self, descriptor: int) -> None:
        """Watch a file descriptor no more; before it is closed."""
        if self._watchers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def drain(self) -> None:
        """Do all that waits now, and what follows from it; on the loop."""
        waiting = self._waiting
        while waiting:
            self._do(*waiting.popleft())

    def _run(self) -> None:
        self._thread = self._current()
        while not self._has_ended:
            self._turn()
        self._epoll.close()

    def _turn(self) -> None:
        self._is_asleep = True
        ready = self._poll(self._epoll, 0.0 if self._waiting else self._rest_s(), READY_AT_ONCE)
        self._is_asleep = False
        self.now_s = time.monotonic()
        for descriptor, mask in ready:
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
                continue
            watcher = self._watchers.get(descriptor)
            if watcher is not None:
                self._do(watcher, (mask,))
        began_s = time.monotonic()
        latest_s = began_s + max(OWN_TURN_S, began_s - self.now_s + self._due_took_s)
        while self._waiting:
            self._do(*self._waiting.popleft())
            if time.monotonic() > latest_s:
                break
        now = self.now_s = time.monotonic()
        for member in tuple(self._members):
            due_s = member.deadline_s
            if due_s is not None and due_s <= now:
                self._do(member.due, ())
        self._due_took_s = time.monotonic() - now

    def _rest_s(self) -> float | None:
        """Return how long nothing is due; at most what a wait may be given, None for ever."""
        soonest = math.inf
        for member in self._members:
            due_s = member.deadline_s
            if due_s is not None and due_s < soonest:
                soonest = due_s
        if soonest == math.inf:
            return None
        now = time.monotonic()
        return math.ceil(soonest / GRAIN_S) * GRAIN_S - now if soonest > now else 0.0

    def _do(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Do one thing, and send what it left to be sent; the loop outlives its failure."""
        try:
            work(*arguments)
        except Exception:
            LOGGER.exception("%s: The work of the loop failed.", self.name)
        unsent = self.unsent
        while unsent:
            flush = next(iter(unsent))
            del unsent[flush]
            try:
                flush()
            except Exception:
                LOGGER.exception("%s: Messages for a switch were not sent.", self.name)
