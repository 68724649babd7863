"""The columns of the history files, and the version of each file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa

from controller.performance.counters import COUNTERS

VERSION = 2
"""Goes up with any change of the columns. A file of an older version is read; what it lacks is null."""

VERSION_KEY = b"vsrt.schema_version"


class RecordKind(StrEnum):
    """What a file holds; the value is the name of its directory."""

    COUNTERS = "counters"
    RATES = "rates"
    SECONDS = "roll-ups-1s"
    MINUTES = "roll-ups-1min"
    HOURS = "roll-ups-1h"


ROLL_UPS = {1: RecordKind.SECONDS, 60: RecordKind.MINUTES, 3600: RecordKind.HOURS}
"""Roll-ups by their length in seconds."""

PERIOD_HOURS = {kind: 24 if kind is RecordKind.HOURS else 1 for kind in RecordKind}
"""How many hours the files of a kind hold."""


KEYS = [("timestamp", pa.timestamp("us", tz="UTC")), ("dpid", pa.uint64()), ("port_no", pa.uint32())]

OWNERS = [("monitor", pa.string()), ("share_epoch", pa.int64())]
"""Which monitor polled, and in which epoch of the switch's share; null where a monitor shares with no other."""

RATE_COLUMNS = tuple(f"{name}_per_s" for name in COUNTERS)
_ROLL_UP_COLUMNS = [
    ("count", pa.uint32()),
    ("covered_s", pa.float32()),
    *((f"{name}_{what}_per_s", pa.float32()) for what in ("min", "mean", "max") for name in COUNTERS),
    *((f"{name}_sum", pa.float64()) for name in COUNTERS),
]

SCHEMAS: dict[RecordKind, pa.Schema] = {
    kind: pa.schema([*KEYS, *columns]).with_metadata({VERSION_KEY: str(VERSION)})
    for kind, columns in {
        RecordKind.COUNTERS: [
            ("duration_s", pa.float64()),
            ("speed_bps", pa.float64()),
            *((name, pa.uint64()) for name in COUNTERS),
            *OWNERS,
        ],
        RecordKind.RATES: [
            ("interval_s", pa.float32()),
            *((name, pa.float32()) for name in RATE_COLUMNS),
            ("rx_utilisation_pct", pa.float32()),
            ("tx_utilisation_pct", pa.float32()),
            ("discontinuity", pa.string()),
            *OWNERS,
        ],
        **dict.fromkeys(ROLL_UPS.values(), _ROLL_UP_COLUMNS),
    }.items()
}


class HistoryFileError(Exception):
    """A history file that cannot be read; the text names it and says why."""


def conform(table: pa.Table, kind: RecordKind, source: str, wanted: Sequence[str]) -> pa.Table:
    """Return a file's table with the `wanted` of today's columns.

    Columns that an older version lacks are null, and columns that are not known are left out. HistoryFileError where
    the file is of a newer version, is none of ours, or lacks a column that says which port and when.
    """
    fields = [SCHEMAS[kind].field(name) for name in wanted]
    written = (table.schema.metadata or {}).get(VERSION_KEY)
    if written is None or not written.isdigit():
        raise HistoryFileError(f"{source}: this is no history file: its metadata has no {VERSION_KEY.decode()}")
    if int(written) > VERSION:
        raise HistoryFileError(
            f"{source}: the file has version {int(written)}, and this program reads versions up to {VERSION}"
        )
    names = set(table.schema.names)
    columns = []
    for field in fields:
        if field.name in names:
            try:
                columns.append(table.column(field.name).cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise HistoryFileError(f"{source}: column {field.name}: {error}") from error
        elif field.name in dict(KEYS):
            raise HistoryFileError(f"{source}: the column {field.name} is missing")
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.table(columns, schema=pa.schema(fields, SCHEMAS[kind].metadata))
