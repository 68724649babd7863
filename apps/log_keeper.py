"""What keeps an app's log on the disk while its loop goes on, and complete again after a time without a disk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from apps.openflow.app import TableKeeper
from apps.openflow.framework import Event, hub, run_aside
from controller.events import JournalLost
from controller.log import LogBatch, LogEntry, Waiting, WriteLog
from controller.snapshot.events import EventRing, Severity, State

RETRY_S = 1.0
"""How soon that is tried again which could not be committed; an operator's action has it tried at once."""

BEGIN_ANEW_S = 5.0
"""How often a log that lost writes is begun anew, until that succeeds."""

PAUSE_S = 0.5
"""How often the thread that commits looks whether the app ends before it has begun."""

COMMIT_PAUSE_S = 0.1
"""How long after a commit the next one begins, unless somebody waits for it: one that has more rows writes a page of
the database once for all of those that are on it."""

LOOP_FULL_S = 0.1
"""How soon a loop that takes no more work is told again that something was committed."""

UNKNOWN = "a restart will not know what changed."

Then: TypeAlias = Callable[[bool], None]

Committed: TypeAlias = Callable[[int, float, float, bool], None]
"""Takes how many entries a batch has, when the first was made and when it was handed to the disk, in seconds of the
monotonic clock, and whether it is there now."""


class LogStore(Protocol):
    """Where a log is kept: `apps.log_database` on the disk, `apps.cluster.engine_log` with other controllers.

    `trouble` and `set_aside` say in words why the last commit was not done; `has_lost` that earlier ones are gone.
    """

    has_lost: bool

    @property
    def path(self) -> Path | str:
        """What it is called in messages."""

    @property
    def trouble(self) -> str | None:
        """Why nothing can be committed now."""

    @property
    def set_aside(self) -> str | None:
        """Why what was committed earlier was set aside."""

    def read(self) -> tuple[int, tuple[LogEntry, ...]]:
        """Return the number of the last write and the entries, in the order in which they were written."""

    def commit(self, batch: LogBatch) -> bool:
        """Commit a batch, on a thread; return whether that was done."""

    def close(self) -> None:
        """Leave what was committed."""


class LogKeeper:
    """The log in `store`, as the port `controller.log.Log` has it, for one app and on its loop.

    What is written in one turn of the loop, and what comes while a commit is under way, is one transaction, done by a
                if store is not None:
                    self._commit(store, batch)
                if not self._orders:
                    self._awaited.wait(COMMIT_PAUSE_S)
                    self._awaited.clear()
    """

    def __init__(self, app: TableKeeper, store: LogStore | None, events: Callable[[], EventRing]) -> None:
        self._app = app
        self._store = store
        self._events = events
        self._waiting = Waiting()
        self._thens: list[Then] = []
        self._under_way: tuple[LogBatch, list[Then]] | None = None
        self._is_asked = False
        self._orders: deque[LogBatch | None] = deque()
        self._ordered = Event()
        self._awaited = Event()
        self._trouble: str | None = None
        self._told: str | None = None
        self._retry_s = self._begin_anew_s = 0.0
        self._since_s: float | None = None
        self._under_way_since_s: float | None = None
        self._handed_s = 0.0
        self.committed: Committed | None = None
        """Told of each batch that was committed, or not; set by who wants to know, on the loop."""

    def start(self) -> None:
        """Begin to commit."""
        self._app.threads.append(hub.spawn(self._run))

    @property
    def trouble(self) -> str | None:
        """What is wrong with the log, in a sentence; None where nothing is."""
        return self._trouble

    def use(self, store: LogStore, revision: int) -> None:
        """Keep the log in `store`, where the last write has this number; what was written before is lost."""
        was_written = bool(self._waiting)
        self._store, self._waiting = store, Waiting(revision)
        if was_written:
            self._waiting.lose()

    def renew(self, store: LogStore) -> None:
        """Keep the log in `store`, which has nothing of it: all is written there anew."""
        self._store = store
        self._waiting.lose()

    def read(self) -> tuple[LogEntry, ...]:
        """Return what an earlier run wrote; once, before the first write."""
        assert self._store is not None
        revision, entries = self._store.read()
        self._waiting = Waiting(revision)
        return entries

    def keys_waiting(self) -> set[str]:
        """Return the keys whose last entries may not be on the disk yet."""
        under_way = () if self._under_way is None else self._under_way[0].rows
        return {*self._waiting.keys(), *under_way}

    def lag_s(self, now: float) -> float:
        """Return for how long the entry has waited that waits longest to be committed; 0 where none does."""
        since = [since_s for since_s in (self._under_way_since_s, self._since_s) if since_s is not None]
        return now - min(since) if since else 0.0

    def write(self, write: WriteLog) -> None:
        """Take in entries; they are committed in this turn of the loop, or after the commit that is under way."""
        self._waiting.take(write)
        if self._since_s is None:
            self._since_s = time.monotonic()
        if self._trouble is None:
            self._hand_over_soon()

    def acknowledge(self, then: Then) -> None:
        """Call `then` when all that was written so far is on the disk, or could not be put there."""
        self._thens.append(then)
        self._awaited.set()
        self._hand_over_soon()

    def watch(self) -> None:
        """Try again what failed, tell that the log cannot be written, or is again, and have it begun anew."""
        now = time.monotonic()
        if self._store is None:
            return
        if self._thens or (self._waiting and now >= self._retry_s):
            self._hand_over()
        if self._waiting.is_lost and self._trouble is None:
            self._trouble = f"{self._store.path} takes nothing in time: {UNKNOWN}"
        if (self._trouble is None) != (self._told is None):
            state = State.CLEARED if self._trouble is None else State.RAISED
            severity = Severity.INFO if self._trouble is None else Severity.CRITICAL
            text = self._trouble or f"{self._store.path} is written again."
            self._events().add(now, "journal-unwritable", text, severity=severity, state=state)
        self._told = self._trouble
        if self._waiting.is_lost and not self._waiting.is_renewed and now >= self._begin_anew_s:
            self._begin_anew_s = now + BEGIN_ANEW_S
            self._app.feed(JournalLost())

    def close(self) -> None:
        """Commit what waits and end; the app's end waits for that."""
        if self._waiting:
            self._orders.append(self._waiting.batch())
        self._orders.append(None)
        self._ordered.set()
        self._awaited.set()

    def _hand_over_soon(self) -> None:
        """Have what waits committed when the turn of the loop has ended."""
        if not self._is_asked and self._under_way is None:
            self._is_asked = self._app.later(self._hand_over)

    def _hand_over(self) -> None:
        self._is_asked = False
        if self._under_way is not None or self._store is None:
            return
        thens, self._thens = self._thens, []
        if not self._waiting:
            _call(thens, self._trouble is None and not self._waiting.is_lost)
            return
        batch = self._waiting.batch()
        self._under_way = (batch, thens)
        self._under_way_since_s, self._since_s = self._since_s, None
        self._handed_s = time.monotonic()
        if thens:
            self._awaited.set()
        self._orders.append(batch)
        self._ordered.set()

    def _done(self, batch: LogBatch, fault: str | None, has_lost: bool) -> None:
        """Take what became of a batch; on the loop."""
        _, thens = self._under_way or (batch, [])
        self._under_way = None
        if self.committed is not None:
            since_s = self._handed_s if self._under_way_since_s is None else self._under_way_since_s
            self.committed(len(batch.rows), since_s, self._handed_s, fault is None)
        if fault is None:
            self._waiting.committed(batch)
        else:
            self._waiting.failed(batch)
            self._retry_s = time.monotonic() + RETRY_S
            self._since_s = self._under_way_since_s
        self._under_way_since_s = None
        if has_lost:
            self._waiting.lose()
        if fault is not None:
            self._trouble = f"{fault}: {UNKNOWN}"
        elif not self._waiting.is_lost:
            self._trouble = None
        _call(thens, fault is None and not self._waiting.is_lost)
        if self._thens or (self._waiting and fault is None):
            self._hand_over()

    # On the thread that commits

    def _run(self) -> None:
        while True:
            while not self._ordered.wait(PAUSE_S):
                if not self._app.is_active and not self._app.reactor.has_begun:
                    return  # nobody will call `close`
            self._ordered.clear()
            while self._orders:
                batch = self._orders.popleft()
                store = self._store
                if batch is None:
                    if store is not None:
                        run_aside(store.close)
                    return
                if store is not None:
                    self._commit(store, batch)
                if not self._orders:
                    self._awaited.wait(COMMIT_PAUSE_S)
                    self._awaited.clear()

    def _commit(self, store: LogStore, batch: LogBatch) -> None:
        outcome: list[str | None] = []
        run_aside(lambda: outcome.append(self._try(store, batch)))
        has_lost, store.has_lost = store.has_lost, False
        while not self._app.later(lambda: self._done(batch, outcome[0], has_lost)):
            self._app.pause(LOOP_FULL_S)

    def _try(self, store: LogStore, batch: LogBatch) -> str | None:
        """Commit a batch and return why that failed, None where it did not."""
        try:
            if store.commit(batch):
                return None
        except Exception as error:
            self._app.logger.exception("%s cannot be written.", store.path)
            return f"{store.path} cannot be written ({error})"
        return store.trouble or store.set_aside


def _call(thens: list[Then], is_committed: bool) -> None:
    for then in thens:
        then(is_committed)
