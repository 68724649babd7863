"""Connections that take in whatever has arrived at a time.

The framework asks its sockets for a message's header first and for the rest of it then: two system calls per message,
where one can bring many messages.
"""

from __future__ import annotations

from typing import Any

READ_BYTES = 4096


class WideReads:
    """A socket whose reads return up to `READ_BYTES` even where fewer are asked for; all else is the socket's own."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._recv = socket.recv

    def recv(self, size: int) -> bytes:
        """Return what there is to read, at most `READ_BYTES` or `size`, whichever is more."""
        received: bytes = self._recv(size if size > READ_BYTES else READ_BYTES)
        return received

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


def use_wide_reads(connection: Any) -> None:
    """Have a framework's class of connections, which is made with a socket and an address, read widely."""
    make = connection.__init__

    def make_wide(self: Any, socket: Any, address: Any) -> None:
        make(self, WideReads(socket), address)

    connection.__init__ = make_wide
