"""Locks on files, by which a controller keeps another from its files and its socket; the kernel takes them back."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from apps.line_files import FILE_MODE


class LockHeld(Exception):  # noqa: N818
    """Another process holds the lock; the text says which."""


def lock(path: Path) -> int:
    """Lock the file at `path`, made where it is missing, until its descriptor is closed or the process ends.

    LockHeld where another process has it, OSError where it cannot be made or locked. The file stays: a lock on
    a file that has gone would keep nobody off.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise LockHeld(f"process {holder}" if holder.isdigit() else "another process") from None
    except OSError:
        os.close(descriptor)
        raise
    with contextlib.suppress(OSError):  # whom it names is a help; what counts is the lock
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
