"""The server's process as its parent has it: started with its settings, watched, and ended with its parent."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from apps.dashboard.settings import ServerSettings

STOP_S = 3.0
RETRY_S = (1.0, 60.0)
"""How long to wait before a server that has ended is started again: at first, and at most."""

ROOT = Path(__file__).parents[2]


class Child:
    """At most one process; a pipe that nobody writes to tells it that its parent is there."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: ServerSettings | None = None
        self._retry_s = RETRY_S[0]
        self._started_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process id, None where it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, settings: ServerSettings) -> None:
        """Start the process."""
        self._settings = settings
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "apps.dashboard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(settings)).encode() + b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """End the process, and insist where it does not end in time."""
        process, self._process, self._settings = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
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
        past_s = time.monotonic() - self._started_s
        if past_s > RETRY_S[1]:
            self._retry_s = RETRY_S[0]
        if past_s >= self._retry_s:
            self._logger.error("The dashboard's server has ended (%s): it is started anew.", process.returncode)
            self._retry_s = min(2 * self._retry_s, RETRY_S[1])
            assert process.stdin is not None
            process.stdin.close()
            self.start(settings)
