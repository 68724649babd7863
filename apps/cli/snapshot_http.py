"""The running controller, reached by the API of its dashboard."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from apps.cli.common import InputError, OperationFailed
from apps.cli.snapshot_source import Action, ConnectionLost
from controller.snapshot.reader import Snapshot

API = "/api/v1"
TIMEOUT_S = 30.0
SILENCE_S = 12.0
"""The stream has a comment after 10 s without a change."""

MAX_ERROR_BYTES = 65536
MAX_TOKEN_BYTES = 4096
STATUS = "status"
APP = "api"
"""The app that documents seem to come from: the API has merged them."""


class HttpSource:
    """The API at `url`; InputError where its address, the token or the certificates make no sense."""

    def __init__(self, url: str, token_file: Path | None, ca: Path | None) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise InputError(f"--url: {url}: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise InputError(f"--url: {url} is not of the form http(s)://HOST:PORT")
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port, self._ca = parts.hostname, port, ca
        self._secure = parts.scheme == "https"
        if ca is not None and not self._secure:
            raise InputError("--ca: only with https")
        if token_file is not None and not self._secure and not _is_loopback(parts.hostname):
            raise InputError("--token-file: a token is sent over http to this machine only; use https")
        self.heard_s: float | None = None
        self.silence_s = SILENCE_S
        self._snapshot = Snapshot()
        self._headers = {"Authorization": f"Bearer {_token(token_file)}"} if token_file is not None else {}

    def follow(self, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
        """Follow the stream of server-sent events."""
        query = urlencode({"sections": ",".join(dict.fromkeys((*sections, *beside, STATUS)))}, safe=",")
        headers = {**self._headers, "Accept": "text/event-stream"}
        with self._asked("GET", f"{API}/stream?{query}", headers) as response:
            for event, data in self._events(response):
                try:
                    if event == "snapshot":
                        self._begin(data["sections"])
                    elif event == "change":
                        self._change(data["sections"])
                    else:
                        continue
                except (KeyError, TypeError, AttributeError) as error:
                    raise OperationFailed(f"{self._url}: the stream is none of a dashboard: {error!r}") from error
                self._check_connected()
                yield self._snapshot
        raise ConnectionLost(f"{self._url}: the stream ended")

    def _check_connected(self) -> None:
        status = self._snapshot.section(STATUS).documents.get(STATUS)
        if status is None or not status.fields.get("connected"):
            reason = status and status.fields.get("disconnected_reason")
            raise ConnectionLost(f"{self._url}: the controller is away" + (f": {reason}" if reason else ""))

    def _begin(self, sections: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        changes = {}
        for name, documents in sections.items():
            gone = self._snapshot.section(name).documents.keys() - {document["id"] for document in documents}
            changes[name] = {"put": documents, "remove": sorted(gone)}
        self._change(changes)

    def _change(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        self._snapshot.version += 1
        for name, change in sections.items():
            section = self._snapshot.section(name)
            for document in change.get("put", ()):
                section.put(APP, document["id"], document, self._snapshot.version)
            for id_ in change.get("remove", ()):
                section.remove(APP, id_, self._snapshot.version)

    def do(self, action: Action) -> Any:
        """Ask with the method and path of the action."""
        with self._asked(action.method, API + action.path, self._headers) as response:
            try:
                body = response.read()
                return json.loads(body) if body else {}
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._lost(error) from error

    def _events(self, response: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
        event, data = "message", list[str]()
        while True:
            try:
                line = response.readline().decode()
                self.heard_s = time.monotonic()
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._lost(error) from error
            if not line:
                return
            field, _, value = line.rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                event = value
            elif field == "data":
                data.append(value)
            elif not line.strip():
                if data:
                    yield event, self._document("\n".join(data))
                event, data = "message", []

    def _document(self, text: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise OperationFailed(f"{self._url}: {error}") from error
        if not isinstance(document, dict):
            raise OperationFailed(f"{self._url}: expected an object")
        return document

    @contextmanager
    def _asked(self, method: str, path: str, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection()
        try:
            try:
                connection.request(method, path, headers=headers)
                response = connection.getresponse()
                fault = None if response.status < 400 else response.read(MAX_ERROR_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise self._lost(error) from error
            if fault is not None:
                raise self._refusal(response.status, response.reason, fault)
            yield response
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            context = ssl.create_default_context(cafile=self._ca)
        except OSError as error:
            raise InputError(f"--ca: {self._ca}: {error.strerror or error}") from None
        return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_S, context=context)

    def _refusal(self, status: int, reason: str, body: bytes) -> Exception:
        try:
            problem = json.loads(body)
            told = str(problem.get("detail") or problem.get("title") or reason)
            field = problem.get("field")
        except (ValueError, AttributeError):
            told, field = reason, None
        text = f"{field}: {told}" if isinstance(field, str) and not told.startswith(f"{field}:") else told
        if status == http.client.UNAUTHORIZED:
            return OperationFailed(f"{self._url}: {text} (--token-file)")
        if status in (http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY):
            return InputError(text)
        return OperationFailed(f"{self._url}: {text}")

    def _lost(self, error: Exception) -> ConnectionLost:
        told = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ConnectionLost(f"{self._url}: no dashboard answers: {told}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            token = file.read(MAX_TOKEN_BYTES + 1).strip()
    except OSError as error:
        raise InputError(f"--token-file: {path}: {error.strerror}") from None
    if not token or len(token) > MAX_TOKEN_BYTES or not all(0x21 <= byte <= 0x7E for byte in token):
        raise InputError(f"--token-file: {path}: holds no token")
    return token.decode()
