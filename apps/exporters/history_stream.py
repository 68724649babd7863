"""Reads the counters of the history in the order of their times, a slice at a time: memory is that of some slices."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from apps.exporters.history import EDGE_S, files_of, filter_of, microseconds, naming, read_file
from apps.exporters.journal import SUFFIX
from apps.exporters.parts import part_of
from apps.exporters.schema import KEYS, SCHEMAS, RecordKind, conform
from apps.exporters.share_epochs import EPOCH, EpochsSeen

SLICE_ROWS = 1 << 18
"""Rows of a slice, about."""

_Rows: TypeAlias = dict[str, NDArray[Any]]
_KIND = RecordKind.COUNTERS
_NO_EPOCH = -1
_NEVER_US, _EVER_US = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)


class NotInOrder(Exception):  # noqa: N818
    """A file has rows of an earlier time than it says, or went away meanwhile."""


class Slice(NamedTuple):
    """Rows in the order of their times, none of which is earlier than any of the slice before.

    Attributes
    ----------
    at_us
        int64[n], microseconds since the epoch.
    dpid, port_no
        uint64[n], uint32[n].
    columns
        By name, float64[n] or uint64[n]; null is NaN, and 2**64 - 1 in whole numbers.
    """

    at_us: NDArray[np.int64]
    dpid: NDArray[np.uint64]
    port_no: NDArray[np.uint32]
    columns: dict[str, NDArray[Any]]


def stream_counters(
    places: Sequence[Path],
    columns: Sequence[str],
    *,
    since_s: float,
    until_s: float,
    ports: Collection[tuple[int, int | None]] | None = None,
) -> Iterator[Slice]:
    """Yield what `read_history` returns of counters, by time.

    Raises
    ------
    HistoryFileError
        As `read_history`.
    NotInOrder
        Where it cannot be had by slices: then nothing that was yielded counts.
    """
    is_shared = len(places) > 1
    from_s = since_s - EDGE_S if is_shared else since_s
    names = [*(name for name, _ in KEYS), *columns, *([EPOCH] if is_shared else [])]
    span_us = microseconds(from_s), microseconds(until_s)
    wanted = filter_of(from_s, until_s, ports)
    try:
        lanes = [_Lane(_groups(place, names, wanted, span_us, ports is None)) for place in places]
        epochs, done_us = EpochsSeen(), _EVER_US
        while done_us < _NEVER_US:
            next_lane = min(lanes, key=lambda lane: lane.bound_us)
            ready = [lane.ready(next_lane.bound_us) for lane in lanes]
            if next_lane.bound_us < _NEVER_US and sum(map(len, ready)) < SLICE_ROWS:
                next_lane.advance()
                continue
            bound_us = _slice_end_us(ready, next_lane.bound_us)
            rows = _in_order([part for lane in lanes for part in lane.take(bound_us)])
            if rows and rows["timestamp"][0] < done_us:
                raise NotInOrder
            done_us = bound_us
            if rows and is_shared:
                keep = epochs.counted(rows["timestamp"], rows["dpid"], rows.pop(EPOCH))
                keep &= rows["timestamp"] >= microseconds(since_s)
                if not keep.all():
                    rows = {name: values[keep] for name, values in rows.items()}
            if rows:
                yield Slice(rows.pop("timestamp"), rows.pop("dpid"), rows.pop("port_no"), rows)
    except FileNotFoundError:
        raise NotInOrder from None


class _Group(NamedTuple):
    """Rows of a file that are read at once, none of which is earlier than `least_us`."""

    least_us: int
    read: Callable[[], _Rows]


class _Lane:
    """The rows of one monitor's files, of which a row group at a time, or a journal, is in memory."""

    def __init__(self, groups: list[_Group]) -> None:
        self._groups = deque(sorted(groups, key=lambda group: group.least_us))
        self._waiting: list[_Rows] = []

    @property
    def bound_us(self) -> int:
        """The time before which there are no more rows to read."""
        return self._groups[0].least_us if self._groups else _NEVER_US

    def advance(self) -> None:
        """Read on."""
        rows = self._groups.popleft().read()
        if len(rows["timestamp"]):
            self._waiting.append(_in_order([rows]))

    def ready(self, bound_us: int) -> NDArray[np.int64]:
        """Return the times of the rows before a time, by parts in order."""
        parts = [rows["timestamp"] for rows in self._waiting] or [np.empty(0, np.int64)]
        return np.concatenate([at_us[: np.searchsorted(at_us, bound_us)] for at_us in parts])

    def take(self, bound_us: int) -> Iterator[_Rows]:
        """Yield the rows before a time, which wait no longer, in parts."""
        waiting, self._waiting = self._waiting, []
        for rows in waiting:
            end = int(np.searchsorted(rows["timestamp"], bound_us))
            if end:
                yield {name: values[:end] for name, values in rows.items()}
            if end < len(rows["timestamp"]):
                self._waiting.append({name: values[end:] for name, values in rows.items()})


def _slice_end_us(ready: Sequence[NDArray[np.int64]], bound_us: int) -> int:
    """Return up to when rows are taken next, about `SLICE_ROWS` of those that are ready."""
    count = sum(map(len, ready))
    if count < 2 * SLICE_ROWS:
        return bound_us
    at_us = np.sort(max(ready, key=len), kind="stable")
    return int(max(at_us[len(at_us) * SLICE_ROWS // count], min(each.min() for each in ready if len(each)) + 1))


def _in_order(parts: Sequence[_Rows]) -> _Rows:
    """Return rows by time, in arrays of their own."""
    if not parts:
        return {}
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(rows["timestamp"], kind="stable")
    return {name: values[order] for name, values in rows.items()}


def _groups(
    directory: Path, names: Sequence[str], wanted: pc.Expression, span_us: tuple[int, int], are_all_wanted: bool
) -> list[_Group]:
    """Return the parts of a monitor's files that may have rows of a time."""
    found: list[_Group] = []
    for path in files_of(directory / _KIND, span_us[0] / 1e6, span_us[1] / 1e6):
        part = part_of(path)
        begin_us = _EVER_US if part is None else part.period.start_s * 1_000_000
        with naming(path):
            if path.suffix == SUFFIX:
                found.append(_Group(begin_us, partial(_read_journal, path, names, wanted)))
                continue
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
            conform(schema.empty_table(), _KIND, str(path), names)
            place = schema.names.index("timestamp")
            for number in range(metadata.num_row_groups):
                told = metadata.row_group(number).column(place).statistics
                least_us, most_us = (told.min_raw, told.max_raw) if told is not None else (begin_us, _NEVER_US)
                if most_us < span_us[0] or least_us >= span_us[1]:
                    continue
                is_inside = are_all_wanted and span_us[0] <= least_us and most_us < span_us[1]
                read = partial(_read_group, path, number, names, None if is_inside else wanted)
                found.append(_Group(least_us, read))
    return found


def _read_journal(path: Path, names: Sequence[str], wanted: pc.Expression) -> _Rows:
    return _arrays(read_file(path, _KIND, names, wanted))


def _read_group(path: Path, number: int, names: Sequence[str], wanted: pc.Expression | None) -> _Rows:
    with naming(path), pq.ParquetFile(path) as file:
        there = [name for name in names if name in file.schema_arrow.names]
        table = file.read_row_group(number, there).replace_schema_metadata(file.schema_arrow.metadata)
        table = conform(table, _KIND, str(path), names)
        return _arrays(table if wanted is None else table.filter(wanted))


def _arrays(table: pa.Table) -> _Rows:
    """Return columns without nulls."""
    found: _Rows = {}
    for name in table.schema.names:
        column, kind = table.column(name), SCHEMAS[_KIND].field(name).type
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.int64())
        elif column.null_count:
            absent = np.nan if pa.types.is_floating(kind) else _NO_EPOCH if name == EPOCH else (1 << 64) - 1
            column = column.fill_null(pa.scalar(absent, kind))
        found[name] = column.to_numpy()
    return found
