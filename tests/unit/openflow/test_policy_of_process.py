"""The policy file of a running controller: read once for all of its apps, each of which then goes by it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.free_ports import free_port
from apps.registry import USUAL_APPS
from apps.status_client import query

POLICY = "version: 1\ndefault: {default}\nmonitor: {{prometheus: {{enabled: false}}}}\ndashboard: {{port: 0}}\n"
ALLOW, DENY, FAULTY = (POLICY.format(default=default) for default in ("allow", "deny", "maybe"))
EVERY_APP = sorted({*USUAL_APPS, "discovery", "alarms"})
TIMEOUT_S = 60.0
WAS_READ, IS_FAULTY = "policy.yaml was read", "policy.yaml is faulty"


@pytest.fixture(params=FRAMEWORKS)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(ALLOW)
    with ControllerProcess(free_port(), framework=request.param, policy=policy, apps=USUAL_APPS) as process:
        yield process


def in_force(process: ControllerProcess) -> list[list[str]]:
    """Return the apps in which policies were in force, in the order in which the log says so."""
    found = re.findall(r"policy\.yaml is in force in every app: (.*)\.\n", process.log())
    return [apps.split(", ") for apps in found]


def test_each_change_is_read_once_and_reaches_every_app(running: ControllerProcess, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"

    def replace(text: str) -> None:
        new = tmp_path / "new.yaml"
        new.write_text(text)
        new.replace(policy)

    def asked_to_reload() -> None:
        answer = query(running.socket, {"do": "policy-reload"}, TIMEOUT_S)
        assert (answer["path"], answer["rules"]) == (str(policy), 0)

    changes: list[Callable[[], Any]] = [
        lambda: replace(DENY),
        lambda: os.kill(running.pid, signal.SIGHUP),
        asked_to_reload,
    ]
    for count, change in enumerate(changes, 1):
        change()
        running.wait_log("is in force in every app", TIMEOUT_S, count=count)
        assert in_force(running) == [EVERY_APP] * count
        assert running.log().count(WAS_READ) == count
    replace(FAULTY)
    running.wait_log(IS_FAULTY, TIMEOUT_S)
    replace(ALLOW)
    running.wait_log("is in force in every app", TIMEOUT_S, count=len(changes) + 1)
    assert running.log().count(IS_FAULTY) == 1
    assert running.log().count(WAS_READ) == len(changes) + 1
