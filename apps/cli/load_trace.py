"""Loads over time: a CSV file with the load of a pool in each interval."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

from apps.cli.common import InputError

COLUMN = "load"


def read_loads(path: Path) -> tuple[float, ...]:
    """Return the column `load` of a file, in members that are kept busy; InputError tells of faults."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if COLUMN not in (rows.fieldnames or ()):
                found = ", ".join(rows.fieldnames or ()) or "none"
                raise InputError(f"{path}:1: no column {COLUMN}; found {found}")
            loads = tuple(_load(row.get(COLUMN), path, rows.line_num) for row in rows)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: this is no CSV file ({error})") from None
    if not loads:
        raise InputError(f"{path}: there is no interval")
    return loads


def _load(text: str | None, path: Path, line: int) -> float:
    try:
        load = float(text or "")
    except ValueError:
        load = -1.0
    if not 0 <= load < inf:
        raise InputError(f"{path}:{line}: {COLUMN}: {text!r} is not a number of members from 0 on")
    return load
