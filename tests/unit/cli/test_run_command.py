"""`vsrt run`: what keeps the controller from starting is told before it starts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from apps.cli.main import main

ROOT = Path(__file__).parents[3]
RYU_MANAGER = Path(sys.executable).with_name("ryu-manager")


def test_every_fault_of_the_policy_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nlimitz: {}\ndefault: perhaps\n")
    assert main(["run", "--config", str(policy), "multicast"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert all(line.startswith(f"vsrt: {policy}:") for line in told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "nowhere.yaml"], "vsrt: nowhere.yaml: No such file or directory"),
        (["--port", "99999"], "vsrt: --port: 99999 is no TCP port"),
        (["--port", "0"], "vsrt: --port: 0 is no TCP port"),
        (["--state-dir", f"{__file__}/x"], f"vsrt: --state-dir: {__file__}/x: Not a directory"),
    ],
)
def test_bad_input_is_told(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["run", *arguments, "multicast"]) == 2
    assert capsys.readouterr().err == message + "\n"


def test_a_port_in_use_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert main(["run", "--listen", "127.0.0.1", "--port", str(port), "multicast"]) == 1
    assert f"127.0.0.1, port {port}: Address already in use" in capsys.readouterr().err


def test_a_faulty_policy_in_the_environment_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 2\n")
    monkeypatch.setenv("VSRT_CONFIG", str(policy))
    assert main(["run", "multicast"]) == 2
    assert capsys.readouterr().err.startswith(f"vsrt: {policy}:1: version:")


@pytest.mark.skipif(not RYU_MANAGER.exists(), reason="needs Ryu")
@pytest.mark.parametrize("app", ["unicast", "monitor"])
def test_ryu_manager_ends_where_the_port_is_in_use(tmp_path: Path, app: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(
            [
                RYU_MANAGER,
                "--ofp-listen-host=127.0.0.1",
                f"--ofp-tcp-listen-port={port}",
                ROOT / "apps" / f"{app}.py",
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"vsrt: cannot listen for switches on 127.0.0.1, port {port}: Address already in use" in done.stderr


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("VSRT_STATE_DIR", "the directory of the controller's files, {}: Not a directory"),
        ("VSRT_SOCKET", "the status socket {}: Not a directory"),
        ("VSRT_RECORD", "the recording {}: Not a directory"),
    ],
)
def test_a_file_that_cannot_be_made_is_told(tmp_path: Path, variable: str, message: str) -> None:
    path = f"{__file__}/x"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", str(port), "multicast"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path), variable: path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(f"vsrt: {message.format(path)}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_to_and_takes_its_socket_along(tmp_path: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen([*command, "multicast", "unicast"], env=environment, stderr=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert process.poll() is None
                    time.sleep(0.02)
            assert (tmp_path / "state" / "vsrt.sock").is_socket()
            process.send_signal(number)
            process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert not (tmp_path / "state" / "vsrt.sock").exists()
