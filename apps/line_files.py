"""Files that survive a crash at any byte: written by whole lines, or as a whole, or not at all.

What the controller writes its group may read, as a log shipper does, and nobody else: `FILE_MODE`, `DIRECTORY_MODE`.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE, DIRECTORY_MODE = 0o640, 0o750


def make_directory(path: Path) -> None:
    """Make a directory for the controller's files, and those above it, where it is not there."""
    try:
        path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    except FileNotFoundError:  # `parents=True` would leave the mode of those above to the umask
        make_directory(path.parent)
        path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file where there is none, with the mode that the controller's files have."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def append_lines(path: Path, text: bytes) -> None:
    """Append whole lines, or nothing where OSError is raised; a line that a crash left torn is ended first."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
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


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of another, whole and on the disk, or nothing where OSError is raised."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    append_lines(new, content)
    sync_file(new)
    new.replace(path)
    sync_directory(path.parent)


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
