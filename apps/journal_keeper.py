"""What keeps an app's journal on the disk, and complete again after a time in which it could not be written."""

from __future__ import annotations

import time
from collections.abc import Callable

from apps.openflow.app import App
from apps.openflow.framework import hub, run_aside
from apps.state_dir import JournalFile
from controller.events import JournalLost
from controller.snapshot.events import EventRing, Severity, State

SYNC_INTERVAL_S = 1.0
"""What is written to a journal is on the disk after this time at the latest."""

BEGIN_ANEW_S = 5.0
"""How often a journal that lost records is begun anew, until that succeeds."""


class JournalKeeper:
    """Syncs a journal off the loop of its app; `watch`, on the loop, tells of faults by `events` and mends them."""

    def __init__(self, app: App, journal: JournalFile, events: Callable[[], EventRing]) -> None:
        self._app = app
        self._journal = journal
        self._events = events
        self._told: str | None = None
        self._begin_anew_s = 0.0

    def start(self) -> None:
        """Begin to sync."""
        self._app.threads.append(hub.spawn(self._sync))

    @property
    def trouble(self) -> str | None:
        """What is wrong with the journal, in a sentence; None where nothing is."""
        fault = self._journal.fault
        return None if fault is None else f"{fault}: a restart will not know what changed."

    def watch(self) -> None:
        """Tell that the journal cannot be written, or is again, and have it begun anew until it is complete."""
        self._journal.check()
        fault, now = self._journal.fault, time.monotonic()
        if (fault is None) != (self._told is None):
            state, path = State.RAISED if fault else State.CLEARED, self._journal.path
            text = self.trouble or f"{path} is written again."
            self._events().add(now, "journal-unwritable", text, severity=Severity.CRITICAL, state=state)
        self._told = fault
        if self._journal.lost and not self._journal.renewing and now >= self._begin_anew_s:
            self._begin_anew_s = now + BEGIN_ANEW_S
            self._app.feed(JournalLost())

    def _sync(self) -> None:
        while self._app.is_active:
            self._app.pause(SYNC_INTERVAL_S)
            run_aside(self._journal.sync_aside)
