"""The server as a process: the command, the child of the controller, and its end with whoever started it."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import patience
from apps.cli.main import main
from apps.dashboard.child import Child
from apps.dashboard.settings import ServerSettings
from apps.emulation.free_ports import free_port

ROOT = Path(__file__).parents[3]
WAIT_S = 20.0


def wait_until(reached: Callable[[], Any]) -> Any:
    return patience.wait_until(reached, os.getpid(), WAIT_S)


def answers(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False).status_code == 200
    return False


def answers_as(url: str, name: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(url, headers={"Host": name}, trust_env=False).status_code == 200
    return False


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_command_tells_its_address_and_ends_by_signal(controller: Any) -> None:
    command = [sys.executable, "-m", "apps.cli.main", "dashboard", "--socket", str(controller.path), "--port", "0"]
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        wait_until(lambda: httpx.get(f"{url}api/v1/status", trust_env=False).json()["connected"])
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "70000"], "vsrt: --port: 70000 is no TCP port\n"),
        (["--token-file", "nowhere"], "vsrt: token_file: nowhere: No such file or directory\n"),
        (["--read-token-file", "nowhere"], "vsrt: read_token_file: nowhere: No such file or directory\n"),
        (
            ["--host", "0.0.0.0", "--token-file", "nowhere"],
            "vsrt: tokens_over_plain_http: 0.0.0.0 is not a loopback address, so tokens would cross the network in "
            "clear: set certificate and key, or a loopback address as host, or this to 'accepted'\n",
        ),
        (
            ["--host", "0.0.0.0", "--token-file", "nowhere", "--tokens-over-plain-http", "accepted"],
            "vsrt: token_file: nowhere: No such file or directory\n",
        ),
        (["--certificate", "c.pem"], "vsrt: certificate and key: only one of them is given\n"),
        (
            ["--host", "192.0.2.1"],
            "vsrt: port: cannot listen on 192.0.2.1, port 8181: Cannot assign requested address\n",
        ),
    ],
)
def test_bad_arguments_are_told(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    assert main(["dashboard", *arguments]) == 2
    assert capsys.readouterr().err == told


@pytest.fixture
def child(controller: Any) -> Iterator[tuple[Child, str]]:
    child, port = Child(logging.getLogger("child")), free_port()
    child.start(ServerSettings(str(controller.path), port=port))
    url = f"http://127.0.0.1:{port}/"
    wait_until(lambda: answers(url))
    yield child, url
    child.stop()
    assert not answers(url)


def test_a_child_that_ends_is_started_anew(child: tuple[Child, str], caplog: pytest.LogCaptureFixture) -> None:
    running, url = child
    first = running.pid
    running.watch()
    assert running.pid == first
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: running.watch() or running.pid not in (None, first))
    wait_until(lambda: answers(url))
    assert "has ended (-9): it is started anew" in caplog.text


def test_a_child_ends_with_its_parent_however_that_ends(controller: Any) -> None:
    port = free_port()
    settings = f"ServerSettings({str(controller.path)!r}, port={port})"
    program = (
        "import logging, time; from apps.dashboard.child import Child; "
        "from apps.dashboard.settings import ServerSettings; "
        f"child = Child(logging.getLogger()); child.start({settings}); print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
        parent.kill()
    wait_until(lambda: ended(pid))


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{token_file: nowhere}", "vsrt: dashboard.token_file: "),
        ("{certificate: a.pem, key: b.pem}", "vsrt: dashboard.key: "),
        ("{read_token_file: nowhere}", "vsrt: dashboard.read_token_file: "),
    ],
)
def test_a_controller_does_not_start_with_what_its_dashboard_cannot_use(
    tmp_path: Path, section: str, told: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\ndashboard: {section}\n")
    command = [sys.executable, "-m", "apps.cli.main", "run", "--config", str(policy), "--state-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, "--port", str(free_port()), "dashboard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert "No such file or directory" in done.stderr


def test_a_running_controller_keeps_its_server_where_a_new_policy_has_one_that_cannot_start(
    tmp_path: Path,
) -> None:
    port = free_port()
    token, policy, log = tmp_path / "token", tmp_path / "policy.yaml", tmp_path / "log"
    token.touch(mode=0o600)
    token.write_text("ann correct-horse-battery-staple\n")
    section = f"port: {port}, token_file: {token}"
    policy.write_text(f"version: 1\ndashboard: {{{section}}}\n")
    command = [sys.executable, "-m", "apps.cli.main", "run", "--config", str(policy), "--state-dir", str(tmp_path)]
    with log.open("wb") as errors:
        process = subprocess.Popen([*command, "--port", str(free_port()), "dashboard"], cwd=ROOT, stderr=errors)
    try:
        page = f"http://127.0.0.1:{port}/"
        wait_until(lambda: answers(page))
        for readings in (1, 2):
            tls = f"certificate: {token}, key: {tmp_path}/nowhere.pem"
            policy.write_text(f"version: 1\ndashboard: {{{section}, {tls}}}\n" + "#\n" * readings)
            wait_until(lambda readings=readings: log.read_text().count("is in force in every app") == readings)
        policy.write_text(f"version: 1\ndashboard: {{{section}, names: a.example}}\n")
        wait_until(lambda: answers_as(page, "a.example"))
        told = [line for line in log.read_text().splitlines() if "The running dashboard server stays" in line]
        assert len(told) == 1
        assert f"dashboard.key: {tmp_path}/nowhere.pem: No such file" in told[0]
        policy.write_text(f"version: 1\ndashboard: {{{section}, host: 0.0.0.0}}\n")
        wait_until(lambda: "dashboard.tokens_over_plain_http: 0.0.0.0 is not a loopback address" in log.read_text())
        assert answers_as(page, "a.example")
    finally:
        process.terminate()
        assert process.wait(WAIT_S) == 0
