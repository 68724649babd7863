"""Roll-ups of a port in files as the monitor writes them, with rates that do not change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from apps.exporters.schema import SCHEMAS, RecordKind


def write_roll_ups(
    directory: Path, kind: RecordKind, place: tuple[int, int], start_s: float, count: int, **mean_per_s: float
) -> None:
    """Write one file of roll-ups from `start_s` on: minutes of an hour, or hours of a day."""
    length_s, form = (3600.0, "%Y-%m-%dZ-0000") if kind is RecordKind.HOURS else (60.0, "%Y-%m-%dT%HZ-0000")
    schema = SCHEMAS[kind]
    columns: dict[str, Any] = {field.name: [0.0] * count for field in schema}
    columns["timestamp"] = [round((start_s + length_s * number) * 1e6) for number in range(count)]
    columns |= {"dpid": [place[0]] * count, "port_no": [place[1]] * count, "count": [4] * count}
    columns |= {f"{name}_mean_per_s": [rate] * count for name, rate in mean_per_s.items()}
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema]
    (directory / kind).mkdir(parents=True, exist_ok=True)
    name = datetime.fromtimestamp(start_s, UTC).strftime(form)
    pq.write_table(pa.table(arrays, schema=schema), directory / kind / f"{name}.parquet")
