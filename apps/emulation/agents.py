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


class Agent:
    """Context manager around one traffic tool (``sender`` or ``receiver``) serving requests."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

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
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EmulationError(f"{self._tool} does not run")
        process.stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise EmulationError(f"{self._tool}: no reply to {do} within {timeout_s} s")
            data = os.read(process.stdout.fileno(), 1 << 20)
            if not data:
                raise EmulationError(f"{self._tool} ended with {process.wait()}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise EmulationError(f"{self._tool}: {reply['error']}")
        return reply
