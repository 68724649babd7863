"""The log on the disk: an SQLite database with the last entry of each key; a damaged one is set aside."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.state_database import StateDatabase
from controller.log import LogBatch, LogEntry, LogEntryKind

LOG_VERSION = 1
LOG_NAME = "log.sqlite"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, kind TEXT NOT NULL, revision INTEGER NOT NULL,
  value TEXT NOT NULL) WITHOUT ROWID;
"""
_READ = "SELECT kind, key, value FROM entries ORDER BY revision, key"


class LogDatabase(StateDatabase):
    """The database at `path`; what `commit` returned True of is on the disk.

    Attributes
    ----------
    has_lost
        Whether what was committed was set aside, since it was damaged; for who writes it anew to reset.
    """

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        lost = "what operators set, and the trees and members of groups, begin anew"
        super().__init__(path, logger, LOG_VERSION, _SCHEMA, lost)
        self.has_lost = False

    def reject(self, reason: str) -> None:
        """Set the database aside, because of damage."""
        super().reject(reason)
        self.has_lost = True

    def read(self) -> tuple[int, tuple[LogEntry, ...]]:
        """Return the number of the last write and the entries, in the order in which they were written."""
        try:
            database = self._checked()
            if database is None:
                return 0, ()
            (revision,) = database.execute("SELECT max(revision) FROM entries").fetchone()
            return revision or 0, tuple(_entry(*row) for row in database.execute(_READ))
        except sqlite3.Error as error:
            self._failed(error)
            return 0, ()

    def commit(self, batch: LogBatch) -> bool:
        """Put a batch on the disk and return whether that was done; nothing of it where not."""
        put, removed = [], []
        for key, (revision, entry) in batch.rows.items():
            if entry.text is None:
                removed.append((key,))
            else:
                put.append((key, entry.kind.value, revision, entry.text))

        def change(database: sqlite3.Connection) -> None:
            database.executemany("REPLACE INTO entries VALUES (?, ?, ?, ?)", put)
            database.executemany("DELETE FROM entries WHERE key = ?", removed)
            if batch.sweep_below is not None:
                database.execute("DELETE FROM entries WHERE revision < ?", (batch.sweep_below,))

        return self._transact(change)

    def _open(self) -> sqlite3.Connection:
        database = super()._open()
        database.execute("PRAGMA synchronous = FULL")  # an operator who was answered relies on it
        return database


def read_values(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the value of each key in the log at `path`, none where it cannot be read; on any thread."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return {key: _entry(kind, key, text).value or {} for kind, key, text in database.execute(_READ)}
    except sqlite3.Error:
        return {}


def _entry(kind: Any, key: Any, text: Any) -> LogEntry:
    known = LogEntryKind.DECISION if kind == LogEntryKind.DECISION.value else LogEntryKind.OBSERVATION
    return LogEntry(known, str(key), text if isinstance(text, str) else "")
