"""The journal's and the audit log's files."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps import state_dir
from apps.state_dir import ActionLog, AuditLog, JournalFile
from controller.admission import Decision, Host, Role, repeats
from controller.admission.repeats import KINDS_PER_PORT, Refusal, Repeats
from controller.effects import JournalPart
from controller.multicast.effects import Audit

LOGGER = logging.getLogger("state")
AUDIT = Audit(Decision(True, "rule", "why"), Host(bytes(6), bytes(4), 1, 2), b"\xef\x01\x01\x01", Role.SENDER, None)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_operators_ask_for_is_in_a_log_of_its_own_at_once(tmp_path):
    log = ActionLog(tmp_path / "actions.jsonl", LOGGER)
    log.add("switch-drain", {"dpid": 1}, "me", None)
    log.add("switch-drain", {"dpid": "<b>\n"}, None, "dpid: no number")
    lines = lines_of(tmp_path / "actions.jsonl")
    assert len(lines) == 2
    assert lines[0] == {
        **{"time": lines[0]["time"], "action": "switch-drain", "asked": {"dpid": 1}},
        **{"by": "me", "verdict": "done", "reason": None},
    }
    assert (lines[1]["asked"], lines[1]["verdict"]) == ({"dpid": "<b>\n"}, "refused")


def refusal(group=1, host=1, port_no=2, rule="no", role=Role.RECEIVER):
    who = Host(bytes(5) + bytes((host,)), bytes((10, 0, 0, host)), 1, port_no)
    return Audit(Decision(False, rule, "why"), who, bytes((239, 9, group >> 8, group & 255)), role, None)


def test_a_flood_of_refusals_is_a_bounded_number_of_lines_and_leaves_actions_readable(tmp_path, monkeypatch):
    monkeypatch.setattr(state_dir, "AUDIT_BYTES", 4096)
    actions = ActionLog(tmp_path / "actions.jsonl", LOGGER)
    audit = AuditLog(tmp_path / "audit.jsonl", LOGGER)
    actions.add("switch-drain", {"dpid": 1}, "me", None)
    for number in range(50_000):
        audit.add(refusal(group=number))
    audit.close()
    (line,) = lines_of(tmp_path / "actions.jsonl")
    assert line["by"] == "me"
    lines = lines_of(tmp_path / "audit.jsonl")
    assert len(lines) == KINDS_PER_PORT + 1
    assert sum(line.get("count", 1) for line in lines) == 50_000
    assert lines[-1]["host"] == {"mac": None, "ip": None, "dpid": 1, "port_no": 2}
    assert (lines[-1]["group"], lines[-1]["rule"], lines[-1]["role"]) == (None, "no", "receiver")


def test_repeated_refusals_are_one_line_with_their_number(tmp_path):
    path = tmp_path / "audit.jsonl"
    audit = AuditLog(path, LOGGER)
    for _ in range(5):
        audit.add(refusal())
        audit.add(refusal(host=2))
    audit.add(AUDIT)
    audit.add(AUDIT)
    audit.flush()
    assert [line["verdict"] for line in lines_of(path)] == ["deny", "deny", "allow", "allow"]
    audit.close()
    summed = lines_of(path)[4:]
    assert [(line["host"]["ip"], line["count"]) for line in summed] == [("10.0.0.1", 4), ("10.0.0.2", 4)]
    assert all(line["group"] == "239.9.0.1" and line["since"] <= line["time"] for line in summed)
    audit.add(refusal())
    audit.close()
    assert "count" not in lines_of(path)[-1], "a new interval has its own first line"
    assert len(lines_of(path)) == 7


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 3), st.integers(1, 300), st.sampled_from("ab"))),
    st.integers(1, 20),
    st.integers(1, 4),
)
def test_no_refusal_is_lost_and_lines_are_bounded(asked, kinds, places):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "KINDS_BOUND", kinds)
        patch.setattr(repeats, "PLACES_BOUND", places)
        table = Repeats()
        news = sum(table.is_news(Refusal(*refusal(*words)), 1.0) for words in asked)
        assert list(table.due(10.9)) == []
        summed = list(table.due(11.0))
        assert news + sum(repeated.number for repeated in summed) == len(asked)
        assert news <= kinds
        assert len(summed) <= kinds + places + 2
        assert list(table.end()) == []


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


def test_lines_nested_beyond_all_reason_are_left_out(tmp_path, journal):
    write(journal, JournalPart.APPEND, 1)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b"[" * 60000 + b"\n" + b"[" * 60000)
    assert numbers(JournalFile(path, LOGGER)) == [1]


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


def test_a_crash_at_any_byte_tears_one_record_at_most(tmp_path, journal):
    path = tmp_path / "journal.jsonl"
    for number in range(4):
        write(journal, JournalPart.APPEND, number, 1000 + number)
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    expected = [0, 1000, 1, 1001, 2, 1002, 3, 1003]
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        again = JournalFile(path, LOGGER)
        # A record that lacks its line end alone is whole.
        whole = expected[: sum(end - 1 <= cut for end in ends)]
        assert numbers(again) == whole
        torn = bool(cut) and cut not in ends and cut + 1 not in ends
        assert again.torn_count == torn
        write(again, JournalPart.APPEND, 7)
        assert path.read_bytes().count(b"\n") == len(whole) + 1
        assert numbers(JournalFile(path, LOGGER)) == [*whole, 7]


def test_a_crash_at_any_byte_tears_one_line_of_the_log_of_actions_at_most(tmp_path):
    path = tmp_path / "actions.jsonl"
    ActionLog(path, LOGGER).add("switch-drain", {"dpid": 1}, "me", None)
    content = path.read_bytes()
    for cut in range(len(content)):
        path.write_bytes(content + content[:cut])
        ActionLog(path, LOGGER).add("switch-undrain", {"dpid": 1}, "me", None)
        lines = path.read_text().splitlines()
        assert json.loads(lines[0])["action"] == "switch-drain"
        assert json.loads(lines[-1])["action"] == "switch-undrain"


def test_lines_wait_for_room(tmp_path, caplog):
    log = ActionLog(tmp_path / "absent" / "actions.jsonl", LOGGER)
    with caplog.at_level(logging.WARNING):
        for _ in range(state_dir.AUDIT_BUFFERED_LINES + 5):
            log.add("switch-drain", {"dpid": 1}, None, None)
        assert log.fault == f"{tmp_path / 'absent' / 'actions.jsonl'} cannot be written (No such file or directory)."
        (tmp_path / "absent").mkdir()
        log.flush()
    assert log.fault is None
    assert len((tmp_path / "absent" / "actions.jsonl").read_text().splitlines()) == state_dir.AUDIT_BUFFERED_LINES
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "5 lines are lost" in caplog.text
