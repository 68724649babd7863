"""Profiles that are not whole yet: who writes one holds a lock on it, which ends with the process."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

SUFFIX = ".part"


def part_of(path: Path) -> Path:
    """Return where a profile is written until it is whole."""
    return path.with_name(f"{path.name}{SUFFIX}")


def hold(part: Path) -> int:
    """Hold the lock of a file that is there until the descriptor is closed, or the process ends; OSError."""
    descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def clear_left(directory: Path) -> list[Path]:
    """Remove the files that nobody writes any more, and return which these were."""
    cleared = []
    for part in sorted(directory.glob(f"*.parquet{SUFFIX}")):
        with suppress(OSError):  # it is written, or somebody else has removed it
            descriptor = hold(part)
            part.unlink()
            os.close(descriptor)
            cleared.append(part)
    return cleared
