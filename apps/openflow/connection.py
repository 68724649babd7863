"""The connections of switches, all on one loop: what they send is handed over, and nobody waits for one to take.

The framework has three threads per connection, a queue of 16 messages that make whoever sends the 17th wait, and a
queue per app. Here nobody waits: messages are taken in order up to a bound, and go out when what made them has ended.
A switch that lets them pile up beyond it, or takes nothing for the framework's ``socket_timeout``, loses its
connection; when it connects again it is read afresh.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from apps.openflow.reactor import Reactor
from apps.openflow.tls_stream import TlsStream, refusal

LOGGER = logging.getLogger("vsrt")

OUTBOX_BYTES = 1 << 25
"""What waits for one switch at most: several times the entries of a full table of 65,536."""

MESSAGE_BYTES = 128
"""What a waiting message costs beside its own bytes."""

SENT_AT_ONCE_BYTES = 1 << 16
READ_BYTES = 1 << 13
"""What is read of a connection before others have their turn."""

HANDSHAKE_S = 10.0
"""How long a switch may take to show by TLS who it is."""

UPKEEP_S = 0.25
"""How often connections are looked after that take nothing, or have been silent."""

HEADER = struct.Struct("!BBHI")
HEADER_BYTES = HEADER.size
"""Version, type, length and transaction id of an OpenFlow message."""

TLS_HANDSHAKE = b"\x16\x03"
"""How a peer begins that speaks TLS (RFC 8446, 5.1); no version of OpenFlow has this number."""

ECHO_REQUEST, ECHO_REPLY = 2, 3
FEATURES_REPLY = 6
PACKET_IN = 10
DPID = struct.Struct("!Q")
"""What a features reply begins with behind its header."""

_READABLE, _WRITABLE = 1, 4  # EPOLLIN, EPOLLOUT
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_NOT_NOW = (BlockingIOError, InterruptedError)

Taken = Callable[[Any, int, int, int, bytes], bool]
"""Takes a message of a connected switch (its datapath, OpenFlow version, type, transaction id, the whole); False
where the framework is to have it."""

PacketsTaken = Callable[[Any, bytes, int], int]
"""Takes packet-ins of a connected switch that stand one after the other in what was read, from a place on; returns
where they end. It never raises."""


class Connection:
    """One switch's connection, on a loop.

    Parameters
    ----------
    datapath
        The framework's object of it.
    reactor
        The loop.
    take
        Takes what the switch sends once its handshake is done.
    take_packets
        Takes, of that, packet-ins that came together, for less.
    read_out
        Called when all that a reading of the connection brought has been handed over.
    give
        Hands a message to the framework: datapath, version, type, length, transaction id, the whole.
    ended
        Called on the loop when the connection has ended.
    refused
        Told why a switch was not let in by TLS, or did not let us, or may not speak for its datapath id.
    timeout_s
        How long a switch may take nothing.
    capacity_bytes
        What waits for the switch at most.
    """

    def __init__(
        self,
        datapath: Any,
        reactor: Reactor,
        take: Taken,
        take_packets: PacketsTaken,
        read_out: Callable[[], None],
        give: Callable[[Any, int, int, int, int, bytes], None],
        ended: Callable[[Connection], None],
        refused: Callable[[Connection, str], None],
        timeout_s: float,
        capacity_bytes: int = OUTBOX_BYTES,
    ) -> None:
        self.datapath = datapath
        self.heard_s = reactor.now_s
        self.is_up = False
        """Whether the switch has finished its handshake."""
        self.echo_answered: Callable[[int, int], None] | None = None
        """Told of answers to `ask_echo`, by datapath id and transaction id."""
        self.cut_because: str | None = None
        self.waiting_bytes = 0
        self._socket = datapath.socket
        self._reactor = reactor
        self._take = take
        self._take_packets = take_packets
        self._read_out = read_out
        self._give = give
        self._tell_end, self._tell_refusal = ended, refused
        self._timeout_s = timeout_s
        self._capacity_bytes = capacity_bytes
        self._descriptor: int | None = None
        self._lock = threading.Lock()
        self._messages: deque[bytes] = deque()
        self._partial: bytes | memoryview | None = None
        self._is_closed = self._is_last_put = self._flush_asked = False
        self._shakes_hands = self.is_encrypted = isinstance(self._socket, TlsStream)
        self.blocked_s: float | None = None
        """When the switch last took something of what it has not taken to its end, None where nothing waits."""
        self._asked_s = self.heard_s
        self._asked_count = 0
        self._rest = b""

    def begin(self) -> None:
        """Begin to read; on the loop."""
        if not self._is_closed:
            self._socket.setblocking(False)
            self.heard_s = self._reactor.now_s
            self._descriptor = self._socket.fileno()
            self._reactor.watch(self._descriptor, self._ready)
            self.flush()

    # Sending

    def send(self, message: bytes, last: bool = False) -> bool:
        """Leave a message to be sent, the last one perhaps; from any thread, and without waiting.

        False where it will not be, since the connection ends.
        """
        size_bytes = len(message) + MESSAGE_BYTES
        with self._lock:
            if self._is_closed or self._is_last_put or self.cut_because is not None:
                return False
            fits = self.waiting_bytes + size_bytes <= self._capacity_bytes
            if fits:
                self._messages.append(message)
                self.waiting_bytes += size_bytes
                self._is_last_put = last
            else:
                self.cut_because = f"it reads too slowly, and {self.waiting_bytes} bytes waited for it"
            if self._flush_asked:
                return fits
            self._flush_asked = True
        if self._reactor.is_current():
            self._reactor.unsent[self.flush] = None
        else:
            self._reactor.call(self.flush)
        return fits

    def flush(self) -> None:
        """Send what waits, as far as the switch takes it; on the loop."""
        self._flush_asked = False
        if self.cut_because is not None:
            self.cut(self.cut_because)
        if self._is_closed or self._descriptor is None or self._shakes_hands:
            return
        try:
            while self._partial is not None or self._messages:
                if self._partial is None:
                    self._partial = self._next()
                sent_bytes = self._socket.send(self._partial)
                if self.blocked_s is not None:
                    self.blocked_s = self._reactor.now_s
                is_whole = sent_bytes == len(self._partial)
                self._partial = None if is_whole else memoryview(self._partial)[sent_bytes:]
        except _NOT_NOW:
            if self.blocked_s is None:
                self.blocked_s = self._reactor.now_s
                self._reactor.change(self._descriptor, _READABLE | _WRITABLE)
            return
        except OSError:
            self.end()
            return
        if self.blocked_s is not None:
            self.blocked_s = None
            self._reactor.change(self._descriptor, _READABLE)
        if self._is_last_put:
            self.end()

    def _next(self) -> bytes:
        """Take some of the messages that wait, to be sent at once."""
        with self._lock:
            messages = self._messages
            taken: list[bytes] = []
            size_bytes = 0
            while messages and size_bytes < SENT_AT_ONCE_BYTES:
                taken.append(messages.popleft())
                size_bytes += len(taken[-1])
            self.waiting_bytes -= size_bytes + MESSAGE_BYTES * len(taken)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    # Reading

    def _ready(self, mask: int) -> None:
        if self._shakes_hands:
            self._shake_hands()
            return
        if mask & _WRITABLE:
            self.flush()
        if mask & ~_WRITABLE and not self._is_closed:
            self._read()

    def _shake_hands(self) -> None:
        """Go on with the handshake of TLS, and then with what waited for it."""
        if self._descriptor is None:
            return
        try:
            is_done = self._socket.shake_hands()
        except OSError as error:
            self._refuse(refusal(error))
            return
        if not is_done:
            self._reactor.change(self._descriptor, _READABLE | (_WRITABLE if self._socket.has_unsent else 0))
            return
        self._shakes_hands = False
        self._reactor.change(self._descriptor, _READABLE)
        self.flush()
        self._read()

    def _refuse(self, reason: str) -> None:
        self._tell_refusal(self, reason)
        self.end()

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except _NOT_NOW:
            return
        except OSError:
            data = b""
        if not data:
            self.end()
            return
        self.heard_s, self._asked_count = self._reactor.now_s, 0
        if self._rest:
            data = self._rest + data
        if not self.is_up and not self.is_encrypted and data.startswith(TLS_HANDSHAKE):
            self._refuse("it speaks TLS, and this port takes plain TCP")
            return
        try:
            self._hand_over(data)
        finally:
            self._read_out()

    def _hand_over(self, data: bytes) -> None:
        """Hand over the messages in what was read, and keep what is no whole one."""
        at, size, unpack, received = 0, len(data), HEADER.unpack_from, self._received
        while size - at >= HEADER_BYTES:
            if data[at + 1] == PACKET_IN and self.is_up:
                began, at = at, self._take_packets(self.datapath, data, at)
                if self._is_closed:
                    return
                if at != began:
                    continue
            version, kind, length, xid = unpack(data, at)
            if length < HEADER_BYTES:
                LOGGER.error(
                    "A switch at %s sends a message of length %d: its connection ends.", self.address, length
                )
                self.end()
                return
            if size - at < length:
                break
            try:
                received(version, kind, length, xid, data[at : at + length])
            except Exception:
                text = "The message of type %d of the switch at %s was not handled to its end."
                LOGGER.exception(text, kind, self.address)
            if self._is_closed:
                return
            at += length
        self._rest = data[at:]

    @property
    def address(self) -> Any:
        """Where the switch connected from."""
        return self.datapath.address

    def _received(self, version: int, kind: int, length: int, xid: int, message: bytes) -> None:
        if self.is_up:
            if kind == ECHO_REPLY:
                if self.echo_answered is not None:
                    self.echo_answered(self.datapath.id, xid)
                return
            if kind == ECHO_REQUEST:
                self.send(HEADER.pack(version, ECHO_REPLY, length, xid) + message[HEADER.size :])
                return
            if self._take(self.datapath, version, kind, xid, message):
                return
        elif kind == FEATURES_REPLY and self.is_encrypted and length >= HEADER.size + DPID.size:
            reason = self._socket.dpid_refusal(*DPID.unpack_from(message, HEADER.size))
            if reason is not None:
                self._refuse(reason)
                return
        self._give(self.datapath, version, kind, length, xid, message)

    # The end

    def ask_echo(self, xid: int) -> bool:
        """Ask a switch for an echo, of which `echo_answered` is told; False where it is not connected whole."""
        if not self.is_up or self._is_closed:
            return False
        self.send(HEADER.pack(self.datapath.ofproto.OFP_VERSION, ECHO_REQUEST, HEADER.size, xid))
        return True

    def look_after(self, now: float, echo_interval_s: float, unanswered: int) -> None:
        """Ask a switch that is silent whether it is there, and end what leads nowhere; on the loop.

        A switch that was asked `unanswered` times and said nothing for as many intervals and one more is given up;
        never where it is 0. A loop that is late may not have come to what a switch says, or to what it takes: that is
        looked at first.
        """
        if self._shakes_hands:
            if now - self.heard_s >= HANDSHAKE_S:
                self._refuse(f"it did not end its TLS handshake within {HANDSHAKE_S:g} s")
        elif self.blocked_s is not None and now - self.blocked_s >= self._timeout_s:
            self.flush()
            if self.blocked_s is not None and now - self.blocked_s >= self._timeout_s:
                self.cut(f"it took nothing for {self._timeout_s:g} s")
        elif unanswered:
            if self._asked_count >= unanswered and now - self.heard_s > (unanswered + 1) * echo_interval_s:
                self._read()
                if self._asked_count:
                    self.end()
            elif now - max(self.heard_s, self._asked_s) >= echo_interval_s:
                self._asked_s = now
                self._asked_count += 1
                if self.is_up:
                    self.send(HEADER.pack(self.datapath.ofproto.OFP_VERSION, ECHO_REQUEST, HEADER.size, 0))

    def cut(self, reason: str) -> None:
        """End the connection both ways; what the switch has not taken until then is thrown away. On the loop."""
        self.cut_because = reason
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.end()

    def end(self) -> None:
        """End the connection; on the loop."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._messages.clear()
            self.waiting_bytes = 0
        self._partial = None
        if self._descriptor is not None:
            self._reactor.unwatch(self._descriptor)
        with suppress(OSError):
            self._socket.close()
        self._tell_end(self)
