"""Events to other apps that no loop waits to send.

An app's queue holds 128 events, and who sends one to it waits for room. Two loops that send each other events may
wait for each other for ever thus; so in every circle of apps there is an event that is sent beside the loop.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from apps.openflow.framework import EventBase, hub

ASIDE_EVENTS = 1024
"""Events of one app that wait to be sent at most; one beyond them is dropped."""


class AsideEvent(EventBase):  # type: ignore[misc]
    """An event that its sender does not wait with, whatever becomes of it."""


class Aside:
    """Sends an app's events in their order, by `send`, which may wait; a thread is there while there are any."""

    def __init__(self, send: Callable[[AsideEvent], None]) -> None:
        self._send = send
        self._waiting: deque[AsideEvent] = deque()
        self._lock = threading.Lock()
        self._sending = False

    def put(self, event: AsideEvent) -> bool:
        """Have an event sent; never waits. False where it is dropped, since too many wait already."""
        with self._lock:
            if len(self._waiting) >= ASIDE_EVENTS:
                return False
            self._waiting.append(event)
            begins, self._sending = not self._sending, True
        if begins:
            hub.spawn(self._send_all)
        return True

    def _send_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._sending = False
                    return
                event = self._waiting.popleft()
            self._send(event)
