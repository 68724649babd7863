"""Recordings of running apps: VSRT_RECORD names a file, to which each app appends what its core is given."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

from apps.line_files import FILE_MODE, cut_torn_line
from controller.recording import write_line

RECORD_BYTES = 1 << 28
"""What one app writes at most; later events are left out."""


class Recorder:
    """Appends one app's lines to a file; a line is written at once, so that apps may share the file.

    What a crash or a full disk left of a line is cut off when the file is opened next. `fault` says why the recording
    ended before it was full, None where it did not.

    SystemExit, saying why, where the file cannot be opened.
    """

    def __init__(self, path: str, app: str, logger: logging.Logger) -> None:
        self._app = app
        self._logger = logger
        self._left_bytes = RECORD_BYTES
        self._path = path
        self.fault: str | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
            length = os.fstat(self._file).st_size
            if length and os.pread(self._file, 1, length - 1) != b"\n":
                cut_torn_line(Path(path))
        except OSError as error:
            raise SystemExit(f"vsrt: the recording {path}: {error.strerror}") from error

    def write(self, at_s: float, kind: str, content: Any) -> None:
        """Append a start or an event."""
        if self._left_bytes <= 0:
            return
        line = write_line(self._app, at_s, kind, content).encode() + b"\n"
        self._left_bytes -= len(line)
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            reason = f"it has {RECORD_BYTES} bytes" if self._left_bytes <= 0 else None
        except OSError as error:
            self._left_bytes = 0
            reason = error.strerror or str(error)
            self.fault = f"The recording {self._path} ended ({reason}): it goes on when the controller starts anew."
        if reason is not None:
            self._logger.warning("The recording of %s ends here: %s.", self._app, reason)
