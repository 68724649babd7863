"""Records are written so that each member reads them, also one that is away for as long as a restart takes."""

from __future__ import annotations

import pytest

from controller.cluster.engine import KeyValue
from controller.cluster.journal import read_record, record_text, record_version
from controller.cluster.keys import Present, read_present
from controller.cluster.versions import RAISE_S, RECORDS, VersionWritten, is_readable
from controller.log import LogEntry, LogEntryKind, Row

ROW = Row(7, LogEntry(LogEntryKind.DECISION, "drain/1", '{"dpid":1}'))


def test_a_later_version_is_written_when_all_have_read_it_for_a_while():
    written = VersionWritten()
    assert written.version == RECORDS - 1
    assert not written.look(RECORDS, 100.0)
    assert not written.look(RECORDS, 100.0 + RAISE_S - 0.1)
    assert written.version == RECORDS - 1
    assert not written.look(RECORDS, 100.0 + RAISE_S)
    assert written.version == RECORDS


def test_one_of_before_that_comes_back_in_time_has_it_wait_anew():
    written = VersionWritten()
    written.look(RECORDS, 0.0)
    assert not written.look(RECORDS - 1, RAISE_S - 1.0)
    written.look(RECORDS, RAISE_S)
    written.look(RECORDS, 2 * RAISE_S - 1.0)
    assert written.version == RECORDS - 1


def test_a_lower_version_counts_at_once_and_says_that_all_is_to_be_written_anew():
    written = VersionWritten()
    written.look(RECORDS, 0.0)
    written.look(RECORDS + 5, RAISE_S)
    assert written.version == RECORDS
    assert written.look(1, RAISE_S)
    assert written.version == RECORDS - 1
    assert not written.look(1, RAISE_S)


def test_records_say_their_version_and_those_of_the_first_say_none():
    assert record_text(ROW, '{"dpid":1}', 1) == 'decision 7 {"dpid":1}'
    for version in range(RECORDS - 1, RECORDS + 1):
        text = record_text(ROW, '{"dpid":1}', version)
        assert record_version(text) == version
        assert is_readable(version)
        assert read_record(KeyValue("/j/drain/1", text, 3), "/j/") == ROW
    for version in (RECORDS - 2, RECORDS + 1):
        assert not is_readable(version)
    assert read_record(KeyValue("/j/drain/1", record_text(ROW, "{}", RECORDS + 1), 3), "/j/") is None


def test_a_member_that_says_no_version_is_of_the_first():
    assert read_present('{"member":"c1","incarnation":"a","peer":"","switches":2}') == Present("c1", "a", "", 2, 1)
    assert read_present(Present("c1", "a", "", 2, 2).text()) == Present("c1", "a", "", 2, 2)


def test_a_member_says_which_switches_it_is_connected_to():
    this = Present("c1", "a", "", 2, dpids=frozenset({7, (1 << 64) - 1}))
    assert read_present(this.text()) == this
    assert read_present('{"member":"c1","incarnation":"a","peer":"","switches":2}').dpids == frozenset()


@pytest.mark.parametrize("dpids", ['"12"', "[[1]]", "5", "[1.5]", "[true]"])
def test_a_member_whose_switches_make_no_sense_makes_none(dpids: str):
    assert read_present(f'{{"member":"c1","incarnation":"a","peer":"","switches":2,"dpids":{dpids}}}') is None
    assert read_present('{"member":"c1","incarnation":"a","peer":"","switches":2,"records":"x"}') is None
