"""What waits to be sent to a switch: no app waits for a switch that does not read.

The framework's own queue holds 16 messages and makes whoever sends the 17th wait, and with it every other switch.
Here nobody waits: messages are taken in order up to a bound. A switch that lets them pile up beyond it, or takes
nothing for the framework's ``socket_timeout``, loses its connection; when it connects again it is read afresh.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Any

OUTBOX_BYTES = 1 << 25
"""What waits for one switch at most: several times the entries of a full table of 65,536."""

MESSAGE_BYTES = 128
"""What a waiting message costs beside its own bytes."""

SENT_AT_ONCE_BYTES = 1 << 16

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Outbox:
    """Messages in the order in which they were put, of several threads; one thread takes them."""

    def __init__(self, hub: Any, capacity_bytes: int) -> None:
        self._queue = hub.Queue()
        self._empty: type[Exception] = hub.QueueEmpty
        self._capacity_bytes = capacity_bytes
        self._lock = threading.Lock()
        self.waiting_bytes = 0

    def put(self, message: bytes, last: bool) -> bool:
        """Append a message, the last of its connection perhaps; never waits. False where there is no room for it."""
        size_bytes = len(message) + MESSAGE_BYTES
        with self._lock:
            if self.waiting_bytes + size_bytes > self._capacity_bytes:
                return False
            self.waiting_bytes += size_bytes
            self._queue.put((message, last))
        return True

    def take(self) -> tuple[bytes, bool]:
        """Wait for messages, and return some in their order, and whether the last of all is among them."""
        message, last = self._queue.get()
        messages, size_bytes = [message], len(message)
        while not last and size_bytes < SENT_AT_ONCE_BYTES:
            try:
                message, last = self._queue.get(block=False)
            except self._empty:
                break
            messages.append(message)
            size_bytes += len(message)
        with self._lock:
            self.waiting_bytes -= size_bytes + MESSAGE_BYTES * len(messages)
        return b"".join(messages), last


def use_outboxes(connection: Any, hub: Any, dead: str, capacity_bytes: int = OUTBOX_BYTES) -> None:
    """Have a framework's class of connections send from outboxes; `dead` is its state when a connection has ended.

    Connections get an attribute `cut_because`: why we ended it, None where we did not.
    """
    make = connection.__init__

    def make_with_outbox(self: Any, stream: Any, address: Any) -> None:
        make(self, stream, address)
        self.send_q = Outbox(hub, capacity_bytes)
        self.cut_because = None

    def send(self: Any, message: Any, close_socket: bool = False) -> bool:
        """Leave a message to be sent; never waits. False where it will not be, since the connection ends."""
        outbox = self.send_q
        if outbox is None or self.cut_because is not None:
            return False
        if outbox.put(bytes(message), close_socket):
            return True
        self.cut_because = f"it reads too slowly, and {outbox.waiting_bytes} bytes waited for it"
        # The thread that sends wakes by this, and ends the connection: whoever is here must not wait for a queue.
        _hang_up(self.socket)
        return False

    def send_loop(self: Any) -> None:
        outbox = self.send_q
        try:
            last = False
            while not last and self.state != dead:
                messages, last = outbox.take()
                rest = memoryview(messages)
                while rest:
                    rest = rest[self.socket.send(rest) :]
        except TimeoutError:
            self.cut_because = f"it took nothing for {self.socket.gettimeout():g} s"
            _hang_up(self.socket)
        except OSError:
            pass
        finally:
            self.send_q = None
            if self.cut_because is not None:
                self.set_state(dead)
            self._close_write()

    connection.__init__ = make_with_outbox
    connection.send = send
    connection._send_loop = send_loop


def _hang_up(stream: Any) -> None:
    """End a connection both ways; what its peer has not taken until the socket closes is thrown away."""
    with suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    with suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)
