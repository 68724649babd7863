"""An append-only Arrow stream: what is in it outlives the process, and a full disk leaves nothing torn behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from apps.line_files import FILE_MODE

SUFFIX = ".arrows"


class LockedJournal:
    """A journal that this process holds the lock of; made by `create` or `adopt`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.rows = 0
        self._fd = fd
        self._length = 0

    @classmethod
    def create(cls, path: Path, schema: pa.Schema) -> LockedJournal:
        """Begin a journal; FileExistsError where there is such a file already."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        journal = cls(path, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal._write(schema.serialize())
        except OSError:
            path.unlink(missing_ok=True)
            journal.close()
            raise
        return journal

    @classmethod
    def adopt(cls, path: Path) -> LockedJournal | None:
        """Take over the journal of a process that has ended, to finish it; None where its writer is there."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        return cls(path, fd)

    def append(self, batch: pa.RecordBatch, synchronised: bool = False) -> None:
        """Hand one batch to the operating system, whole; after an OSError nothing of it is in the file.

        A `synchronised` one is on the disk when this returns.
        """
        self._write(batch.serialize(), synchronised)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Let go of the file; another process may take it from now on."""
        os.close(self._fd)

    def _write(self, message: pa.Buffer, synchronised: bool = False) -> None:
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            if synchronised:
                os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._length)
            raise
        self._length += len(message)


def read_journal(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the whole batches of a journal; a batch torn by a power failure, and what is behind it, is left out."""
    with pa.OSFile(str(path)) as file:
        try:
            reader = pa.ipc.open_stream(file)
        except pa.ArrowInvalid:
            return
        while True:
            try:
                batch = reader.read_next_batch()
            except (StopIteration, pa.ArrowInvalid):
                return
            except OSError as error:
                if error.errno is None:  # the stream ends within a batch
                    return
                raise
            yield batch
