"""The file of the status socket, whose it is and who may use it, and its connections, of which there is a bound."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import resource
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps import status_server
from apps.status_server import CONNECTIONS, LINE_BYTES, StatusServer

TIMEOUT_S = 10.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "status.sock"


@pytest.fixture
def make_app(path: Path) -> Iterator[Callable[[], StatusServer]]:
    """Makes an app at `path`; all are stopped in the end."""
    with ExitStack() as stack:

        def make() -> StatusServer:
            views = {"app": lambda: {"pid": os.getpid()}}
            app = StatusServer(path, views, lambda answer: answer(), logging.getLogger("status"))
            stack.callback(app.stop)
            return app

        yield make


class Client:
    """One connection to the socket."""

    def __init__(self, path: Path) -> None:
        self._stream = socket.socket(socket.AF_UNIX)
        self._stream.settimeout(TIMEOUT_S)
        self._stream.connect(str(path))
        self._lines = self._stream.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._stream.close()

    def ask(self, question: bytes = b'{"show": "app"}') -> Any:
        """Return the answer, None where the connection has ended."""
        with suppress(ConnectionError):
            self._stream.sendall(question + b"\n")
        return self.read_answer()

    def read_answer(self) -> Any:
        """Return the next answer, None where the connection has ended."""
        with suppress(ConnectionError):
            if line := self._lines.readline():
                return json.loads(line)
        return None

    def leave(self) -> None:
        """Say no more, and wait until the other end is closed."""
        self._stream.shutdown(socket.SHUT_WR)
        self.await_end()

    def await_end(self) -> None:
        """Wait until the other end is closed."""
        assert self._lines.read() == b""


ANSWER = {"pid": os.getpid()}


def test_who_owns_the_process_alone_may_ask(path: Path, make_app: Callable[[], StatusServer]):
    before = os.umask(0)
    try:
        make_app().start()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_socket_that_a_process_left_behind_is_replaced(path: Path, make_app: Callable[[], StatusServer]):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    make_app().start()
    with Client(path) as client:
        assert client.ask() == ANSWER


def test_a_socket_that_somebody_listens_on_is_left_and_the_process_named(
    path: Path, make_app: Callable[[], StatusServer]
):
    with socket.socket(socket.AF_UNIX) as others:
        others.bind(str(path))
        others.listen()
        others.settimeout(TIMEOUT_S)
        with pytest.raises(SystemExit, match=rf"is another controller's \(process {os.getpid()}\)"):
            make_app().start()
        others.accept()[0].close()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    make_app().start()
    with Client(path) as client:
        assert client.ask() == ANSWER


def test_a_socket_of_somebody_who_does_not_answer_is_left(
    path: Path, make_app: Callable[[], StatusServer], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(status_server, "PROBE_S", 0.1)
    with socket.socket(socket.AF_UNIX) as others, socket.socket(socket.AF_UNIX) as waiting:
        others.bind(str(path))
        others.listen(0)
        waiting.connect(str(path))
        with pytest.raises(SystemExit, match=r"is another controller's \(it does not answer\)"):
            make_app().start()
        others.accept()[0].close()
        assert path.is_socket()


def test_a_controller_that_has_not_made_its_socket_yet_is_known_by_its_lock(
    path: Path, make_app: Callable[[], StatusServer]
):
    with path.with_name("status.sock.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("4711\n")
        held.flush()
        with pytest.raises(SystemExit, match=r"is another controller's \(process 4711\)"):
            make_app().start()
    assert not path.exists()
    make_app().start()
    with Client(path) as client:
        assert client.ask() == ANSWER


def test_a_file_that_is_no_socket_is_left(path: Path, make_app: Callable[[], StatusServer]):
    path.write_text("a file of somebody's")
    with pytest.raises(SystemExit, match=f"vsrt: the status socket {path}: Address already in use"):
        make_app().start()
    assert path.read_text() == "a file of somebody's"


def test_a_path_that_is_too_long_for_a_socket_is_told(tmp_path: Path):
    app = StatusServer(tmp_path / ("x" * 200), {}, lambda answer: answer(), logging.getLogger("status"))
    with pytest.raises(SystemExit, match="AF_UNIX path too long"):
        app.start()


def test_a_socket_that_another_made_in_the_place_of_ours_is_left_when_we_end(
    path: Path, make_app: Callable[[], StatusServer]
):
    app = make_app()
    app.start()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as others:
        others.bind(str(path))
        others.listen()
        app.stop()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_after_its_end_nothing_of_it_runs_and_another_may_take_its_place(
    path: Path, make_app: Callable[[], StatusServer]
):
    before = set(threading.enumerate())
    for _ in range(2):
        app = make_app()
        app.start()
        with Client(path) as client:
            assert client.ask() == ANSWER
        app.stop()
        assert not path.exists()
        with path.with_name("status.sock.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for thread in set(threading.enumerate()) - before:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()


def test_beyond_the_bound_of_connections_further_ones_are_closed_until_others_end(
    path: Path, make_app: Callable[[], StatusServer]
):
    make_app().start()
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(path)) for _ in range(CONNECTIONS)]
        assert [client.ask() for client in clients] == [ANSWER] * CONNECTIONS
        for _ in range(2):
            with Client(path) as refused:
                assert refused.ask() is None
        assert [client.ask() for client in clients] == [ANSWER] * CONNECTIONS
        clients.pop().leave()
        await_answer(path)
    for _ in range(3 * CONNECTIONS):
        await_answer(path)
    with ExitStack() as stack:
        answered_count = 0
        while answered_count < CONNECTIONS:
            answered_count += stack.enter_context(Client(path)).ask() == ANSWER
        with Client(path) as refused:
            assert refused.ask() is None


def await_answer(path: Path) -> None:
    """Be answered on a connection of its own; one that was ended may count for a moment longer."""
    for _ in range(1000):
        with Client(path) as client:
            if client.ask() == ANSWER:
                client.leave()
                return
    raise AssertionError("there is no room for one more connection")


def test_a_connection_on_which_nobody_asks_is_closed(
    path: Path, make_app: Callable[[], StatusServer], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(status_server, "IDLE_S", 0.05)
    make_app().start()
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            idle = stack.enter_context(Client(path))
            idle.await_end()
        await_answer(path)


def test_connections_are_taken_again_when_there_are_descriptors_again(
    path: Path,
    make_app: Callable[[], StatusServer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(status_server, "ACCEPT_AGAIN_S", 0.01)
    make_app().start()
    with Client(path) as before, socket.socket(socket.AF_UNIX) as waiting:
        assert before.ask() == ANSWER
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.dup(waiting.fileno())
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        try:
            waiting.connect(str(path))
            told = f"No connection to {path} can be taken: Too many open files."
            assert any(told in caplog.text or time.sleep(0.01) for _ in range(1000))
            assert before.ask() == ANSWER
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with Client(path) as client:
        assert client.ask() == ANSWER


def test_a_line_that_does_not_end_takes_no_more_than_its_bound(path: Path, make_app: Callable[[], StatusServer]):
    make_app().start()
    with Client(path) as client:
        begin, rest, answer = client.ask(b"x" * (LINE_BYTES + 5)), client.ask(), client.read_answer()
        assert "ask with one line of JSON" in begin["error"] and "ask with one line of JSON" in rest["error"]
        assert answer == ANSWER
