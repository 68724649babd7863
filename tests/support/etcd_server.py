"""A server of etcd on the loopback, with its own ports and data: for tests, and ended with them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from apps.cluster.etcd import Access, EtcdEngine
from apps.emulation.free_ports import free_port
from controller.cluster.engine import ReadPage, Silent
from patience import wait_until
from required import leave_out

START_S = 30.0
TRIES = 3


def etcd_program() -> str:
    """Return where etcd is; tests without it are skipped where nobody insists."""
    found = shutil.which("etcd")
    if found is None:
        leave_out("etcd (Debian package etcd-server) is not installed")
    return found


class EtcdServer:
    """One server; `stop`, `resume` and `kill` are signals, `start` runs it on the ports it had."""

    def __init__(self, directory: Path, *options: str, scheme: str = "http") -> None:
        self._program = etcd_program()
        self._directory = directory
        self._options = options
        self._scheme = scheme
        self._ports: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._ports[0]}"

    def launch(self) -> EtcdServer:
        """Take free ports and run, without waiting for an answer."""
        self._ports = [free_port(), free_port()]
        peer = f"http://127.0.0.1:{self._ports[1]}"
        addresses = ["--listen-client-urls", self.endpoint, "--advertise-client-urls", self.endpoint]
        peers = ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        self._command = [
            *(self._program, "--name", "one", "--data-dir", str(self._directory / "data")),
            *(*addresses, *peers, "--initial-cluster", f"one={peer}", *self._options),
        ]
        self.run()
        return self

    def run(self) -> None:
        """Run on the ports it has."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def start(self) -> EtcdServer:
        """Run, with free ports, until it answers."""
        for _ in range(TRIES):
            self.launch()
            if self.answers():
                return self
        raise AssertionError((self._directory / "log").read_text()[-2000:])

    def answers(self) -> bool:
        """Wait until it answers; False where it ended, since another process was quicker to take its ports."""
        process = self.process
        assert process is not None
        engine = EtcdEngine(Access((self.endpoint,)))
        page = ReadPage("/", limit=1)
        wait_until(lambda: process.poll() is not None or type(engine.ask(page)) is not Silent, process.pid, START_S)
        engine.close()
        return process.poll() is None

    def stop(self) -> None:
        """Have it say nothing, though connections stay."""
        self._signal(signal.SIGSTOP)
        assert self.process is not None
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Have it go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def set_up_anew(self) -> None:
        """End it, and run it without what it knew."""
        self.kill()
        shutil.rmtree(self._directory / "data")
        self.run()
        assert self.answers()

    def _signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
