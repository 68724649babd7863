"""A few pages by HTTP, each made piece by piece, so that a long one holds nobody up."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from apps.openflow.framework import hub

CONNECTIONS = 8
IDLE_S = 30.0
BACKLOG = 16


class HttpPage(NamedTuple):
    """What is answered: its media type, its pieces and its status."""

    media_type: str
    pieces: Iterator[bytes]
    status: HTTPStatus = HTTPStatus.OK


Page = Callable[[str], HttpPage]
"""Makes a page for the request's ``Accept`` header."""

Pages = Mapping[str, Page]
"""Pages by path."""


class HttpServer:
    """Serves `pages` to GET requests at `host` and `port`; port 0 takes a free one, which `port` then is."""

    def __init__(self, host: str, port: int, pages: Pages, logger: logging.Logger) -> None:
        self.host = host
        self.port = port
        self.refused = 0
        self._pages = pages
        self._logger = logger
        self._open_count = 0
        self._socket: socket.socket | None = None

    @property
    def answering(self) -> int:
        """Connections that are being answered."""
        return self._open_count

    def start(self) -> None:
        """Listen, and serve in the background; OSError where the address is taken."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.listen(BACKLOG)
        except (OSError, OverflowError):
            listening.close()
            raise
        self.port = listening.getsockname()[1]
        self._socket = listening
        hub.spawn(self._serve, listening)

    def stop(self) -> None:
        """Stop listening."""
        listening, self._socket = self._socket, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()

    def _serve(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                client, address = listening.accept()
            except OSError:
                if self._socket is listening:
                    hub.sleep(1)
                continue
            if self._open_count >= CONNECTIONS:
                self.refused += 1
                client.close()
                continue
            self._open_count += 1
            hub.spawn(self._answer, client, address)

    def _answer(self, client: socket.socket, address: Any) -> None:
        try:
            with client:
                client.settimeout(IDLE_S)
                _Handler(client, address, self._pages)
        except OSError:
            pass
        except Exception:
            self._logger.exception("A request of %s failed.", address)
        finally:
            self._open_count -= 1


class _Handler(BaseHTTPRequestHandler):
    """One request of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "vsrt"
    sys_version = ""

    def __init__(self, client: socket.socket, address: Any, pages: Pages) -> None:
        self._pages = pages
        super().__init__(client, address, None)  # type: ignore[arg-type]

    def handle(self) -> None:
        self.close_connection = True
        self.handle_one_request()

    def do_GET(self) -> None:
        """Send the page in chunks; between two others get their turn."""
        make = self._pages.get(self.path.partition("?")[0])
        if make is None:
            self.send_error(HTTPStatus.NOT_FOUND, f"ask for one of {', '.join(sorted(self._pages))}")
            return
        page = make(self.headers.get("Accept", ""))
        chunked = self.request_version != "HTTP/1.0"
        self.send_response(page.status)
        self.send_header("Content-Type", page.media_type)
        self.send_header("Connection", "close")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in page.pieces:
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            hub.sleep(0)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""
