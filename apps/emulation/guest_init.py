"""The first process of a guest (`guest.py`): readies its kernel, then serves what is asked through its channels.

Three channels (virtio serial ports) lead out of a guest: to a receiver and a sender, as agents are elsewhere, and to
this process, which runs commands and reads and writes files.
"""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from apps.emulation import receiver, sender, traffic

MODULES = Path("/modules")
CHANNELS = ("receiver", "sender", "shell")
"""What serves each channel, in the order of their ports, which count from 1."""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MOUNTS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"))
CHANNEL_PATH = "/dev/vport0p{}"
FINIT_MODULE = 313
"""The system call of that name, on x86-64."""

START_TIMEOUT_S = 60.0
POLL_S = 0.02


def prepare() -> None:
    """Mount what programs expect, load the kernel's modules in their order, and wait for the channels."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, place in MOUNTS:
        Path(place).mkdir(exist_ok=True)
        libc.mount(kind.encode(), place.encode(), kind.encode(), 0, None)
    for path in sorted(MODULES.iterdir()):
        with path.open("rb") as file:
            if libc.syscall(FINIT_MODULE, file.fileno(), b"", 0) != 0:
                raise OSError(ctypes.get_errno(), f"{path}: {os.strerror(ctypes.get_errno())}")
    deadline = time.monotonic() + START_TIMEOUT_S
    while not all(Path(CHANNEL_PATH.format(port)).exists() for port in range(1, len(CHANNELS) + 1)):
        if time.monotonic() > deadline:
            raise TimeoutError("the channels are not there")
        time.sleep(POLL_S)


def use_channel(port: int) -> None:
    """Have standard input and output be a channel."""
    descriptor = os.open(CHANNEL_PATH.format(port), os.O_RDWR)
    os.dup2(descriptor, 0)
    os.dup2(descriptor, 1)


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request: `run`, with ``arguments``; `read` a file, with ``path``; `write` it, with ``text`` too."""
    do = request["do"]
    if do == "run":
        done = subprocess.run(request["arguments"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(f"{' '.join(request['arguments'])}: {(done.stderr or done.stdout).strip()}")
        return {"output": done.stdout}
    if do == "read":
        return {"text": Path(request["path"]).read_text()}
    if do == "write":
        Path(request["path"]).write_text(request["text"])
        return {}
    raise ValueError(f"unknown request {do!r}")


def serve() -> None:
    """Answer requests for ever."""
    commands = traffic.Commands(handle)
    while True:
        select.select([commands.descriptor], [], [])
        commands.read()


def main() -> None:
    """Be the first process."""
    os.environ["PATH"] = PATH
    prepare()
    for port, program in enumerate((receiver.serve, sender.serve), 1):
        if os.fork() == 0:
            use_channel(port)
            program()
            sys.exit()
    use_channel(len(CHANNELS))
    serve()


if __name__ == "__main__":
    main()
