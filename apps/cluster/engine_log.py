"""The log of a leader in the store that controllers share, as `LogKeeper` has one on the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    KeyCondition,
    KeyPage,
    ReadPage,
    Reply,
    Request,
    Transaction,
)
from controller.cluster.journal import StoreEmptied, Turns, commits, read_record, sweeps
from controller.cluster.keys import Keys
from controller.cluster.versions import RECORDS
from controller.log import LogBatch, LogEntry, Row

TRIES = 3
"""How often a transaction without an answer is sent, in all; each has the engine's deadline."""


class AnsweringStore(Protocol):
    """A store that answers."""

    def ask(self, request: Request) -> Reply:
        """Have a request answered, within some seconds."""


class EngineLog:
    """The journal of a fabric, written in one epoch.

    Parameters
    ----------
    engine
        The store, for the thread that commits.
    fabric
        Whose journal it is.
    fence
        What every write has as a condition.
    refused
        Called, on the thread that commits, when the store no longer takes writes of this epoch.
    prefix
        What its keys begin with, where that is not the journal's own.
    version
        Returns the version of records that is written at the moment.

    Attributes
    ----------
    path
        What it is called in messages.
    trouble
        Why the last commit failed, in words; None where it did not.
    """

    set_aside: str | None = None
    has_lost = False

    def __init__(
        self,
        engine: AnsweringStore,
        fabric: str,
        fence: KeyCondition,
        refused: Callable[[], None],
        prefix: str | None = None,
        version: Callable[[], int] = lambda: RECORDS,
    ) -> None:
        self.path = f"the journal of fabric {fabric}"
        self.trouble: str | None = None
        self._engine = engine
        self._prefix = Keys(fabric).journal if prefix is None else prefix
        self._fence = fence
        keys = Keys(fabric)
        self._turns = Turns(f"{keys.turns}{self._prefix.removeprefix(keys.root).strip('/')}", fence)
        self._refused = refused
        self._version = version

    def read(self) -> tuple[int, tuple[LogEntry, ...]]:
        """Return the number of the last write, and the entries in the order in which they were written.

        TimeoutError where the store does not answer.
        """
        rows: list[Row] = []
        page, request = None, ReadPage(self._prefix)
        while page is None or page.has_more:
            page = self._page(request)
            rows += [row for row in (read_record(held, self._prefix) for held in page.held) if row is not None]
            if page.has_more:
                request = ReadPage(self._prefix, page.held[-1].key, page.revision)
        rows.sort(key=lambda row: (row.revision, row.entry.key))
        return rows[-1].revision if rows else 0, tuple(row.entry for row in rows)

    def commit(self, batch: LogBatch) -> bool:
        """Put a batch into the store and return whether all of it is there; `trouble` says why it is not."""
        self.trouble = None
        try:
            done = all(map(self._do, commits(batch, self._prefix, self._fence, self._version())))
            return done and (batch.sweep_below is None or self._sweep(batch.sweep_below))
        except StoreEmptied:
            self.trouble = f"{self.path} cannot be written (the store has lost what it had)"
        except (TimeoutError, ValueError) as error:
            self.trouble = f"{self.path} cannot be written ({error})"
        return False

    def close(self) -> None:
        """Leave the journal as it is."""

    def _sweep(self, below: int) -> bool:
        page, request = None, ReadPage(self._prefix)
        while page is None or page.has_more:
            page = self._page(request)
            if not all(map(self._do, sweeps(page, self._prefix, below, self._fence))):
                return False
            if page.has_more:
                request = ReadPage(self._prefix, page.held[-1].key)
        return True

    def _do(self, transaction: Transaction) -> bool:
        """Do what is next; False, with `trouble`, where that was refused or nobody knows."""
        why, silences = "", 0
        self._turns.begin()
        while silences < TRIES:
            reply = self._engine.ask(self._turns.in_turn(transaction))
            if type(reply) is Committed:
                self._turns.done(reply)
                return True
            if type(reply) is ConditionFailed:
                was_done = self._turns.refused(reply)
                if was_done is None:
                    self.trouble = f"{self.path} is written by another: this controller leads it no more"
                    self._refused()
                    return False
                if was_done:
                    return True
            else:
                why, silences = getattr(reply, "why", type(reply).__name__), silences + 1
        self.trouble = f"{self.path} cannot be written ({why.rstrip('.')})"
        return False

    def _page(self, request: ReadPage) -> KeyPage:
        why = ""
        for _ in range(TRIES):
            reply = self._engine.ask(request)
            if type(reply) is KeyPage:
                return reply
            why = getattr(reply, "why", type(reply).__name__)
        raise TimeoutError(why.rstrip("."))
