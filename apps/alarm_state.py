"""Alarms and the fabric that is known, kept over restarts in an SQLite database; a damaged one is set aside."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.state_database import StateDatabase, replace_rows
from controller.alarms.kept import PARTS, STATE_VERSION, KeptRecord

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept (part TEXT NOT NULL, id TEXT NOT NULL, document TEXT NOT NULL,
  PRIMARY KEY (part, id)) WITHOUT ROWID;
"""


class AlarmDatabase(StateDatabase):
    """The database at `path`."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        lost = "who acknowledged what, and which fabric was there, begins anew"
        super().__init__(path, logger, STATE_VERSION, _SCHEMA, lost)

    def read(self) -> dict[str, dict[str, Any]]:
        """Return what an earlier run kept, by part and id; a document that is no JSON object is an empty one."""
        parts: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
        try:
            database = self._checked()
            rows = [] if database is None else database.execute("SELECT part, id, document FROM kept").fetchall()
        except sqlite3.Error as error:
            self._failed(error)
            return parts
        for part, id_, text in rows:
            if part in parts:
                parts[part][id_] = _object(text)
        return parts

    def write(self, records: Iterable[KeptRecord]) -> bool:
        """Keep changes and return whether that was done; where not, all records are to be written again."""
        put, removed = [], []
        for part, id_, document in records:
            if document is None:
                removed.append((part, id_))
            else:
                put.append((part, id_, json.dumps(document, separators=(",", ":"))))
        if not put and not removed:
            return True

        def change(database: sqlite3.Connection) -> None:
            replace_rows(database, "kept", put)
            database.executemany("DELETE FROM kept WHERE part = ? AND id = ?", removed)

        return self._transact(change)


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
