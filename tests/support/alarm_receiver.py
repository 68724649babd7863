"""A server that takes posts of alarms, and answers as a test says."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_S = 10.0


class Receiver(ThreadingHTTPServer):
    """Takes posts; `answers` are the statuses of the next ones, 204 where there is none left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: queue.Queue[tuple[dict[str, str], Any]] = queue.Queue()
        self.answers: list[int] = []
        self.held = threading.Event()
        self.held.set()
        self.port = self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.held.wait(WAIT_S)
        status = self.server.answers.pop(0) if self.server.answers else 204
        self.server.taken.put((dict(self.headers), body | {"status": status}))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""
