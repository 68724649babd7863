"""`vsrt run`: what keeps the controller from starting is told before it starts."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.cli.main import main
from apps.emulation.free_ports import free_port
from certificates import Authority
from patience import Patience, end_of, wait_until

ROOT = Path(__file__).parents[3]
HELLO = 0
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
        (["--tls-key", "k.pem"], "vsrt: --tls-certificate and --tls-key: only one of them is given"),
        (["--tls-ca", "ca.pem"], "vsrt: --tls-ca: only with --tls-certificate and --tls-key"),
        (["--tls-names", "n.txt"], "vsrt: --tls-names: only with --tls-certificate and --tls-key"),
        (
            ["--tls-certificate", "c.pem", "--tls-key", "k.pem", "--tls-names", "n.txt"],
            "vsrt: --tls-names: only with --tls-ca, the authority that vouches for names",
        ),
        (
            ["--tls-certificate", "c.pem", "--tls-key", "k.pem"],
            "vsrt: --tls-key: k.pem: No such file or directory",
        ),
        (["--plain-port", "6654"], "vsrt: --plain-port: only beside TLS; --port says where switches connect without"),
    ],
)
def test_bad_input_is_told(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["run", *arguments, "multicast"]) == 2
    assert capsys.readouterr().err == message + "\n"


def test_a_port_is_for_tls_or_for_plain_tcp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    identity = Authority(tmp_path).issue("controller")
    by_tls = ["--tls-certificate", str(identity.certificate), "--tls-key", str(identity.key)]
    for port, message in (("6653", "6653 is the port for TLS"), ("0", "0 is no TCP port")):
        assert main(["run", *by_tls, "--plain-port", port, "multicast"]) == 2
        assert capsys.readouterr().err == f"vsrt: --plain-port: {message}\n"


def test_a_controller_without_a_monitor_loads_no_numpy() -> None:
    program = "import apps.cli.run_command, apps.multicast, apps.unicast, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


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
    port = free_port()
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
    port = free_port()
    command = [sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(
        [*command, "multicast", "unicast"], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or accepts(port), process.pid, 30)
            assert process.poll() is None
            assert (tmp_path / "state" / "vsrt.sock").is_socket()
            process.send_signal(number)
            end_of(process, 20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert not (tmp_path / "state" / "vsrt.sock").exists()


def test_switches_connect_by_tls_and_beside_it_without(tmp_path: Path) -> None:
    authority, ports = Authority(tmp_path), (free_port(), free_port())
    identity = authority.issue("controller")
    command = [sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", str(ports[0])]
    command += ["--plain-port", str(ports[1]), "--tls-certificate", str(identity.certificate)]
    command += ["--tls-key", str(identity.key), "--state-dir", str(tmp_path / "state"), "multicast"]
    context = ssl.create_default_context(cafile=authority.certificate)
    context.check_hostname = False
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: process.poll() is not None or all(map(accepts, ports)), process.pid, 30)
            with socket.create_connection(("127.0.0.1", ports[1]), 10) as plain:
                assert plain.recv(2)[1] == HELLO
            with (
                socket.create_connection(("127.0.0.1", ports[0]), 10) as raw,
                context.wrap_socket(raw) as encrypted,
            ):
                assert encrypted.recv(2)[1] == HELLO
        finally:
            process.kill()


@contextmanager
def started(state: Path, before: Sequence[str] = (), **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A controller with the apps that keep files, by what is `before`; it is awaited by `serving` or `end_of`."""
    command = [sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", str(free_port())]
    given = {**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(state), "VSRT_SOCKET": "", **environment}
    apps = ["multicast", "unicast", "monitor", "allocator", "anomaly"]
    with subprocess.Popen([*before, *command, *apps], env=given, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def serving(process: subprocess.Popen[str], path: Path) -> None:
    """Wait until the process itself answers at its socket."""
    patience = Patience(process.pid, 30)
    while True:
        assert process.poll() is None
        patience.check()
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(path))
            except OSError:
                time.sleep(0.02)
                continue
            pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if pid == process.pid:
                return


INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("signals", "gap_s"),
    [([TERM, TERM], 0.0), ([INT, TERM], 0.05), ([TERM, INT, TERM], 0.3), ([INT] * 5 + [TERM] * 5, 0.02)],
)
def test_many_signals_end_it_as_one_does(tmp_path: Path, signals: list[signal.Signals], gap_s: float) -> None:
    with started(tmp_path) as process:
        serving(process, tmp_path / "vsrt.sock")
        for number in signals:
            process.send_signal(number)
            time.sleep(gap_s)
        told = end_of(process, 10)
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert not (tmp_path / "vsrt.sock").exists()


def test_a_signal_that_it_was_started_to_ignore_does_not_end_it(tmp_path: Path) -> None:
    """As SIGINT is ignored by what a shell without job control starts in its background."""
    with started(tmp_path, before=("sh", "-c", 'trap "" INT; exec "$@"', "sh")) as process:
        serving(process, tmp_path / "vsrt.sock")
        process.send_signal(INT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        serving(process, tmp_path / "vsrt.sock")
        process.send_signal(TERM)
        told = end_of(process, 10)
    assert process.returncode == 0, told
    assert not (tmp_path / "vsrt.sock").exists()


@pytest.mark.parametrize("after_s", [0.3, 0.6, 1.0])
def test_signals_while_it_starts_end_it(tmp_path: Path, after_s: float) -> None:
    with started(tmp_path) as process:
        time.sleep(after_s)
        process.send_signal(TERM)
        process.send_signal(TERM)
        told = end_of(process, 20)
    assert process.returncode in (0, -TERM), told
    assert "Traceback" not in told


@pytest.mark.parametrize("own_socket", [False, True])
def test_a_second_controller_leaves_the_first_one_s_files_alone(tmp_path: Path, own_socket: bool) -> None:
    path = tmp_path / "vsrt.sock"
    with started(tmp_path) as first:
        serving(first, path)
        with started(tmp_path, **({"VSRT_SOCKET": str(tmp_path / "other.sock")} if own_socket else {})) as second:
            told = end_of(second, 20)
        assert second.returncode == 1
        assert told.endswith(f"vsrt: another controller (process {first.pid}) keeps its files in {tmp_path}\n")
        serving(first, path)
        first.kill()
        first.wait()
        assert path.exists(), "what a crash leaves"
        with started(tmp_path) as third:
            serving(third, path)
            third.send_signal(TERM)
            end_of(third, 20)
    assert third.returncode == 0
    assert not path.exists()


def test_a_socket_that_another_controller_serves_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "shared.sock"
    with started(tmp_path / "one", VSRT_SOCKET=str(path)) as first:
        serving(first, path)
        with started(tmp_path / "other", VSRT_SOCKET=str(path)) as second:
            told = end_of(second, 20)
        assert second.returncode == 1
        assert told.endswith(f"vsrt: the status socket {path} is another controller's (process {first.pid})\n")
        serving(first, path)


@pytest.mark.skipif(not RYU_MANAGER.exists(), reason="needs Ryu")
def test_ryu_manager_too_leaves_another_controller_s_files_alone(tmp_path: Path) -> None:
    with started(tmp_path) as first:
        serving(first, tmp_path / "vsrt.sock")
        done = subprocess.run(
            [RYU_MANAGER, f"--ofp-tcp-listen-port={free_port()}", ROOT / "apps" / "multicast.py"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path), "VSRT_SOCKET": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert f"vsrt: another controller (process {first.pid}) keeps its files in {tmp_path}" in done.stderr
        serving(first, tmp_path / "vsrt.sock")


def accepts(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


RUN = (sys.executable, "-m", "apps.cli.main", "run", "--listen", "127.0.0.1", "--port", "{port}", "multicast")
RYU = (str(RYU_MANAGER), "--ofp-listen-host=127.0.0.1", "--ofp-tcp-listen-port={port}", "apps/multicast.py")


@pytest.mark.parametrize(
    ("command", "framework"),
    [
        ((*RUN, "unicast", "dashboard"), "os-ken"),
        pytest.param(
            (*RYU, "apps/unicast.py", "apps/dashboard/app.py"),
            "ryu",
            marks=pytest.mark.skipif(not RYU_MANAGER.exists(), reason="needs Ryu"),
        ),
    ],
)
@pytest.mark.parametrize("has_policy", [True, False])
def test_a_process_says_once_what_it_is_and_where(
    tmp_path: Path, command: tuple[str, ...], framework: str, has_policy: bool
) -> None:
    policy, page, port, log = tmp_path / "policy.yaml", free_port(), free_port(), tmp_path / "log"
    policy.write_text(f"version: 1\ndashboard: {{port: {page}}}\n")
    given = {"PYTHONPATH": str(ROOT), "VSRT_STATE_DIR": str(tmp_path), "VSRT_SOCKET": ""}
    given["VSRT_CONFIG"] = str(policy) if has_policy else ""
    words = [word.format(port=port) for word in command if has_policy or "dashboard" not in word]
    with log.open("wb") as errors:
        process = subprocess.Popen(words, env={**os.environ, **given}, cwd=ROOT, stderr=errors, stdout=errors)
    try:
        listening = [port, page] if has_policy else [port]
        patience = Patience(process.pid, 30)
        while "starts under" not in log.read_text() or not all(map(accepts, listening)):
            assert process.poll() is None, log.read_text()
            patience.check()
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    (line,) = [line for line in log.read_text().splitlines() if "vsrt-controller" in line and " starts " in line]
    expected = [
        f"starts under {framework}",
        f"switches connect to 127.0.0.1, port {port}",
        f"apps: alarms, {'dashboard, ' * has_policy}discovery, multicast, unicast",
        f"policy file: {policy}"
        if has_policy
        else "no policy file (VSRT_CONFIG is not set): every join and sender is refused",
        f"state directory: {tmp_path}",
        *([f"page: http://127.0.0.1:{page}/"] if has_policy else []),
    ]
    assert line.split("; ")[1:] == expected[1:]
    assert line.split("; ")[0].endswith(expected[0])
