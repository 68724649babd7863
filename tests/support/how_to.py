"""The how-to guides as scripts: their blocks of commands, and a shell that runs them as a reader would."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from apps.status_client import query

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST_S = 240.0
WAIT_S = 60.0
POLL_S = 0.5
"""Between two commands that ask: each is a process that takes as much of the machine as what is waited for."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`([\w.-]+)`:", re.MULTILINE)
_SERVES = re.compile(r"^(\S*/)?vsrt run ")
_RUNS = re.compile(r"^\S+ \S+ vsrt INFO ", re.MULTILINE)
"""The line of a log that says what runs: before it there is nobody to ask, and each asking is a process."""


def blocks(page: str, language: str = "sh") -> list[str]:
    """Return the blocks of a guide in a language, in order."""
    return [text for found, text in _BLOCK.findall((GUIDES / page).read_text(encoding="utf-8")) if found == language]


def files(page: str) -> dict[str, str]:
    """Return the files that a guide shows under their names: `` `name`: `` and then the block."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    shown = {}
    for named in _FILE.finditer(text):
        block = _BLOCK.search(text, named.end())
        assert block is not None
        shown[named[1]] = block[2]
    return shown


def _commands(block: str) -> Iterator[str]:
    """Yield the commands of a block: lines, with their here-documents and continuations."""
    lines = iter(block.splitlines())
    for line in lines:
        command = line
        while command.endswith("\\"):
            command += "\n" + next(lines)
        if found := re.search(r"<<'?(\w+)'?$", command):
            for more in lines:
                command += "\n" + more
                if more == found[1]:
                    break
        if command.strip():
            yield command


def wait(reached: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Return what `reached` finds as soon as it finds something; AssertionError after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not (found := reached()):
        assert time.monotonic() < deadline
        time.sleep(POLL_S)
    return found


class Reader:
    """Somebody who types a guide's commands into a shell, in `directory`; ends all that was left running.

    `around` is a command line that the shell runs under, such as one that gives it a file system of its own.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str], around: list[str] | None = None) -> None:
        self.directory = directory
        self.environment = dict(environment)
        self.around = around or []
        self.served: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_served()
        self.end_left_over()

    def end_left_over(self) -> None:
        """End what commands left in the background: a receiver that stays is a member in the next guide too."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if (process / "cwd").readlink() == self.directory.resolve():
                    os.kill(int(process.name), signal.SIGKILL)

    def end_served(self) -> None:
        """End what runs in the background, as Ctrl-C would."""
        for process in self.served:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.wait(20)
        self.served.clear()

    def run(self, block: str) -> str:
        """Run a block's commands one after the other, and return what they print; AssertionError where one fails.

        A controller goes on in the background, and its socket is waited for.
        """
        printed = ""
        for command in _commands(block):
            if _SERVES.match(command):
                self._serve(command)
                continue
            done = subprocess.run(
                self._shell(command),
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
                check=False,
            )
            assert done.returncode == 0, f"{command}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
            printed += done.stdout
        return printed

    def ask(self, request: Mapping[str, Any]) -> Any:
        """Return what a controller that was started here without other directories answers, and start no command."""
        directory = os.open(self.directory, os.O_PATH)
        try:
            # Paths of sockets are at most 107 bytes long, and those of temporary directories may be longer.
            return query(f"/proc/self/fd/{directory}/vsrt-state/vsrt.sock", request)
        finally:
            os.close(directory)

    def _shell(self, command: str) -> list[str]:
        prelude = "" if shutil.which("sudo") else 'sudo() { "$@"; }\n'
        return [*self.around, "bash", "-euo", "pipefail", "-c", prelude + command]

    def _serve(self, command: str) -> None:
        log = (self.directory / f"served-{len(self.served)}.log").open("w+", encoding="utf-8")
        with log:
            process = subprocess.Popen(
                self._shell(f"exec {command}"),
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            self.served.append(process)
            deadline = time.monotonic() + 30
            while not (_RUNS.search(told := Path(log.name).read_text(encoding="utf-8")) and self._is_answered()):
                assert process.poll() is None, f"{command}\n{told}"
                assert time.monotonic() < deadline, f"{command}\n{told}"
                time.sleep(POLL_S)

    def _is_answered(self) -> bool:
        """Tell whether a controller answers a command."""
        ask = self._shell("vsrt show status --json")
        done = subprocess.run(ask, cwd=self.directory, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0


@contextmanager
def own_machine(
    directory: Path, start_in: Path, folders: Iterable[str] = ("/etc", "/opt", "/usr/local", "/var/lib")
) -> Iterator[list[str]]:
    """The command line under which commands see this machine's files, and write to copies of `folders` that vanish.

    The copies are kept below `directory`; commands begin in `start_in`.
    """
    layers = directory / "layers"
    layers.mkdir()
    script = [f"mount -t tmpfs none {layers}"]
    for folder in folders:
        upper, work = layers / folder[1:] / "upper", layers / folder[1:] / "work"
        options = f"lowerdir={folder},upperdir={upper},workdir={work}"
        script += [f"mkdir -p {upper} {work}", f"mount -t overlay overlay -o {options} {folder}"]
    script += ["echo ready", "exec cat"]
    keeper = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    try:
        assert keeper.stdout.readline() == "ready\n"
        yield ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt", f"--wd={start_in}", "--"]
    finally:
        keeper.stdin.close()
        keeper.wait(10)
