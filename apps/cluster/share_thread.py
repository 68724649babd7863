"""A monitor's part in the division of the switches, on a thread of the system's beside the monitor's loop.

It keeps the monitor's lease: where the whole process is stopped, so is this, and the lease ends as it has to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from apps.cluster.askers import Askers, Watcher
from apps.cluster.etcd import Access
from apps.system import system_queue, system_threading
from controller.cluster.effects import StoreRequest, TellOperators, WatchKeys
from controller.cluster.engine import KeyChanges, Reply, Request, Silent
from controller.cluster.events import Answered, KeysChanged, WatchEnded
from controller.cluster.monitor_states import MonitorsSeen, seen_of
from controller.cluster.share_events import LeaveWanted, ShareChanged, ShareConfirmed
from controller.cluster.shares import ShareCore, ShareFigures, ShareSettings
from controller.events import DeadlineReached
from controller.snapshot.events import State

ASKERS = 3
"""Threads that ask the store: a request that waits holds up neither the lease nor the others."""

ANSWER_S = 4.0
"""After this time a request of an operator counts as unanswered."""

LEAVE_S = 2.0
"""How long the lease is given back at the end, at most."""

_END = object()


class ShareThread:
    """Tells the monitor which switches to poll.

    Parameters
    ----------
    tell
        Called, on this thread, with `ShareChanged`, `ShareConfirmed` and `TellOperators`.

    Attributes
    ----------
    figures
        What is told of shares, as of the last event.
    monitors
        What is known of all monitors, as of the last event.
    """

    def __init__(
        self, settings: ShareSettings, access: Access, tell: Callable[[Any], None], logger: logging.Logger
    ) -> None:
        self.figures = ShareFigures(0, 0, 0, 0)
        self.monitors = MonitorsSeen({}, 0)
        self._settings = settings
        self._access = access
        self._tell = tell
        self._logger = logger
        self._events = system_queue.SimpleQueue()
        self._watcher: Watcher | None = None
        self._askers = Askers(access, ASKERS)
        self._thread = system_threading.Thread(target=self._run, name="shares", daemon=True)

    def start(self) -> None:
        """Take part."""
        self._thread.start()

    def say(self, event: object) -> None:
        """Have an event taken; any thread may."""
        self._events.put(event)

    def ask(self, request: Request) -> Reply:
        """Have the store answer, and wait for it; on a thread that may wait, of the system's under eventlet."""
        answer = system_queue.SimpleQueue()
        self._askers.ask(request, answer.put)
        try:
            reply: Reply = answer.get(timeout=ANSWER_S)
            return reply
        except system_queue.Empty:
            return Silent("The store does not answer.")

    def close(self) -> None:
        """Give the lease back, and end."""
        self.say(LeaveWanted())
        self._thread.join(LEAVE_S)
        self.say(_END)

    # On the thread

    def _run(self) -> None:
        shares, version = ShareCore(self._settings, time.monotonic()), -1
        event: object = DeadlineReached()
        while event is not _END and not shares.has_left:
            for effect in shares.handle(event, time.monotonic()):
                if type(effect) is StoreRequest:
                    self._askers.ask(effect.request, partial(self._answered, effect.number))
                elif type(effect) is WatchKeys:
                    self._watch(effect)
                elif type(effect) is TellOperators:
                    level = logging.WARNING if effect.state is State.RAISED else logging.INFO
                    self._logger.log(level, "%s", effect.text)
                elif isinstance(effect, ShareChanged | ShareConfirmed):
                    self._tell(effect)
            self.figures = shares.figures()
            if shares.view.version != version:
                version, self.monitors = shares.view.version, seen_of(shares.view)
            event = self._next(shares.next_deadline())
        if self._watcher is not None:
            self._watcher.is_wanted = False

    def _answered(self, number: int, reply: Reply) -> None:
        self.say(Answered(number, reply))

    def _next(self, due_s: float | None) -> object:
        try:
            wait_s = None if due_s is None else max(due_s - time.monotonic(), 0.0)
            return self._events.get(timeout=wait_s)
        except system_queue.Empty:
            return DeadlineReached()

    def _watch(self, wanted: WatchKeys) -> None:
        if self._watcher is not None:
            self._watcher.is_wanted = False
        number = wanted.watch
        self._watcher = Watcher(
            *(self._access, wanted.prefix, wanted.after_revision),
            lambda report: self.say(
                KeysChanged(number, report.changes) if type(report) is KeyChanges else WatchEnded(number)
            ),
        )
