"""What live normalcy learnt, kept over restarts in an SQLite database; one that is damaged is set aside."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from apps.state_database import StateDatabase
from controller.anomaly.live_normalcy_state import NORMALCY_VERSION, NormalcyState, PortNormalcy

_SCHEMA = """
CREATE TABLE IF NOT EXISTS chain (one INTEGER PRIMARY KEY CHECK (one = 1), chain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ports (dpid TEXT NOT NULL, port_no INTEGER NOT NULL, newest_s REAL NOT NULL,
  learnt BLOB NOT NULL, opened TEXT NOT NULL, PRIMARY KEY (dpid, port_no));
"""


class NormalcyDatabase(StateDatabase):
    """The database at `path`. Datapath ids are texts in it: they have 64 bits without a sign."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        super().__init__(path, logger, NORMALCY_VERSION, _SCHEMA, "bounds of ports are learnt anew")

    def read(self) -> NormalcyState | None:
        """Return what an earlier run kept, None where there is none."""
        if not self.path.exists():
            return None
        try:
            database = self._checked()
            if database is None:
                return None
            chain = database.execute("SELECT chain FROM chain").fetchone()
            rows = database.execute("SELECT dpid, port_no, newest_s, learnt, opened FROM ports").fetchall()
        except sqlite3.Error as error:
            self._failed(error)
            return None
        if chain is None:
            return None
        try:
            return NormalcyState(chain[0], tuple(PortNormalcy(int(row[0]), *row[1:]) for row in rows))
        except ValueError as error:
            self.reject(f"a datapath id: {error}")
            return None

    def write(self, state: NormalcyState) -> bool:
        """Keep changes and return whether that was done; where not, the next ones must tell of every port."""
        if not state.ports and not state.forgotten:
            return True

        def change(database: sqlite3.Connection) -> None:
            kept = database.execute("SELECT chain FROM chain").fetchone()
            if kept is not None and kept[0] != state.chain:
                database.execute("DELETE FROM ports")
            database.execute("REPLACE INTO chain VALUES (1, ?)", (state.chain,))
            database.executemany(
                "REPLACE INTO ports VALUES (?, ?, ?, ?, ?)",
                [(str(port.dpid), *port[1:]) for port in state.ports],
            )
            database.executemany(
                "DELETE FROM ports WHERE dpid = ? AND port_no = ?",
                [(str(dpid), port_no) for dpid, port_no in state.forgotten],
            )

        return self._transact(change)
