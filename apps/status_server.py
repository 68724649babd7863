"""The controller's Unix socket: one JSON line asks, one answers."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.openflow.framework import hub

LINE_BYTES = 65536
IDLE_S = 30.0
CONNECTIONS = 16


class StatusServer:
    """Serves `views`, functions by name, to clients of a Unix socket; each is run by `ask` on the app's own loop."""

    def __init__(
        self,
        path: Path,
        views: Mapping[str, Callable[[], Any]],
        ask: Callable[[Callable[[], Any]], Any],
        logger: logging.Logger,
    ) -> None:
        self._path = path
        self._views = views
        self._ask = ask
        self._logger = logger
        self._open_count = 0
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Listen and serve in the background; a stale socket file is replaced, any other file is not.

        SystemExit, saying why, where the socket cannot be made.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if self._path.is_socket():
                self._path.unlink()
            self._socket.bind(str(self._path))
            self._path.chmod(0o600)
        except OSError as error:
            raise SystemExit(f"vsrt: the status socket {self._path}: {error.strerror or error}") from error
        self._socket.listen(CONNECTIONS)
        hub.spawn(self._serve, self._socket)

    def stop(self) -> None:
        """Close the socket and remove its file."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)

    def _serve(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            if self._open_count >= CONNECTIONS:
                client.close()
                continue
            self._open_count += 1
            hub.spawn(self._converse, client)

    def _converse(self, client: socket.socket) -> None:
        try:
            client.settimeout(IDLE_S)
            with client, client.makefile("rb") as lines:
                while line := lines.readline(LINE_BYTES):
                    reply = json.dumps(self._answer(line), separators=(",", ":"))
                    client.sendall(reply.encode() + b"\n")
        except OSError:
            pass
        finally:
            self._open_count -= 1

    def _answer(self, line: bytes) -> Any:
        try:
            question = json.loads(line)
            view = self._views[question["show"]]
        except (ValueError, TypeError, KeyError):
            return {"error": f'ask with one line of JSON: {{"show": one of {", ".join(sorted(self._views))}}}'}
        try:
            return self._ask(view)
        except Exception as error:
            self._logger.exception("the view %s failed", question["show"])
            return {"error": f"{type(error).__name__}: {error}"}
