"""The log in the store that controllers share: a key for each entry, fenced by the epoch; and replicas of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.cluster.engine import (
    OPERATIONS_BOUND,
    Committed,
    ConditionFailed,
    Delete,
    KeyChanges,
    KeyCondition,
    KeyPage,
    KeyValue,
    PutKey,
    ReadPage,
    Transaction,
    size_bytes,
)
from controller.cluster.versions import RECORDS, is_readable
from controller.log import SWITCH_ENTRIES, LogBatch, LogEntry, LogEntryKind, Row

ENTRIES_BOUND = OPERATIONS_BOUND - 1
"""Entries of a transaction: one more of its edits says whose turn it was."""

BUNDLE_BYTES = 256 << 10
"""Bytes of a transaction from which on another one is begun: a larger one takes the store too long for an answer."""

_KINDS = frozenset(LogEntryKind)


def record_text(row: Row, text: str, version: int = RECORDS) -> str:
    """Return the value of an entry's key: version, kind, the number of its write, and `text`, its own value."""
    said = f"{row.entry.kind} {row.revision} {text}"
    return said if version == 1 else f"{version} {said}"


def record_version(value: str) -> int:
    """Return the version of the record that a key of the journal holds."""
    first = value.partition(" ")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 1


def read_record(held: KeyValue, prefix: str) -> Row | None:
    """Return the entry that a key of the journal holds; None where it makes no sense, or is of an unknown version."""
    said, version = held.value, record_version(held.value)
    if not is_readable(version):
        return None
    if version > 1:
        said = said.partition(" ")[2]
    kind, _, rest = said.partition(" ")
    write, _, text = rest.partition(" ")
    if kind not in _KINDS or not (write.isascii() and write.isdigit() and len(write) < 20 and text):
        return None
    return Row(int(write), LogEntry(LogEntryKind(kind), held.key.removeprefix(prefix), text))


def commits(batch: LogBatch, prefix: str, fence: KeyCondition, version: int = RECORDS) -> Iterator[Transaction]:
    """Yield what puts a batch into the store, in its order, by records of a version; each may be done twice.

    A batch that is too much for one transaction is divided, and then is not taken whole: keys have values of their
    own, and who wrote hears that all is there when the last one is done.
    """
    edits: list[PutKey | Delete] = []
    size = 0
    for row in sorted(batch.rows.values(), key=lambda row: row.revision):
        key = f"{prefix}{row.entry.key}"
        text = row.entry.text
        edit = Delete(key) if text is None else PutKey(key, record_text(row, text, version))
        added = size_bytes(edit)
        if edits and (len(edits) == ENTRIES_BOUND or size + added > BUNDLE_BYTES):
            yield Transaction((fence,), tuple(edits), True)
            edits, size = [], 0
        edits.append(edit)
        size += added
    if edits:
        yield Transaction((fence,), tuple(edits), True)


def sweeps(page: KeyPage, prefix: str, below: int, fence: KeyCondition) -> Iterator[Transaction]:
    """Yield what removes the entries of a page that are of earlier writes than `below`, or make no sense."""
    old = []
    for held in page.held:
        row = read_record(held, prefix)
        if row is None or row.revision < below:
            old.append(Delete(held.key))
    for at in range(0, len(old), ENTRIES_BOUND):
        yield Transaction((fence,), tuple(old[at : at + ENTRIES_BOUND]), True)


class StoreEmptied(Exception):  # noqa: N818
    """The store has lost what it had: who leads is to write it anew."""


class Turns:
    """The order in which a log's transactions are done: each at most once, and none after a later one.

    A store may do what it was asked for long after the one who asked gave up waiting and asked anew. So each
    transaction has as a condition that the one before it was the last one, as far as that is known, and says of
    itself that it is the last one then. `fence` is what it has as a condition otherwise.
    """

    def __init__(self, key: str, fence: KeyCondition) -> None:
        self._key = key
        self._fence = fence
        self._revision = 0
        self._number = 0

    def begin(self) -> None:
        """Take it that what is asked for next is another transaction than before."""
        self._number += 1

    def in_turn(self, transaction: Transaction) -> Transaction:
        """Return a transaction as it may be asked for now, again and again."""
        conditions = (*transaction.conditions, KeyCondition(self._key, self._revision))
        return transaction._replace(conditions=conditions, edits=(*transaction.edits, PutKey(self._key, self._name)))

    def done(self, reply: Committed) -> None:
        """Take it that the transaction was done."""
        self._revision = reply.revision

    def refused(self, reply: ConditionFailed) -> bool | None:
        """Return what a refusal says: True where the transaction was done before, False where it may be asked for
        anew, in its turn, and None where another one leads. StoreEmptied where the store knows of no epoch any more.
        """
        held = {each.key: each for each in reply.held}
        epoch, last = held.get(self._fence.key), held.get(self._key)
        if epoch is None:
            raise StoreEmptied
        if (epoch.revision, epoch.value) != (self._fence.revision, self._fence.value):
            return None
        self._revision = 0 if last is None else last.revision
        return last is not None and last.value == self._name

    @property
    def _name(self) -> str:
        return f"{self._fence.revision}.{self._number}"


class Replica:
    """The journal as another member has it: read in pages, as of one revision, and followed from there on.

    What it returns are entries to be taken in, in the order in which they were written, those with None where a key
    is no more.

    Attributes
    ----------
    revision
        As of when it is, in revisions of the store; 0 before it was read.
    write
        The number of the last write.
    faulty
        How many values made no sense.
    unknown_version
        Of a record that this program cannot read, since it was read as a whole; None where there is none.
    """

    def __init__(self, prefix: str) -> None:
        self.revision = 0
        self.write = 0
        self.faulty = 0
        self.unknown_version: int | None = None
        self._prefix = prefix
        self._keys: set[str] = set()
        self._pages: list[Row] = []

    def begin(self, revision: int = 0) -> ReadPage:
        """Return the first request of a reading, also of one anew, when a watch was behind or has ended.

        `revision` is the one that is read as of; 0 stands for the present.
        """
        self._pages = []
        self.unknown_version = None
        return ReadPage(self._prefix, revision=revision)

    def read(self, page: KeyPage) -> ReadPage | tuple[LogEntry, ...]:
        """Take a page; return the next request, or when that was the last one the entries that are news."""
        self._pages += self._rows(page.held)
        if page.has_more:
            return ReadPage(self._prefix, page.held[-1].key, page.revision)
        rows, self._pages = sorted(self._pages, key=lambda row: (row.revision, row.entry.key)), []
        former, self._keys = self._keys, {row.entry.key for row in rows}
        self.revision = page.revision
        gone = (LogEntry(LogEntryKind.OBSERVATION, key, None) for key in sorted(former - self._keys))
        return (*gone, *(row.entry for row in rows))

    def has_switch(self, dpid: int) -> bool:
        """Tell whether a switch has an entry; on any thread."""
        return f"{SWITCH_ENTRIES}{dpid}" in self._keys

    def switches(self) -> frozenset[int]:
        """Return the switches that have an entry; on any thread."""
        found = (key.removeprefix(SWITCH_ENTRIES) for key in tuple(self._keys) if key.startswith(SWITCH_ENTRIES))
        return frozenset(int(dpid) for dpid in found if dpid.isdecimal())

    def follow(self, changes: KeyChanges) -> tuple[LogEntry, ...]:
        """Take what a watch from `revision` on told of its keys, and perhaps of others."""
        entries: list[LogEntry] = []
        for change in changes.changes:
            if not change.key.startswith(self._prefix):
                continue
            key = change.key.removeprefix(self._prefix)
            if change.value is None:
                self._keys.discard(key)
                entries.append(LogEntry(LogEntryKind.OBSERVATION, key, None))
            else:
                for row in self._rows((KeyValue(change.key, change.value, change.revision),)):
                    self._keys.add(key)
                    entries.append(row.entry)
        self.revision = changes.revision
        return tuple(entries)

    def _rows(self, held: Iterable[KeyValue]) -> list[Row]:
        rows: list[Row] = []
        for each in held:
            row = read_record(each, self._prefix)
            if row is not None:
                rows.append(row)
                self.write = max(self.write, row.revision)
                continue
            self.faulty += 1
            version = record_version(each.value)
            if not is_readable(version):
                self.unknown_version = version
        return rows
