"""Deadlines that tell a process that hangs from one that a busy machine keeps waiting."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

POLL_S = 0.02


def kept_waiting_s(pid: int) -> float:
    """Return how long a process and those it began could have run and had no processor, of each its slowest thread.

    The kernel counts it for each thread: the second figure of its `schedstat`, in nanoseconds.
    """
    own_s, children = 0.0, []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                own_s = max(own_s, int((task / "schedstat").read_text().split()[1]) / 1e9)
                children += (task / "children").read_text().split()
    return own_s + sum(kept_waiting_s(int(child)) for child in children)


class Patience:
    """`wait_s` of time that a process, with those it began, had; what it waited for a processor does not count."""

    def __init__(self, pid: int, wait_s: float) -> None:
        self._pid = pid
        self._wait_s = wait_s
        self._begun_s = time.monotonic()
        self._before_s = self._kept_s = kept_waiting_s(pid)

    def check(self) -> None:
        """Raise AssertionError once the time is over."""
        self._kept_s = max(self._kept_s, kept_waiting_s(self._pid))
        had_s = time.monotonic() - self._begun_s - (self._kept_s - self._before_s)
        assert had_s < self._wait_s, f"process {self._pid} had {had_s:.1f} s"


class HeldUp:
    """How long processes could have run since and had no processor, added up."""

    def __init__(self, *pids: int) -> None:
        self._before_s = {pid: kept_waiting_s(pid) for pid in pids}

    def seconds(self) -> float:
        """Return it as of now."""
        return sum(max(0.0, kept_waiting_s(pid) - before_s) for pid, before_s in self._before_s.items())


def wait_until(reached: Callable[[], Any], pid: int, wait_s: float) -> Any:
    """Wait until `reached` returns something true, and return that."""
    patience = Patience(pid, wait_s)
    while not (found := reached()):
        patience.check()
        time.sleep(POLL_S)
    return found


def end_of(process: subprocess.Popen[str], wait_s: float) -> str:
    """Wait until a process has ended, and return what it wrote to its standard error."""
    patience = Patience(process.pid, wait_s)
    while True:
        try:
            return process.communicate(timeout=0.2)[1]
        except subprocess.TimeoutExpired:
            patience.check()
