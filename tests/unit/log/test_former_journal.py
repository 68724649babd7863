"""The journal of a version before: read once, put aside when the log has it, and never lost."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from apps.former_journal import FormerJournal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def former(path: Path) -> FormerJournal:
    return FormerJournal(path, logging.getLogger("former"))


def test_where_there_is_none_nothing_is_taken_or_put_aside(path: Path) -> None:
    assert former(path).take() is None
    assert former(path).put_aside() is None


def test_records_are_taken_and_the_file_is_put_aside_once(path: Path) -> None:
    path.write_text('{"kind":"routers"}\n{"kind":"group"}\n')
    path.with_suffix(".new").write_text("a renewal that a crash interrupted")
    journal = former(path)
    assert journal.take() == ({"kind": "routers"}, {"kind": "group"})
    assert path.exists()
    assert journal.put_aside() == path.with_name("journal.jsonl.taken-over")
    assert not path.exists() and not path.with_suffix(".new").exists()
    path.write_text("{}\n")
    assert journal.put_aside() is None and path.exists(), "written by somebody since"


def test_torn_and_odd_lines_are_told_with_their_place(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('{"n":1}\nodd\n[1]\n\n{"n":2}\n{"n":')
    with caplog.at_level(logging.WARNING):
        assert former(path).take() == ({"n": 1}, {}, {"n": 2})
    assert [message.partition(":")[2] for message in caplog.messages] == [
        "2 is no JSON and is left out.",
        "6 was torn and is left out.",
    ]


def test_one_that_cannot_be_read_stays_where_it_is(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.mkdir()
    journal = former(path)
    assert journal.take() is None and journal.put_aside() is None
    assert path.is_dir() and "cannot be read" in caplog.text
