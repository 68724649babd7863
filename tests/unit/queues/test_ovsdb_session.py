"""A session stays with its server, waits for nobody too long, and tells what it has lost."""

from __future__ import annotations

import errno
import json
import os
import queue
import socket
import threading
import time

import pytest

from apps import ovsdb_session
from apps.ovsdb_session import OvsdbSession
from apps.system import system_socket
from controller.queues.events import DatabaseLost, DatabaseRead, DatabaseUpdated, Transact, Transacted

WAIT_S = 20.0


class Told:
    """What a session told."""

    def __init__(self):
        self.events = queue.SimpleQueue()

    def next(self, kind):
        """The next event of a kind; others are passed over."""
        while not isinstance(event := self.events.get(timeout=WAIT_S), kind):
            pass
        return event


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def session(told):
    made = []

    def make(target):
        made.append(OvsdbSession(target, told.events.put))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_all_is_told_first_and_then_what_changes(server, session, told):
    server.bridge("s1", 7, 1)
    session(server.target)
    updates = told.next(DatabaseRead).updates
    assert [row["new"]["datapath_id"] for row in updates["Bridge"].values()] == [f"{7:016x}"]
    server.vsctl("add-port", "s1", "other")
    assert "Port" in told.next(DatabaseUpdated).updates


def test_a_transaction_is_done_and_what_it_changed_is_told_before(server, session, told):
    found = session(server.target)
    told.next(DatabaseRead)
    found.transact(Transact(server.target, 5, ({"op": "insert", "table": "QoS", "row": {"type": "linux-htb"}},)))
    event = told.events.get(timeout=WAIT_S)
    assert isinstance(event, DatabaseUpdated) and "QoS" in event.updates
    assert told.next(Transacted) == Transacted(server.target, 5, None)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "insert", "table": "Nothing", "row": {}},
        {
            "op": "wait",
            "table": "QoS",
            "where": [],
            "columns": ["type"],
            "until": "==",
            "rows": [{"type": "x"}],
            "timeout": 0,
        },
        {"op": "none"},
    ],
)
def test_a_transaction_that_fails_says_why_and_the_session_goes_on(server, session, told, operation):
    found = session(server.target)
    told.next(DatabaseRead)
    insert = {"op": "insert", "table": "Queue", "row": {}}
    found.transact(Transact(server.target, 1, (insert, operation)))
    assert told.next(Transacted).error
    assert server.rows("Queue", "_uuid") == []
    found.transact(Transact(server.target, 2, (insert,)))
    assert told.next(Transacted) == Transacted(server.target, 2, None)


def test_a_server_that_is_not_there_is_told_and_found_when_it_comes(server, session, told):
    server.kill()
    session(server.target)
    assert "No such file" in told.next(DatabaseLost).reason
    server.start()
    told.next(DatabaseRead)


class Peer:
    """A server that answers as a test says."""

    def __init__(self, answer):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = f"tcp:127.0.0.1:{self._listener.getsockname()[1]}"
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        try:
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    self._answer(connection)
        except OSError:
            return

    def close(self):
        self._listener.close()


@pytest.fixture
def peer():
    made = []

    def make(answer):
        made.append(Peer(answer))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_server_that_does_not_answer_is_given_up_in_time(session, told, peer, monkeypatch):
    monkeypatch.setattr(ovsdb_session, "ANSWER_S", 0.3)
    monkeypatch.setattr(ovsdb_session, "ECHO_S", 0.1)
    session(peer(lambda connection: connection.recv(1 << 20) and time.sleep(WAIT_S)).target)
    assert told.next(DatabaseLost).reason == "it does not answer"


@pytest.mark.parametrize(
    "said", [b"{]}", b"[1]}", b'{"id": "monitor"}', b'{"method": "update"}', b"\xff}", b'{"id": []}']
)
def test_a_server_that_talks_nonsense_is_given_up(session, told, peer, said):
    def answer(connection):
        connection.recv(1 << 20)
        connection.sendall(said)
        connection.recv(1 << 20)

    session(peer(answer).target)
    assert isinstance(told.next((DatabaseLost, DatabaseRead)), DatabaseLost)


def test_an_answer_may_come_in_pieces_and_an_echo_is_answered(session, told, peer):
    echoed = queue.SimpleQueue()
    is_told = threading.Event()

    def answer(connection):
        asked = json.loads(connection.recv(1 << 20))
        assert asked["method"] == "monitor"
        for text in (
            json.dumps({"id": "monitor", "error": None, "result": {"Port": {}}}),
            ' {"method": "echo", "params": [], "id": "e"}',
        ):
            for byte in text.encode():
                connection.sendall(bytes((byte,)))
            is_told.wait(WAIT_S)
        echoed.put(json.loads(connection.recv(1 << 20)))
        connection.recv(1 << 20)

    session(peer(answer).target)
    assert told.next(DatabaseRead).updates == {"Port": {}}
    is_told.set()
    assert echoed.get(timeout=WAIT_S) == {"result": [], "error": None, "id": "e"}


def test_a_session_ends_soon_whatever_its_server_does(told, peer):
    found = OvsdbSession(peer(lambda connection: time.sleep(WAIT_S)).target, told.events.put)
    found.start()
    began_s = time.monotonic()
    found.close()
    assert time.monotonic() - began_s < 5.0


def test_a_session_ends_while_its_server_takes_no_connection(told, silent_server):
    found = OvsdbSession(silent_server.target, told.events.put)
    found.start()
    silent_server.wait_asked(os.getpid())
    began_s = time.monotonic()
    found.close()
    assert not found.is_alive
    assert time.monotonic() - began_s < ovsdb_session.ANSWER_S / 2


def test_a_server_that_takes_no_connection_is_given_up_in_time(session, told, silent_server, monkeypatch):
    monkeypatch.setattr(ovsdb_session, "ANSWER_S", 0.2)
    session(silent_server.target)
    assert told.next(DatabaseLost).reason == "Connection timed out"


def test_nothing_is_told_once_a_session_is_to_end(told, peer):
    found = OvsdbSession(peer(lambda connection: None).target, told.events.put)
    found.tell(DatabaseLost(found.target, "before"))
    found.end()
    found.tell(DatabaseLost(found.target, "after"))
    assert told.events.get_nowait().reason == "before"
    assert told.events.empty()


def test_the_end_waits_for_no_name(told, monkeypatch):
    asked, may_answer = threading.Event(), threading.Event()

    class Unresolved(socket.socket):
        def connect_ex(self, _address):
            asked.set()
            may_answer.wait(WAIT_S)
            return errno.ECONNREFUSED

    monkeypatch.setattr(system_socket, "socket", Unresolved)
    monkeypatch.setattr(ovsdb_session, "CLOSE_S", 0.05)
    found = OvsdbSession("tcp:outside.example:6640", told.events.put)
    found.start()
    assert asked.wait(WAIT_S)
    found.close()
    assert found.is_alive
    may_answer.set()
    monkeypatch.setattr(ovsdb_session, "CLOSE_S", WAIT_S)
    found.close()
    assert not found.is_alive
    assert told.events.empty()
