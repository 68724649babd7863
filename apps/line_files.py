"""Files of lines that survive a crash at any byte: appended to by whole lines or not at all, and put on the disk."""

from __future__ import annotations

import os
from pathlib import Path

MODE = 0o640


def append_lines(path: Path, text: bytes) -> None:
    """Append whole lines, or nothing where OSError is raised; a line that a crash left torn is ended first."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
    try:
        length = os.fstat(fd).st_size
        if length and os.pread(fd, 1, length - 1) != b"\n":
            text = b"\n" + text
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError:
            os.ftruncate(fd, length)
            raise
    finally:
        os.close(fd)


def cut_torn_line(path: Path) -> int:
    """Remove what stands behind the last line end, and return how many bytes that were."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return len(content) - whole


def sync_file(path: Path) -> None:
    """Return when what was written to a file is on the disk; OSError where it does not get there."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)


def sync_directory(path: Path) -> None:
    """Return when the names of a directory's files are on the disk; OSError where they do not get there."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
