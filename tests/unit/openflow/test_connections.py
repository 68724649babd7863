"""What becomes of a switch's connections: which one counts, and what is said over it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from control_plane import report_frames
from controllers import controller

from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import (
    ECHO_REPLY,
    ECHO_REQUEST,
    ERROR,
    FEATURES_REPLY,
    FEATURES_REQUEST,
    FLOW_MOD,
    HELLO,
)

PORTS = 8
TIMEOUT_S = 30.0
STATS_REQUEST_1_0 = 16
POLICY = """\
version: 1
rules: [{name: all, groups: [224.0.0.0/4], role: any, hosts: [any], action: allow}]
limits: {groups_per_port: 65536, reports_per_second_per_port: 1000000}
"""


@pytest.fixture(params=["vsrt", "vsrt-os-ken"])
def running(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, POLICY) as process:
        yield process


def connect(process: ControllerProcess) -> LoneSwitch:
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", process.port))
    assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
    return switch


def joins(switch: LoneSwitch, frame: bytes, attempts: int = 1) -> bool:
    """Tell whether a join brings an entry."""
    for _ in range(attempts):
        before = switch.received[FLOW_MOD]
        switch.say([frame])
        if switch.run_until(lambda before=before: switch.received[FLOW_MOD] > before, 1.0):
            return True
    return False


def test_the_end_of_a_connection_that_another_took_over_from_is_not_the_switch_s(running: ControllerProcess) -> None:
    before, after = report_frames(2, 3, PORTS)
    old = connect(running)
    assert joins(old, before, attempts=int(TIMEOUT_S))
    new = connect(running)
    new.run_for(0.5)
    old.close()
    new.run_for(1.5)
    assert running.show("status")["in_sync"]
    assert joins(new, after)
    new.close()


def receive_1_0(stream: socket.socket, wanted: int) -> int:
    """Return the transaction id of the next message of a kind."""
    while True:
        _, kind, length, xid = struct.unpack("!BBHI", stream.recv(8, socket.MSG_WAITALL))
        if length > 8:
            stream.recv(length - 8, socket.MSG_WAITALL)
        if kind == wanted:
            return xid


def test_error_messages_of_openflow_1_0_do_not_end_the_connection(running: ControllerProcess) -> None:
    def message(kind: int, xid: int, body: bytes = b"") -> bytes:
        return struct.pack("!BBHI", 1, kind, 8 + len(body), xid) + body

    with socket.create_connection(("127.0.0.1", running.port), TIMEOUT_S) as stream:
        stream.sendall(message(HELLO, 1))
        xid = receive_1_0(stream, FEATURES_REQUEST)
        stream.sendall(message(FEATURES_REPLY, xid, struct.pack("!QIB3xII", 1, 0, 1, 0, 0)))
        receive_1_0(stream, STATS_REQUEST_1_0)
        for kind, code in ((3, 0), (0, 0), (9, 9)):
            stream.sendall(message(ERROR, 7, struct.pack("!HH", kind, code) + b"\xff" * 64))
            stream.sendall(message(ECHO_REQUEST, 4711))
            assert receive_1_0(stream, ECHO_REPLY) == 4711
    assert "Traceback" not in running.log()
