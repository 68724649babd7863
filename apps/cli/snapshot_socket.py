"""The running controller, reached by its Unix socket."""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.cli.common import OperationFailed
from apps.cli.perf_console import no_answer
from apps.cli.snapshot_source import Action, ConnectionLost
from controller.snapshot.reader import FeedInvalid, Snapshot, silent_apps

TIMEOUT_S = 30.0
POLL_S = 0.2
SILENCE_S = 2.0
"""An answer takes milliseconds, and some hundred where a large fabric is read for the first time."""

DOCUMENTS = 2000
"""Documents per answer: the most that the feed gives."""


class SocketSource:
    """The apps behind the Unix socket at `path`, asked in the name `by`: without one, of who runs the command."""

    def __init__(self, path: Path, by: str | None = None) -> None:
        self._path = path
        self._by = by
        self.heard_s: float | None = None
        self.silence_s = SILENCE_S
        self._snapshot = Snapshot()

    def follow(self, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
        """Follow the change feed, a look each 0.2 s."""
        told = -1
        with self._connected() as connection:
            while True:
                self._look(connection, sections, beside)
                if self._snapshot.version > told:
                    told = self._snapshot.version
                    yield self._snapshot
                time.sleep(POLL_S)

    def do(self, action: Action) -> Any:
        """Ask the app that knows the action."""
        with self._connected() as connection:
            answer = self._ask(connection, {**action.question, "by": self._by or user_name()})
        if isinstance(answer, Mapping) and isinstance(answer.get("error"), str):
            if answer["error"].startswith("ask with"):
                raise OperationFailed(f"{self._path}: no app of this controller does {action.question['do']}")
            field = answer.get("field")
            raise OperationFailed(_with_field(answer["error"], field if isinstance(field, str) else None))
        return answer

    @contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(TIMEOUT_S)
            try:
                connection.connect(str(self._path))
            except OSError as error:
                raise self._lost(error) from error
            yield connection

    def _look(self, connection: socket.socket, sections: Sequence[str], beside: Sequence[str]) -> None:
        more = True
        while more:
            question = {**self._snapshot.question(), "limit": DOCUMENTS}
            answer = self._ask(connection, question)
            self.heard_s = time.monotonic()
            if (silent := silent_apps(answer)) is not None:
                raise ConnectionLost(f"{self._path}: {silent}")
            try:
                offered = [name for name in answer["names"] if name in sections]
            except (TypeError, KeyError):
                told = answer.get("error") if isinstance(answer, Mapping) else None
                raise OperationFailed(f"{self._path}: no change feed: {told or 'expected an object'}") from None
            if not offered:
                raise ConnectionLost(f"{self._path}: no app of this controller offers {' or '.join(sections)}")
            offered += [name for name in answer["names"] if name in beside and name not in offered]
            try:
                more = self._snapshot.apply({**answer, "names": offered})
            except FeedInvalid as error:
                raise OperationFailed(f"{self._path}: {error}") from error

    def _ask(self, connection: socket.socket, question: Mapping[str, Any]) -> Any:
        try:
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the connection was closed")
            return json.loads(line)
        except (OSError, ValueError) as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError | ValueError) -> ConnectionLost:
        return ConnectionLost(no_answer(self._path, error))


def user_name() -> str:
    """Return who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _with_field(text: str, field: str | None) -> str:
    return text if field is None or text.startswith(f"{field}:") else f"{field}: {text}"
