"""Aggregates of scripts as a Parquet file: a line for each key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.cli.common import OperationFailed


def write_aggregates(path: Path, found: Mapping[str, Any]) -> None:
    """Write the name, keys (as text), figures and histogram of each row; OperationFailed where it cannot."""
    import pyarrow
    import pyarrow.parquet

    rows = [(name, row) for name, each in found["aggregates"].items() for row in each]
    histogram = pyarrow.list_(pyarrow.struct([("low", pyarrow.int64()), ("count", pyarrow.int64())]))
    columns = {
        "aggregate": pyarrow.array([name for name, _ in rows], pyarrow.string()),
        "keys": pyarrow.array(
            [[str(key) for key in row["keys"]] for _, row in rows], pyarrow.list_(pyarrow.string())
        ),
        "count": pyarrow.array([row["count"] for _, row in rows], pyarrow.int64()),
        "mean": pyarrow.array([row["sum"] / row["count"] for _, row in rows], pyarrow.float64()),
        "min": pyarrow.array([row["min"] for _, row in rows], pyarrow.int64()),
        "max": pyarrow.array([row["max"] for _, row in rows], pyarrow.int64()),
        "histogram": pyarrow.array(
            [[{"low": low, "count": count} for low, count in row["histogram"]] for _, row in rows], histogram
        ),
    }
    try:
        pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    except OSError as error:
        raise OperationFailed(f"{path}: {error.strerror or error}") from None
