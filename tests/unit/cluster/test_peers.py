"""How others hear a leader: by its connection, and only who leads now."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from apps.cluster import peers
from apps.cluster.peers import BeatSpeaker, Hearer
from controller.cluster.events import PeerGone, PeerHeard
from controller.cluster.keys import Leader
from patience import wait_until

WAIT_S = 20.0


def leader(name: str, listening: socket.socket) -> Leader:
    return Leader(name, f"{name}-1", 1, f"127.0.0.1:{listening.getsockname()[1]}")


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    made = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield made
    for each in made:
        each.close()


def test_a_leader_is_heard_and_its_end_too(sockets: list[socket.socket]):
    told: list[Any] = []
    hearer, speaker, one = Hearer(told.append), BeatSpeaker(sockets[0]), leader("one", sockets[0])
    hearer.follow(one)

    def heard() -> bool:
        speaker.say(one.incarnation)
        return PeerHeard("one-1") in told

    wait_until(heard, os.getpid(), WAIT_S)
    sockets[0].shutdown(socket.SHUT_RDWR)
    sockets[0].close()
    speaker.close()
    wait_until(lambda: PeerGone("one-1") in told, os.getpid(), WAIT_S)
    hearer.follow(None)


def test_who_leads_next_is_heard_though_the_former_one_s_connection_was_just_being_made(
    sockets: list[socket.socket], monkeypatch: pytest.MonkeyPatch
):
    told: list[Any] = []
    silent, other = leader("silent", sockets[0]), leader("other", sockets[1])
    hearer, speaker = Hearer(told.append), BeatSpeaker(sockets[1])
    connect = peers.socket.create_connection

    def slow(address: tuple[str, int], timeout: float) -> socket.socket:
        connection: socket.socket = connect(address, timeout)
        if hearer._leader is silent:
            hearer.follow(other)
        return connection

    monkeypatch.setattr(peers.socket, "create_connection", slow)
    hearer.follow(silent)

    def heard() -> bool:
        speaker.say(other.incarnation)
        return PeerHeard("other-1") in told

    wait_until(heard, os.getpid(), WAIT_S)
    hearer.follow(None)
