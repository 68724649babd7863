"""The operator's program that starts and ends monitors: run with a time limit, on a thread that may wait."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from apps.system import system_threading

LOOK_S = 0.05
KILLED_S = 5.0
"""How long is waited for a program that was killed: one that the system holds ends later."""

SAID_BYTES = 300
"""How much of what it wrote is told where it fails."""

MOST_OUTPUT_BYTES = 1 << 20
"""What it wrote is thrown away, all but the end, whenever it is more than this."""

DRAINED = "VSRT_SCALING_DRAINED"
"""Variable of its environment that names the monitors which have no switches and may end, with spaces between."""


class ScalingProgram:
    """Runs the program, never twice at once; on one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, argv: Sequence[str], drained: Sequence[str], limit_s: float) -> str:
        """Run the program and return why it failed, '' where it did not.

        What it starts goes on when it ends. Where it takes longer than `limit_s` seconds it is killed with all that
        it started in its own process group, so that nothing of it is left beside another try.
        """
        if self._process is not None and self._process.poll() is None:
            return f"{argv[0]} could not be killed when it was not done, and goes on still"
        # Children keep the file open for appending; its end is read, and what is before it thrown away.
        with tempfile.TemporaryFile(buffering=0) as output:
            fcntl.fcntl(output, fcntl.F_SETFL, fcntl.fcntl(output, fcntl.F_GETFL) | os.O_APPEND)
            try:
                process = self._process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, DRAINED: " ".join(drained)},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                return f"{argv[0]} cannot be run: {getattr(error, 'strerror', None) or error}"
            said = _watched(process, output, limit_s)
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(KILLED_S)
                return f"{argv[0]} was not done after {limit_s:g} s, and was killed" + (f": {said}" if said else "")
        if process.returncode == 0:
            return ""
        how = f"ended with {process.returncode}"
        if process.returncode < 0:
            how = f"was ended by signal {-process.returncode}"
        return f"{argv[0]} {how}" + (f": {said}" if said else "")


def _watched(process: subprocess.Popen[bytes], output: IO[bytes], limit_s: float) -> str:
    """Wait until a program has ended, or its time is over, and return the end of what it wrote as one line."""
    pause, tail = system_threading.Event(), b""
    deadline_s = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < deadline_s:
        pause.wait(LOOK_S)
        if output.seek(0, os.SEEK_END) > MOST_OUTPUT_BYTES:
            tail = _end_of(output)
            output.truncate(0)
    said = (tail + _end_of(output))[-SAID_BYTES:].decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in said).split())


def _end_of(output: IO[bytes]) -> bytes:
    output.seek(max(0, output.seek(0, os.SEEK_END) - SAID_BYTES))
    return output.read(SAID_BYTES)
