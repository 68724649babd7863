"""Loads of links as a CSV or Parquet file, which is there whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from apps.cli.common import InputError, OperationFailed
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


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path` and put it in its place; OperationFailed where that is not possible."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OperationFailed(f"{path}: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise OperationFailed(f"{path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
