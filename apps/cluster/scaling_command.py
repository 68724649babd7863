"""The operator's program that starts and ends monitors: run with a time limit, on a thread that may wait."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence

from apps.system import system_threading

LOOK_S = 0.05
SAID_BYTES = 300
"""How much of what it wrote is told where it fails."""

DRAINED = "VSRT_SCALING_DRAINED"
"""Variable of its environment that names the monitors which have no switches and may end, with spaces between."""


def run_scaling_command(argv: Sequence[str], drained: Sequence[str], limit_s: float) -> str:
    """Run the program and return why it failed, '' where it did not.

    What it starts goes on when it ends. It alone is killed where it takes longer than `limit_s` seconds.
    """
    pause = system_threading.Event()
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, DRAINED: " ".join(drained)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"{argv[0]} cannot be run: {error}"
        deadline_s = time.monotonic() + limit_s
        while process.poll() is None and time.monotonic() < deadline_s:
            pause.wait(LOOK_S)
        if process.poll() is None:
            process.kill()
            process.wait()
            return f"{argv[0]} was not done after {limit_s:g} s, and was killed"
        if process.returncode == 0:
            return ""
        output.seek(max(0, output.seek(0, os.SEEK_END) - SAID_BYTES))
        said = output.read(SAID_BYTES).decode(errors="replace").strip()
        return f"{argv[0]} ended with {process.returncode}" + (f": {said}" if said else "")
