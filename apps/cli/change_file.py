"""Logs of changes (CSV, Parquet, JSON lines), baselines and inventories, as `vsrt policy discover` reads them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.metric_file import csv_header
from apps.cli.text_files import file_faults, json_lines, open_text
from apps.cli.time_columns import times_of
from apps.cli.times import time_of
from controller.policy_discovery.change_table import Changes

COLUMNS = ("time", "resource", "type", "property", "old", "new")
BASELINE_COLUMNS = ("type", "property", "value")
INVENTORY_COLUMNS = ("resource", "type")

_TEXT = pa.dictionary(pa.int32(), pa.string())


class ReadChanges(NamedTuple):
    """The changes of all files in their order, and what a reader should be told about them."""

    changes: Changes
    notes: list[str]


class Inventory(NamedTuple):
    """The type of each resource, and what else is known of it: texts by name."""

    kinds: dict[str, str]
    labels: dict[str, dict[str, str]]


class _Gathered:
    """Columns of several files with one list of texts for each kind of text."""

    def __init__(self) -> None:
        self.codes: dict[str, dict[str, int]] = {name: {} for name in ("resource", "type", "property", "value")}
        self.parts: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
        self.notes: list[str] = []

    def add(self, table: pa.Table, at_s: NDArray[np.float64]) -> None:
        """Add rows: text columns that are dictionaries, and their times."""
        self.parts["time"].append(at_s)
        for name in COLUMNS[1:]:
            known = self.codes["value" if name in ("old", "new") else name]
            for chunk in table[name].chunks:
                texts = chunk.dictionary.to_pylist()
                codes = np.array([known.setdefault(text or "", len(known)) for text in texts], np.int64)
                self.parts[name].append(codes[chunk.indices.to_numpy()] if len(codes) else np.zeros(0, np.int64))

    def changes(self) -> Changes:
        """Return all that was added."""
        empty = [np.zeros(0, np.int64)]
        columns = {name: np.concatenate(self.parts[name] or empty) for name in COLUMNS}
        return Changes(
            columns["time"].astype(np.float64),
            columns["resource"],
            columns["type"],
            columns["property"],
            columns["old"],
            columns["new"],
            *(list(known) for known in self.codes.values()),
        )


def read_changes(paths: Sequence[Path]) -> ReadChanges:
    """Return the changes of some files; InputError names the file, line and field at fault.

    A last line that ends too early is left out with a note, and times without a zone are taken as UTC with a note.
    """
    gathered = _Gathered()
    for path in paths:
        with file_faults(path):
            _read(path, gathered)
    return ReadChanges(gathered.changes(), gathered.notes)


def _read(path: Path, into: _Gathered) -> None:
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        try:
            table = pa.parquet.read_table(path)
        except pa.ArrowException as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from None
        _require(table.column_names, str(path), COLUMNS)
        _add_table(table, path, into)
        return
    with open_text(path) as text:
        start = text.read(4096).lstrip()
    if not start:
        into.notes.append(f"{path}: the file is empty")
    elif start[0] == "{":
        _add_lines(path, _json_lines(path, into), into)
    else:
        _read_csv(path, into)


def _require(header: Sequence[str], where: str, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in header:
            raise InputError(f"{where}: {name}: the column is missing; expected {', '.join(wanted)}")
        if list(header).count(name) > 1:
            raise InputError(f"{where}: {name}: the column is there twice")


def _read_csv(path: Path, into: _Gathered) -> None:
    header = [name.strip() for name in csv_header(path)]
    _require(header, f"{path}:1", COLUMNS)
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=header, skip_rows=1),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(COLUMNS[1:], _TEXT),
                include_columns=COLUMNS,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        _add_lines(path, _csv_lines(path, header, into), into)
        return
    _add_table(table, path, into)


def _add_table(table: pa.Table, path: Path, into: _Gathered) -> None:
    columns = {name: table[name].cast(pa.string()).dictionary_encode() for name in COLUMNS[1:]}
    at_s, zoned = times_of(table["time"], "time", path, np.arange(table.num_rows))
    _note_zone(path, zoned, into)
    into.add(pa.table({name: column.fill_null("") for name, column in columns.items()}), at_s)


def _note_zone(path: Path, zoned: bool, into: _Gathered) -> None:
    note = f"{path}: times without a zone are taken as UTC"
    if not zoned and note not in into.notes:
        into.notes.append(note)


def _add_lines(path: Path, lines: Iterator[tuple[str, list[str]]], into: _Gathered) -> None:
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS[1:]}
    at_s = []
    for where, fields in lines:
        told_s, zoned = time_of(fields[0], f"{where}: time")
        _note_zone(path, zoned, into)
        at_s.append(told_s)
        for name, text in zip(COLUMNS[1:], fields[1:], strict=True):
            columns[name].append(text)
    coded = {
        name: pa.chunked_array([pa.array(texts, pa.string()).dictionary_encode()]) for name, texts in columns.items()
    }
    into.add(pa.table(coded), np.array(at_s, np.float64))


def _csv_lines(path: Path, header: Sequence[str], into: _Gathered) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the fields of each line; one that ends too early is an error unless it is the last."""
    at = [header.index(name) for name in COLUMNS]
    torn: str | None = None
    with open_text(path) as file:
        reader = csv.reader(file)
        next(reader)
        try:
            for fields in reader:
                if torn is not None:
                    raise InputError(torn)
                if not fields:
                    continue
                if len(fields) != len(header):
                    torn = f"{path}:{reader.line_num}: {len(fields)} fields; the header has {len(header)}"
                    continue
                yield f"{path}:{reader.line_num}", [fields[number] for number in at]
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None
    if torn is not None:
        into.notes.append(f"{torn}, and is left out")


def _json_lines(path: Path, into: _Gathered) -> Iterator[tuple[str, list[str]]]:
    for where, told, _ in json_lines(path, into.notes):
        absent = next((name for name in COLUMNS if name not in told), None)
        if absent is not None:
            raise InputError(f"{where}: {absent}: the field is missing; expected {', '.join(COLUMNS)}")
        yield where, [_text(told[name]) for name in COLUMNS]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def read_baseline(path: Path) -> dict[tuple[str, str], str]:
    """Return the baseline of each type and property of a CSV file; the last counts where one is there twice."""
    return {(row["type"], row["property"]): row["value"] for row in _csv_rows(path, BASELINE_COLUMNS)}


def read_inventory(path: Path) -> Inventory:
    """Return the resources of a CSV file with their types, and what its other columns say of them."""
    kinds: dict[str, str] = {}
    labels: dict[str, dict[str, str]] = {}
    for row in _csv_rows(path, INVENTORY_COLUMNS):
        name = row["resource"]
        kinds[name] = row["type"]
        labels[name] = {key: text for key, text in row.items() if key not in INVENTORY_COLUMNS and text}
    return Inventory(kinds, labels)


def _csv_rows(path: Path, wanted: Sequence[str]) -> Iterator[dict[str, str]]:
    with file_faults(path), open_text(path) as file:
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            _require(header, f"{path}:1", wanted)
            for fields in reader:
                if fields and len(fields) != len(header):
                    raise InputError(f"{path}:{reader.line_num}: {len(fields)} fields; the header has {len(header)}")
                if fields:
                    yield dict(zip(header, fields, strict=True))
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None
