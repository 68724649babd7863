"""What a switch hears first: of a controller that is alone nothing of roles, of one among several its role."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from apps.emulation.free_ports import free_port
from patience import POLL_S, HeldUp, wait_until

HELLO, ECHO, FEATURES, MULTIPART, ROLE, SET_ASYNC, VENDOR = 0, 2, 5, 18, 24, 28, 4
BARRIER, FLOW_MOD, PACKET_OUT, SET_CONFIG, GET_CONFIG = 20, 14, 13, 9, 7
WRITES = {FLOW_MOD, PACKET_OUT}
HEAR_S = 2.0
START_S = 30.0
CLUSTER = "cluster: {engine: etcd, endpoints: 'http://127.0.0.1:9'}\n"


class Switch:
    """An OpenFlow 1.3 switch without ports that answers a handshake and takes note of what it is sent."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.kinds: list[int] = []

    def hear(self, pid: int) -> list[int]:
        """Return the types of messages that came after the handshake, until `HEAR_S` after the first of them.

        These are seconds that the controller, process `pid`, had; what it waited for a processor does not count.
        """
        self._send(HELLO, 0, b"")
        wait_until(self._heard, pid, START_S)
        since_s, held_up = time.monotonic(), HeldUp(pid)
        while time.monotonic() - since_s - held_up.seconds() < HEAR_S:
            time.sleep(POLL_S)
            self._heard()
        return self.kinds

    def _heard(self) -> list[int]:
        """Return the types of messages so far, with those that there are to read, which are answered."""
        while select.select([self._connection], [], [], 0.0)[0]:
            _, kind, length, xid = struct.unpack("!BBHI", self._exactly(8))
            self._answer(kind, xid, self._exactly(length - 8))
        return self.kinds

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == FEATURES:
            self._send(FEATURES + 1, xid, struct.pack("!QIBB2xII", 1, 0, 9, 0, 0, 0))
        elif kind == MULTIPART:
            self._send(MULTIPART + 1, xid, body[:2] + bytes(6) + (bytes(1056) if body[:2] == bytes(2) else b""))
        elif kind in (ECHO, BARRIER):
            self._send(kind + 1, xid, body)
        if kind not in (HELLO, FEATURES, ECHO, SET_CONFIG, MULTIPART):
            self.kinds.append(kind)

    def _send(self, kind: int, xid: int, body: bytes) -> None:
        self._connection.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._connection.recv(count - len(data))
            assert part, "the controller ended the connection"
            data += part
        return data


@pytest.fixture
def first_words(tmp_path: Path) -> Iterator[object]:
    """Runs a controller with a policy; returns what a switch hears first."""
    pytest.importorskip("os_ken")
    with ExitStack() as stack:

        def hear(policy: str) -> list[int]:
            path = tmp_path / "policy.yaml"
            path.write_text(f"version: 1\ndefault: allow\nmonitor: {{prometheus: {{port: 0}}}}\n{policy}")
            port = free_port()
            command = [sys.executable, "-m", "apps.cli.main", "run", "--port", str(port), "multicast", "unicast"]
            state = str(tmp_path / "state")
            env = {**os.environ, "VSRT_CONFIG": str(path), "VSRT_STATE_DIR": state, "VSRT_SOCKET": f"{state}.sock"}
            process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            connection = wait_until(lambda: connected(port), process.pid, START_S)
            return Switch(stack.enter_context(connection)).hear(process.pid)

        yield hear


def connected(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port))
    except ConnectionRefusedError:
        return None


@pytest.mark.parametrize("policy", ["", "cluster: {engine: none}\n"])
def test_who_is_alone_asks_for_no_role_and_writes(first_words, policy: str):
    kinds = first_words(policy)
    assert WRITES & set(kinds), kinds
    assert not {ROLE, SET_ASYNC, VENDOR} & set(kinds)


def test_one_among_several_asks_for_a_role_first_and_writes_nothing(first_words):
    kinds = first_words(CLUSTER)
    assert kinds[:1] == [ROLE]
    assert not WRITES & set(kinds), kinds
