"""The keeper of a log: commits aside, acknowledges on the loop, tells faults once each way, mends what is lost."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps import log_keeper
from apps.log_database import LogDatabase, read_values
from apps.log_keeper import BEGIN_ANEW_S, RETRY_S, LogKeeper
from controller.events import JournalLost
from controller.log import LogBatch, LogEntry, LogEntryKind, LogPart, WriteLog
from controller.snapshot.events import Severity, State

WAIT_S = 30.0


class Held(LogDatabase):
    """A real database whose commits wait for the test's word, where it wants that."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, logging.getLogger("log"))
        self.may_commit = threading.Event()
        self.may_commit.set()
        self.has_begun = threading.Semaphore(0)
        self.batches: list[int] = []

    def commit(self, batch: LogBatch) -> bool:
        assert threading.current_thread() is not threading.main_thread()
        self.batches.append(len(batch.rows))
        self.has_begun.release()
        assert self.may_commit.wait(WAIT_S)
        return super().commit(batch)


class Kept:
    """A keeper of a real log on a clock of the test's; its app, whose loop is the test, and its events."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(log_keeper, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.database = Held(path)
        self.logger = logging.getLogger("log")
        self.threads: list[Any] = []
        self.is_active = True
        self.reactor = SimpleNamespace(has_begun=True)
        self.work: queue.Queue[Callable[[], None]] = queue.Queue()
        self.fed: list[object] = []
        self.told: list[tuple[str, str, Severity, State]] = []
        self.answers: list[bool] = []
        self.keeper = LogKeeper(self, self.database, lambda: self)  # type: ignore[arg-type, return-value]
        assert self.keeper.read() == ()
        self.keeper.start()

    def later(self, work: Callable[[], None]) -> bool:
        self.work.put(work)
        return True

    def feed(self, event: object) -> None:
        self.fed.append(event)

    def add(self, _now: float, kind: str, text: str, *, severity: Severity, state: State) -> None:
        self.told.append((kind, text, severity, state))

    def turn(self) -> None:
        """Do the next thing on the loop, when it comes."""
        self.work.get(timeout=WAIT_S)()

    def write(self, *keys: str, part: LogPart = LogPart.CHANGE) -> None:
        self.keeper.write(
            WriteLog(tuple(LogEntry.of_record(LogEntryKind.DECISION, key, {"key": key}) for key in keys), part)
        )

    def answered(self) -> bool:
        """Ask for an acknowledgement, and turn the loop until it is there."""
        count = len(self.answers)
        self.keeper.acknowledge(self.answers.append)
        while len(self.answers) == count:
            self.turn()
        return self.answers[-1]

    def watch(self, after_s: float = 0.5) -> None:
        self.now += after_s
        self.keeper.watch()

    def block(self) -> None:
        """Have every commit fail."""
        self.database.close()
        self.database.path.rename(self.database.path.with_suffix(".away"))
        self.database.path.mkdir()

    def unblock(self) -> None:
        self.database.path.rmdir()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    kept = Kept(tmp_path / "log.sqlite", monkeypatch)
    yield kept
    kept.database.may_commit.set()
    kept.keeper.close()
    kept.threads[0].join(WAIT_S)
    assert not kept.threads[0].is_alive()


def test_the_writes_of_one_turn_are_one_commit_and_the_loop_goes_on_meanwhile(kept: Kept) -> None:
    kept.database.may_commit.clear()
    kept.write("a")
    kept.write("b")
    kept.keeper.acknowledge(kept.answers.append)
    kept.turn()
    assert kept.database.has_begun.acquire(timeout=WAIT_S)
    kept.write("c")
    kept.write("d")
    kept.keeper.acknowledge(kept.answers.append)
    assert kept.answers == [] and kept.keeper.keys_waiting() == {"a", "b", "c", "d"}
    kept.database.may_commit.set()
    kept.turn()
    assert kept.answers == [True]
    kept.turn()
    assert kept.answers == [True, True] and kept.database.batches == [2, 2]
    assert set(read_values(kept.database.path)) == {"a", "b", "c", "d"} and not kept.keeper.keys_waiting()


def test_commits_pause_until_somebody_waits_for_one(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_keeper, "COMMIT_PAUSE_S", 10 * WAIT_S)
    kept.write("a")
    kept.turn()
    kept.turn()
    kept.write("b")
    kept.turn()
    kept.write("c")
    kept.write("d")
    assert kept.database.batches == [1]
    kept.keeper.acknowledge(kept.answers.append)
    kept.turn()
    assert kept.answers == []
    kept.turn()
    assert kept.answers == [True] and kept.database.batches == [1, 1, 2]
    assert set(read_values(kept.database.path)) == {"a", "b", "c", "d"}


def test_what_is_on_the_disk_already_is_acknowledged_at_once(kept: Kept) -> None:
    kept.write("a")
    assert kept.answered() and kept.answered()
    assert kept.database.batches == [1]


def test_nothing_is_told_or_begun_anew_while_all_is_well(kept: Kept) -> None:
    kept.write("a")
    assert kept.answered()
    for _ in range(20):
        kept.watch()
    assert kept.told == [] and kept.fed == [] and kept.keeper.trouble is None


def test_a_fault_is_told_once_and_its_end_once_and_what_waited_is_on_the_disk_then(kept: Kept) -> None:
    path = kept.database.path
    kept.block()
    kept.write("a")
    assert not kept.answered()
    kept.watch()
    kept.write("b")
    kept.watch()
    assert not kept.answered()
    kept.watch()
    ((kind, text, severity, state),) = kept.told
    assert (kind, severity, state) == ("journal-unwritable", Severity.CRITICAL, State.RAISED)
    assert str(path) in text and text.endswith("a restart will not know what changed.")
    kept.unblock()
    kept.watch(2 * RETRY_S)
    kept.turn()
    kept.watch()
    assert [told[2:] for told in kept.told] == [(Severity.CRITICAL, State.RAISED), (Severity.INFO, State.CLEARED)]
    assert kept.told[1][1] == f"{path} is written again."
    assert kept.fed == [] and set(read_values(path)) == {"a", "b"}


def test_a_log_that_lost_writes_is_begun_anew_until_it_is_complete(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.block()
    kept.write("a")
    assert not kept.answered()
    monkeypatch.setattr(kept.keeper._waiting, "_bound", 3)
    kept.write("b", "c", "d")
    kept.watch()
    assert kept.fed == [JournalLost()]
    kept.watch(BEGIN_ANEW_S - 1.0)
    assert len(kept.fed) == 1
    kept.unblock()
    kept.write("e", part=LogPart.BEGIN)
    kept.watch(2 * BEGIN_ANEW_S)
    kept.turn()
    assert len(kept.fed) == 1, "it is being written anew"
    assert kept.keeper.trouble is not None
    kept.write("f", part=LogPart.END)
    assert kept.answered()
    kept.watch(2 * BEGIN_ANEW_S)
    assert len(kept.fed) == 1 and kept.keeper.trouble is None
    assert [told[3] for told in kept.told] == [State.RAISED, State.CLEARED]


def test_a_log_that_was_damaged_is_written_anew(kept: Kept) -> None:
    kept.write("a")
    assert kept.answered()
    kept.database.close()
    kept.database.path.write_bytes(b"overwritten by somebody" * 100)
    kept.database.path.with_name("log.sqlite-wal").unlink(missing_ok=True)
    kept.write("b")
    assert not kept.answered()
    kept.watch()
    assert kept.fed == [JournalLost()]
    assert kept.told[0][3] is State.RAISED and "damaged" in kept.told[0][1]


def test_what_waits_when_the_app_ends_is_committed(kept: Kept) -> None:
    kept.write("a")
    kept.keeper.close()
    kept.threads[0].join(WAIT_S)
    assert set(read_values(kept.database.path)) == {"a"}


def test_an_app_that_never_began_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_keeper, "PAUSE_S", 0.01)
    kept = Kept(tmp_path / "log.sqlite", monkeypatch)
    kept.reactor.has_begun = False
    kept.is_active = False
    kept.threads[0].join(WAIT_S)
    assert not kept.threads[0].is_alive()
