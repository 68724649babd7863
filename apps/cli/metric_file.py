"""Metric files: CSV or Parquet, one row per sample or one column per member, and what sysstat's `sadf` writes."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.metric_file_rows import ROWS_AT_ONCE, CodeNames, SeriesRows
from apps.cli.metric_file_sysstat import read_sadf_csv, read_sadf_json
from apps.cli.text_files import file_faults, open_text
from apps.cli.time_columns import times_of
from apps.cli.times import time_of
from controller.anomaly.series import RawSeries, SeriesName

TIME_COLUMN, MEMBER_COLUMN, GROUP_COLUMN, METRIC_COLUMN, VALUE_COLUMN = (
    "timestamp",
    "member",
    "peer_group",
    "metric",
    "value",
)
ONLY_GROUP, ONLY_METRIC = "all", "value"
CSV_BLOCK_BYTES, READ_BYTES = 1 << 22, 1 << 20
_NULLS = ("", "NaN", "nan", "NAN", "null", "NULL", "NA", "None")
_TEXT = pa.dictionary(pa.int32(), pa.string())


class MetricFile(NamedTuple):
    """What a file holds: its series in the order of first appearance, and what a reader should be told about it."""

    series: list[RawSeries]
    notes: list[str]


def read_metric_file(path: Path, *, peer_group: str | None = None, metric: str | None = None) -> MetricFile:
    """Return the series of a file, of one metric where one is named; InputError names file, line and field at fault.

    `peer_group` names the column of the peer groups. Times without a zone are taken as UTC, with a note.
    """
    with file_faults(path):
        kind = _kind(path)
        if kind == "json":
            return _chosen(MetricFile(*read_sadf_json(path)), metric, path)
        if kind == "sadf":
            return _chosen(MetricFile(*read_sadf_csv(path)), metric, path)
        if kind == "parquet":
            return _read_parquet(path, peer_group, metric)
        return _read_csv(path, peer_group, metric)


def _kind(path: Path) -> str:
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    with open_text(path) as text:
        start = text.read(4096).lstrip()
    if not start:
        raise InputError(f"{path}:1: the file is empty; expected {TIME_COLUMN} and values")
    if start[0] in "{[":
        return "json"
    return "sadf" if start[0] == "#" and ";" in start.partition("\n")[0] else "csv"


def _chosen(found: MetricFile, metric: str | None, path: Path) -> MetricFile:
    if metric is None:
        return found
    series = [one for one in found.series if one.name.metric == metric]
    if not series:
        raise _no_metric(path, metric, {one.name.metric for one in found.series})
    return found._replace(series=series)


def _no_metric(path: Path, metric: str, known: set[str]) -> InputError:
    shown = ", ".join(sorted(known)[:20]) + (", ..." if len(known) > 20 else "")
    return InputError(f"{path}: {METRIC_COLUMN}: no {metric!r} in the file; it holds {shown or 'none'}")


class _Layout(NamedTuple):
    """Which columns a file has."""

    header: list[str]
    is_long: bool
    group: str | None
    members: list[str]

    def types(self) -> dict[str, pa.DataType]:
        """Return the types of the columns that are read, but for the time's."""
        if not self.is_long:
            return {name: pa.float64() for name in self.members}
        text = [name for name in (MEMBER_COLUMN, self.group, METRIC_COLUMN) if name and name in self.header]
        return dict.fromkeys(text, _TEXT) | {VALUE_COLUMN: pa.float64()}


def _layout(header: Sequence[str], where: str, peer_group: str | None) -> _Layout:
    names = [name.strip() for name in header]
    if TIME_COLUMN not in names:
        raise InputError(f"{where}: {TIME_COLUMN}: the column is missing")
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise InputError(f"{where}: {twice or '(no name)'}: the column is there twice")
    is_long = MEMBER_COLUMN in names and VALUE_COLUMN in names
    if peer_group is not None and (not is_long or peer_group not in names):
        raise InputError(f"{where}: {peer_group}: the column of peer groups is missing")
    group = peer_group or (GROUP_COLUMN if is_long and GROUP_COLUMN in names else None)
    members = [] if is_long else [name for name in names if name and name != TIME_COLUMN]
    if not is_long and not members:
        raise InputError(f"{where}: no column beside {TIME_COLUMN}")
    return _Layout(names, is_long, group, members)


def _read_parquet(path: Path, peer_group: str | None, metric: str | None) -> MetricFile:
    try:
        schema = pa.parquet.read_schema(path)
        layout = _layout(schema.names, str(path), peer_group)
        if not layout.is_long:
            return _from(pa.parquet.read_table(path), layout, path, metric)
        wanted = [TIME_COLUMN, *layout.types()]
        text = [name for name in wanted if name != TIME_COLUMN and pa.types.is_string(schema.field(name).type)]
        with pa.parquet.ParquetFile(path, read_dictionary=text, pre_buffer=False, buffer_size=READ_BYTES) as file:
            return _from(file.iter_batches(ROWS_AT_ONCE, columns=wanted), layout, path, metric)
    except pa.ArrowException as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None


def _read_csv(path: Path, peer_group: str | None, metric: str | None) -> MetricFile:
    """Read columns part by part, all at once where parts differ in type, line by line for the line that is wrong."""
    layout = _layout(csv_header(path), f"{path}:1", peer_group)
    for read in (_csv_parts, _csv_columns) if layout.is_long else (_csv_columns,):
        try:
            return _from(read(path, layout), layout, path, metric)
        except (pa.ArrowInvalid, pa.ArrowKeyError):
            continue
    return _from(_csv_lines(path, layout), layout, path, metric)


def csv_header(path: Path) -> list[str]:
    """Return the names of a CSV file's columns."""
    with open_text(path) as file:
        try:
            return next(csv.reader(file), [])
        except csv.Error as error:
            raise InputError(f"{path}:1: {error}") from None


def _csv_options(layout: _Layout) -> dict[str, Any]:
    types = layout.types()
    return {
        "read_options": pa.csv.ReadOptions(column_names=layout.header, skip_rows=1, block_size=CSV_BLOCK_BYTES),
        "convert_options": pa.csv.ConvertOptions(
            column_types=types,
            include_columns=[TIME_COLUMN, *types],
            null_values=_NULLS,
            strings_can_be_null=False,
        ),
    }


def _csv_parts(path: Path, layout: _Layout) -> Iterator[pa.RecordBatch]:
    with pa.csv.open_csv(path, **_csv_options(layout)) as reader:
        yield from reader


def _csv_columns(path: Path, layout: _Layout) -> pa.Table:
    return pa.csv.read_csv(path, **_csv_options(layout))


def _csv_lines(path: Path, layout: _Layout) -> pa.Table:
    """Return the columns of a file that is read line by line."""
    types = layout.types()
    columns: dict[str, list[float | str]] = {name: [] for name in (TIME_COLUMN, *types)}
    places = {name: layout.header.index(name) for name in columns}
    with open_text(path) as file:
        reader = csv.reader(file)
        next(reader)
        try:
            for fields in reader:
                if not fields:
                    continue
                where = f"{path}:{reader.line_num}"
                if len(fields) != len(layout.header):
                    raise InputError(f"{where}: {len(fields)} fields; the header has {len(layout.header)}")
                for name, into in columns.items():
                    text = fields[places[name]].strip()
                    into.append(
                        text if types.get(name) == _TEXT or name == TIME_COLUMN else _number(text, name, where)
                    )
                time_of(str(columns[TIME_COLUMN][-1]), f"{where}: {TIME_COLUMN}")
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _number(text: str, name: str, where: str) -> float:
    if text in _NULLS:
        return math.nan
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: {name}: expected a number, found {text[:64]!r}") from None


def _from(read: pa.Table | Iterable[pa.RecordBatch], layout: _Layout, path: Path, metric: str | None) -> MetricFile:
    if not layout.is_long:
        return _from_wide(read, layout, path, metric)
    return _from_long(read.to_batches(ROWS_AT_ONCE) if isinstance(read, pa.Table) else read, layout, path, metric)


def _from_wide(table: pa.Table, layout: _Layout, path: Path, metric: str | None) -> MetricFile:
    if metric not in (None, ONLY_METRIC):
        raise _no_metric(path, metric, {ONLY_METRIC})
    at_s, zoned = times_of(table.column(TIME_COLUMN), TIME_COLUMN, path, np.arange(table.num_rows))
    columns = ((name, _floats(table.column(name), name, path)) for name in layout.members)
    series = [RawSeries(SeriesName(name, ONLY_GROUP, ONLY_METRIC), at_s, values) for name, values in columns]
    return MetricFile(series, [] if zoned else [_zoneless(path)])


def _from_long(parts: Iterable[pa.RecordBatch], layout: _Layout, path: Path, metric: str | None) -> MetricFile:
    """Return the series of rows that come in parts; no part is held longer than it takes to read it."""
    gathered = SeriesRows()
    all_zoned = True
    known: set[str] = set()
    before = 0
    for part in parts:
        rows = np.arange(before, before + part.num_rows)
        before += part.num_rows
        if metric is not None and METRIC_COLUMN in layout.header:
            codes, names = _text(part.column(METRIC_COLUMN), METRIC_COLUMN, path, rows)
            known.update(names)
            chosen = np.array([name == metric for name in names], np.bool_)[codes]
            rows, part = rows[chosen], part.filter(pa.array(chosen))
        columns = [
            _text(part.column(column), column, path, rows)
            if column in layout.header
            else (np.zeros(part.num_rows, np.int32), [only])
            for column, only in (
                (METRIC_COLUMN, metric or ONLY_METRIC),
                (layout.group or GROUP_COLUMN, ONLY_GROUP),
                (MEMBER_COLUMN, ""),
            )
        ]
        at_s, zoned = times_of(part.column(TIME_COLUMN), TIME_COLUMN, path, rows)
        all_zoned &= zoned
        values = _floats(part.column(VALUE_COLUMN), VALUE_COLUMN, path)
        (metrics, groups, members), names_of = zip(*columns, strict=True)
        gathered.add((metrics, groups, members), CodeNames(*names_of), at_s, values)
    if metric is not None and METRIC_COLUMN in layout.header and metric not in known:
        raise _no_metric(path, metric, known)
    return MetricFile(gathered.series(), [] if all_zoned else [_zoneless(path)])


def _zoneless(path: Path) -> str:
    return f"{path}: {TIME_COLUMN}: times without a zone are taken as UTC"


def _floats(column: pa.ChunkedArray, name: str, path: Path) -> NDArray[np.float64]:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    try:
        values = pc.fill_null(column.cast(pa.float64()), math.nan).to_numpy()
    except pa.ArrowException:
        raise InputError(f"{path}: {name}: expected numbers, found {column.type}") from None
    return cast(NDArray[np.float64], values)


def _text(column: pa.Array, name: str, path: Path, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[str]]:
    """Return the codes of the given rows of the file, (n,), and the names that they stand for."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    if column.null_count:
        row = rows[np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]]
        raise InputError(f"{path}: row {row + 1}: {name}: expected a name, found nothing")
    return column.indices.to_numpy(), [str(text) for text in column.dictionary.to_pylist()]
