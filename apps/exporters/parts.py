"""The files of the history: one directory per kind, names by hour or day in UTC, journals turned into parts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from apps.exporters.journal import SUFFIX, read_journal
from apps.line_files import make_file
from controller.performance.counters import UNSUPPORTED

HOUR_S = 3600
PARQUET, CSV = "parquet", "csv"
ROW_GROUP_ROWS = 1 << 18
DAY_HOURS = 24
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d))?Z-(\d{4,9})(\.\w+)\Z")
_REPEATED = ("dpid", "port_no", "speed_bps", "discontinuity", "monitor", "share_epoch")
_STATISTICS = ["timestamp", "dpid", "port_no"]


class FilePeriod(NamedTuple):
    """What a file is about: `hours` (1 or 24) from `hour` on, the number of hours since the epoch."""

    hour: int
    hours: int = 1

    @property
    def start_s(self) -> int:
        """When it begins, seconds since the epoch."""
        return self.hour * HOUR_S

    @property
    def end_s(self) -> int:
        """When it is over."""
        return (self.hour + self.hours) * HOUR_S

    def __str__(self) -> str:
        start = datetime.fromtimestamp(self.start_s, UTC)
        return f"{start:%Y-%m-%d}Z" if self.hours == DAY_HOURS else f"{start:%Y-%m-%dT%H}Z"


class Part(NamedTuple):
    """One file of a period."""

    path: Path
    period: FilePeriod
    sequence: int

    @property
    def finished(self) -> bool:
        """Whether this is no journal."""
        return self.path.suffix != SUFFIX


def part_of(path: Path) -> Part | None:
    """Return what a file's name says of it, None where it is no file of the history."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    try:
        start = datetime.strptime(f"{match[1]}T{match[2] or '00'}", "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return None
    period = FilePeriod(int(start.timestamp()) // HOUR_S, DAY_HOURS if match[2] is None else 1)
    return Part(path, period, int(match[3]))


def list_parts(directory: Path) -> list[Part]:
    """Return the files of a directory in the order of their periods and numbers; other files are left out."""
    try:
        found = [part for path in directory.iterdir() if (part := part_of(path)) is not None]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda part: (part.period, part.sequence, part.path.suffix))


def next_path(directory: Path, period: FilePeriod) -> Path:
    """Return the path of a journal of a period that no file has had yet."""
    last = max((part.sequence for part in list_parts(directory) if part.period == period), default=-1)
    return directory / f"{period}-{last + 1:04d}{SUFFIX}"


def _open_parquet(file: IO[bytes], schema: pa.Schema) -> Any:
    counted = [field.name for field in schema if field.type == pa.uint64() and field.name != "dpid"]
    writer = pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in _REPEATED if name in schema.names],
        column_encoding=dict.fromkeys(("timestamp", *counted), "DELTA_BINARY_PACKED"),
        write_statistics=_STATISTICS,
        store_schema=False,
    )
    writer.add_key_value_metadata(schema.metadata)
    return writer


class _CsvWriter:
    """Writes tables as CSV: time in epoch seconds, a counter that is not supported as 2^64-1."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        fields = [pa.field("timestamp", pa.float64()), *list(schema)[1:]]
        self._writer = pyarrow.csv.CSVWriter(file, pa.schema(fields))

    def write_table(self, table: pa.Table) -> None:
        """Write the rows of a table."""
        columns = [pc.divide(table.column("timestamp").cast(pa.int64()).cast(pa.float64()), 1e6)]
        for column in table.columns[1:]:
            columns.append(pc.fill_null(column, UNSUPPORTED) if column.type == pa.uint64() else column)
        self._writer.write_table(pa.table(columns, names=table.schema.names))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


ENCODERS: dict[str, Callable[[IO[bytes], pa.Schema], Any]] = {PARQUET: _open_parquet, CSV: _CsvWriter}
"""File formats by name, which is also the suffix."""


def finish(journal: Path, formats: Sequence[str]) -> Iterator[None]:
    """Turn a journal into a finished part per format, then remove it; yields between pieces of work.

    A part gets its name only when it is whole and on the disk; parts that are there already are left as they are.
    OSError where there is no room: the journal stays.
    """
    for name in formats:
        target = journal.with_suffix(f".{name}")
        if not target.exists():
            yield from _encode(journal, target, name)
    journal.unlink(missing_ok=True)
    _sync(journal.parent)


def _encode(journal: Path, target: Path, name: str) -> Iterator[None]:
    new = target.with_suffix(target.suffix + ".new")
    try:
        make_file(new)
        with new.open("wb") as file:
            writer = None
            try:
                for table in _row_groups(journal):
                    writer = writer or ENCODERS[name](file, table.schema)
                    writer.write_table(table)
                    yield
            finally:
                if writer is not None:
                    writer.close()
            file.flush()
            os.fsync(file.fileno())
        if writer is None:  # a journal without a whole batch
            new.unlink()
        else:
            new.replace(target)
            _sync(target.parent)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _row_groups(journal: Path) -> Iterator[pa.Table]:
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in read_journal(journal):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= ROW_GROUP_ROWS:
            yield sort_by_port(pa.Table.from_batches(batches))
            batches, rows = [], 0
    if batches:
        yield sort_by_port(pa.Table.from_batches(batches))


def sort_by_port(table: pa.Table) -> pa.Table:
    """Return the rows by port, each port's in the order they came in."""
    table = table.combine_chunks()
    order = np.lexsort((table.column("port_no").to_numpy(), table.column("dpid").to_numpy()))
    return table.take(pa.array(order))


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def size_bytes(directories: Iterable[Path]) -> int:
    """Return the size of all files of the history in these directories."""
    return sum(part.path.stat().st_size for directory in directories for part in list_parts(directory))


def remove_old(
    directories: Sequence[Path],
    *,
    now_s: float,
    max_age_s: float,
    max_bytes: int,
    keep: Collection[FilePeriod] = (),
    aged: int = 2,
) -> int:
    """Remove the oldest hours or days that are over the limits of age or size, over all directories together.

    Those of `keep`, the newest and journals stay. For their age at most `aged` go at a time: a clock that jumps ahead
    takes no more with it. Return how many files were removed.
    """
    periods: dict[FilePeriod, list[tuple[Path, int]]] = {}
    for directory in directories:
        for part in list_parts(directory):
            periods.setdefault(part.period, []).append((part.path, part.path.stat().st_size))
    total_bytes = sum(file_bytes for files in periods.values() for _, file_bytes in files)
    removed = 0
    for period in sorted(periods, key=lambda period: period.end_s)[:-1]:
        too_old = aged > 0 and period.end_s < now_s - max_age_s
        if period in keep or not (too_old or total_bytes > max_bytes):
            continue
        aged -= too_old
        for path, file_bytes in periods[period]:
            if path.suffix != SUFFIX:
                path.unlink(missing_ok=True)
                total_bytes -= file_bytes
                removed += 1
    return removed
