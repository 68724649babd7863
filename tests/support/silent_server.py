"""A server on this machine that takes no connection: what it is sent vanishes, and nobody is refused."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from patience import wait_until

SYN_SENT = "02"


class SilentServer:
    """Context manager: a listener whose queue of connections is full, so that Linux drops each further SYN."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        self._address = listener.getsockname()
        for _ in range(2):
            client = self._stack.enter_context(socket.socket())
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(self._address)
        self._own = self._asking()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    @property
    def target(self) -> str:
        """Where it listens, as an OVSDB server."""
        return "tcp:{}:{}".format(*self._address)

    def _asking(self) -> int:
        rows = [line.split() for line in Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]]
        return sum(row[3] == SYN_SENT and int(row[2].rpartition(":")[2], 16) == self._address[1] for row in rows)

    def wait_asked(self, pid: int) -> None:
        """Wait until somebody wants to connect, or rather process `pid` had time for it."""
        wait_until(lambda: self._asking() > self._own, pid, 30.0)
