"""Traces of packets: CSV or Parquet files with a time and a group for each packet, sorted by time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from apps.cli.common import InputError
from controller.simulation.table_trace import Trace

TIME_COLUMN, GROUP_COLUMN = "time_s", "group"
COLUMNS = (TIME_COLUMN, GROUP_COLUMN)
FIRST_ROW = 2
"""The line of the first row in a CSV file with a header."""


def read_packet_trace(path: Path, numbers: Mapping[str, int] | None = None) -> Trace:
    """Return the packets of a file; InputError tells of faults.

    Groups are numbered as `numbers` says, which has all that there may be, else in the order in which they come.
    """
    return read_named_trace(path, numbers)[0]


def read_named_trace(path: Path, numbers: Mapping[str, int] | None = None) -> tuple[Trace, list[str]]:
    """Return the same, and the names of the groups that are in the file, in the order in which they come."""
    is_parquet = False
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        table = _read_parquet(path) if is_parquet else _read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
    return _trace(table, path, is_parquet, numbers)


def _read_parquet(path: Path) -> pa.Table:
    file = pyarrow.parquet.ParquetFile(path)
    _check_columns(file.schema_arrow.names, path)
    return file.read(list(COLUMNS))


def _read_csv(path: Path) -> pa.Table:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        _check_columns([name.strip() for name in file.readline().rstrip("\n\r").split(",")], f"{path}:1")
    return pyarrow.csv.read_csv(
        path,
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=list(COLUMNS), column_types={TIME_COLUMN: pa.string(), GROUP_COLUMN: pa.string()}
        ),
    )


def _check_columns(names: list[str], place: Path | str) -> None:
    for column in COLUMNS:
        if column not in names:
            found = ", ".join(names) or "none"
            raise InputError(f"{place}: no column {column}; expected {', '.join(COLUMNS)}, found {found}")


def _trace(
    table: pa.Table, path: Path, is_parquet: bool, numbers: Mapping[str, int] | None
) -> tuple[Trace, list[str]]:
    times = table.column(TIME_COLUMN)
    text = times if pa.types.is_string(times.type) else None
    try:
        seconds = pc.cast(times, pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        row = 0 if text is None else _first_that_is_no_number(text.to_pylist())
        value = times[row].as_py()
        raise InputError(
            f"{_place(path, row, is_parquet)}: {TIME_COLUMN}: {value!r} is no number of seconds"
        ) from None
    for wrong, what in (
        (~np.isfinite(seconds), "is no number of seconds"),
        (np.concatenate(([False], np.diff(seconds) < 0)), "is before the packet in front of it"),
        (table.column(GROUP_COLUMN).is_null().to_numpy(), None),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            said = f"{GROUP_COLUMN}: missing" if what is None else f"{TIME_COLUMN}: {times[row].as_py()} {what}"
            raise InputError(f"{_place(path, row, is_parquet)}: {said}")
    groups = table.column(GROUP_COLUMN).combine_chunks().dictionary_encode()
    found = groups.indices.to_numpy()
    if numbers is not None:
        known = np.array([numbers.get(str(name), -1) for name in groups.dictionary.to_pylist()], dtype=np.int64)
        found = known[found] if len(found) else found
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            name = groups[row].as_py()
            raise InputError(f"{_place(path, row, is_parquet)}: {GROUP_COLUMN}: there is no group {name!r}")
    return Trace(seconds.tolist(), found.tolist()), [str(name) for name in groups.dictionary.to_pylist()]


def _first_that_is_no_number(texts: list[str | None]) -> int:
    for row, one in enumerate(texts):
        try:
            float(one or "")
        except ValueError:
            return row
    return 0


def _place(path: Path, row: int, is_parquet: bool) -> str:
    return f"{path}: row {row + 1}" if is_parquet else f"{path}:{row + FIRST_ROW}"
