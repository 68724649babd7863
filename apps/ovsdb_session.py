"""One connection to an OVSDB server that stays: it tells what the database says, and does transactions (RFC 7047).

It is on a thread of the system's, so that no loop waits for a server. A server that does not answer in time loses the
connection, and is tried again, less and less often.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from errno import EINPROGRESS, ETIMEDOUT
from typing import Any

from apps.ovsdb import address_of
from apps.system import system_select, system_socket, system_threading
from controller.queues.database_copy import DATABASE, REQUESTS
from controller.queues.events import DatabaseEvent, DatabaseLost, DatabaseRead, DatabaseUpdated, Transact, Transacted

ANSWER_S = 5.0
"""Time after which a server that owes an answer is given up, one to our own echo too."""

ECHO_S = 5.0
"""Silence after which a server is asked whether it is there (4.1.11)."""

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 8.0

MESSAGE_BYTES = 64 << 20
"""Longest message that is read; a server that tells more is given up."""

WAITING_BOUND = 4096
"""Transactions that wait for the server at most; beyond it the connection is given up, and all is told anew."""

CLOSE_S = 1.0
"""How long the end of a session is waited for: what asks for the address of a server's name cannot be told to end."""

_READ_BYTES = 1 << 16
_READ, _WRITE = system_select.POLLIN, system_select.POLLOUT


class SessionFailed(Exception):  # noqa: N818
    """The connection is of no use any more; the text says why."""


class OvsdbSession:
    """Keeps a connection to one server.

    Parameters
    ----------
    target
        ``unix:PATH`` or ``tcp:HOST:PORT``.
    tell
        Called, on the session's thread, with what the server tells; returns soon.
    requests_of
        Returns what is to be told, by the server's schema, each time that it is connected to: KeyError where that is
        none of Open vSwitch's. None: what queues need.
    """

    def __init__(
        self,
        target: str,
        tell: Callable[[DatabaseEvent], Any],
        requests_of: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        self._target = target
        self.requests_of = requests_of
        self._family, self._address = address_of(target)
        self._tell = tell
        self._waiting: deque[Transact] = deque()
        self._is_wanted = True
        self._is_anew = False
        self._wake_read, self._wake_write = system_socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._thread = system_threading.Thread(target=self._run, name=f"ovsdb {target}", daemon=True)

    def start(self) -> None:
        """Connect, and stay connected."""
        self._thread.start()

    def transact(self, effect: Transact) -> None:
        """Have operations done; any thread may."""
        self._waiting.append(effect)
        self._wake()

    def read_anew(self) -> None:
        """Connect anew; any thread may."""
        self._is_anew = True
        self._wake()

    def end(self) -> None:
        """Have it end, after what has been handed over is sent as far as that is possible at once; never waits.

        Nothing is told from here on.
        """
        self._is_wanted = False
        self._wake()

    def close(self) -> None:
        """End, and wait for that, `CLOSE_S` at most."""
        self.end()
        self._thread.join(CLOSE_S)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return bool(self._thread.is_alive())

    def _wake(self) -> None:
        try:
            self._wake_write.send(b"x")
        except BlockingIOError:
            return  # it is woken already
        except OSError:
            return  # it has ended

    # On the thread

    def _run(self) -> None:
        retry_s = FIRST_RETRY_S
        while self._is_wanted:
            began_s = time.monotonic()
            try:
                _Connection(self).serve()
                reason = ""
            except SessionFailed as error:
                reason = str(error)
            except OSError as error:
                reason = error.strerror or str(error)
            self._is_anew = False
            self._waiting.clear()
            if not self._is_wanted:
                break
            self.tell(DatabaseLost(self._target, reason))
            if time.monotonic() - began_s > LONGEST_RETRY_S:
                retry_s = FIRST_RETRY_S
            self._pause(retry_s)
            retry_s = min(2 * retry_s, LONGEST_RETRY_S)
        self._wake_read.close()
        self._wake_write.close()

    def _pause(self, duration_s: float) -> None:
        until_s = time.monotonic() + duration_s
        while self._is_wanted and (left_s := until_s - time.monotonic()) > 0:
            poll = system_select.poll()
            poll.register(self._wake_read, system_select.POLLIN)
            poll.poll(1000 * left_s)
            self.take_wakes()

    # For the connection

    def connect(self) -> Any:
        """Return a socket that is connected; OSError where it cannot be in time, SessionFailed where it is to end."""
        connection = system_socket.socket(self._family, system_socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            number = connection.connect_ex(self._address)
            if number == EINPROGRESS:
                number = self._outcome(connection)
            if number:
                raise OSError(number, os.strerror(number))
        except (OSError, SessionFailed):
            connection.close()
            raise
        if self._waiting:
            self._wake()
        return connection

    def _outcome(self, connection: Any) -> int:
        """Wait until a socket is connected, and return 0, or what number the fault has."""
        until_s = time.monotonic() + ANSWER_S
        poll = system_select.poll()
        poll.register(self._wake_read, _READ)
        poll.register(connection, _WRITE)
        while self._is_wanted:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return ETIMEDOUT
            ready = dict(poll.poll(1000 * left_s))
            if connection.fileno() in ready:
                return int(connection.getsockopt(system_socket.SOL_SOCKET, system_socket.SO_ERROR))
            self.take_wakes()
        raise SessionFailed("it is wanted no more")

    @property
    def wakes(self) -> Any:
        """What is readable when there is something to do."""
        return self._wake_read

    def take_wakes(self) -> None:
        """Take note of what there is to do."""
        try:
            while self._wake_read.recv(4096):
                pass
        except BlockingIOError:
            return

    def take_transactions(self) -> list[Transact]:
        """Return what is to be sent."""
        found = []
        while self._waiting:
            found.append(self._waiting.popleft())
        return found

    @property
    def is_to_end(self) -> bool:
        """Whether the connection is wanted no more, or another one."""
        return self._is_anew or not self._is_wanted

    def tell(self, event: DatabaseEvent) -> None:
        """Tell what came, unless the session is to end."""
        if self._is_wanted:
            self._tell(event)

    @property
    def target(self) -> str:
        """The server."""
        return self._target


class _Connection:
    """One connection, from the first question to its end."""

    def __init__(self, session: OvsdbSession) -> None:
        self._session = session
        self._out = b""
        self._heard = b""
        self._owed: dict[Any, float] = {}
        self._heard_s = time.monotonic()
        self._decoder = json.JSONDecoder()

    def serve(self) -> None:
        """Serve until it is to end, or has failed: SessionFailed or OSError then."""
        session = self._session
        connection = session.connect()
        try:
            poll = system_select.poll()
            poll.register(session.wakes, _READ)
            if session.requests_of is None:
                self._monitor(REQUESTS)
            else:
                self._ask("get_schema", [DATABASE], "schema")
            while not session.is_to_end or self._out:
                poll.register(connection, _READ | (_WRITE if self._out else 0))
                ready = dict(poll.poll(1000 * ECHO_S / 2))
                if session.wakes.fileno() in ready:
                    session.take_wakes()
                for effect in session.take_transactions():
                    self._ask("transact", [DATABASE, *effect.operations], effect.number)
                events = ready.get(connection.fileno(), 0)
                if events & _WRITE:
                    self._out = self._out[connection.send(self._out) :]
                if events & ~_WRITE:
                    self._hear(connection)
                self._look_at_time()
        finally:
            connection.close()

    def _monitor(self, requests: Mapping[str, Any]) -> None:
        self._ask("monitor", [DATABASE, None, dict(requests)], "monitor")

    def _ask(self, method: str, params: list[Any], number: Any) -> None:
        if len(self._owed) >= WAITING_BOUND:
            raise SessionFailed("too much waits for it")
        self._owed[number] = time.monotonic()
        self._say({"method": method, "params": params, "id": number})

    def _say(self, message: dict[str, Any]) -> None:
        self._out += json.dumps(message).encode()

    def _hear(self, connection: Any) -> None:
        more = connection.recv(_READ_BYTES)
        if not more:
            raise SessionFailed("it ended the connection")
        self._heard += more
        self._heard_s = time.monotonic()
        if len(self._heard) > MESSAGE_BYTES:
            raise SessionFailed("its message is too long")
        if more[-1:] != b"}":
            return  # a message is an object, so it is not all there
        try:
            text = self._heard.decode().lstrip()
            at = 0
            while at < len(text):
                try:
                    message, at = self._decoder.raw_decode(text, at)
                except json.JSONDecodeError:
                    break  # its end is to come
                self._take(message)
                at += len(text) - at - len(text[at:].lstrip())
            self._heard = text[at:].encode()
        except (UnicodeDecodeError, AttributeError, KeyError, TypeError) as error:
            raise SessionFailed(f"its message makes no sense ({type(error).__name__}: {error})") from error

    def _take(self, message: Any) -> None:
        target, method = self._session.target, message.get("method")
        if method == "echo":
            self._say({"result": message["params"], "error": None, "id": message["id"]})
        elif method == "update":
            self._session.tell(DatabaseUpdated(target, message["params"][1]))
        elif method is None:
            number = message["id"]
            self._owed.pop(number, None)
            if number in ("schema", "monitor"):
                if message.get("error") is not None:
                    raise SessionFailed(f"it does not tell its database: {_text(message['error'])}")
                if number == "monitor":
                    self._session.tell(DatabaseRead(target, message["result"]))
                elif self._session.requests_of is not None:
                    self._monitor(self._session.requests_of(message["result"]))
            elif number != "echo":
                self._session.tell(Transacted(target, number, _problem(message)))

    def _look_at_time(self) -> None:
        now = time.monotonic()
        if self._owed and now - min(self._owed.values()) > ANSWER_S and now - self._heard_s > ANSWER_S / 2:
            raise SessionFailed("it does not answer")
        if now - self._heard_s > ECHO_S and "echo" not in self._owed:
            self._ask("echo", [], "echo")


def _problem(message: Any) -> str | None:
    """Return why a transaction was not done: one of its operations, or all together, failed (4.1.3)."""
    if message.get("error") is not None:
        return _text(message["error"])
    for result in message["result"]:
        if isinstance(result, dict) and result.get("error") is not None:
            details = result.get("details")
            return f"{result['error']}: {details}" if details else str(result["error"])
    return None


def _text(error: Any) -> str:
    if isinstance(error, dict):
        return ": ".join(str(error[name]) for name in ("error", "details") if error.get(name))
    return str(error)
