"""How members hear of their leader without the store: who leads says so ten times a second, to whoever connects.

What is said decides nothing but when the store is asked: it is a line with the run of the controller that beats.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from controller.cluster.events import PeerGone, PeerHeard
from controller.cluster.keys import Leader

LISTENERS_BOUND = 64
"""Who may listen at the same time; others are turned away."""

LINE_BYTES = 256
CONNECT_S = 0.5
AGAIN_S = 0.05


class BeatSpeaker:
    """Takes connections at a socket that listens, and has each told of every beat."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._listeners: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="peers", daemon=True).start()

    def say(self, incarnation: str) -> None:
        """Tell all that this run of a controller is there; who takes nothing is heard no more."""
        line = incarnation.encode() + b"\n"
        with self._lock:
            for listener in tuple(self._listeners):
                try:
                    listener.send(line)
                except OSError:
                    self._listeners.remove(listener)
                    listener.close()

    def close(self) -> None:
        """Tell nobody anything more."""
        with self._lock:
            for listener in self._listeners:
                listener.close()
            self._listeners.clear()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.setblocking(False)
            with self._lock:
                if len(self._listeners) < LISTENERS_BOUND:
                    self._listeners.append(connection)
                else:
                    connection.close()


class Hearer:
    """Listens to the leader that it is told of, and tells what it hears, on a thread of its own."""

    def __init__(self, tell: Callable[[PeerHeard | PeerGone], None]) -> None:
        self._tell = tell
        self._leader: Leader | None = None
        self._changed = threading.Event()
        self._connection: socket.socket | None = None
        threading.Thread(target=self._run, name="leader", daemon=True).start()

    def follow(self, leader: Leader | None) -> None:
        """Listen to another leader, to none where that is None."""
        self._leader = leader
        self._changed.set()
        connection = self._connection
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while True:
            self._changed.clear()
            leader = self._leader
            if leader is None or not leader.peer:
                self._changed.wait()
            else:
                self._hear(leader)
                self._changed.wait(AGAIN_S)

    def _hear(self, leader: Leader) -> None:
        try:
            with socket.create_connection(_address(leader.peer), CONNECT_S) as connection:
                self._connection = connection
                if self._leader is not leader:
                    return  # it was another one's turn before there was a connection to end
                connection.settimeout(None)
                for line in self._lines(connection):
                    if self._leader is not leader:
                        return
                    self._tell(PeerHeard(line))
        except ConnectionRefusedError:
            self._tell(PeerGone(leader.incarnation))
        except (OSError, ValueError):
            pass  # not heard: that it is silent is seen by the time that passes
        finally:
            self._connection = None

    def _lines(self, connection: socket.socket) -> Iterator[str]:
        rest = b""
        while data := connection.recv(4096):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES:
                return
            yield from (line.decode("ascii", "replace") for line in lines)


def _address(text: str) -> tuple[str, int]:
    """Return the two parts of ADDRESS:PORT; ValueError where there is no number of a port."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
