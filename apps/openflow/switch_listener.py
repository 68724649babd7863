"""Where switches connect: a port that a loop listens on, plain or by TLS."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from apps.openflow.reactor import Reactor
from apps.openflow.tls_stream import TlsStream
from apps.tls_files import ServerTls

LOGGER = logging.getLogger("vsrt")

BACKLOG = 1024
"""Switches that wait to be let in; a whole fabric may come at once."""

ACCEPTED_AT_ONCE = 64
"""Connections that are taken in before others have their turn."""

PAUSE_S = 1.0
"""How long nothing is taken in once the process has no descriptor left for it."""

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class SwitchListener:
    """Listens on one port, and hands each connection over as a socket that never waits.

    Parameters
    ----------
    reactor
        The loop; `begin` is called on it.
    make_socket
        Makes a socket of the system's, whatever the framework made of the module: takes family and type.
    host, port
        Where to listen; an empty host stands for every IPv4 address. OSError where that cannot be had.
    tls
        What is spoken there, None for plain TCP.
    connected
        Takes each connection and the address that it came from.
    """

    def __init__(
        self,
        reactor: Reactor,
        make_socket: Callable[[int, int], Any],
        host: str,
        port: int,
        tls: ServerTls | None,
        connected: Callable[[Any, Any], None],
    ) -> None:
        self.deadline_s: float | None = None
        self._reactor = reactor
        self._tls = tls
        self._connected = connected
        self._socket = make_socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setblocking(False)
        self._socket.bind((host, port))
        self._socket.listen(BACKLOG)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._socket.getsockname()[1])

    def begin(self) -> None:
        """Begin to take connections in; on the loop."""
        self._reactor.add(self)
        self._reactor.watch(self._socket.fileno(), self._ready)

    def due(self) -> None:
        """Go on after a pause."""
        self.deadline_s = None
        self._reactor.watch(self._socket.fileno(), self._ready)

    def _ready(self, _mask: int) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                raw, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_DESCRIPTOR:
                    LOGGER.error("No switch can connect for %g s: %s.", PAUSE_S, error.strerror)
                    self._reactor.unwatch(self._socket.fileno())
                    self.deadline_s = time.monotonic() + PAUSE_S
                    return
                continue  # this one has gone again
            raw.setblocking(False)
            with suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = self._tls
            self._connected(raw if tls is None else TlsStream(raw, tls.context(), tls), address)
