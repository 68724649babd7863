"""Profiles as Parquet files: a row for each span, and what the profile was in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from apps.profile_parts import SUFFIX, hold, part_of
from apps.version import version
from controller.profiles.spans import Operation, Span, SpanOutcome

PROFILE_VERSION = 1
KEY, END_KEY = b"vsrt-profile", b"vsrt-profile-end"

_WORD = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("operation", _WORD, nullable=False),
        pa.field("object", pa.string(), nullable=False),
        pa.field("start_s", pa.float64(), nullable=False),
        pa.field("took_s", pa.float64(), nullable=False),
        pa.field("wait_loop_s", pa.float64()),
        pa.field("wait_controller_s", pa.float64()),
        pa.field("wait_switch_s", pa.float64()),
        pa.field("wait_disk_s", pa.float64()),
        pa.field("outcome", _WORD, nullable=False),
    ]
)
"""`start_s` is seconds since 1970-01-01 UTC, all else with `_s` a duration in seconds."""

WORDS = {"operation": tuple(Operation), "outcome": tuple(SpanOutcome)}


class ProfileFileError(ValueError):
    """A file that cannot be read as a profile; the text names it and says why."""


class ProfileFile:
    """A profile that is being written, at `path` with ``.part`` behind it until it is whole.

    `offset_s` is what is added to a span's clock for the time of day. OSError where it cannot be written.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], offset_s: float) -> None:
        self.path = path
        self.part = part_of(path)
        self._offset_s = offset_s
        told = {"version": PROFILE_VERSION, "controller": version(), **about}
        schema = SCHEMA.with_metadata({KEY: json.dumps(told).encode()})
        self._writer = pq.ParquetWriter(self.part, schema, compression="zstd", write_page_checksum=True)
        self._lock = hold(self.part)

    def write(self, spans: Iterable[Span]) -> None:
        """Write a group of rows."""
        self._writer.write_table(_table(spans, self._offset_s))

    def close(self, end: Mapping[str, Any]) -> None:
        """Make it whole, under its own name."""
        self._writer.add_key_value_metadata({END_KEY.decode(): json.dumps(dict(end))})
        self._writer.close()
        self.part.replace(self.path)
        os.close(self._lock)


def _table(spans: Iterable[Span], offset_s: float) -> pa.Table:
    rows = list(spans)
    columns = {
        "operation": pa.array([each.operation.value for each in rows], pa.string()).cast(_WORD),
        "object": pa.array([each.subject for each in rows], pa.string()),
        "start_s": pa.array([each.begun_s + offset_s for each in rows], pa.float64()),
        "took_s": pa.array([max(0.0, each.ended_s - each.begun_s) for each in rows], pa.float64()),
        **{
            f"wait_{name}": pa.array([getattr(each.waits, name) for each in rows], pa.float64())
            for name in ("loop_s", "controller_s", "switch_s", "disk_s")
        },
        "outcome": pa.array([each.outcome.value for each in rows], pa.string()).cast(_WORD),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


class Profile(NamedTuple):
    """A profile as it was read: what it was, how it ended, and the columns of its spans."""

    path: Path
    about: Mapping[str, Any]
    end: Mapping[str, Any]
    table: pa.Table


def read_profile(path: Path, progress: Callable[[str, int, int], None]) -> Profile:
    """Return a profile; ProfileFileError where the file is cut, damaged, of another version or none."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            about = _about(path, file.schema_arrow)
            groups = []
            for number in range(file.num_row_groups):
                progress(f"row groups of {path.name}", number, file.num_row_groups)
                groups.append(file.read_row_group(number))
            end = _json(path, file.metadata.metadata.get(END_KEY, b"{}"))
    except OSError as error:
        if isinstance(error, pa.ArrowException) or error.strerror is None:
            raise ProfileFileError(_damaged(path, error)) from None
        raise ProfileFileError(f"{path}: {error.strerror}") from None
    except pa.ArrowInvalid as error:
        raise ProfileFileError(_unreadable(path, error)) from None
    except pa.ArrowException as error:
        raise ProfileFileError(_damaged(path, error)) from None
    table = pa.concat_tables(groups) if groups else SCHEMA.empty_table()
    return Profile(path, about, end, table)


def _about(path: Path, schema: pa.Schema) -> Mapping[str, Any]:
    told = (schema.metadata or {}).get(KEY)
    if told is None:
        raise ProfileFileError(f"{path}: a Parquet file, and no profile: `vsrt profile start` makes one")
    about = _json(path, told)
    if about.get("version") != PROFILE_VERSION:
        by = f", written by version {about.get('controller', 'unknown')} of the controller"
        raise ProfileFileError(
            f"{path}: a profile of version {about.get('version')!r}{by}; this command reads {PROFILE_VERSION}"
        )
    types = {field.name: field.type for field in schema}
    missing = [field.name for field in SCHEMA if types.get(field.name) != field.type]
    if missing:
        raise ProfileFileError(f"{path}: columns are missing or of another type: {', '.join(missing)}")
    return about


def _json(path: Path, text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ProfileFileError(f"{path}: the file is damaged: what it says of itself is no JSON object")
    return found


def _damaged(path: Path, error: Exception) -> str:
    return f"{path}: the file is damaged: {' '.join(str(error).split())}"


def _unreadable(path: Path, error: Exception) -> str:
    try:
        with path.open("rb") as file:
            is_begun = file.read(4) == b"PAR1"
    except OSError:
        is_begun = False
    if not is_begun:
        return f"{path}: no Parquet file"
    if path.suffix == SUFFIX:
        return f"{path}: the file is cut: it is still written, or the controller ended before it was whole"
    return f"{path}: the file is cut, or damaged: {str(error).splitlines()[0]}"
