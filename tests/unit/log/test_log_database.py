"""The log's database: what was acknowledged outlasts kill -9; damage is set aside, a full disk loses nothing."""

from __future__ import annotations

import logging
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from apps.log_database import LogDatabase, read_values
from controller.log import LogEntry, LogEntryKind, Waiting, WriteLog

LOGGER = logging.getLogger("log")

WRITER = """
import logging, sys
from pathlib import Path
from apps.log_database import LogDatabase
from controller.log import LogEntry, LogEntryKind, Waiting, WriteLog
database = LogDatabase(Path(sys.argv[1]), logging.getLogger())
revision, _ = database.read()
waiting = Waiting(revision)
number = int(sys.argv[2])
while True:
    number += 1
    entries = tuple(LogEntry.of_record(LogEntryKind.DECISION, f"tree/{part}", {"n": number}) for part in range(20))
    waiting.take(WriteLog(entries))
    assert database.commit(waiting.batch())
    print(number, flush=True)
"""


def commit(database: LogDatabase, *entries: LogEntry, waiting: Waiting | None = None) -> bool:
    waiting = Waiting() if waiting is None else waiting
    waiting.take(WriteLog(entries))
    return database.commit(waiting.batch())


def entry(key: str, **value: object) -> LogEntry:
    return LogEntry.of_record(LogEntryKind.DECISION, key, value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


def opened(path: Path) -> LogDatabase:
    return LogDatabase(path, LOGGER)


def test_a_killed_writer_loses_at_most_what_was_not_acknowledged_and_no_write_is_half_there(path: Path) -> None:
    draw, acknowledged = random.Random(5), 0
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(path), str(acknowledged)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as writer:
            assert writer.stdout is not None
            for _ in range(draw.randrange(1, 25)):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                acknowledged = int(line) if line.endswith("\n") else acknowledged
        _, entries = opened(path).read()
        (number,) = {entry.value["n"] for entry in entries if entry.value is not None}
        assert len(entries) == 20 and number >= acknowledged
        acknowledged = number


@pytest.mark.parametrize("damage", [b"no database at all", bytes(4096)])
def test_a_damaged_log_is_set_aside_and_a_new_one_begun(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    database = opened(path)
    assert database.read() == (0, ()) and database.has_lost
    (aside,) = path.parent.glob("log.sqlite.damaged-*")
    assert aside.read_bytes() == damage and str(aside) in database.set_aside
    assert commit(database, entry("drain/1", dpid=1))
    assert [entry.key for entry in opened(path).read()[1]] == ["drain/1"]


def test_a_log_of_a_newer_version_is_set_aside(path: Path) -> None:
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 2")
    database = opened(path)
    assert database.read() == (0, ())
    assert "version 2, expected 1" in database.set_aside


def test_a_log_that_is_damaged_while_it_is_used_says_that_it_lost_what_it_had(path: Path) -> None:
    assert commit(opened(path), entry("drain/1", dpid=1))
    database = opened(path)
    path.write_bytes(b"overwritten by somebody" * 100)
    path.with_name("log.sqlite-wal").unlink(missing_ok=True)
    assert not commit(database, entry("drain/2", dpid=2))
    assert database.has_lost and "damaged" in database.set_aside
    assert commit(database, entry("drain/2", dpid=2))


def test_rows_of_which_nobody_can_make_anything_have_no_fields(path: Path) -> None:
    database = opened(path)
    commit(database, entry("drain/1", dpid=1), entry("drain/2", dpid=2))
    database.close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE entries SET value = '[1' WHERE key = 'drain/1'")
    assert [(entry.key, entry.value) for entry in opened(path).read()[1]] == [
        ("drain/1", {}),
        ("drain/2", {"dpid": 2}),
    ]


def test_values_are_read_beside_the_writer(path: Path) -> None:
    database = opened(path)
    commit(database, entry("tree/a", links=[[1, 2]]))
    assert read_values(path) == {"tree/a": {"links": [[1, 2]]}}
    commit(database, entry("tree/a", links=[]))
    assert read_values(path) == {"tree/a": {"links": []}}
    assert read_values(path.with_name("nowhere.sqlite")) == {}
    assert not path.with_name("nowhere.sqlite").exists()


def test_revisions_go_on_after_a_restart(path: Path) -> None:
    commit(opened(path), entry("a"), waiting=Waiting(41))
    revision, _ = opened(path).read()
    assert revision == 42


def test_a_full_disk_takes_nothing_and_everything_when_there_is_room(path: Path) -> None:
    """In a process of its own, whose files may not grow for a while."""
    child = os.fork()
    if child == 0:
        os._exit(_fill(path))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(opened(path).read()[1]) == 301


def _fill(path: Path) -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database, waiting = opened(path), Waiting()
    if not commit(database, entry("first"), waiting=waiting):
        return 1
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("log.sqlite-wal").stat().st_size + 1000, hard))
    for number in range(300):
        waiting.take(WriteLog((entry(f"tree/{number}", text="x" * 500),)))
        batch = waiting.batch()
        if database.commit(batch) or not database.fault:
            return 2
        waiting.failed(batch)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    return 0 if database.commit(waiting.batch()) and not database.fault else 3
