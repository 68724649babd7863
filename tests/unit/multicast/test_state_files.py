"""The journal's and the audit log's files."""

from __future__ import annotations

import json
import logging

import pytest

from apps import state_dir
from apps.state_dir import AuditLog, JournalFile
from controller.admission import Decision, Host, Role
from controller.multicast.effects import Audit, JournalPart

LOGGER = logging.getLogger("state")
AUDIT = Audit(Decision(True, "rule", "why"), Host(bytes(6), bytes(4), 1, 2), b"\xef\x01\x01\x01", Role.SENDER, None)


def test_what_operators_ask_for_is_in_the_audit_log_at_once(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl", LOGGER)
    log.add(AUDIT)
    log.add_action("switch-drain", {"dpid": 1}, "me", None)
    log.add_action("switch-drain", {"dpid": "<b>\n"}, None, "dpid: no number")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    assert lines[0]["verdict"] == "allow"
    assert lines[1] == {
        **{"time": lines[1]["time"], "action": "switch-drain", "asked": {"dpid": 1}},
        **{"by": "me", "verdict": "done", "reason": None},
    }
    assert (lines[2]["asked"], lines[2]["verdict"]) == ({"dpid": "<b>\n"}, "refused")


@pytest.fixture
def journal(tmp_path):
    return JournalFile(tmp_path / "journal.jsonl", LOGGER)


def numbers(journal):
    return [record["n"] for record in journal.read()]


def write(journal, part, *values):
    journal.write([{"n": value} for value in values], part)


def test_records_are_appended(journal):
    assert journal.read() == ()
    write(journal, JournalPart.APPEND, 1, 2)
    write(journal, JournalPart.APPEND, 3)
    assert numbers(journal) == [1, 2, 3]


def test_a_new_journal_takes_the_place_of_the_old_one_when_it_is_whole(journal):
    write(journal, JournalPart.APPEND, 1, 2, 3)
    write(journal, JournalPart.BEGIN, 10)
    assert numbers(journal) == [1, 2, 3]
    write(journal, JournalPart.APPEND, 4)
    write(journal, JournalPart.CONTINUE, 11)
    assert numbers(journal) == [1, 2, 3, 4]
    write(journal, JournalPart.FINISH, 12)
    assert numbers(journal) == [10, 4, 11, 12]
    write(journal, JournalPart.APPEND, 5)
    assert numbers(journal) == [10, 4, 11, 12, 5]


def test_a_renewal_that_was_interrupted_is_begun_again(tmp_path, journal):
    write(journal, JournalPart.APPEND, 1)
    write(journal, JournalPart.BEGIN, 10)
    again = JournalFile(tmp_path / "journal.jsonl", LOGGER)
    assert numbers(again) == [1]
    write(again, JournalPart.CONTINUE, 99)
    write(again, JournalPart.FINISH, 99)
    assert numbers(again) == [1]
    write(again, JournalPart.BEGIN, 2)
    write(again, JournalPart.FINISH, 3)
    assert numbers(again) == [2, 3]


def test_torn_lines_are_left_out(tmp_path, journal):
    write(journal, JournalPart.APPEND, 1, 2)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-4])
    again = JournalFile(path, LOGGER)
    assert numbers(again) == [1]
    write(again, JournalPart.APPEND, 3)
    assert numbers(again)[-1] == 3, "what follows is not torn along"


def test_a_journal_that_cannot_be_written_is_told_once(tmp_path, caplog):
    journal = JournalFile(tmp_path / "absent" / "journal.jsonl", LOGGER)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            write(journal, JournalPart.APPEND, 1)
            write(journal, JournalPart.BEGIN, 1)
    assert len(caplog.records) == 1


def test_decisions_are_lines_of_a_file_that_is_turned_over(tmp_path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, LOGGER)
    log.add(AUDIT)
    assert not path.exists()
    log.flush()
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["rule"] == "rule"
    monkeypatch.setattr(state_dir, "AUDIT_BYTES", 10)
    log.add(AUDIT)
    log.flush()
    assert len(path.read_text().splitlines()) == 1
    assert len((tmp_path / "audit.1.jsonl").read_text().splitlines()) == 1
