"""The controller's Unix socket: one JSON line asks, one answers."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Any

from apps.locks import LockHeld, lock
from apps.openflow.framework import hub
from apps.openflow.questions import Unanswered
from controller.snapshot.log import DocumentLog, changes

LINE_BYTES = 65536
IDLE_S = 30.0
CONNECTIONS = 64
"""Connections that are served at a time; commands that each ask now and then have one each time, the page one."""

PROBE_S = 1.0

ACCEPT_AGAIN_S = 1.0
"""How long no connection is taken after one could not be, for want of descriptors perhaps."""

_PEER = Struct("3i")
"""struct ucred: process, user and group of a peer."""

DOCUMENTS, DOCUMENTS_BOUND = 500, 2000
"""Documents of an app in one answer about changes: by default, and at most."""

EPOCH = secrets.token_hex(8)
"""Stands for this process, so that a reader sees that the versions it knows are another's."""


ENGINE_UNREACHABLE = "engine-unreachable"
"""Why nothing is set: the store that controllers share does not answer, or takes nothing."""

ENGINE_UNCONFIRMED = "engine-unconfirmed"
"""Why it is not certain that what was set lasts: the store that controllers share has not confirmed it."""


class QuestionRefused(Exception):  # noqa: N818
    """A question that an app does not answer; the text, for who asked, says why, `field` what of it is at fault.

    `reason` stands for why it cannot be answered here, or now, whatever is asked.
    """

    def __init__(self, text: str, field: str | None = None, reason: str | None = None) -> None:
        super().__init__(text)
        self.field = field
        self.reason = reason


class StatusServer:
    """What one app answers on the Unix socket at `path`, which the apps of a process share.

    `views` are functions by name, `actions` such that take the question's other fields, and `sections` documents
    whose changes a reader may follow, after `refresh`; each is run by `ask` on the loop of the `app`.
    """

    def __init__(
        self,
        path: Path,
        views: Mapping[str, Callable[[], Any]],
        ask: Callable[[Callable[[], Any]], Any],
        logger: logging.Logger,
        actions: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType({}),
        *,
        app: str = "",
        sections: Mapping[str, DocumentLog[Any]] = MappingProxyType({}),
        refresh: Callable[[], None] | None = None,
    ) -> None:
        self.views = views
        self.actions = actions
        self.ask = ask
        self.app = app
        self.sections = sections
        self._refresh = refresh
        self._path = path
        self._logger = logger

    def changes(self, asked: Mapping[str, int], limit: int) -> dict[str, Any]:
        """Return what a reader lacks of the sections asked for; to be run on the app's loop."""
        if self._refresh is not None:
            self._refresh()
        return changes(self.sections, asked, limit)

    def start(self) -> None:
        """Listen and serve in the background, beside the apps that do so already.

        A stale socket file is replaced, any other is not. SystemExit, saying why, where the socket cannot be made or
        is another controller's.
        """
        listener = _LISTENERS.get(self._path)
        if listener is None:
            listener = _Listener(self._path, self._logger)
            listener.start()
            _LISTENERS[self._path] = listener
        listener.apps.append(self)

    def stop(self) -> None:
        """Answer no more; the last app closes the socket and removes its file."""
        listener = _LISTENERS.get(self._path)
        if listener is not None and self in listener.apps:
            listener.apps.remove(self)
            if not listener.apps:
                del _LISTENERS[self._path]
                listener.stop()


class _Listener:
    """The socket itself."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self.apps: list[StatusServer] = []
        self._path = path
        self._logger = logger
        self._open_count = 0
        self._lock: int | None = None
        self._file: tuple[int, int] | None = None
        self._socket: socket.socket | None = None

    def start(self) -> None:
        """Listen."""
        listening = self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._lock = lock(self._path.with_name(f"{self._path.name}.lock"))
            if self._path.is_socket():
                self._remove_stale()
            listening.bind(str(self._path))
            self._file = _identity(self._path)
            self._path.chmod(0o600)
            listening.listen(CONNECTIONS)
        except (LockHeld, OSError) as error:
            self.stop()
            if isinstance(error, LockHeld):
                raise SystemExit(f"vsrt: the status socket {self._path} is another controller's ({error})") from None
            raise SystemExit(f"vsrt: the status socket {self._path}: {error.strerror or error}") from error
        hub.spawn(self._serve, listening)

    def stop(self) -> None:
        """Close the socket and remove its file, unless that is another's by now."""
        listening, self._socket = self._socket, None
        if listening is not None:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            with contextlib.suppress(OSError):
                if _identity(self._path) == self._file:
                    self._path.unlink()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove_stale(self) -> None:
        """Remove the socket of a process that has ended; LockHeld where somebody listens."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(PROBE_S)
            try:
                probe.connect(str(self._path))
            except ConnectionRefusedError:
                self._path.unlink()
                return
            except (TimeoutError, BlockingIOError):
                raise LockHeld("it does not answer") from None
            pid, _, _ = _PEER.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        raise LockHeld(f"process {pid}")

    def _serve(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                client, _ = listening.accept()
            except OSError as error:
                if self._socket is listening:
                    self._logger.error("No connection to %s can be taken: %s.", self._path, error.strerror)
                    hub.sleep(ACCEPT_AGAIN_S)
                continue
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
                    client.sendall(self._answer(line).encode() + b"\n")
        except OSError:
            pass
        finally:
            self._open_count -= 1

    def _answer(self, line: bytes) -> str:
        try:
            return _json_line(self._document(line))
        except (TypeError, ValueError):
            self._logger.exception("The answer to %s is no JSON.", line)
            return _json_line({"error": "the answer is no JSON"})

    def _document(self, line: bytes) -> Any:
        try:
            question = json.loads(line)
            if "changes" in question:
                return self._changes(question)
            found = self._find(question)
        except QuestionRefused as error:
            return refusal(error)
        except (ValueError, TypeError, AttributeError, RecursionError):
            found = None
        if found is None:
            shows = ", ".join(sorted(name for app in self.apps for name in app.views))
            does = ", ".join(sorted(name for app in self.apps for name in app.actions))
            more = f', or {{"do": one of {does}}}' if does else ""
            return {"error": f'ask with one line of JSON: {{"show": one of {shows}}}{more}'}
        app, answer = found
        try:
            return app.ask(answer)
        except QuestionRefused as error:
            return refusal(error)
        except Unanswered as error:
            self._logger.warning("%s: %s", line, error)
            return {"error": str(error), "unanswered": "under-way" if error.begun else "not-begun"}
        except Exception as error:
            self._logger.exception("The question %s failed.", line)
            return {"error": f"{type(error).__name__}: {error}"}

    def _changes(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return what a reader lacks of the sections it asks for, by section and app."""
        asked, limit = question["changes"], question.get("limit", DOCUMENTS)
        if not isinstance(asked, dict):
            raise QuestionRefused("changes: must be an object of sections", "changes")
        if type(limit) is not int or not 1 <= limit <= DOCUMENTS_BOUND:
            raise QuestionRefused(f"limit: {limit!r} is no whole number from 1 to {DOCUMENTS_BOUND}", "limit")
        ours = question.get("epoch", EPOCH) == EPOCH
        answer: dict[str, Any] = {"epoch": EPOCH, "sections": {name: {} for name in asked}, "names": []}
        for app in self.apps:
            answer["names"] += [name for name in app.sections if name not in answer["names"]]
            versions = {name: _version(name, asked[name], app.app) for name in asked if name in app.sections}
            if not versions:
                continue
            try:
                found = app.ask(partial(app.changes, versions if ours else dict.fromkeys(versions, 0), limit))
            except Exception as error:
                self._logger.exception("The changes of %s could not be read.", app.app)
                answer.setdefault("errors", {})[app.app] = f"{type(error).__name__}: {error}"
                continue
            for name, delta in found.items():
                answer["sections"][name][app.app] = delta
        return answer

    def _find(self, question: dict[str, Any]) -> tuple[StatusServer, Callable[[], Any]] | None:
        """Return who answers a question, and how; None where nobody does."""
        show, do = question.pop("show", None), question.pop("do", None)
        for app in self.apps:
            if do is None and show in app.views:
                return app, app.views[show]
            if show is None and do in app.actions:
                return app, partial(app.actions[do], question)
        return None


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another of the same name."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def _version(name: str, asked: Any, app: str) -> int:
    """Return the version of a section that a reader knows from an app."""
    version = asked.get(app, 0) if isinstance(asked, dict) else asked
    if type(version) is not int or version < 0:
        raise QuestionRefused(f"changes: {name}: {version!r} is no version", "changes")
    return version


def refusal(error: QuestionRefused) -> dict[str, Any]:
    """Return the answer that says so."""
    answer: dict[str, Any] = {"error": str(error), "refused": True}
    if error.field is not None:
        answer["field"] = error.field
    if error.reason is not None:
        answer["reason"] = error.reason
    return answer


_LISTENERS: dict[Path, _Listener] = {}
_json_line = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
