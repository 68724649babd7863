"""Loads of links as a CSV or Parquet file, which is there whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from apps.cli.common import InputError
from apps.cli.whole_files import write_whole
from topology.graph import NodeId

COLUMNS = ("algorithm", "u", "v", "load_bps", "utilisation_pct")
SUFFIXES = (".csv", ".parquet")


class LinkLoad(NamedTuple):
    """What an algorithm's trees put on one link."""

    algorithm: str
    u: NodeId
    v: NodeId
    load_bps: int
    utilisation_pct: float


def check_loads_path(path: Path) -> None:
    """Raise InputError for a name that tells no format, and a folder that is not there."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--loads: {path} ends in none of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"--loads: {path.parent} is no folder")


def write_loads(path: Path, rows: Sequence[LinkLoad]) -> None:
    """Write the rows; see `write_whole`."""
    write = _write_parquet if path.suffix.lower() == ".parquet" else _write_csv
    write_whole(path, lambda temporary: write(temporary, rows))


def _write_csv(path: Path, rows: Sequence[LinkLoad]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def _write_parquet(path: Path, rows: Sequence[LinkLoad]) -> None:
    import pyarrow
    import pyarrow.parquet

    names, us, vs, loads, utilisations = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    columns = [
        pyarrow.array(names, pyarrow.string()).dictionary_encode(),
        pyarrow.array([str(u) for u in us], pyarrow.string()),
        pyarrow.array([str(v) for v in vs], pyarrow.string()),
        pyarrow.array(loads, pyarrow.int64()),
        pyarrow.array(utilisations, pyarrow.float64()),
    ]
    pyarrow.parquet.write_table(pyarrow.table(columns, names=list(COLUMNS)), path, compression="zstd")
