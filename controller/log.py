"""The log: what a controller that takes over must know, as the last value of each key.

Decisions are what controllers must agree on: what operators set, and choices that another one might make otherwise,
such as a tree that was chosen by the loads of a moment. Observations are what a controller has heard or found, which
another one would come to know by itself, only later. Both are kept; `LogEntryKind` tells them apart.

`Log` is the port: a store on the disk, one in memory (`MemoryLog`), later one that several controllers share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

WAITING_BOUND = 65536
"""Keys that wait to be committed, while a store takes nothing; beyond them all are dropped, and the log is lost."""

SWITCH_ENTRIES = "switch/"
"""What the keys of entries begin with that say which ports a switch has; its number follows."""


class LogEntryKind(StrEnum):
    """What an entry is."""

    DECISION = "decision"
    OBSERVATION = "observation"


_text_of = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class LogEntry(NamedTuple):
    """The value of a key, an object as JSON has it; None where there is none any more.

    The part of the key before the first slash says what it is about. A value is text from where it is made to where
    it is read, so that a store makes nothing of it.
    """

    kind: LogEntryKind
    key: str
    text: str | None

    @classmethod
    def of_record(cls, kind: LogEntryKind, key: str, value: Mapping[str, Any] | None) -> LogEntry:
        """Return the entry with a JSON-able value."""
        return cls(kind, key, None if value is None else _text_of(value))

    def as_record(self) -> dict[str, Any]:
        """Return what stands for the entry in a recording: its value rather than text."""
        return {"kind": self.kind, "key": self.key, "value": self.value}

    @property
    def value(self) -> Mapping[str, Any] | None:
        """The value; an empty one, of which nobody can make anything, where the text is no JSON object."""
        if self.text is None:
            return None
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def subject(self) -> str:
        """What the entry is about."""
        return self.key.partition("/")[0]


class LogPart(StrEnum):
    """What a write is to the log."""

    CHANGE = "change"
    """New values of some keys."""
    BEGIN = "begin"
    """Likewise, and from here on every key that there is gets written anew, since writes were lost."""
    END = "end"
    """Likewise, and that was the last one: what was not written since `BEGIN` is no more."""


class WriteLog(NamedTuple):
    """Have the log take in entries; as an effect of a core."""

    entries: tuple[LogEntry, ...]
    part: LogPart = LogPart.CHANGE


class Log(Protocol):
    """What keeps entries; it is used on one loop, and never has that wait."""

    def read(self) -> tuple[LogEntry, ...]:
        """Return the last entry of each key, in the order in which they were written; before the first write."""

    def write(self, write: WriteLog) -> None:
        """Take in entries, to be committed soon: all of a write or nothing."""

    def acknowledge(self, then: Callable[[bool], None]) -> None:
        """Call `then` on the loop: with True as soon as all that was written so far outlasts a crash, with False
        when that was tried and cannot be had now."""


class Row(NamedTuple):
    """An entry, and the number of the write that it is of."""

    revision: int
    entry: LogEntry


class LogBatch(NamedTuple):
    """What is to be committed at once: the last entry of each key, then the end of older ones.

    `sweep_below`: entries of earlier writes than this one are removed (None: no others than `rows` say).
    """

    rows: Mapping[str, Row]
    sweep_below: int | None


class Waiting:
    """Writes that wait for a store, of each key the last one, in bounds.

    Attributes
    ----------
    revision
        The number of the last write.
    is_lost
        Whether writes were dropped: the log is complete again when it was written anew, from `BEGIN` to `END`.
    is_renewed
        Whether it is being written anew.
    """

    def __init__(self, revision: int = 0, bound: int = WAITING_BOUND) -> None:
        self.revision = revision
        self.is_lost = False
        self.is_renewed = False
        self._bound = bound
        self._rows: dict[str, Row] = {}
        self._begun_at: int | None = None
        self._sweep_below: int | None = None

    def __bool__(self) -> bool:
        return bool(self._rows) or self._sweep_below is not None

    def keys(self) -> Iterable[str]:
        """Return the keys that wait."""
        return self._rows.keys()

    def take(self, write: WriteLog) -> None:
        """Take in a write; what is too much is lost with all that waits."""
        self.revision += 1
        if write.part is LogPart.BEGIN:
            self._begun_at, self._sweep_below, self.is_renewed = self.revision, None, True
        for entry in write.entries:
            self._rows.pop(entry.key, None)
            self._rows[entry.key] = Row(self.revision, entry)
        if write.part is LogPart.END and self._begun_at is not None:
            self._sweep_below, self._begun_at = self._begun_at, None
        if len(self._rows) > self._bound:
            self.lose()

    def lose(self) -> None:
        """Drop all that waits, since it is too much or the store has lost what it had."""
        self._rows = {}
        self._begun_at = self._sweep_below = None
        self.is_lost, self.is_renewed = True, False

    def batch(self) -> LogBatch:
        """Return all that waits, which waits no more: it is committed, or comes back by `failed`."""
        batch = LogBatch(self._rows, self._sweep_below)
        self._rows, self._sweep_below = {}, None
        return batch

    def committed(self, batch: LogBatch) -> None:
        """Take note that a batch was committed."""
        if batch.sweep_below is not None and self._begun_at is None and self._sweep_below is None and self.is_renewed:
            self.is_lost = self.is_renewed = False

    def failed(self, batch: LogBatch) -> None:
        """Have a batch wait again, but for what was written anew since."""
        if self.is_lost and not self.is_renewed:
            return  # its end would be that of a log which is not complete
        self._rows = {**{key: row for key, row in batch.rows.items() if key not in self._rows}, **self._rows}
        if self._sweep_below is None and self._begun_at is None:
            self._sweep_below = batch.sweep_below
        if len(self._rows) > self._bound:
            self.lose()


class MemoryLog:
    """A log in memory, for tests and simulations; every write is committed at once unless there is a `fault`.

    Parameters
    ----------
    entries
        What it holds at first.

    Attributes
    ----------
    fault
        Why nothing can be committed, None where all is well.
    waiting
        What waits to be committed.
    """

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self.fault: str | None = None
        self.waiting = Waiting()
        self._rows: dict[str, Row] = {entry.key: Row(0, entry) for entry in entries}

    def read(self) -> tuple[LogEntry, ...]:
        """Return the last entry of each key, in the order in which they were written."""
        return tuple(row.entry for row in sorted(self._rows.values(), key=lambda row: row.revision))

    def write(self, write: WriteLog) -> None:
        """Take in entries."""
        self.waiting.take(write)
        self.commit()

    def acknowledge(self, then: Callable[[bool], None]) -> None:
        """Call `then` at once."""
        self.commit()
        then(self.fault is None)

    def commit(self) -> None:
        """Commit what waits, unless there is a fault."""
        if self.fault is not None:
            return
        batch = self.waiting.batch()
        for key, row in batch.rows.items():
            self._rows.pop(key, None)
            if row.entry.text is not None:
                self._rows[key] = row
        if batch.sweep_below is not None:
            self._rows = {key: row for key, row in self._rows.items() if row.revision >= batch.sweep_below}
        self.waiting.committed(batch)
