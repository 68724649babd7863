"""Connections with bounds: their number, the time for a request's head, its size, and how long one may not read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apps.dashboard.limits import ServerLimits
from apps.dashboard.tally import RequestTally

STARTED_CHECK_S = 0.02


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, limits: ServerLimits, tally: RequestTally, **given: Any) -> None:
        super().__init__(**given)
        self.access_log = False  # it would tell what stands behind a question mark, which may be a secret
        self._limits = limits
        self._tally = tally
        self._piece_bytes = 0
        self._request_bytes = 0
        self._in_head = True
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection where there is room."""
        super().connection_made(transport)
        # asyncio does so itself only where the listening socket names its protocol.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tally.connections = len(self.connections)
        if len(self.connections) > self._limits.connections:
            self._cut("connections", f"{self._limits.connections} connections are open")
            return
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop_head_timer()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        super().connection_lost(exc)
        self._tally.connections = len(self.connections)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head or a whole request is too large."""
        if self.transport.is_closing():
            return
        self._piece_bytes = len(data)
        self._request_bytes += self._piece_bytes
        if self._between_requests:
            self._start_head_timer()
        super().data_received(data)
        if self._request_bytes > (self._limits.head_bytes if self._in_head else self._limits.request_bytes):
            self._cut("head-size" if self._in_head else "request-size", f"{self._request_bytes} bytes")

    def on_message_begin(self) -> None:
        """Measure the head of a request."""
        super().on_message_begin()
        self._in_head, self._request_bytes = True, self._piece_bytes
        if self.cycle is not None:
            # The piece may hold the end of the request before, so it alone is never too much.
            self._request_bytes = min(self._piece_bytes, self._limits.head_bytes)
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        """End that."""
        self._in_head = False
        self._stop_head_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Count what is no HTTP."""
        self._tally.refuse("malformed", self.client, msg)
        super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Begin to watch whether the client reads."""
        super().pause_writing()
        if self._unread_timer is None:
            self._watch_unread()

    def resume_writing(self) -> None:
        """End it."""
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _watch_unread(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._unread_timer = self.loop.call_later(self._limits.unread_s, self._check_unread, waiting)

    def _check_unread(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < self._limits.unread_bytes:
            self._cut("unread", f"it read nothing for {self._limits.unread_s:g} s")
        else:
            self._watch_unread()

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head_s, self._head_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_late(self) -> None:
        if self._request_bytes:
            self._cut("head-time", f"no whole head within {self._limits.head_s:g} s")
        else:
            self.transport.abort()

    def _cut(self, reason: str, text: str) -> None:
        self._tally.refuse(reason, self.client, text)
        self.transport.abort()


class BoundedServer(uvicorn.Server):
    """The server of such connections."""

    def __init__(
        self, app: ASGIApp, context: ssl.SSLContext | None, limits: ServerLimits, tally: RequestTally
    ) -> None:
        protocol = partial(BoundedProtocol, limits, tally)
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("type[asyncio.Protocol]", protocol),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=limits.idle_s,
                timeout_graceful_shutdown=1,
            )
        )
        self._context = context
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a bound on the time of a TLS handshake too."""
        await self.lifespan.startup()
        loop = asyncio.get_running_loop()
        factory = partial(
            cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        self.servers = [
            await loop.create_server(
                factory,
                sock=sock,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_s if self._context else None,
            )
            for sock in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams too, which would go on for ever."""
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await super().shutdown(sockets)

    async def announce(self, ready: Callable[[], None]) -> None:
        """Tell that the server answers."""
        while not self.started:
            await asyncio.sleep(STARTED_CHECK_S)
        ready()
