"""The keeper of a journal: faults are told once each way, lost records lead to a new one, and the disk is synced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps import journal_keeper, state_dir
from apps.journal_keeper import BEGIN_ANEW_S, JournalKeeper
from apps.state_dir import JournalFile
from controller.effects import JournalPart
from controller.events import JournalLost
from controller.snapshot.events import Severity, State

RECORD = ({"kind": "group"},)


class Kept:
    """A keeper of a real file, on a clock of the test's; its app and its events note what they are told."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(journal_keeper, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.journal = JournalFile(path, logging.getLogger("journal"))
        self.threads: list[Any] = []
        self.is_active = True
        self.paused = threading.Event()
        self.fed: list[object] = []
        self.told: list[tuple[str, str, Severity, State]] = []
        self.keeper = JournalKeeper(self, self.journal, lambda: self)  # type: ignore[arg-type, return-value]

    def feed(self, event: object) -> None:
        self.fed.append(event)

    def add(self, _now: float, kind: str, text: str, *, severity: Severity, state: State) -> None:
        self.told.append((kind, text, severity, state))

    def pause(self, _duration_s: float) -> None:
        self.paused.wait(10.0)

    def watch(self, after_s: float = 0.5) -> None:
        self.now += after_s
        self.keeper.watch()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    kept = Kept(tmp_path / "journal.jsonl", monkeypatch)
    yield kept
    kept.is_active = False


def test_nothing_is_told_or_begun_anew_while_all_is_well(kept: Kept) -> None:
    kept.journal.write(RECORD, JournalPart.APPEND)
    for _ in range(20):
        kept.watch()
    assert kept.told == [] and kept.fed == []


def test_a_fault_is_told_once_and_its_end_once_and_the_journal_begun_anew_until_it_is_complete(kept: Kept) -> None:
    path = kept.journal.path
    path.mkdir()
    kept.journal.write(RECORD, JournalPart.APPEND)
    kept.watch()
    kept.journal.fault = f"{path} cannot be written (for another reason)"
    kept.watch()
    ((kind, text, severity, state),) = kept.told
    assert (kind, severity, state) == ("journal-unwritable", Severity.CRITICAL, State.RAISED)
    assert str(path) in text and text.endswith("a restart will not know what changed.")
    assert kept.fed == [JournalLost()]
    kept.watch(BEGIN_ANEW_S - 1.0)
    assert len(kept.fed) == 1
    kept.watch(1.0)
    assert len(kept.fed) == 2

    path.rmdir()
    kept.journal.write(RECORD, JournalPart.BEGIN)
    kept.watch(2 * BEGIN_ANEW_S)
    assert len(kept.fed) == 2, "the new journal is on its way"
    kept.journal.write(RECORD, JournalPart.FINISH)
    kept.watch(2 * BEGIN_ANEW_S)
    kept.watch()
    assert [told[3] for told in kept.told] == [State.RAISED, State.CLEARED]
    assert kept.told[1][1] == f"{path} is written again."
    assert len(kept.fed) == 2 and kept.keeper.trouble is None


def test_what_is_written_is_synced_aside_and_a_fault_of_that_is_told(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def fails(_path: Path) -> None:
        kept.is_active = False
        tried.set()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(state_dir, "sync_file", fails)
    kept.journal.write(RECORD, JournalPart.APPEND)
    kept.keeper.start()
    assert not tried.is_set()
    kept.paused.set()
    assert tried.wait(10.0)
    kept.threads[0].wait()
    kept.watch()
    assert [(told[0], told[3]) for told in kept.told] == [("journal-unwritable", State.RAISED)]
    assert "Input/output error" in kept.told[0][1]
