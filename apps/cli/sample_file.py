"""Port counters from a CSV file: columns at once where the file is clean, else line by line to tell what is wrong."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.text_files import file_faults

COUNTER_COLUMNS = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets")
REQUIRED = ("timestamp", "dpid", "port_no", *COUNTER_COLUMNS)
OPTIONAL = ("duration_s", "speed_bps")
MAX_64 = (1 << 64) - 1
MAX_32 = (1 << 32) - 1


class SampleFile(NamedTuple):
    """The lines of a file as columns, n of each; what is empty is NaN."""

    at_s: NDArray[np.float64]
    dpid: NDArray[np.uint64]
    port_no: NDArray[np.uint64]
    counters: NDArray[np.uint64]
    duration_s: NDArray[np.float64]
    speed_bps: NDArray[np.float64]


def read_samples(path: Path) -> SampleFile:
    """Return the samples of a file; InputError names file, line and field of what is wrong."""
    with file_faults(path):
        header = _header(path)
        found = _read_columns(path, header)
        return _read_lines(path) if found is None else found


def _header(path: Path) -> list[str]:
    """Return the names of the columns, all required ones among them."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = [name.strip() for name in next(csv.reader(file), [])]
        except csv.Error as error:
            raise InputError(f"{path}:1: {error}") from None
    if not names:
        raise InputError(f"{path}:1: the file is empty; expected {','.join((*REQUIRED, *OPTIONAL))}")
    for name in REQUIRED:
        if name not in names:
            raise InputError(f"{path}:1: {name}: the column is missing")
    for name in (*REQUIRED, *OPTIONAL):
        if names.count(name) > 1:
            raise InputError(f"{path}:1: {name}: the column is there twice")
    return names


def _read_columns(path: Path, header: Sequence[str]) -> SampleFile | None:
    """Return the samples where every value is as it should be, else None."""
    types = {name: pa.uint64() for name in REQUIRED} | {
        name: pa.float64() for name in ("timestamp", *OPTIONAL) if name in header
    }
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=list(header), skip_rows=1),
            convert_options=pa.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], quoted_strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    if any(table.column(name).null_count for name in REQUIRED):
        return None

    def column(name: str) -> NDArray[np.float64]:
        if name not in types:
            return np.full(table.num_rows, np.nan)
        values: NDArray[np.float64] = pc.fill_null(table.column(name), math.nan).to_numpy()
        return values

    at_s = column("timestamp")
    dpid, port_no = (table.column(name).to_numpy() for name in ("dpid", "port_no"))
    counters = np.column_stack([table.column(name).to_numpy() for name in COUNTER_COLUMNS])
    found = SampleFile(at_s, dpid, port_no, counters, column("duration_s"), column("speed_bps"))
    odd = ~np.isfinite(at_s) | (at_s < 0) | (port_no > MAX_32)
    for values, name in ((found.duration_s, "duration_s"), (found.speed_bps, "speed_bps")):
        odd |= (values < 0) | np.isinf(values)
        if name in types and np.isnan(values).sum() != table.column(name).null_count:
            return None
    return None if odd.any() else found


def _read_lines(path: Path) -> SampleFile:
    """Return the samples of a file that is read line by line."""
    columns: dict[str, list[float]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader)]
        places = {name: header.index(name) for name in columns if name in header}
        try:
            for values in reader:
                if not values:
                    continue
                where = f"{path}:{reader.line_num}"
                if len(values) != len(header):
                    raise InputError(f"{where}: {len(values)} fields; the header has {len(header)}")
                for name, into in columns.items():
                    text = values[places[name]].strip() if name in places else ""
                    into.append(_value(text, name, where))
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None
    counters = np.column_stack([np.array(columns[name], np.uint64) for name in COUNTER_COLUMNS])
    return SampleFile(
        np.array(columns["timestamp"], np.float64),
        np.array(columns["dpid"], np.uint64),
        np.array(columns["port_no"], np.uint64),
        counters,
        np.array(columns["duration_s"], np.float64),
        np.array(columns["speed_bps"], np.float64),
    )


def _value(text: str, name: str, where: str) -> float:
    """Return the value of a field; InputError where it is none."""
    if not text:
        if name in OPTIONAL:
            return math.nan
        raise InputError(f"{where}: {name}: expected a number, found nothing")
    read: Callable[[str], float] = float if name in ("timestamp", *OPTIONAL) else _whole
    try:
        value = read(text)
    except ValueError:
        what = "a number" if read is float else "a whole number"
        raise InputError(f"{where}: {name}: expected {what}, found {text[:64]!r}") from None
    upper = math.inf if read is float else MAX_32 if name == "port_no" else MAX_64
    if not 0 <= value <= upper or math.isinf(value):
        raise InputError(f"{where}: {name}: {text[:64]} is out of range")
    return value


def _whole(text: str) -> int:
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)
