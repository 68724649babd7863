"""The store in etcd, over the JSON gateway that its servers have beside gRPC; nothing but Python is needed."""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from controller.cluster.engine import (
    Committed,
    Compacted,
    ConditionFailed,
    Delete,
    GrantLease,
    KeepLease,
    KeyChange,
    KeyChanges,
    KeyCondition,
    KeyPage,
    KeyValue,
    LeaseGone,
    LeaseGranted,
    LeaseKept,
    LeaseRevoked,
    PutKey,
    ReadPage,
    Reply,
    Request,
    RevokeLease,
    Silent,
    Transaction,
    WatchReport,
    check,
    end_of,
)

DEADLINE_S = 1.0
"""Within this time a request is answered, or the store is silent."""

WATCH_KEEPALIVE_S = 1
"""A watch whose server's machine says nothing for about four times this is over."""

REPORTS_BOUND = 4096
"""Reports that a watch keeps for who is slow to take them; beyond it the watch is over."""

_UNSENT = (ConnectionRefusedError, socket.gaierror)
_TROUBLE = (OSError, HTTPException, ValueError)
_CONTENT = {"Content-Type": "application/json"}

_NOT_FOUND = 5
_NOT_ENABLED = 9
_OUT_OF_RANGE = 11
_UNAVAILABLE = 14
_UNAUTHENTICATED = 16


class Access(NamedTuple):
    """Where etcd's servers are, and how one gets in.

    Attributes
    ----------
    endpoints
        Their addresses, ``http://HOST:PORT`` or ``https://HOST:PORT``.
    tls
        How servers are verified, and what is shown to them; None where no endpoint has TLS.
    user, password
        Empty where none is asked for.
    """

    endpoints: tuple[str, ...]
    tls: ssl.SSLContext | None = None
    user: str = ""
    password: str = ""


class EtcdError(Exception):
    """What etcd said instead of an answer; `code` is gRPC's."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class EtcdEngine:
    """The store, for one thread.

    A server that refuses a connection is passed over at once. After one that does not answer, the next request goes
    to another server.
    """

    def __init__(self, access: Access, deadline_s: float = DEADLINE_S) -> None:
        self._access = access
        self._deadline_s = deadline_s
        self._place = 0
        self._connection: HTTPConnection | None = None
        self._token = ""

    @property
    def endpoint(self) -> str:
        """The server that is asked now."""
        return self._access.endpoints[self._place % len(self._access.endpoints)]

    def ask(self, request: Request) -> Reply:
        """Return the answer, `Silent` where none came within the deadline."""
        path, body = _encoded(request)
        repeatable = type(request) is not Transaction or request.is_repeatable
        try:
            return _decoded(request, self._post(path, body, repeatable))
        except EtcdError as error:
            return _of_error(error)
        except _TROUBLE as error:
            return Silent(f"{self._rotate()} does not answer ({_words(error)}).")

    def question(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the server tells of itself; EtcdError, OSError, HTTPException, ValueError where not."""
        return self._post(path, body or {}, True)

    def metrics(self) -> str | None:
        """Return the server's own metrics, None where it serves none."""
        try:
            connection = self.connect(self._deadline_s)
            with closing(connection):
                connection.request("GET", "/metrics", headers=self.headers())
                response = connection.getresponse()
                return response.read().decode() if response.status == HTTPStatus.OK else None
        except _TROUBLE:
            return None

    def certificate(self) -> Mapping[str, Any]:
        """Return the certificate that the server shows (`ssl.SSLSocket.getpeercert`); nothing where it has none."""
        try:
            connection = self.connect(self._deadline_s)
            with closing(connection):
                connection.connect()
                shown = connection.sock.getpeercert() if isinstance(connection.sock, ssl.SSLSocket) else None
                return shown or {}
        except _TROUBLE:
            return {}

    def watch(self, prefix: str, after_revision: int) -> EtcdWatch:
        """Have changes told, by a connection and a thread of their own."""
        return EtcdWatch(self, prefix, after_revision)

    def close(self) -> None:
        """Give up the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _rotate(self) -> str:
        """Go to another server; return the one it was."""
        self.close()
        former, self._place = self.endpoint, self._place + 1
        return former

    def _post(self, path: str, body: Mapping[str, Any], repeatable: bool) -> dict[str, Any]:
        until_s = time.monotonic() + self._deadline_s
        for _ in self._access.endpoints:
            try:
                return self._authorized(path, body, until_s)
            except TimeoutError:
                raise
            except EtcdError as error:
                if error.code != _UNAVAILABLE or not repeatable:
                    raise
            except _UNSENT:
                pass
            except _TROUBLE:
                if not repeatable:
                    raise
            self._rotate()
        return self._authorized(path, body, until_s)

    def _authorized(self, path: str, body: Mapping[str, Any], until_s: float) -> dict[str, Any]:
        if self._access.user and not self._token:
            self._authenticate(until_s)
        try:
            return self._once(path, body, until_s)
        except EtcdError as error:
            if error.code != _UNAUTHENTICATED:
                raise
        self._authenticate(until_s)
        return self._once(path, body, until_s)

    def _authenticate(self, until_s: float) -> None:
        self._token = ""
        try:
            name_and_password = {"name": self._access.user, "password": self._access.password}
            self._token = self._once("/v3/auth/authenticate", name_and_password, until_s).get("token", "")
        except EtcdError as error:
            if error.code != _NOT_ENABLED:
                raise

    def _once(self, path: str, body: Mapping[str, Any], until_s: float) -> dict[str, Any]:
        connection = self._connection
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        if connection is None:
            connection = self._connection = self.connect(left_s)
        elif connection.sock is not None:
            connection.sock.settimeout(left_s)
        connection.request("POST", path, json.dumps(body).encode(), self.headers())
        with connection.getresponse() as response:
            return _content(response)

    def connect(self, timeout_s: float) -> HTTPConnection:
        """Return a connection to the server that is asked now; it is made with the first request."""
        address = urlsplit(self.endpoint)
        assert address.hostname is not None
        if address.scheme == "https":
            return HTTPSConnection(address.hostname, address.port, timeout=timeout_s, context=self._access.tls)
        return HTTPConnection(address.hostname, address.port, timeout=timeout_s)

    def headers(self) -> dict[str, str]:
        """Return what a request begins with."""
        return {**_CONTENT, "Authorization": self._token} if self._token else _CONTENT


class EtcdWatch:
    """Changes, as a thread reads them from a server that goes on answering one request.

    It is over when its server is, and when nobody takes what it reads.
    """

    def __init__(self, engine: EtcdEngine, prefix: str, after_revision: int) -> None:
        self._reports: queue.Queue[WatchReport] = queue.Queue()
        self._after_revision = after_revision
        self._is_over = False
        self._connection: HTTPConnection | None = None
        # From that revision itself: a watch from the next one, if that was compacted, is taken and tells no deletes.
        create = {"key": _b64(prefix), "range_end": _b64(end_of(prefix)), "start_revision": max(after_revision, 1)}
        try:
            # An answer to a request first: it finds a server that answers, and a token where one is needed.
            if type(told := engine.ask(ReadPage(prefix, limit=1))) is Silent:
                raise TimeoutError(told.why)
            self._connection = engine.connect(DEADLINE_S)
            body = json.dumps({"create_request": create}).encode()
            self._connection.request("POST", "/v3/watch", body, engine.headers())
            response = self._connection.getresponse()
            if response.status != HTTPStatus.OK:
                _content(response)
            self._socket = self._connection.sock
            _expect_silence(self._socket)
        except (*_TROUBLE, EtcdError) as error:
            self._end(Silent(f"{engine.endpoint} does not tell what changes ({_words(error)})."))
            return
        self._thread = threading.Thread(target=self._read, args=(response, engine.endpoint), daemon=True)
        self._thread.start()

    def take(self, wait_s: float) -> WatchReport | None:
        """Return what there is to tell, waiting for it at most `wait_s` seconds."""
        with suppress(queue.Empty):
            return self._reports.get(wait_s > 0, wait_s or None)
        return None

    def close(self) -> None:
        """Give up the connection, which ends the thread."""
        self._is_over = True
        if self._connection is not None:
            with suppress(OSError, AttributeError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._connection.close()

    def _end(self, report: WatchReport) -> None:
        if not self._is_over:
            self._reports.put(report)
        self.close()

    # On the thread

    def _read(self, response: HTTPResponse, endpoint: str) -> None:
        try:
            while not self._is_over:
                line = response.readline()
                report = self._report(json.loads(line)) if line else Silent(f"{endpoint} ended a watch.")
                if report is None:
                    continue
                if type(report) is not KeyChanges:
                    self._end(report)
                elif self._reports.qsize() >= REPORTS_BOUND:
                    self._end(Silent(f"More than {REPORTS_BOUND} changes of {endpoint} waited to be taken."))
                else:
                    self._reports.put(report)
        except (*_TROUBLE, AttributeError) as error:  # the latter where the connection was closed meanwhile
            self._end(Silent(f"{endpoint} ended a watch ({_words(error)})."))

    def _report(self, told: dict[str, Any]) -> WatchReport | None:
        if "error" in told:
            return Silent(f"A watch ended ({told['error']}).")
        result = told["result"]
        if compacted := int(result.get("compact_revision", 0)):
            return Compacted(compacted)
        if result.get("canceled"):
            return Silent(f"A watch ended ({result.get('cancel_reason', 'cancelled')}).")
        if int(result["header"]["revision"]) < self._after_revision:
            return Silent("The store was set up anew.")
        events = (_change(event) for event in result.get("events", ()))
        changes = tuple(change for change in events if change.revision > self._after_revision)
        return KeyChanges(changes[-1].revision, changes) if changes else None


def _expect_silence(connection: socket.socket) -> None:
    """Have the end of a watch noticed whose server's machine is gone, though nothing need ever be told."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, WATCH_KEEPALIVE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, WATCH_KEEPALIVE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


# Messages


def _encoded(request: Request) -> tuple[str, dict[str, Any]]:
    """Return path and body of a request."""
    if type(request) is Transaction:
        check(request)
        keys = dict.fromkeys(condition.key for condition in request.conditions)
        return "/v3/kv/txn", {
            "compare": [compare for condition in request.conditions for compare in _compares(condition)],
            "success": [_operation(edit) for edit in request.edits],
            "failure": [{"request_range": {"key": _b64(key)}} for key in keys],
        }
    if type(request) is ReadPage:
        start = request.after + "\0" if request.after else request.prefix
        body: dict[str, Any] = {"key": _b64(start), "range_end": _b64(end_of(request.prefix)), "limit": request.limit}
        return "/v3/kv/range", {**body, "revision": request.revision}
    if type(request) is GrantLease:
        return "/v3/lease/grant", {"TTL": request.ttl_s}
    assert type(request) is KeepLease or type(request) is RevokeLease
    return f"/v3/lease/{'keepalive' if type(request) is KeepLease else 'revoke'}", {"ID": request.lease}


def _compares(condition: KeyCondition) -> list[dict[str, Any]]:
    key = _b64(condition.key)
    compares: list[dict[str, Any]] = [{"key": key, "target": "MOD", "mod_revision": condition.revision}]
    if condition.value is not None and condition.revision:
        compares.append({"key": key, "target": "VALUE", "value": _b64(condition.value)})
    return compares


def _operation(edit: PutKey | Delete) -> dict[str, Any]:
    if type(edit) is PutKey:
        return {"request_put": {"key": _b64(edit.key), "value": _b64(edit.value), "lease": edit.lease}}
    return {"request_delete_range": {"key": _b64(edit.key)}}


def _decoded(request: Request, answer: Mapping[str, Any]) -> Reply:
    """Return what an answer says; ValueError where it makes no sense."""
    try:
        if type(request) is Transaction:
            revision = int(answer["header"]["revision"])
            if answer.get("succeeded", False):  # what is false, 0 or empty is absent
                return Committed(revision)
            ranges = [response.get("response_range", {}) for response in answer.get("responses", ())]
            return ConditionFailed(revision, tuple(_held(entry) for told in ranges for entry in told.get("kvs", ())))
        if type(request) is ReadPage:
            revision = request.revision or int(answer["header"]["revision"])
            held = tuple(_held(entry) for entry in answer.get("kvs", ()))
            return KeyPage(revision, held, bool(answer.get("more", False)))
        if type(request) is GrantLease:
            return LeaseGranted(int(answer["ID"]), int(answer["TTL"]))
        if type(request) is KeepLease:
            ttl_s = int(answer["result"].get("TTL", 0))
            return LeaseKept(request.lease, ttl_s) if ttl_s > 0 else LeaseGone()
        return LeaseRevoked()
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an answer without {error}") from error


def _content(response: HTTPResponse) -> dict[str, Any]:
    """Return the object in a response; EtcdError where it is one."""
    data = response.read()
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise ValueError(f"HTTP status {response.status}, and no JSON object")
    if response.status != HTTPStatus.OK or "error" in told:
        code = told.get("code", 0)
        raise EtcdError(str(told.get("error", f"HTTP status {response.status}")), code if type(code) is int else 0)
    return told


def _of_error(error: EtcdError) -> Reply:
    text = str(error)
    if error.code == _NOT_FOUND and "lease" in text:
        return LeaseGone()
    if error.code == _OUT_OF_RANGE and "compacted" in text:
        return Compacted(0)
    return Silent(f"etcd says: {text}.")


def _held(entry: Mapping[str, Any]) -> KeyValue:
    value = _text(entry.get("value", ""))
    return KeyValue(_text(entry["key"]), value, int(entry["mod_revision"]), int(entry.get("lease", 0)))


def _change(event: Mapping[str, Any]) -> KeyChange:
    entry = event["kv"]
    if event.get("type") == "DELETE":
        return KeyChange(_text(entry["key"]), None, int(entry["mod_revision"]))
    return KeyChange(*_held(entry))


def _b64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(data: str) -> str:
    return b64decode(data).decode()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def tls_context(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """Return how servers are verified: by the certificates in file `ca`, the system's where that is ''.

    OSError (ssl.SSLError among them) where a file cannot be used.
    """
    context = ssl.create_default_context(cafile=ca or None)
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def needs_tls(endpoints: Sequence[str]) -> bool:
    """Tell whether an endpoint has TLS."""
    return any(urlsplit(endpoint).scheme == "https" for endpoint in endpoints)
