"""Reads the history back: the rows of ports over a span of time, the newest from journals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from apps.exporters.journal import SUFFIX, read_journal
from apps.exporters.parts import PARQUET, FilePeriod, list_parts
from apps.exporters.schema import KEYS, SCHEMAS, HistoryFileError, RecordKind, conform
from apps.exporters.share_epochs import EPOCH, counted_rows

ATTEMPTS = 5

EDGE_S = 300.0
"""How much earlier than asked rows are read where several monitors had a switch, to tell which of them counts."""


def read_history(
    directories: Path | Sequence[Path],
    kind: RecordKind,
    *,
    since_s: float,
    until_s: float,
    ports: Collection[tuple[int, int | None]] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the rows of `kind` with since_s <= time < until_s, by port and then by time.

    Of monitors that share the switches each has files of its own. Rows of a share's epoch count up to the first row
    of a later one: what a monitor polled that did not know yet that another has the switch is left out.

    Parameters
    ----------
    directories
        What `HistorySink` was given, or what those of several monitors were.
    since_s, until_s
        Seconds since the epoch.
    ports
        Pairs of dpid and port_no, which is None for every port of the switch; all ports of all where None.
    columns
        Columns beside timestamp, dpid and port_no; all where None.

    Raises
    ------
    HistoryFileError
        Where a file cannot be read, is no history file or is of a newer version; it names the file. Files of an older
        version are read, and the columns that they lack are null.
    """
    schema = SCHEMAS[kind]
    keys = [name for name, _ in KEYS]
    names = schema.names if columns is None else [*keys, *(name for name in columns if name not in keys)]
    places = [directories] if isinstance(directories, Path) else list(directories)
    is_shared = len(places) > 1 and EPOCH in schema.names
    read = [*names, *(name for name in (EPOCH,) if is_shared and name not in names)]
    from_s = since_s - EDGE_S if is_shared else since_s
    wanted = filter_of(from_s, until_s, ports)
    tables = [table for place in places for table in _tables(place, kind, read, wanted, (from_s, until_s))]
    schema = pa.schema([schema.field(name) for name in read], schema.metadata)
    table = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    order = order_by_port(table)
    if is_shared:
        keep = counted_rows(table) & (table.column("timestamp").cast(pa.int64()).to_numpy() >= microseconds(since_s))
        order = order[keep[order]]
    return table.select(names).take(pa.array(order))


def order_by_port(table: pa.Table) -> NDArray[np.intp]:
    """Return the rows' order by port and then by time; rows of a port at one time stay as they are."""
    dpid, port_no, at_us = (table.column(name).to_numpy() for name in ("dpid", "port_no", "timestamp"))
    at_us = at_us.view(np.int64)
    if not len(at_us):
        return np.empty(0, np.intp)
    encoded = table.column("dpid").combine_chunks().dictionary_encode()
    dpids = encoded.dictionary.to_numpy()
    place = np.empty(len(dpids), np.int64)
    place[np.argsort(dpids)] = np.arange(len(dpids))
    switch = place[encoded.indices.to_numpy()]
    span_us, ports = int(at_us.max()) - int(at_us.min()) + 1, int(port_no.max()) + 1
    if len(dpids) * ports * span_us < 1 << 63:  # one number for each row, which sorts in a third of the time
        key = (switch * ports + port_no) * span_us + (at_us - at_us.min())
        return np.argsort(key, kind="stable")
    return np.lexsort((at_us, port_no, dpid))


def _tables(
    directory: Path, kind: RecordKind, names: Sequence[str], wanted: pc.Expression, span_s: tuple[float, float]
) -> list[pa.Table]:
    missing = ""
    for _ in range(ATTEMPTS):
        try:
            return [read_file(path, kind, names, wanted) for path in files_of(directory / kind, *span_s)]
        except FileNotFoundError as error:  # a journal became a part, or retention was faster
            missing = str(error.filename)
    raise HistoryFileError(f"{missing}: the file goes away again and again")


def files_of(directory: Path, since_s: float, until_s: float) -> list[Path]:
    """Return the files of the hours or days in question, a part rather than the journal it was made of."""
    found: dict[tuple[FilePeriod, int], Path] = {}
    for part in list_parts(directory):
        inside = part.period.end_s > since_s and part.period.start_s < until_s
        finished = part.path.suffix == f".{PARQUET}"
        if inside and (finished or part.path.suffix == SUFFIX):
            key = part.period, part.sequence
            if finished or key not in found:
                found[key] = part.path
    return list(found.values())


def filter_of(since_s: float, until_s: float, ports: Collection[tuple[int, int | None]] | None) -> pc.Expression:
    """Return which rows are asked for."""
    time = pc.field("timestamp")
    bounds = [pa.scalar(microseconds(at_s), pa.timestamp("us", tz="UTC")) for at_s in (since_s, until_s)]
    wanted = (time >= bounds[0]) & (time < bounds[1])
    if ports is None:
        return wanted
    of_switch: dict[int, list[int | None]] = {}
    for dpid, port_no in ports:
        of_switch.setdefault(dpid, []).append(port_no)
    chosen = pc.scalar(False)
    for dpid, numbers in of_switch.items():
        of_this = pc.field("dpid") == pa.scalar(dpid, pa.uint64())
        if None not in numbers:
            of_this &= pc.field("port_no").isin(pa.array(numbers, pa.uint32()))
        chosen |= of_this
    return wanted & chosen


def microseconds(at_s: float) -> int:
    """Return whole microseconds, within what a timestamp holds."""
    return round(min(max(at_s, -9e12), 9e12) * 1e6)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have what is wrong with a file told with its name; that it went away is told as such."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise HistoryFileError(f"{path}: {error}") from error


def read_file(path: Path, kind: RecordKind, names: Sequence[str], wanted: pc.Expression) -> pa.Table:
    """Return the rows of a part or journal that are wanted; FileNotFoundError where it went away."""
    with naming(path):
        if path.suffix == SUFFIX:
            batches = list(read_journal(path))
            table = pa.Table.from_batches(batches, None if batches else SCHEMAS[kind])
            return conform(table, kind, str(path), names).filter(wanted)
        schema = pq.read_schema(path)
        conform(schema.empty_table(), kind, str(path), names)
        there = [name for name in names if name in schema.names]
        return conform(pq.read_table(path, columns=there, filters=wanted), kind, str(path), names)
