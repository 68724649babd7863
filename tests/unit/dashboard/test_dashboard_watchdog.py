"""A dashboard server that is frozen or dead is told of, until it answers again."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.dashboard import watchdog
from apps.dashboard.child import Child
from apps.dashboard.settings import ServerSettings
from apps.dashboard.watchdog import Watchdog

WAIT_S = 60.0


@pytest.fixture(params=["plain", "tls", "every address"])
def watched(
    request: pytest.FixtureRequest, controller: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Child, Watchdog]]:
    """A server at any free port, asked often."""
    monkeypatch.setattr(watchdog, "INTERVAL_S", 0.1)
    monkeypatch.setattr(watchdog, "TIMEOUT_S", 1.0)
    settings: dict[str, Any] = {"port": 0, "host": "0.0.0.0" if request.param == "every address" else "127.0.0.1"}
    if request.param == "tls":
        settings |= {"certificate": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=elsewhere"
        subprocess.run(
            [*command.split(), "-keyout", settings["key"], "-out", settings["certificate"]],
            check=True,
            capture_output=True,
        )
        Path(settings["key"]).chmod(0o600)
    child = Child(logging.getLogger("child"))
    child.start(ServerSettings(str(controller.path), **settings))
    yield child, Watchdog(child)
    if child.pid is not None:
        os.kill(child.pid, signal.SIGCONT)
    child.stop()


def look_until(child: Child, dog: Watchdog, reached: Callable[[], Any]) -> list[str | None]:
    """Look as the app does until something is so; return the faults meanwhile, each once."""
    faults: list[str | None] = [dog.fault]
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline, faults
        child.watch()
        dog.look()
        if dog.fault != faults[-1]:
            faults.append(dog.fault)
        time.sleep(0.02)
    return faults


def test_a_server_that_is_frozen_is_told_of_until_it_goes_on(watched: tuple[Child, Watchdog]) -> None:
    child, dog = watched
    assert look_until(child, dog, lambda: child.url is not None and dog.answered) == [None]
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    _, fault = look_until(child, dog, lambda: dog.fault)
    assert fault == (
        f"The dashboard's server (process {pid}) does not answer: page and API are away. "
        f"`kill -9 {pid}` has it started anew."
    )
    os.kill(pid, signal.SIGCONT)
    assert look_until(child, dog, lambda: dog.fault is None) == [fault, None]
    assert child.pid == pid


@pytest.mark.parametrize("watched", ["plain"], indirect=True)
def test_a_server_that_is_dead_is_told_of_until_another_answers(watched: tuple[Child, Watchdog]) -> None:
    child, dog = watched
    look_until(child, dog, lambda: dog.answered)
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    ended = "The dashboard's server ended by signal 9: page and API are away until it is started anew."
    assert look_until(child, dog, lambda: dog.fault) == [None, ended]
    assert look_until(child, dog, lambda: dog.fault is None) == [ended, None]
    assert child.pid not in (None, pid)


@pytest.mark.parametrize("watched", ["plain"], indirect=True)
def test_a_server_that_never_answers_has_time_to_start_first(
    watched: tuple[Child, Watchdog], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, dog = watched
    pid = child.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    begun_s = time.monotonic()
    monkeypatch.setattr(watchdog, "START_S", 2.0)
    look_until(child, dog, lambda: dog.fault)
    assert time.monotonic() - begun_s > 2.0
