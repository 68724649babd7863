"""Times of a column of a file: texts, numbers or timestamps."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from apps.cli.common import InputError
from apps.cli.times import EARLIEST_S, LATEST_S, time_of


def times_of(column: pa.Array, name: str, path: Path, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], bool]:
    """Return the epoch seconds of the given rows of the file, (n,), and whether their zone was told."""
    kind = column.type
    zoned = True
    if column.null_count:
        row = rows[np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]]
        raise InputError(f"{path}: row {row + 1}: {name}: expected a time, found nothing")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        whole = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        at_s = whole.to_numpy() / 1e6
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        at_s = column.to_numpy().astype(np.float64)
    else:
        texts = column.cast(pa.string()).to_pylist()
        parsed = [
            time_of(text, f"{path}: row {row + 1}: {name}") for text, row in zip(texts, rows.tolist(), strict=True)
        ]
        zoned = all(known for _, known in parsed)
        at_s = np.array([at for at, _ in parsed], np.float64)
    odd = np.flatnonzero(~((at_s >= EARLIEST_S) & (at_s <= LATEST_S)))
    if len(odd):
        raise InputError(
            f"{path}: row {rows[odd[0]] + 1}: {name}: {at_s[odd[0]]:g} is out of the range of epoch seconds"
        )
    return cast(NDArray[np.float64], at_s), zoned
