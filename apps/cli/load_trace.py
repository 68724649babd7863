"""Loads over time: a CSV file with the load of a pool in each interval."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from math import isfinite
from pathlib import Path

from apps.cli.common import InputError

COLUMN = "load"
MOST_LOAD = 1e6
"""In members that are kept busy."""

MOST_BYTES = 1 << 26
"""Of a file."""


def read_loads(path: Path) -> tuple[float, ...]:
    """Return the column `load` of a file, in members that are kept busy; InputError tells of faults.

    A row that is none is a fault too, for what follows would be an interval early; lines at the end may be empty.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path}: it has more than {MOST_BYTES} bytes")
        loads = tuple(_loads(content.decode("utf-8-sig"), path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: this is no CSV file ({error})") from None
    if not loads:
        raise InputError(f"{path}: there is no interval")
    return loads


def _loads(text: str, path: Path) -> Iterator[float]:
    rows = csv.reader(StringIO(text.rstrip("\r\n"), newline=""))
    names = next(rows, [])
    if names.count(COLUMN) != 1:
        found = ", ".join(names) or "none"
        what = f"no column {COLUMN}" if COLUMN not in names else f"more than one column {COLUMN}"
        raise InputError(f"{path}:1: {what}; found {found}")
    at = names.index(COLUMN)
    for row in rows:
        if len(row) != len(names):
            cells = f"{len(row)} cell{'s' if len(row) != 1 else ''}"
            raise InputError(f"{path}:{rows.line_num}: {cells}, and {len(names)} in the first line")
        yield _load(row[at], path, rows.line_num)


def _load(text: str, path: Path, line: int) -> float:
    try:
        load = -1.0 if "_" in text else float(text)
    except ValueError:
        load = -1.0
    if not (isfinite(load) and 0 <= load <= MOST_LOAD):
        raise InputError(f"{path}:{line}: {COLUMN}: {text!r} is not a number of members from 0 to {MOST_LOAD:.0f}")
    return load
