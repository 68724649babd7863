"""What the kernel asks of the mounted folders, answered from the tree; writing in `do` has something done."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from apps.mount.tree import EVENTS, MountedTree, NoEntry

LINE_BYTES = 4096
"""As long as a line that is written in `do` may be."""

HANDLES = 1024
"""Files that may be open at a time."""

Perform = Callable[[str, str], int]
"""Has a verb done with the words of a line; returns 0, or the number of an error (errno)."""


def refuse(number: int) -> NoReturn:
    """Have the kernel told an error."""
    raise OSError(number, os.strerror(number))


class Handle:
    """A file that is open: what it held when it was opened, or a part of a line that is being written."""

    __slots__ = ("data", "grows", "path")

    def __init__(self, path: list[str], data: bytes, grows: bool) -> None:
        self.path = path
        self.data = data
        self.grows = grows


class MountOperations:
    """The operations of a FUSE file system (the methods have the names that mfusepy calls).

    A file that is open holds what it held when it was opened, so that parts that are read go together, but for the
    events, which grow. Files in `do` are the owner's alone.
    """

    use_ns = True

    def __init__(self, tree: MountedTree, perform: Perform, mounted: Callable[[], None]) -> None:
        self._tree = tree
        self._perform = perform
        self._mounted = mounted
        self._handles: dict[int, Handle] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._begun_ns = time.time_ns()
        self._owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}

    def init(self, path: str) -> None:
        """Say that it is mounted."""
        self._mounted()

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        """Return what a path is."""
        parts = _parts(path)
        try:
            if self._tree.is_folder(parts):
                return self._stat(stat.S_IFDIR | 0o555, 0, 2)
            if self._is_verb(parts):
                return self._stat(stat.S_IFREG | 0o200, 0)
            return self._stat(stat.S_IFREG | 0o444, len(self._tree.read(parts)))
        except NoEntry:
            refuse(errno.ENOENT)

    def readdir(self, path: str, fh: int) -> list[str]:
        """Return the names in a folder."""
        try:
            return [".", "..", *self._tree.names(_parts(path))]
        except NoEntry:
            refuse(errno.ENOENT)

    def open(self, path: str, flags: int) -> int:
        """Open a file to be read, or one of a verb to be written."""
        parts = _parts(path)
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if writes is not self._is_verb(parts):
            refuse(errno.EACCES)
        try:
            data = b"" if writes else self._tree.read(parts)
        except NoEntry:
            refuse(errno.ENOENT)
        with self._lock:
            if len(self._handles) >= HANDLES:
                refuse(errno.EMFILE)
            self._next += 1
            self._handles[self._next] = Handle(parts, data, parts == [EVENTS])
            return self._next

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Return a part of a file."""
        handle = self._handles.get(fh)
        if handle is None:
            refuse(errno.EBADF)
        data = self._tree.read(handle.path) if handle.grows else handle.data
        return data[offset : offset + size]

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        """Let a shell empty a file before it writes; only files of verbs are written."""
        if not self._is_verb(_parts(path)):
            refuse(errno.EACCES)
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Do what whole lines say, one after the other, and keep the rest of a line for later."""
        handle = self._handles.get(fh)
        if handle is None:
            refuse(errno.EBADF)
        *lines, handle.data = (handle.data + data).split(b"\n")
        if len(handle.data) > LINE_BYTES or any(len(line) > LINE_BYTES for line in lines):
            handle.data = b""
            refuse(errno.EMSGSIZE)
        for line in lines:
            if wrong := self._do(handle, line):
                handle.data = b""
                refuse(wrong)
        return len(data)

    def flush(self, path: str, fh: int) -> int:
        """Do a last line without an end, when a file that was written is being closed."""
        handle = self._handles.get(fh)
        if handle is not None and handle.data and self._is_verb(handle.path):
            line, handle.data = handle.data, b""
            if wrong := self._do(handle, line):
                refuse(wrong)
        return 0

    def release(self, path: str, fh: int) -> int:
        """Forget a file that is closed."""
        with self._lock:
            self._handles.pop(fh, None)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        """Return how much there is and how much is free: nothing is kept here."""
        return {"f_bsize": 4096, "f_frsize": 4096, "f_namemax": 255}

    def _do(self, handle: Handle, line: bytes) -> int:
        try:
            return self._perform(handle.path[1], line.decode())
        except UnicodeDecodeError:
            return errno.EINVAL

    def _is_verb(self, parts: list[str]) -> bool:
        return len(parts) == 2 and parts[0] == "do" and parts[1] in self._tree.verbs

    def _stat(self, mode: int, size: int, links: int = 1) -> dict[str, int]:
        times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), self._begun_ns)
        return {"st_mode": mode, "st_nlink": links, "st_size": size, **times, **self._owner}


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
