"""A switch that stops reading: others are served as before, it is told of, and is welcome when it is back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from control_plane import report_frames
from controllers import controller

from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import ECHO_REQUEST, FLOW_MOD, message
from apps.status_client import query

PORTS = 8
TIMEOUT_S = 30.0
STALL_S = 1.0
"""Well below what a switch that does not read takes to be given up."""

POLICY = """\
version: 1
rules: [{name: all, groups: [224.0.0.0/4], role: any, hosts: [any], action: allow}]
limits: {groups_per_port: 65536, reports_per_second_per_port: 1000000}
multicast: {querier: {robustness: 2, query_interval_s: 2, response_interval_s: 1, last_member_interval_s: 1}}
"""


@pytest.fixture(params=["vsrt", "vsrt-os-ken"])
def running(request: pytest.FixtureRequest) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, POLICY) as process:
        yield process


def connect(process: ControllerProcess, dpid: int) -> LoneSwitch:
    switch = LoneSwitch(dpid, PORTS, ("127.0.0.1", process.port))
    assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
    return switch


def join_s(switch: LoneSwitch, frame: bytes) -> float:
    before, start = switch.received[FLOW_MOD], time.monotonic()
    switch.say([frame])
    assert switch.run_until(lambda: switch.received[FLOW_MOD] > before, TIMEOUT_S)
    return time.monotonic() - start


def load(switch: LoneSwitch, size_bytes: int) -> None:
    """Ask for echoes of so many bytes, and read none of them."""
    request = message(ECHO_REQUEST, 7, bytes(60_000))
    stream = switch.switch.socket
    assert stream is not None
    stream.settimeout(0.2)
    for _ in range(size_bytes // len(request)):
        try:
            stream.sendall(request)
        except OSError:
            return


@pytest.mark.parametrize(("size_bytes", "reason"), [(16_000_000, "took nothing"), (80_000_000, "reads too slowly")])
def test_a_switch_that_stops_reading_stalls_no_other(
    running: ControllerProcess, size_bytes: int, reason: str, tmp_path: Path
) -> None:
    good, stuck = connect(running, 1), connect(running, 2)
    stuck.run_for(0.5)
    frames = report_frames(400, 3, PORTS)
    while True:
        before = good.received[FLOW_MOD]
        good.say(frames[:1])
        good.run_for(0.5)
        if good.received[FLOW_MOD] > before:
            break
    load(stuck, size_bytes)
    slowest_s, start = 0.0, time.monotonic()
    for frame in frames[1:]:
        slowest_s = max(slowest_s, join_s(good, frame))
        if reason in running.log() or time.monotonic() > start + TIMEOUT_S:
            break
        good.run_for(0.05)
    assert slowest_s < STALL_S
    assert f"The connection of switch s2 was cut: it {reason}" in running.log()
    events = query(running.socket, {"changes": {"events": 0}})["sections"]["events"]["multicast"]["put"].values()
    assert [event["kind"] for event in events].count("switch-cut-off") == 1
    stream = stuck.switch.socket
    assert stream is not None
    stream.settimeout(TIMEOUT_S)
    with suppress(ConnectionResetError):
        while stream.recv(1 << 20):
            pass
    again = connect(running, 2)
    assert join_s(good, report_frames(401, 3, PORTS)[400]) < STALL_S
    for switch in (good, stuck, again):
        switch.close()
