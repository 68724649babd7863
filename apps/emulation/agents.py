"""The senders and receivers of a network, each kind one process: requests in, replies out."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from apps.emulation import processes
from apps.emulation.processes import EmulationError

REPOSITORY = Path(__file__).resolve().parents[2]
REPLY_TIMEOUT_S = 15.0


class DialogueEndedError(EmulationError):
    """The tool at the other end is gone."""


class Dialogue:
    """Requests to one tool, and its replies, by descriptors, which may be one."""

    def __init__(self, tool: str, requests: int, replies: int) -> None:
        self._tool = tool
        self._requests = requests
        self._replies = replies
        self._rest = b""

    def ask(self, do: str, *, timeout_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Send one request and return its reply; EmulationError where the tool cannot or does not answer."""
        deadline = time.monotonic() + timeout_s
        try:
            self._write(json.dumps({"do": do, **fields}).encode() + b"\n")
            while b"\n" not in self._rest:
                ready, _, _ = select.select([self._replies], [], [], max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise EmulationError(f"{self._tool}: no reply to {do} within {timeout_s} s")
                self._read()
        except ConnectionError as error:
            raise DialogueEndedError(f"{self._tool} has ended") from error
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise EmulationError(f"{self._tool}: {reply['error']}")
        return reply

    def _write(self, waiting: bytes) -> None:
        while waiting:
            waiting = waiting[os.write(self._requests, waiting) :]

    def _read(self) -> None:
        data = os.read(self._replies, 1 << 20)
        if not data:
            raise DialogueEndedError(f"{self._tool} has ended")
        self._rest += data


class Agent:
    """Context manager around one traffic tool (``sender`` or ``receiver``) serving requests."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._process: subprocess.Popen[bytes] | None = None
        self._dialogue: Dialogue | None = None

    def __enter__(self) -> Agent:
        command = [sys.executable, "-S", "-u", "-m", f"apps.emulation.{self._tool}"]
        self._process = subprocess.Popen(
            processes.die_with_parent(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            start_new_session=True,
        )
        processes.prefer(self._process)
        assert self._process.stdin is not None and self._process.stdout is not None
        descriptors = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._dialogue = Dialogue(self._tool, *descriptors)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            processes.stop(process)
            process.stdin.close()
            process.stdout.close()

    @property
    def pid(self) -> int:
        """The tool's process id."""
        if self._process is None:
            raise EmulationError(f"{self._tool} does not run")
        return self._process.pid

    def ask(self, do: str, *, timeout_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """Send one request and return its reply; EmulationError where the tool cannot or does not answer."""
        if self._process is None or self._dialogue is None:
            raise EmulationError(f"{self._tool} does not run")
        try:
            return self._dialogue.ask(do, timeout_s=timeout_s, **fields)
        except DialogueEndedError as error:
            raise EmulationError(f"{self._tool} ended with {self._process.wait()}") from error
