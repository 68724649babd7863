"""Events as JSON lines in files of bounded size, by a thread of its own."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.exporters.backlog import Backlog
from apps.exporters.fault import OutputFault
from apps.exporters.settings import EventLogSettings
from apps.line_files import append_lines, make_directory

FLUSH_S = 1.0
RETRY_S = 1.0
CLOSE_TIMEOUT_S = 5.0


class EventLogFile:
    """Appends one JSON object per event to `path`; older files are ``path.1``, ``path.2`` and so on."""

    def __init__(self, path: Path, settings: EventLogSettings, logger: logging.Logger) -> None:
        self.fault = OutputFault(f"the log of events {path}", logger)
        self.written = 0
        self._path = path
        self._settings = settings
        self._backlog: Backlog[bytes] = Backlog(settings.backlog_events, 1)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Events that gave way to newer ones while they could not be written."""
        return self._backlog.dropped

    def add(self, document: dict[str, Any]) -> None:
        """Take one event; never waits for the disk."""
        self._backlog.put(json.dumps(document, separators=(",", ":"), default=str).encode() + b"\n")

    def close(self) -> None:
        """Write what is left and end the thread."""
        self._closing.set()
        self._backlog.hurry()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._write(self._backlog.take(FLUSH_S))
            if self.fault.text is not None:
                self._closing.wait(RETRY_S)
        self._write(self._backlog.take(0.0))

    def _write(self, lines: list[tuple[bytes, int]]) -> None:
        if not lines:
            return
        try:
            self._append(b"".join(line for line, _ in lines))
        except OSError as error:
            self.fault.failed(error)
            self._backlog.put_back(lines)
        else:
            self.written += len(lines)
            self.fault.passed()

    def _append(self, text: bytes) -> None:
        """Append whole lines, or nothing; a line that an earlier process left torn is ended first."""
        make_directory(self._path.parent)
        with suppress(FileNotFoundError):
            if self._path.stat().st_size + len(text) > self._settings.max_bytes:
                self._rotate()
        append_lines(self._path, text)

    def _rotate(self) -> None:
        names = [
            self._path,
            *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._settings.files)),
        ]
        if len(names) == 1:
            self._path.unlink()
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            with suppress(FileNotFoundError):
                newer.replace(older)
