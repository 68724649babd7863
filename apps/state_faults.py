"""Files of the state directory that a restart could not read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

LOOKED_AT_BYTES = 256 * 1024
"""How much of the end of a file of lines is read: what was written last."""

_SQLITE = b"SQLite format 3\0"


def unreadable_files(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield name and fault of every file of ours that cannot be read: lines of JSON that are none, databases cut."""
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file())
    except OSError as error:
        yield str(directory), error.strerror or str(error)
        return
    for path in files:
        fault = _fault(path)
        if fault is not None:
            yield str(path), fault


def _fault(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            if path.suffix == ".sqlite":
                head = file.read(len(_SQLITE))
                return None if head in (b"", _SQLITE) else "it is no SQLite database"
            if path.suffix == ".jsonl":
                size = file.seek(0, 2)
                file.seek(max(0, size - LOOKED_AT_BYTES))
                return _fault_of_lines(file.read(), cut=size > LOOKED_AT_BYTES)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _fault_of_lines(text: bytes, *, cut: bool) -> str | None:
    """Return what is wrong with lines of JSON; the first may be cut, and the last one is being written."""
    lines = text.split(b"\n")[:-1]
    bad = 0
    for line in lines[1:] if cut else lines:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            bad += 1
    return f"{bad} of its last {len(lines)} lines are no JSON" if bad else None
