"""An SQLite database of an app's state; what goes wrong with it is said once and never ends the app."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from apps.line_files import make_file

BUSY_TIMEOUT_S = 0.1
_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
    }
)
"""Result codes of a database that cannot be used now, though nothing says that it is damaged."""


VALUES_AT_ONCE = 900
"""Values in one statement; SQLite before 3.32 took 999."""


def replace_rows(database: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Put rows into a table, many with one statement: at each statement this thread lets others go first."""
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    at_once = VALUES_AT_ONCE // len(rows[0])
    for first in range(0, len(rows), at_once):
        some = rows[first : first + at_once]
        database.execute(f"REPLACE INTO {table} VALUES {', '.join([row] * len(some))}", [*itertools.chain(*some)])


class StateDatabase:
    """The database at `path`; one that is damaged is set aside.

    Parameters
    ----------
    path
        The file; it is made with the first change.
    logger
        Where faults are said.
    version
        Of the tables; a database of another version counts as damaged.
    schema
        The statements that make the tables.
    lost
        What begins anew where a database is set aside, for people.

    Attributes
    ----------
    fault
        Why nothing is kept at present, '' where all is well.
    set_aside
        What became of a damaged database, '' where there was none.
    """

    def __init__(self, path: Path, logger: logging.Logger, version: int, schema: str, lost: str) -> None:
        self.path = path
        self.fault = ""
        self.set_aside = ""
        self._logger = logger
        self._version = version
        self._schema = schema
        self._lost = lost
        self._database: sqlite3.Connection | None = None

    def reject(self, reason: str) -> None:
        """Set the database aside, because of damage; a new one is begun with the next change."""
        self.close()
        name = f"{self.path.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(1)))
        aside = next(place for place in map(self.path.with_name, names) if not place.exists())
        try:
            self.path.replace(aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).replace(aside.with_name(aside.name + suffix))
        except OSError as error:
            self._say(f"is damaged ({reason}) and cannot be set aside ({error.strerror})")
            return
        self.set_aside = f"{self.path} was damaged ({reason}) and is now {aside}: {self._lost}"
        self._logger.error("%s", self.set_aside)

    @property
    def trouble(self) -> str | None:
        """Why nothing is kept at present, with the database's path; None where all is well."""
        return f"{self.path} {self.fault}" if self.fault else None

    def document(self) -> dict[str, str]:
        """Return for people where the state is, and what is wrong with it."""
        return {"path": str(self.path), "fault": self.fault, "set_aside": self.set_aside}

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            with contextlib.suppress(OSError):  # what is wrong SQLite says itself
                make_file(self.path)
            database = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
            try:
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version not in (0, self._version):
                    raise _VersionError(f"version {version}, expected {self._version}")
                database.execute("PRAGMA synchronous = NORMAL")
                if version == 0:
                    database.execute("PRAGMA journal_mode = WAL")
                    database.executescript(f"{self._schema}\nPRAGMA user_version = {self._version};")
            except sqlite3.Error:
                database.close()
                raise
            self._database = database
        return self._database

    def _transact(self, change: Callable[[sqlite3.Connection], None]) -> bool:
        """Have all of a change kept and return whether that was done; where not, none of it was."""
        try:
            database = self._open()
            with database:
                change(database)
        except sqlite3.Error as error:
            self._failed(error)
            return False
        self.fault = ""
        return True

    def _checked(self) -> sqlite3.Connection | None:
        """Return the database, None where it was damaged and is set aside now; sqlite3.Error where it is unusable."""
        database = self._open()
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            self.reject(" ".join(verdict.split()))
            return None
        return database

    def _failed(self, error: sqlite3.Error) -> None:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _UNAVAILABLE:
            self._say(f"cannot be used ({error})")
        else:
            self.reject(str(error))

    def _say(self, what: str) -> None:
        if not self.fault:
            self._logger.error("%s %s", self.path, what)
        self.fault = what


class _VersionError(sqlite3.DatabaseError):
    """The database is of another version."""
