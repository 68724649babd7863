"""Servers that take no connection: a controller that is told of them, and of others, waits for none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.free_ports import free_port
from apps.ovsdb_session import ANSWER_S
from apps.status_client import query
from patience import wait_until
from silent_server import SilentServer

WAIT_S = 60.0
SOON_S = ANSWER_S / 2
"""Less than what a server that does not answer is waited for, from just after it was asked."""


def policy_of(*targets: str) -> str:
    return f"version: 1\nqueues: {{mode: {'static' if targets else 'off'}, ovsdb: {list(targets)}}}\n"


@pytest.fixture(params=FRAMEWORKS)
def running(
    request: pytest.FixtureRequest, tmp_path: Path, silent_server: SilentServer
) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_of(silent_server.target))
    apps = ("multicast", "unicast", "queues")
    with ControllerProcess(free_port(), framework=request.param, policy=policy, apps=apps) as process:
        silent_server.wait_asked(process.pid)
        yield process


def test_a_policy_without_it_is_in_force_at_once(
    running: ControllerProcess, tmp_path: Path, silent_server: SilentServer
) -> None:
    with SilentServer() as other:
        for targets in ([other.target], []):
            (tmp_path / "policy.yaml").write_text(policy_of(*targets))
            began_s = time.monotonic()
            query(running.socket, {"do": "policy-reload"}, WAIT_S)
            running.wait_log("is in force in every app", WAIT_S, count=1 if targets else 2)
            query(running.socket, {"section": "queues"}, WAIT_S)
            assert time.monotonic() - began_s < SOON_S
            if targets:
                other.wait_asked(running.pid)


def test_the_controller_ends_soon(running: ControllerProcess) -> None:
    began_s = time.monotonic()
    os.kill(running.pid, signal.SIGTERM)
    wait_until(lambda: not running.running, running.pid, WAIT_S)
    assert time.monotonic() - began_s < SOON_S
