"""Metric files: CSV or Parquet, one row per sample or one column per member, and what sysstat's `sadf` writes."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.metric_file_sysstat import read_sadf_csv, read_sadf_json
from apps.cli.times import parse_time
from controller.anomaly.series import Series, SeriesName

TIME_COLUMN, MEMBER_COLUMN, GROUP_COLUMN, METRIC_COLUMN, VALUE_COLUMN = (
    "timestamp",
    "member",
    "peer_group",
    "metric",
    "value",
)
ONLY_GROUP, ONLY_METRIC = "all", "value"
LATEST_S = 1e11
"""Epoch seconds beyond are refused: they are milliseconds, or worse."""
_NULLS = ("", "NaN", "nan", "NAN", "null", "NULL", "NA", "None")
_TEXT = pa.dictionary(pa.int32(), pa.string())


class MetricFile(NamedTuple):
    """What a file holds: its series in the order of first appearance, and what a reader should be told about it."""

    series: list[Series]
    notes: list[str]


def read_metric_file(path: Path, *, peer_group: str | None = None, metric: str | None = None) -> MetricFile:
    """Return the series of a file, of one metric where one is named; InputError names file, line and field at fault.

    `peer_group` names the column of the peer groups. Times without a zone are taken as UTC, with a note.
    """
    try:
        kind = _kind(path)
        if kind == "json":
            return _chosen(MetricFile(*read_sadf_json(path)), metric, path)
        if kind == "sadf":
            return _chosen(MetricFile(*read_sadf_csv(path)), metric, path)
        return _from_table(_table(path, kind, peer_group), path, peer_group, metric)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the file is not text in UTF-8") from None
    except EOFError:
        raise InputError(f"{path}: the compressed file ends too early") from None


def open_text(path: Path) -> IO[str]:
    """Open a text file, or one that gzip packed."""
    if path.suffix == ".gz":
        return cast(IO[str], gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


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


def _table(path: Path, kind: str, peer_group: str | None) -> pa.Table:
    if kind == "parquet":
        return _parquet(path)
    found = _csv_columns(path, peer_group)
    return _csv_lines(path, peer_group) if found is None else found


def _parquet(path: Path) -> pa.Table:
    try:
        schema = pa.parquet.read_schema(path)
        text = [name for name in schema.names if pa.types.is_string(schema.field(name).type)]
        return pa.parquet.read_table(path, read_dictionary=[name for name in text if name != TIME_COLUMN])
    except pa.ArrowException as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None


def _csv_header(path: Path) -> list[str]:
    with open_text(path) as file:
        try:
            return next(csv.reader(file), [])
        except csv.Error as error:
            raise InputError(f"{path}:1: {error}") from None


def _csv_columns(path: Path, peer_group: str | None) -> pa.Table | None:
    """Return the columns where every field is as it should be, else None."""
    layout = _layout(_csv_header(path), f"{path}:1", peer_group)
    types = layout.types()
    try:
        return pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=layout.header, skip_rows=1),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=[TIME_COLUMN, *types],
                null_values=_NULLS,
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None


def _csv_lines(path: Path, peer_group: str | None) -> pa.Table:
    """Return the columns of a file that is read line by line."""
    layout = _layout(_csv_header(path), f"{path}:1", peer_group)
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
                _time_of(str(columns[TIME_COLUMN][-1]), where)
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


def _time_of(text: str, where: str) -> tuple[float, bool]:
    """Return the epoch seconds of a time as text, and whether its zone was told."""
    try:
        at_s, zoned = parse_time(text)
    except ValueError:
        raise InputError(f"{where}: {TIME_COLUMN}: expected ISO 8601 or epoch seconds, found {text[:64]!r}") from None
    if not abs(at_s) <= LATEST_S:
        raise InputError(f"{where}: {TIME_COLUMN}: {text[:64]} is out of the range of epoch seconds")
    return at_s, zoned


def _times(column: pa.ChunkedArray, path: Path, notes: list[str]) -> NDArray[np.float64]:
    kind = column.type
    zoned = True
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"{path}: row {row + 1}: {TIME_COLUMN}: expected a time, found nothing")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        at_s = (
            column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64()).to_numpy() / 1e6
        )
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        at_s = column.to_numpy().astype(np.float64)
        odd = np.flatnonzero(~(np.abs(at_s) <= LATEST_S))
        if len(odd):
            found = f"{at_s[odd[0]]:g} is out of the range of epoch seconds"
            raise InputError(f"{path}: row {odd[0] + 1}: {TIME_COLUMN}: {found}")
    else:
        texts = column.cast(pa.string()).to_pylist()
        parsed = [_time_of(text, f"{path}: row {row}") for row, text in enumerate(texts, 1)]
        zoned = all(known for _, known in parsed)
        at_s = np.array([at for at, _ in parsed], np.float64)
    if not zoned:
        notes.append(f"{path}: {TIME_COLUMN}: times without a zone are taken as UTC")
    return cast(NDArray[np.float64], at_s)


def _from_table(table: pa.Table, path: Path, peer_group: str | None, metric: str | None) -> MetricFile:
    layout = _layout(table.column_names, str(path), peer_group)
    notes: list[str] = []
    if not layout.is_long:
        if metric not in (None, ONLY_METRIC):
            raise _no_metric(path, metric, {ONLY_METRIC})
        at_s = _times(table.column(TIME_COLUMN), path, notes)
        columns = ((name, _floats(table.column(name), name, path)) for name in layout.members)
        return MetricFile(
            [Series(SeriesName(name, ONLY_GROUP, ONLY_METRIC), at_s, values) for name, values in columns], notes
        )
    if metric is not None and METRIC_COLUMN in layout.header:
        known = set(_text(table.column(METRIC_COLUMN), METRIC_COLUMN, path)[1])
        if metric not in known:
            raise _no_metric(path, metric, known)
        table = table.filter(pc.equal(table.column(METRIC_COLUMN).cast(pa.string()), metric))
    key, names = _keys(table, layout, path, metric or ONLY_METRIC)
    at_s = _times(table.column(TIME_COLUMN), path, notes)
    values = _floats(table.column(VALUE_COLUMN), VALUE_COLUMN, path)
    del table
    order = np.argsort(key, kind="stable")
    return MetricFile(_split(key[order], names, at_s[order], values[order]), notes)


def _keys(
    table: pa.Table, layout: _Layout, path: Path, only_metric: str
) -> tuple[NDArray[np.int64], tuple[list[str], list[str], list[str]]]:
    """Return a number per row that tells its metric, group and member, and the names of these."""
    codes: list[NDArray[np.int32] | None] = []
    names: list[list[str]] = []
    for column, only in ((METRIC_COLUMN, only_metric), (layout.group, ONLY_GROUP), (MEMBER_COLUMN, "")):
        found = _text(table.column(column), column, path) if column and column in layout.header else (None, [only])
        codes.append(found[0])
        names.append(found[1])
    fits = math.prod(map(len, names)) < 1 << 31
    key = np.zeros(table.num_rows, np.int32 if fits else np.int64)
    for code, called in zip(codes, names, strict=True):
        if code is not None:
            key *= len(called)
            key += code
    return cast(NDArray[np.int64], key), (names[0], names[1], names[2])


def _floats(column: pa.ChunkedArray, name: str, path: Path) -> NDArray[np.float64]:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    try:
        values = pc.fill_null(column.cast(pa.float64()), math.nan).to_numpy()
    except pa.ArrowException:
        raise InputError(f"{path}: {name}: expected numbers, found {column.type}") from None
    return cast(NDArray[np.float64], values)


def _text(column: pa.ChunkedArray, name: str, path: Path) -> tuple[NDArray[np.int32], list[str]]:
    """Return the row's codes, (n,), and the names that they stand for."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], _TEXT)
    if whole.null_count:
        row = int(np.flatnonzero(whole.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"{path}: row {row + 1}: {name}: expected a name, found nothing")
    return whole.indices.to_numpy(), [str(text) for text in whole.dictionary.to_pylist()]


def _split(
    key: NDArray[np.int64],
    names: tuple[list[str], list[str], list[str]],
    at_s: NDArray[np.float64],
    values: NDArray[np.float64],
) -> list[Series]:
    """Return the series of rows that are sorted by their key."""
    metrics, groups, members = names
    bounds = np.flatnonzero(np.diff(key, prepend=-1, append=-1))
    series = []
    for start, stop in pairwise(bounds):
        rest, member = divmod(int(key[start]), len(members))
        metric, group = divmod(rest, len(groups))
        name = SeriesName(members[member], groups[group], metrics[metric])
        series.append(Series(name, at_s[start:stop], values[start:stop]))
    return series
