"""What the allocator measured, kept over restarts in an SQLite database; one that is damaged is set aside."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
import time
from pathlib import Path
from typing import Any

from controller.allocation.book import STATE_VERSION
from controller.allocation.busy import KEYS
from controller.allocation.live import Changes

BUSY_TIMEOUT_S = 0.1
_METRICS = tuple(KEYS)
_PORT_COLUMNS = ("name", "family", "cpu", "initiators", "volumes", *_METRICS)
_CPU_COLUMNS = ("name", *_METRICS)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS cpus (name TEXT PRIMARY KEY, {", ".join(_METRICS)}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ports (name TEXT PRIMARY KEY, family TEXT NOT NULL, cpu TEXT, initiators INTEGER NOT NULL,
  volumes INTEGER NOT NULL, {", ".join(_METRICS)}) WITHOUT ROWID;
PRAGMA user_version = {STATE_VERSION};
"""
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


class AllocationState:
    """The database at `path`; what goes wrong is logged once, told in `fault` and never ends the allocator.

    Attributes
    ----------
    fault
        Why nothing is kept at present, '' where all is well.
    set_aside
        What became of a damaged database, '' where there was none.
    """

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self.path = path
        self.fault = ""
        self.set_aside = ""
        self._logger = logger
        self._database: sqlite3.Connection | None = None

    def read(self) -> dict[str, Any] | None:
        """Return the state of an earlier run as `PortBook.restore` takes it, None where there is none."""
        try:
            database = self._open()
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                self.reject(" ".join(verdict.split()))
                return None
            ports = database.execute(f"SELECT {', '.join(_PORT_COLUMNS)} FROM ports").fetchall()
            cpus = database.execute(
                f"SELECT {', '.join(_CPU_COLUMNS)} FROM cpus WHERE name IN (SELECT cpu FROM ports)"
            ).fetchall()
        except sqlite3.Error as error:
            self._failed(error)
            return None
        if not ports:
            return None
        return {
            "version": STATE_VERSION,
            "cpus": {row[0]: dict(zip(_METRICS, row[1:], strict=True)) for row in cpus},
            "ports": {
                row[0]: {
                    **dict(zip(_PORT_COLUMNS[1:5], row[1:5], strict=True)),
                    "metrics": dict(zip(_METRICS, row[5:], strict=True)),
                }
                for row in ports
            },
        }

    def write(self, changes: Changes) -> bool:
        """Keep changes and return whether that was done; where not, the next ones must tell of every port."""
        ports, cpus = changes.state["ports"], changes.state["cpus"]
        if not ports and not changes.forgotten:
            return True
        try:
            database = self._open()
            with database:
                database.executemany(
                    f"REPLACE INTO ports VALUES ({', '.join('?' * len(_PORT_COLUMNS))})",
                    [
                        (
                            name,
                            *(port[key] for key in _PORT_COLUMNS[1:5]),
                            *(port["metrics"][key] for key in _METRICS),
                        )
                        for name, port in ports.items()
                    ],
                )
                database.executemany(
                    f"REPLACE INTO cpus VALUES ({', '.join('?' * len(_CPU_COLUMNS))})",
                    [(name, *(values[key] for key in _METRICS)) for name, values in cpus.items()],
                )
                database.executemany("DELETE FROM ports WHERE name = ?", [(name,) for name in changes.forgotten])
                if changes.forgotten:
                    database.execute("DELETE FROM cpus WHERE name NOT IN (SELECT cpu FROM ports WHERE cpu NOT NULL)")
        except sqlite3.Error as error:
            self._failed(error)
            return False
        self.fault = ""
        return True

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
            self._say(f"is damaged ({reason}) and cannot be set aside ({error.strerror}): nothing is kept")
            return
        self.set_aside = f"{self.path} was damaged ({reason}) and is now {aside}: averages begin anew"
        self._logger.error("%s", self.set_aside)

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
            database = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
            try:
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version not in (0, STATE_VERSION):
                    raise _VersionError(f"version {version}, expected {STATE_VERSION}")
                database.execute("PRAGMA synchronous = NORMAL")
                if version == 0:
                    database.execute("PRAGMA journal_mode = WAL")
                    database.executescript(_SCHEMA)
            except sqlite3.Error:
                database.close()
                raise
            self._database = database
        return self._database

    def _failed(self, error: sqlite3.Error) -> None:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _UNAVAILABLE:
            self._say(f"cannot be used ({error}): what is measured is not kept")
        else:
            self.reject(str(error))

    def _say(self, what: str) -> None:
        if not self.fault:
            self._logger.error("%s %s", self.path, what)
        self.fault = what


class _VersionError(sqlite3.DatabaseError):
    """The database is of another version."""
