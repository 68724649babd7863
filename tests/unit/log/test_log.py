"""The log, in memory and on the disk: the last value of each key, all of a write or nothing, complete when lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.log_database import LogDatabase
from controller.log import Log, LogEntry, LogEntryKind, LogPart, MemoryLog, Waiting, WriteLog

LOGGER = logging.getLogger("log")


class DiskLog:
    """The port over a database, every write committed at once unless there is a `fault`."""

    def __init__(self, path: Path) -> None:
        self.fault: str | None = None
        self.database = LogDatabase(path, LOGGER)
        revision, _ = self.database.read()
        self.waiting = Waiting(revision)

    def read(self) -> tuple[LogEntry, ...]:
        return self.database.read()[1]

    def write(self, write: WriteLog) -> None:
        self.waiting.take(write)
        self.commit()

    def acknowledge(self, then: Callable[[bool], None]) -> None:
        self.commit()
        then(self.fault is None)

    def commit(self) -> None:
        if self.fault is None:
            batch = self.waiting.batch()
            assert self.database.commit(batch)
            self.waiting.committed(batch)


def entry(key: str, number: int | None = 0, kind: LogEntryKind = LogEntryKind.DECISION) -> LogEntry:
    return LogEntry.of_record(kind, key, None if number is None else {"n": number})


def write(log: Log, *entries: LogEntry, part: LogPart = LogPart.CHANGE) -> None:
    log.write(WriteLog(entries, part))


def numbers(log: Log) -> list[tuple[str, int]]:
    return [(entry.key, entry.value["n"]) for entry in log.read() if entry.value is not None]


@pytest.fixture(params=["memory", "disk"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryLog | DiskLog:
    return MemoryLog() if request.param == "memory" else DiskLog(tmp_path / "log.sqlite")


def test_the_last_value_of_each_key_is_read_in_the_order_of_the_writes(log: Log) -> None:
    assert log.read() == ()
    write(log, entry("tree/a", 1), entry("drain/1", 2))
    write(log, entry("heard/a/1", 3, LogEntryKind.OBSERVATION))
    write(log, entry("tree/a", 4))
    write(log, entry("drain/1", None))
    assert numbers(log) == [("heard/a/1", 3), ("tree/a", 4)]
    assert [entry.kind for entry in log.read()] == [LogEntryKind.OBSERVATION, LogEntryKind.DECISION]
    assert [entry.subject for entry in log.read()] == ["heard", "tree"]


def test_what_is_not_written_anew_ends_with_the_renewal_and_not_before(log: Log) -> None:
    write(log, entry("a", 1), entry("b", 1), entry("c", 1))
    write(log, entry("a", 2), part=LogPart.BEGIN)
    write(log, entry("d", 2))
    assert {key for key, _ in numbers(log)} == {"a", "b", "c", "d"}
    write(log, entry("b", 2), part=LogPart.END)
    assert sorted(numbers(log)) == [("a", 2), ("b", 2), ("d", 2)]
    write(log, part=LogPart.END)
    assert len(numbers(log)) == 3, "an end without a beginning ends nothing"


def test_an_acknowledgement_says_whether_the_writes_before_it_last(log: MemoryLog | DiskLog) -> None:
    told: list[bool] = []
    write(log, entry("a", 1))
    log.acknowledge(told.append)
    log.fault = "no room"
    write(log, entry("a", 2), entry("b", 2))
    log.acknowledge(told.append)
    assert told == [True, False] and numbers(log) == [("a", 1)]
    log.fault = None
    log.acknowledge(told.append)
    assert told[2] and sorted(numbers(log)) == [("a", 2), ("b", 2)]


KEYS = st.sampled_from("abcdefgh")
WRITES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.none() | st.integers(0, 99)), max_size=4),
        st.sampled_from([LogPart.CHANGE] * 4 + [LogPart.BEGIN, LogPart.END]),
        st.sampled_from(["commit", "commit", "fail", "wait"]),
    ),
    max_size=40,
)


class Store:
    """A store whose commits end later, or fail; and what it ought to hold."""

    def __init__(self, bound: int) -> None:
        self.waiting = Waiting(bound=bound)
        self.held = MemoryLog()

    def commit(self, *, fails: bool) -> None:
        batch = self.waiting.batch()
        if fails:
            self.waiting.failed(batch)
            return
        mirror = self.held.waiting
        mirror.batch = lambda: batch  # type: ignore[method-assign]
        self.held.commit()
        self.waiting.committed(batch)


@given(WRITES)
def test_whatever_fails_in_between_the_last_values_are_there_in_the_end(writes: list) -> None:
    store, expected = Store(bound=1000), MemoryLog()
    for entries, part, outcome in writes:
        made = WriteLog(tuple(entry(key, number) for key, number in entries), part)
        store.waiting.take(made)
        expected.write(made)
        if outcome != "wait":
            store.commit(fails=outcome == "fail")
    store.commit(fails=False)
    assert sorted(numbers(store.held)) == sorted(numbers(expected))
    assert not store.waiting and not store.waiting.is_lost


@given(WRITES, st.integers(1, 6))
def test_a_log_that_lost_writes_says_so_until_it_was_written_anew(writes: list, bound: int) -> None:
    store, present = Store(bound), {}
    for entries, part, outcome in writes:
        store.waiting.take(WriteLog(tuple(entry(key, number) for key, number in entries), part))
        present.update(entries)
        assert len(set(store.waiting.keys())) <= bound
        if outcome != "wait":
            store.commit(fails=outcome == "fail")
    if not store.waiting.is_lost:
        return
    store.waiting.lose()
    there = {key: number for key, number in present.items() if number is not None}
    store.waiting.take(WriteLog((), LogPart.BEGIN))
    for key, number in there.items():
        assert store.waiting.is_lost and store.waiting.is_renewed
        store.waiting.take(WriteLog((entry(key, number),)))
        store.commit(fails=False)
    store.waiting.take(WriteLog((), LogPart.END))
    assert store.waiting.is_lost
    store.commit(fails=False)
    assert not store.waiting.is_lost and not store.waiting.is_renewed
    assert dict(numbers(store.held)) == there


def test_the_end_of_a_renewal_that_was_overtaken_ends_nothing() -> None:
    waiting = Waiting(bound=2)
    waiting.take(WriteLog((entry("a"),), LogPart.BEGIN))
    waiting.take(WriteLog((), LogPart.END))
    batch = waiting.batch()
    waiting.take(WriteLog((entry("b"), entry("c"), entry("d"))))
    waiting.committed(batch)
    assert waiting.is_lost and not waiting.is_renewed and not waiting
