"""What the allocator measured, kept over restarts in an SQLite database; one that is damaged is set aside."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

from apps.state_database import StateDatabase
from controller.allocation.book import STATE_VERSION
from controller.allocation.busy import KEYS
from controller.allocation.live import PortStateChanges

_METRICS = tuple(KEYS)
_PORT_COLUMNS = ("name", "family", "cpu", "initiators", "volumes", *_METRICS)
_CPU_COLUMNS = ("name", *_METRICS)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS cpus (name TEXT PRIMARY KEY, {", ".join(_METRICS)}) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ports (name TEXT PRIMARY KEY, family TEXT NOT NULL, cpu TEXT, initiators INTEGER NOT NULL,
  volumes INTEGER NOT NULL, {", ".join(_METRICS)}) WITHOUT ROWID;
"""


class AllocationState(StateDatabase):
    """The database at `path`."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        super().__init__(path, logger, STATE_VERSION, _SCHEMA, "averages begin anew")

    def read(self) -> dict[str, Any] | None:
        """Return the state of an earlier run as `PortBook.restore` takes it, None where there is none."""
        try:
            database = self._checked()
            if database is None:
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

    def write(self, changes: PortStateChanges) -> bool:
        """Keep changes and return whether that was done; where not, the next ones must tell of every port."""
        ports, cpus = changes.state["ports"], changes.state["cpus"]
        if not ports and not changes.forgotten:
            return True

        def change(database: sqlite3.Connection) -> None:
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

        return self._transact(change)
