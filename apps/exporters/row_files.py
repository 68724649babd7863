"""Rows to files by hour or day, by a thread of its own.

A batch of rows waits in a bounded backlog, is appended to the journal of its hour or day and then counts as
acknowledged: it is read back after a kill of this process. Journals become Parquet (or CSV) parts piece by piece,
between appends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from apps.exporters.backlog import Backlog
from apps.exporters.fault import OutputFault
from apps.exporters.journal import SUFFIX, LockedJournal
from apps.exporters.parts import (
    CSV,
    HOUR_S,
    PARQUET,
    FilePeriod,
    finish,
    list_parts,
    next_path,
    remove_old,
    size_bytes,
)
from apps.exporters.rows import Rows, record_batch, split_by_period
from apps.exporters.schema import PERIOD_HOURS, SCHEMAS, RecordKind
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import SinkState
from apps.line_files import make_directory

FLUSH_S = 1.0
RETRY_S = 0.5
ENOUGH_ROWS = 16384
PERIODS_AGED_AT_ONCE = 2
CLOSE_TIMEOUT_S = 30.0


class _Open(NamedTuple):
    """A journal that is written to."""

    journal: LockedJournal
    opened_s: float


class RowFiles:
    """Keeps rows of `kinds` in `directory`; what a disk does to it is counted and shown, never raised.

    Where there is too much of all, the first of the groups of `kinds` go first. `what` names it in the log.
    `synchronised` rows count as acknowledged only when they are on the disk itself.
    """

    def __init__(
        self,
        directory: Path,
        kinds: Sequence[Collection[RecordKind]],
        settings: HistorySettings,
        logger: logging.Logger,
        *,
        what: str = "history",
        synchronised: bool = False,
    ) -> None:
        self.acknowledged_rows = 0
        self.faults = (
            OutputFault(f"{what} in {directory}", logger),
            OutputFault(f"finished {what} in {directory}", logger),
        )
        self._what = what
        self._synchronised = synchronised
        self._formats = (PARQUET, CSV) if settings.csv else (PARQUET,)
        self._settings = settings
        self._logger = logger
        self._directories = {kind: directory / kind for group in kinds for kind in group}
        self._groups = [[directory / kind for kind in group] for group in kinds]
        self._backlog: Backlog[Rows] = Backlog(settings.backlog_rows, ENOUGH_ROWS)
        self._open: dict[tuple[RecordKind, FilePeriod], _Open] = {}
        self._unfinished: list[tuple[LockedJournal, FilePeriod]] = []
        self._work: Iterator[None] | None = None
        self._retry_at_s = 0.0
        self._aged: FilePeriod | None = None
        self._closing = threading.Event()
        self._flushes = threading.Condition()
        self._flush_wanted = self._flush_done = 0
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)
        self._thread.start()

    @property
    def waiting_rows(self) -> int:
        """Rows that are not acknowledged yet."""
        return self._backlog.weight

    def put(self, rows: Rows) -> None:
        """Take rows; their arrays must not change afterwards. Never waits for the disk."""
        if len(rows):
            self._backlog.put(rows, len(rows))

    def state(self) -> SinkState:
        """Return how the files fare."""
        return SinkState(
            faults=tuple(fault.text for fault in self.faults if fault.text is not None),
            failures=sum(fault.failures for fault in self.faults),
            totals={
                "acknowledged": self.acknowledged_rows,
                "dropped": self._backlog.dropped,
            },
            fill=self._backlog.fill,
        )

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until all that was written before is in journals; tell whether it is."""
        with self._flushes:
            self._flush_wanted = wanted = self._flush_wanted + 1
            self._backlog.hurry()
            done = self._flushes.wait_for(lambda: self._flush_done >= wanted, timeout_s)
        return done and self.faults[0].text is None

    def close(self) -> None:
        """Write what is left, finish the parts, and end the thread."""
        self._closing.set()
        self._backlog.hurry()
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._backlog.weight:
            self._logger.error("%s ends, and %d rows could not be written.", self._what, self._backlog.weight)

    def _run(self) -> None:
        self._adopt_journals()
        while not self._closing.is_set():
            with self._flushes:
                wanted = self._flush_wanted
            busy = self._work is not None or wanted > self._flush_done
            self._append(self._backlog.take(0.0 if busy else FLUSH_S))
            with self._flushes:
                self._flush_done = wanted
                self._flushes.notify_all()
            self._advance()
            if self.faults[0].text is not None:
                self._closing.wait(RETRY_S)
        self._append(self._backlog.take(0.0))
        for key in list(self._open):
            self._end(key)
        self._retry_at_s = 0.0
        while self._advance():
            pass

    def _adopt_journals(self) -> None:
        for directory in self._directories.values():
            with suppress(OSError):
                for part in list_parts(directory):
                    if part.path.suffix == SUFFIX and (journal := LockedJournal.adopt(part.path)) is not None:
                        self._unfinished.append((journal, part.period))

    def _append(self, items: list[tuple[Rows, int]]) -> None:
        groups: dict[tuple[RecordKind, FilePeriod], list[Rows]] = {}
        for rows, weight in items:
            try:
                for period, part in split_by_period(rows, PERIOD_HOURS[rows.kind]):
                    groups.setdefault((rows.kind, period), []).append(part)
            except ValueError as error:
                self._give_up(weight, error)
        failed = []
        for key, members in groups.items():
            try:
                batch = record_batch(members)
                self._journal(key).append(batch, self._synchronised)
                self.acknowledged_rows += batch.num_rows
            except OSError as error:
                self.faults[0].failed(error)
                failed += [(rows, len(rows)) for rows in members]
                if key in self._open:
                    self._end(key)
            except (
                Exception
            ) as error:  # rows that make no sense end neither the thread nor the others' way to the disk
                self._logger.exception("%d rows cannot be written and are lost.", sum(map(len, members)))
                self._backlog.dropped += sum(map(len, members))
                self.faults[0].failed(error)
        if failed:
            self._backlog.put_back(failed)
        elif groups:
            self.faults[0].passed()
        self._end_journals(set(groups))

    def _give_up(self, count: int, error: Exception) -> None:
        """Rows that make no sense, such as of no time, end neither the thread nor the way of others to the disk."""
        self._logger.error("%d rows of %s cannot be written and are lost.", count, self._what, exc_info=error)
        self._backlog.dropped += count
        self.faults[0].failed(error)

    def _journal(self, key: tuple[RecordKind, FilePeriod]) -> LockedJournal:
        if key not in self._open:
            kind, period = key
            make_directory(self._directories[kind])
            journal = LockedJournal.create(next_path(self._directories[kind], period), SCHEMAS[kind])
            self._open[key] = _Open(journal, time.monotonic())
        return self._open[key].journal

    def _end_journals(self, used: set[tuple[RecordKind, FilePeriod]]) -> None:
        """End the journals that are full or old enough, and those whose time seems to be over."""
        oldest_s = time.monotonic() - self._settings.part_interval_s
        kinds = {kind for kind, _ in used}
        for key, (journal, opened_s) in list(self._open.items()):
            over = key[0] in kinds and key not in used
            if over or opened_s <= oldest_s or journal.rows >= self._settings.part_rows:
                self._end(key)

    def _end(self, key: tuple[RecordKind, FilePeriod]) -> None:
        self._unfinished.append((self._open.pop(key).journal, key[1]))

    def _advance(self) -> bool:
        """Do one piece of finishing a part; tell whether there is more to do now."""
        if self._work is None:
            if not self._unfinished or time.monotonic() < self._retry_at_s:
                return False
            self._work = finish(self._unfinished[0][0].path, self._formats)
        try:
            next(self._work)
            return True
        except StopIteration:
            self.faults[1].passed()
            self._retain(self._unfinished[0][1])
        except OSError as error:
            self.faults[1].failed(error)
            self._work = None
            self._retry_at_s = time.monotonic() + RETRY_S
            return False
        except Exception as error:
            self._logger.exception("%s cannot be finished and is left as it is.", self._unfinished[0][0].path)
            self.faults[1].failed(error)
        self._unfinished.pop(0)[0].close()
        self._work = None
        return bool(self._unfinished)

    def _retain(self, period: FilePeriod) -> None:
        aged = 0 if period == self._aged else PERIODS_AGED_AT_ONCE
        self._aged = period
        try:
            for group in self._groups:
                others = [directory for directory in self._directories.values() if directory not in group]
                remove_old(
                    group,
                    now_s=period.start_s + HOUR_S,
                    max_age_s=self._settings.max_age_s,
                    max_bytes=self._settings.max_bytes - size_bytes(others),
                    aged=aged,
                    keep={period for _, period in self._open},
                )
        except OSError as error:
            self.faults[1].failed(error)
