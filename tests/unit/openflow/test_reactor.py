"""The loop: one thing at a time, in order, from any thread; and connections on it."""

from __future__ import annotations

import math
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from apps.openflow.connection import Connection
from apps.openflow.reactor import GRAIN_S, WAITING_BOUND, Reactor

TIMEOUT_S = 10.0
BARRIER, UNHANDLED = 20, 99


def spawn(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def poll(epoll: Any, timeout_s: float | None, at_most: int) -> Any:
    return epoll.poll(timeout_s, at_most)


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    made = Reactor("loop", select.epoll(), poll, spawn, threading.get_ident)
    yield made
    made.start()
    made.call(made.end)


def await_work(reactor: Reactor) -> None:
    """Wait until the loop has done what was called until now."""
    done = threading.Event()
    reactor.call(done.set)
    assert done.wait(TIMEOUT_S)


class Alarm:
    def __init__(self, deadline_s: float) -> None:
        self.deadline_s: float | None = deadline_s
        self.rang = threading.Event()

    def due(self) -> None:
        self.deadline_s = None
        self.rang.set()


def test_whoever_is_about_to_wake_a_loop_that_ends_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked whether the loop sleeps, and the loop has ended since: its descriptor is not another's by then."""
    threads: list[threading.Thread] = []

    def run(work: Callable[[], None]) -> None:
        threads.append(threading.Thread(target=work, daemon=True))
        threads[0].start()

    def wake_late(descriptor: int, value: int) -> None:
        write(wake, 1)
        threads[0].join(TIMEOUT_S)
        assert not threads[0].is_alive()
        with socket.socket() as other:
            assert other.fileno() != descriptor
            write(descriptor, value)

    ending = Reactor("ending", select.epoll(), poll, run, threading.get_ident)
    write, wake = os.eventfd_write, ending._wake
    ending.start()
    while not ending.is_asleep:
        time.sleep(0)
    monkeypatch.setattr("apps.openflow.reactor.os.eventfd_write", wake_late)
    assert ending.call(ending.end)


def test_work_is_done_in_its_order_and_on_the_loop_alone(reactor: Reactor) -> None:
    done: list[tuple[int, int]] = []
    for number in range(1000):
        reactor.call(lambda number: done.append((number, threading.get_ident())), number)
    assert done == [] and reactor.backlog == 1000
    reactor.start()
    reactor.start()
    await_work(reactor)
    assert [number for number, _ in done] == list(range(1000))
    assert {thread for _, thread in done} != {threading.get_ident()} and len({thread for _, thread in done}) == 1


def test_what_no_loop_takes_in_is_counted(reactor: Reactor) -> None:
    for _ in range(WAITING_BOUND):
        assert reactor.call(int)
    assert not reactor.call(int)
    assert (reactor.dropped_count, reactor.backlog) == (1, WAITING_BOUND)


def test_a_failure_ends_nothing(reactor: Reactor) -> None:
    reactor.start()
    reactor.call(lambda: 1 // 0)
    await_work(reactor)


def test_what_is_due_is_done_though_much_waits(reactor: Reactor) -> None:
    alarm, stop = Alarm(time.monotonic() + 0.05), threading.Event()
    reactor.add(alarm)

    def again() -> None:
        if not stop.is_set():
            reactor.call(again)

    reactor.call(again)
    reactor.start()
    assert alarm.rang.wait(TIMEOUT_S)
    stop.set()


def test_a_loop_that_rests_wakes_for_what_is_due_and_for_work(reactor: Reactor) -> None:
    reactor.start()
    await_work(reactor)
    alarm = Alarm(time.monotonic() + 0.05)
    reactor.call(reactor.add, alarm)
    assert alarm.rang.wait(TIMEOUT_S)
    await_work(reactor)


class Busy:
    """Is due every tenth of a millisecond; `turns` says when it was called."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self.deadline_s = time.monotonic()
        self.has_finished = threading.Event()

    def due(self) -> None:
        now = time.monotonic()
        self.turns.append(now)
        self.deadline_s = now + 0.0001
        if len(self.turns) == 21:
            self.deadline_s = math.inf
            self.has_finished.set()


def test_a_loop_that_rests_wakes_for_what_is_due_at_about_one_time_but_once(reactor: Reactor) -> None:
    busy = Busy()
    reactor.add(busy)
    reactor.start()
    assert busy.has_finished.wait(TIMEOUT_S)
    assert busy.turns[-1] - busy.turns[0] >= 10 * GRAIN_S


class Switch:
    """The far end of a connection.

    `messages` are what has been taken of what it sends, `counts` how many were after each reading.
    """

    def __init__(self, reactor: Reactor, timeout_s: float = 5.0, capacity_bytes: int = 1 << 20) -> None:
        near, self.socket = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.socket.settimeout(TIMEOUT_S)
        self.ended, self.messages, self.given = threading.Event(), list[bytes](), list[int]()
        self.counts = list[int]()
        datapath = SimpleNamespace(socket=near, address="there", ofproto=SimpleNamespace(OFP_VERSION=4))
        self.connection = Connection(
            datapath,
            reactor,
            self._take,
            lambda _datapath, _data, at: at,
            self._read_out,
            self._give,
            lambda _connection: self.ended.set(),
            self._refused,
            timeout_s,
            capacity_bytes,
        )
        self.connection.is_up = True
        reactor.call(self.connection.begin)
        reactor.start()

    def _take(self, _datapath: Any, _version: int, kind: int, _xid: int, message: bytes) -> bool:
        if kind == UNHANDLED:
            return False
        self.messages.append(message)
        return kind != BARRIER

    def _read_out(self) -> None:
        self.counts.append(len(self.messages))

    def _refused(self, _connection: Connection, reason: str) -> None:
        raise AssertionError(reason)

    def _give(self, _datapath: Any, _version: int, kind: int, _length: int, _xid: int, _message: bytes) -> None:
        self.given.append(kind)
        if kind == UNHANDLED:
            raise LookupError("a fault of the framework's")


def openflow(kind: int, body: bytes = b"", xid: int = 1) -> bytes:
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_what_others_brought_has_as_much_time_as_what_is_due(reactor: Reactor) -> None:
    class Busy:
        deadline_s: float | None = 0.0
        count = 0

        def due(self) -> None:
            self.count += 1
            time.sleep(0.05)

    busy, done = Busy(), list[int]()
    reactor.add(busy)
    reactor.start()
    until(lambda: busy.count > 1)
    before = busy.count
    for _ in range(100):
        reactor.call(lambda: (time.sleep(0.002), done.append(busy.count)))
    until(lambda: len(done) == 100)
    reactor.call(reactor.remove, busy)
    assert done[-1] - before <= 12


def test_messages_are_told_apart_however_they_arrive(reactor: Reactor) -> None:
    switch = Switch(reactor)
    sent = [openflow(10, bytes(number % 97), number) for number in range(300)]
    stream = b"".join(sent)
    for at in range(0, len(stream), 7):
        switch.socket.sendall(stream[at : at + 7])
    until(lambda: len(switch.messages) == 300)
    assert switch.messages == sent


def test_a_message_that_is_not_handled_to_its_end_takes_no_other_with_it(
    reactor: Reactor, caplog: pytest.LogCaptureFixture
) -> None:
    switch = Switch(reactor)
    sent = [openflow(10, bytes(5), number) for number in range(4)]
    stream = b"".join([*sent[:2], openflow(UNHANDLED), *sent[2:]])
    switch.socket.sendall(stream[:-3])
    until(lambda: len(switch.messages) == 3)
    switch.socket.sendall(stream[-3:])
    until(lambda: len(switch.messages) == 4)
    assert switch.messages == sent
    assert f"The message of type {UNHANDLED} of the switch at there was not handled to its end." in caplog.text


def test_the_end_of_what_was_read_is_told_even_where_it_ends_the_connection(reactor: Reactor) -> None:
    switch = Switch(reactor)
    switch.socket.sendall(openflow(10) * 3)
    until(lambda: switch.counts == [3])
    switch.socket.sendall(openflow(10) * 2 + struct.pack("!BBHI", 4, 10, 0, 1))
    assert switch.ended.wait(TIMEOUT_S)
    await_work(reactor)
    assert switch.counts == [3, 5]


def test_what_the_apps_leave_goes_to_the_framework(reactor: Reactor) -> None:
    switch = Switch(reactor)
    switch.socket.sendall(openflow(BARRIER) + openflow(10))
    until(lambda: len(switch.messages) == 2)
    assert switch.given == [BARRIER]


def test_echo_requests_are_answered(reactor: Reactor) -> None:
    switch = Switch(reactor)
    switch.socket.sendall(openflow(2, b"body", 77))
    assert switch.socket.recv(100) == openflow(3, b"body", 77)


def test_messages_go_out_in_their_order_whoever_sends_them(reactor: Reactor) -> None:
    switch = Switch(reactor)
    for number in range(2000):
        assert switch.connection.send(openflow(13, struct.pack("!I", number)))
    received = b""
    while len(received) < 2000 * 12:
        received += switch.socket.recv(1 << 16)
    assert [struct.unpack_from("!I", received, 12 * number + 8)[0] for number in range(2000)] == list(range(2000))
    await_work(reactor)
    assert switch.connection.waiting_bytes == 0


def test_a_message_without_a_length_ends_the_connection(reactor: Reactor) -> None:
    switch = Switch(reactor)
    switch.socket.sendall(struct.pack("!BBHI", 4, 10, 0, 1))
    assert switch.ended.wait(TIMEOUT_S)
    assert not switch.connection.send(openflow(13))


def test_the_end_of_the_stream_ends_the_connection(reactor: Reactor) -> None:
    switch = Switch(reactor)
    switch.socket.close()
    assert switch.ended.wait(TIMEOUT_S) and switch.connection.cut_because is None


def test_a_switch_that_reads_too_slowly_is_cut_off(reactor: Reactor) -> None:
    switch = Switch(reactor, capacity_bytes=1 << 18)
    while switch.connection.send(openflow(13, bytes(10_000))):
        pass
    assert switch.ended.wait(TIMEOUT_S)
    assert "reads too slowly" in str(switch.connection.cut_because)


def test_a_switch_that_takes_nothing_is_cut_off_and_not_before(reactor: Reactor) -> None:
    switch = Switch(reactor, timeout_s=0.5)
    switch.connection.send(openflow(13, bytes(60_000)) * 10)
    until(lambda: switch.connection.waiting_bytes == 0)
    began_s = time.monotonic()
    reactor.call(switch.connection.look_after, began_s + 0.2, 1.0, 0)
    await_work(reactor)
    assert not switch.ended.is_set()
    reactor.call(switch.connection.look_after, began_s + 0.7, 1.0, 0)
    assert switch.ended.wait(TIMEOUT_S)
    assert switch.connection.cut_because == "it took nothing for 0.5 s"


def test_a_switch_is_not_cut_off_for_what_a_late_loop_did_not_give_it(reactor: Reactor) -> None:
    switch = Switch(reactor, timeout_s=0.5)
    switch.connection.send(openflow(13, bytes(60_000)) * 10)
    until(lambda: switch.connection.waiting_bytes == 0)

    def late() -> None:
        switch.socket.recv(1 << 16)
        reactor.now_s += 0.7
        switch.connection.look_after(reactor.now_s, 1.0, 0)

    reactor.call(late)
    await_work(reactor)
    assert not switch.ended.is_set()


def test_a_switch_is_not_given_up_for_what_a_late_loop_did_not_hear(reactor: Reactor) -> None:
    switch = Switch(reactor)
    await_work(reactor)

    def late() -> None:
        now = reactor.now_s
        for _ in range(2):
            now += 1.0
            switch.connection.look_after(now, 1.0, 2)
        switch.socket.sendall(openflow(3))
        reactor.now_s = now + 1.0
        switch.connection.look_after(reactor.now_s, 1.0, 2)

    reactor.call(late)
    await_work(reactor)
    assert not switch.ended.is_set()


def test_a_switch_that_nobody_asked_is_not_given_up(reactor: Reactor) -> None:
    switch = Switch(reactor)
    await_work(reactor)
    reactor.call(switch.connection.look_after, time.monotonic() + 1000.0, 1.0, 2)
    await_work(reactor)
    assert not switch.ended.is_set()
    assert switch.socket.recv(100) == openflow(2, xid=0)


def test_a_silent_switch_is_asked_and_given_up_in_the_end(reactor: Reactor) -> None:
    switch = Switch(reactor)
    await_work(reactor)
    now = time.monotonic()
    for after_s in (0.5, 1.2, 1.4, 2.6, 3.3):
        reactor.call(switch.connection.look_after, now + after_s, 1.0, 2)
    assert switch.ended.wait(TIMEOUT_S) and switch.connection.cut_because is None
    asked = b""
    while data := switch.socket.recv(100):
        asked += data
    assert asked == openflow(2, xid=0) * 2
