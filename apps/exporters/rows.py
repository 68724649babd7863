"""Batches as rows of the history files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from apps.exporters.parts import HOUR_S, FilePeriod
from apps.exporters.schema import ROLL_UPS, SCHEMAS, RecordKind
from apps.exporters.sink import RatedSamples
from controller.performance.batch import Discontinuity
from controller.performance.counters import UNSUPPORTED
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps

_LABELS = pa.array([None if code is Discontinuity.NONE else code.label for code in Discontinuity], pa.string())


class PortKeys:
    """dpid and port number by row of a `PortRows`, as arrays; a row that changes its port is noticed."""

    def __init__(self, ports: PortRows) -> None:
        self._ports = ports
        self._generation = np.zeros(0, np.uint32)
        self._dpid = np.zeros(0, np.uint64)
        self._port_no = np.zeros(0, np.uint32)

    def of(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return dpid and port_no of rows."""
        ports = self._ports
        if len(self._generation) < ports.capacity:
            missing = ports.capacity - len(self._generation)
            self._generation = np.append(self._generation, np.zeros(missing, np.uint32))
            self._dpid = np.append(self._dpid, np.zeros(missing, np.uint64))
            self._port_no = np.append(self._port_no, np.zeros(missing, np.uint32))
        generation = ports.generation[rows]
        changed = generation != self._generation[rows]
        if changed.any():
            for row in rows[changed].tolist():
                self._dpid[row], self._port_no[row], _ = ports.name(row)
            self._generation[rows] = generation
        return self._dpid[rows], self._port_no[rows]


class Rows(NamedTuple):
    """Rows of one kind: the columns that name them, and the others in the order of the schema, some side by side.

    `owners` is the monitor and the epoch of each row; None where the kind has none, or no monitor shares.
    """

    kind: RecordKind
    at_s: NDArray[np.float64]
    dpid: NDArray[np.uint64]
    port_no: NDArray[np.uint32]
    values: tuple[NDArray[np.generic], ...]
    owners: tuple[str, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.at_s)

    def take(self, which: NDArray[np.bool_]) -> Rows:
        """Return the rows of a mask."""
        values = tuple(value[which] for value in self.values)
        owners = None if self.owners is None else (self.owners[0], self.owners[1][which])
        return Rows(self.kind, self.at_s[which], self.dpid[which], self.port_no[which], values, owners)


def counter_rows(batch: RatedSamples, keys: PortKeys, speed_bps: NDArray[np.float64], monitor: str = "") -> Rows:
    """Return the rows of a batch's samples; `speed_bps` is by row of the table, 0 where unknown."""
    samples = batch.samples
    speed = speed_bps[samples.rows]
    speed[speed == 0] = np.nan
    values = (samples.duration_s, speed, samples.counters)
    owners = None if batch.epochs is None else (monitor, batch.epochs)
    return Rows(RecordKind.COUNTERS, samples.at_s, *keys.of(samples.rows), values, owners)


def rate_rows(batch: RatedSamples, keys: PortKeys, monitor: str = "") -> Rows:
    """Return the rows of a batch's significant rates."""
    rates, epochs = batch.rates, batch.epochs
    if batch.significant is not None:
        rates = rates.take(batch.significant)
        epochs = None if epochs is None else epochs[batch.significant]
    values = (rates.interval_s, rates.per_s, rates.utilisation_pct, rates.discontinuity)
    owners = None if epochs is None else (monitor, epochs)
    return Rows(RecordKind.RATES, rates.at_s, *keys.of(rates.rows), values, owners)


def roll_up_rows(roll_ups: RollUps, keys: PortKeys) -> Rows:
    """Return roll-ups as rows; their time is when their period began, and what was never known is NaN."""
    total = np.where(np.isnan(roll_ups.mean), np.nan, roll_ups.total)
    values = (roll_ups.count, roll_ups.covered_s, roll_ups.minimum, roll_ups.mean, roll_ups.maximum, total)
    return Rows(ROLL_UPS[roll_ups.step_s], roll_ups.start_s, *keys.of(roll_ups.rows), values)


def split_by_period(rows: Rows, hours: int) -> Iterator[tuple[FilePeriod, Rows]]:
    """Yield each period of so many hours, with its rows."""
    length_s = hours * HOUR_S
    first, last = int(rows.at_s.min() // length_s), int(rows.at_s.max() // length_s)
    if first == last:
        yield FilePeriod(first * hours, hours), rows
        return
    numbers = rows.at_s // length_s
    for number in np.unique(numbers):
        yield FilePeriod(int(number) * hours, hours), rows.take(numbers == number)


def record_batch(members: Sequence[Rows]) -> pa.RecordBatch:
    """Return rows of one kind as Arrow columns; what is unknown or unsupported is null."""
    schema = SCHEMAS[members[0].kind]
    at_us = np.round(np.concatenate([rows.at_s for rows in members]) * 1e6).astype(np.int64)
    columns: list[pa.Array] = [
        pa.array(at_us).cast(schema.field("timestamp").type),
        pa.array(np.concatenate([rows.dpid for rows in members])),
        pa.array(np.concatenate([rows.port_no for rows in members])),
    ]
    for values in zip(*(rows.values for rows in members), strict=True):
        value = np.concatenate(values)
        for column in (value,) if value.ndim == 1 else np.ascontiguousarray(value.T):
            columns.append(_column(column, schema.field(len(columns)).type))
    if len(columns) < len(schema):
        columns += _owner_columns(members)
    return pa.record_batch(columns, schema=schema)


def _owner_columns(members: Sequence[Rows]) -> list[pa.Array]:
    """Return who polled the rows, and in which epochs."""
    monitors, epochs = [], []
    for rows in members:
        monitor, epoch = rows.owners or (None, None)
        monitors.append(pa.repeat(pa.scalar(monitor, pa.string()), len(rows)))
        epochs.append(pa.nulls(len(rows), pa.int64()) if epoch is None else pa.array(epoch, pa.int64()))
    return [pa.concat_arrays(monitors), pa.concat_arrays(epochs)]


def _column(column: NDArray[np.generic], type_: pa.DataType) -> pa.Array:
    if pa.types.is_floating(type_):
        return pa.array(column.astype(type_.to_pandas_dtype()), from_pandas=True)
    if pa.types.is_string(type_):
        return _LABELS.take(pa.array(column))
    missing = column == np.uint64(UNSUPPORTED)
    return pa.array(column, mask=missing) if missing.any() else pa.array(column)
