"""The server's process as its parent has it: started with its settings, watched, and ended with its parent."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from apps.dashboard.settings import ServerSettings

STOP_S = 3.0
RETRY_S = (1.0, 60.0)
"""How long to wait before a server that has ended is started again: at first, and at most."""

ROOT = Path(__file__).parents[2]


class Child:
    """At most one process; a pipe that nobody writes to tells it that its parent is there.

    `start_count` counts the processes started, `end_count` those that ended though nobody stopped them, the last of
    these with `exit_status`.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.start_count = 0
        self.end_count = 0
        self.exit_status = 0
        self._ended: subprocess.Popen[bytes] | None = None
        self._logger = logger
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: ServerSettings | None = None
        self._retry_s = RETRY_S[0]
        self._started_s = 0.0
        self._said = b""
        self._url: str | None = None

    @property
    def url(self) -> str | None:
        """Where the server listens, None until it says so."""
        process = self._process
        if self._url is None and process is not None and process.stdout is not None:
            with suppress(OSError, ValueError):  # nothing yet, or closed by `stop` meanwhile
                self._said += os.read(process.stdout.fileno(), 4096)
            line, end, _ = self._said.partition(b"\n")
            self._url = line.decode() if end else None
        return self._url

    @property
    def pid(self) -> int | None:
        """The process id, None where it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, settings: ServerSettings) -> None:
        """Start the process."""
        self._settings = settings
        self.start_count += 1
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "apps.dashboard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._said, self._url = b"", None
        self._process.stdin.write(json.dumps(asdict(settings)).encode() + b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """End the process, and insist where it does not end in time."""
        process, self._process, self._settings = self._process, None, None
        if process is None:
            return
        _close(process)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def watch(self) -> None:
        """Start a process that has ended anew, the later the more often it did so at once."""
        process, settings = self._process, self._settings
        if process is None or settings is None or process.poll() is None:
            return
        if process is not self._ended:
            self._ended, self.exit_status = process, process.returncode
            self.end_count += 1
        past_s = time.monotonic() - self._started_s
        if past_s > RETRY_S[1]:
            self._retry_s = RETRY_S[0]
        if past_s >= self._retry_s:
            self._logger.error("The dashboard's server has ended (%s): it is started anew.", process.returncode)
            self._retry_s = min(2 * self._retry_s, RETRY_S[1])
            _close(process)
            self.start(settings)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
