"""What the live comparison learnt, kept over restarts in an SQLite database; one that is damaged is set aside."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from apps.state_database import StateDatabase
from controller.anomaly.live_state import STATE_VERSION, AnomalyState, BinsState, MemberState

_SCHEMA = """
CREATE TABLE IF NOT EXISTS chain (one INTEGER PRIMARY KEY CHECK (one = 1), chain TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS members (dpid TEXT NOT NULL, port_no INTEGER NOT NULL, peer_group TEXT NOT NULL,
  learnt BLOB NOT NULL, opened TEXT, PRIMARY KEY (dpid, port_no)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bins (peer_group TEXT NOT NULL, metric TEXT NOT NULL, sizes BLOB NOT NULL,
  PRIMARY KEY (peer_group, metric)) WITHOUT ROWID;
"""


class AnomalyDatabase(StateDatabase):
    """The database at `path`. Datapath ids are texts in it: they have 64 bits without a sign."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        super().__init__(path, logger, STATE_VERSION, _SCHEMA, "thresholds are learnt anew")

    def read(self) -> AnomalyState | None:
        """Return what an earlier run kept, None where there is none."""
        try:
            database = self._checked()
            if database is None:
                return None
            chain = database.execute("SELECT chain FROM chain").fetchone()
            members = database.execute("SELECT dpid, port_no, peer_group, learnt, opened FROM members").fetchall()
            bins = database.execute("SELECT peer_group, metric, sizes FROM bins").fetchall()
        except sqlite3.Error as error:
            self._failed(error)
            return None
        if chain is None or not members:
            return None
        try:
            kept = tuple(MemberState(int(row[0]), *row[1:]) for row in members)
        except ValueError as error:
            self.reject(f"a datapath id: {error}")
            return None
        return AnomalyState(chain[0], kept, tuple(BinsState(*row) for row in bins))

    def write(self, state: AnomalyState) -> bool:
        """Keep changes and return whether that was done; where not, the next ones must tell of every member."""
        if not state.members and not state.forgotten:
            return True

        def change(database: sqlite3.Connection) -> None:
            database.execute("REPLACE INTO chain VALUES (1, ?)", (state.chain,))
            database.executemany(
                "REPLACE INTO members VALUES (?, ?, ?, ?, ?)",
                [(str(member.dpid), *member[1:]) for member in state.members],
            )
            database.executemany("REPLACE INTO bins VALUES (?, ?, ?)", state.bins)
            database.executemany(
                "DELETE FROM members WHERE dpid = ? AND port_no = ?",
                [(str(dpid), port_no) for dpid, port_no in state.forgotten],
            )

        return self._transact(change)
