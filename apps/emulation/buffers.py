"""The buffers of Open vSwitch's packet sockets: how much they hold, and what a busy machine lost in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from pathlib import Path
from typing import IO

from apps.emulation import processes

SEND_BUFFER = Path("/proc/sys/net/core/wmem_default")
SEND_BUFFER_BYTES = 16 << 20
RECEIVE_BUFFER = Path("/proc/sys/net/core/rmem_default")
RECEIVE_BUFFER_BYTES = 8 << 20

LOCKS = Path("/run")

_PACKET_SOCKET = re.compile(r"\*:(\S+)\s.*skmem:\(\S*?d(\d+)\)")


@contextmanager
def raised(setting: Path, size_bytes: int, locks: Path = LOCKS) -> Iterator[None]:
    """Have a setting of the machine at least as large; the last of the emulations that want it so restores it.

    All share a lock, on a file that has what is to be restored.
    """
    with (locks / f"vsrt-{setting.name}").open("a+") as kept:
        while True:
            if _alone(kept) and int(setting.read_text()) < size_bytes:
                kept.seek(0)
                kept.truncate(0)
                kept.write(setting.read_text())
                kept.flush()
                setting.write_text(str(size_bytes))
            flock(kept, LOCK_SH)
            if int(setting.read_text()) >= size_bytes:
                break
            flock(kept, LOCK_UN)  # somebody who was the last has restored it meanwhile
        try:
            yield
        finally:
            if _alone(kept):
                kept.seek(0)
                if before := kept.read():
                    setting.write_text(before)
                    kept.truncate(0)


def _alone(kept: IO[str]) -> bool:
    with suppress(BlockingIOError):
        flock(kept, LOCK_EX | LOCK_NB)
        return True
    return False


@contextmanager
def ample_send_buffer() -> Iterator[None]:
    """Let sockets made meanwhile hold as many packets as all shapers' queues together.

    Open vSwitch sends on every port from one packet socket, whose buffer holds some ninety packets; a packet in a
    shaper's queue still counts against it, so that full queues would cost ports that have nothing to do with them
    their packets. The setting is the machine's, and is restored.
    """
    with raised(SEND_BUFFER, SEND_BUFFER_BYTES):
        yield


@contextmanager
def ample_receive_buffer() -> Iterator[None]:
    """Let sockets made meanwhile hold some seconds of a stream.

    Open vSwitch receives on every port by a packet socket, whose buffer holds some ninety packets: what a busy
    machine does not let it take in at once would be lost before the switch has seen it. The setting is the
    machine's, and is restored.
    """
    with raised(RECEIVE_BUFFER, RECEIVE_BUFFER_BYTES):
        yield


def overruns() -> dict[str, int]:
    """Return how many packets the packet socket of each port in this network had no room for, where it was any.

    Such a packet was lost by the machine before its switch saw it, whatever the switch's entries are.
    """
    found: dict[str, int] = {}
    for port, count in _PACKET_SOCKET.findall(processes.run("ss", "--packet", "--memory", "--numeric")):
        if count != "0":
            found[port] = found.get(port, 0) + int(count)
    return found


class OverrunTotal:
    """Overruns of all ports together; those of a port stay when it goes, with the socket that counted them."""

    def __init__(self) -> None:
        self._of_former = 0
        self._last: dict[str, int] = {}

    def add(self, now: Mapping[str, int]) -> int:
        """Take what each port's socket has counted by now; return how many it is in all since the first."""
        self._of_former += sum(count for port, count in self._last.items() if now.get(port, 0) < count)
        self._last = dict(now)
        return self._of_former + sum(now.values())
