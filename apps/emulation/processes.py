"""Child processes that end with us: started by argument list, stopped by their own process id."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_TIMEOUT_S = 5.0
NICENESS = -10
"""What forwards and what measures goes before other work, whose pauses would look like a network's loss."""


class EmulationError(RuntimeError):
    """The emulated network, or a process in it, did not do what it was asked to."""


class ManagedProcess(ABC):
    """Context manager around processes: `close` ends them however far `start` came."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def start(self) -> None:
        """Start them, and wait until they can be used."""

    @abstractmethod
    def close(self) -> None:
        """End them."""


def start(
    arguments: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log`, has these descriptors too, and ends by the kernel should this one die."""
    with log.open("ab") as output:
        return subprocess.Popen(
            die_with_parent(arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=descriptors,
        )


def die_with_parent(arguments: Sequence[str]) -> list[str]:
    """Return the command line under which the kernel ends `arguments` together with its parent."""
    return ["setpriv", "--pdeathsig", "TERM", "--", *arguments]


def prefer(process: subprocess.Popen[bytes]) -> None:
    """Have the kernel let a process that has just begun, and a session with it, go before other work.

    Where the kernel divides time among sessions (``kernel.sched_autogroup_enabled``) niceness counts only within one,
    and the session has one of its own.
    """
    os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    with suppress(FileNotFoundError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(NICENESS))


def stop(process: subprocess.Popen[bytes], timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Ask `process` to end, insist after `timeout_s`, and wait until it is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(*arguments: str, text: str | None = None, timeout_s: float = 30.0) -> str:
    """Run a command to its end and return its standard output; EmulationError with its words where it fails."""
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise EmulationError(f"{' '.join(arguments)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
