"""Roll-ups as `vsrt perf history --roll-up` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from apps.cli.common import emit_json, emit_table
from apps.cli.perf_console import scaled
from apps.cli.times import Clock
from apps.exporters.schema import ROLL_UPS
from controller.performance.counters import COUNTERS, FIRST_ERROR_COLUMN
from controller.wire.dpids import format_dpid

LENGTHS = {kind.value.rpartition("-")[2]: kind for kind in ROLL_UPS.values()}
"""Kinds of roll-ups by what their length is called: 1s, 1min, 1h."""

_SPREAD = ("mean", "max")
TITLES = ("start (UTC)", "port", "samples", "known s", "rx bit/s min", *_SPREAD, "tx bit/s min", *_SPREAD, "errors")
_RATES = ("min_per_s", "mean_per_s", "max_per_s")


def print_roll_ups(length: str, table: pa.Table, clock: Clock, *, as_json: bool) -> None:
    """Print the rows of roll-ups that `read_history` returned."""
    seconds = pc.divide(table.column("timestamp").cast(pa.int64()).cast(pa.float64()), 1e6)
    rows = table.drop_columns("timestamp").append_column("start_s", seconds).to_pylist()
    if as_json:
        emit_json({"roll_up": length, "periods": [_document(row) for row in rows]})
    else:
        emit_table(clock.titles(TITLES), (tuple(_cells(row, clock)) for row in rows))


def _document(row: dict[str, Any]) -> dict[str, Any]:
    counters = {name: {what: row[f"{name}_{what}"] for what in (*_RATES, "sum")} for name in COUNTERS}
    named = {name: row[name] for name in ("start_s", "dpid", "port_no", "count", "covered_s")}
    return {**named, "counters": counters}


def _cells(row: dict[str, Any], clock: Clock) -> Iterator[str]:
    yield clock(row["start_s"])
    yield f"{format_dpid(row['dpid'])}:{row['port_no']}"
    yield str(row["count"])
    yield f"{row['covered_s']:g}"
    for counter in ("rx_bytes", "tx_bytes"):
        for what in _RATES:
            rate = row[f"{counter}_{what}"]
            yield scaled(None if rate is None else 8 * rate)
    yield f"{sum(row[f'{name}_sum'] or 0.0 for name in COUNTERS[FIRST_ERROR_COLUMN:]):g}"
