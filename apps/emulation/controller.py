"""A controller process: ryu-manager or ``vsrt run``, with its log, its status socket and its end by process id."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from apps.emulation import processes, status
from apps.emulation.agents import REPOSITORY
from apps.emulation.network import EmulatedFabric
from apps.emulation.processes import EmulationError
from apps.registry import APPS
from apps.tls_files import TlsFiles

Framework = Literal["ryu", "os-ken"]
FRAMEWORKS: tuple[Framework, ...] = ("ryu", "os-ken")
DEFAULT_APPS = ("multicast", "unicast")
START_TIMEOUT_S = DISCOVERY_TIMEOUT_S = LOG_TIMEOUT_S = END_TIMEOUT_S = 60.0
"""What nothing takes but a controller that hangs, on a busy machine either."""

LISTEN_STATE = "0A"
POLL_S = 0.02
LISTENING_POLL_S = 0.1
"""Each look at who listens has the kernel go through all its tables of connections, which takes it 10 ms and more."""

ANNOUNCING_S = 0.5
"""Between two announcements of a host of which nothing was heard."""

_RYU_ENVIRONMENT: dict[str, str] = {
    "EVENTLET_NO_GREENDNS": "yes",
    **({"SETUPTOOLS_USE_DISTUTILS": "stdlib"} if sys.version_info < (3, 12) else {}),
}
"""Two fifths of Ryu's start are a resolver of names, where all are addresses, and what setuptools has in place of
distutils, which Ryu asks for a version number."""


TLS_OPTIONS = ("--tls-certificate", "--tls-key", "--tls-ca", "--tls-crl", "--tls-names")
RYU_TLS_OPTIONS = ("--ctl-cert", "--ctl-privkey", "--ca-certs")
"""Those of `ryu-manager`; it has revocation lists and names by the environment."""


def listening(port: int) -> bool:
    """Tell whether some process of this network listens on TCP `port`."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/thread-self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN_STATE and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


class ControllerProcess(processes.ManagedProcess):
    """Context manager around a live controller; `policy` is its policy file, `tls` what switches are spoken with by.

    As the `controller` of an `EmulatedFabric` it starts while the fabric is built, and ends with it.
    """

    def __init__(
        self,
        port: int,
        *,
        framework: Framework = "ryu",
        policy: Path | None = None,
        apps: Sequence[str] = DEFAULT_APPS,
        env: Mapping[str, str] | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self.port = port
        self.framework = framework
        self.apps = tuple(apps)
        self._policy = policy
        self._tls = tls
        self.env = dict(env or {})
        self._directory = tempfile.TemporaryDirectory(prefix="vsrt-controller-")
        self.directory = Path(self._directory.name)
        self.socket = self.directory / "status.sock"
        self.log_path = self.directory / "controller.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running controller."""
        if self._process is None:
            raise EmulationError("the controller does not run")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the controller was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def command(self) -> list[str]:
        """Return the command line that starts the controller."""
        scripts = Path(sys.executable).parent
        if self.framework == "ryu":
            files = [str(REPOSITORY / APPS[name].file) if name in APPS else name for name in self.apps]
            kind = "tcp" if self._tls is None else "ssl"
            port = [f"--ofp-{kind}-listen-port", str(self.port)]
            return [str(scripts / "ryu-manager"), *port, *self._tls_options(RYU_TLS_OPTIONS), *files]
        config = [] if self._policy is None else ["--config", str(self._policy)]
        tls = self._tls_options(TLS_OPTIONS)
        return [str(scripts / "vsrt"), "run", "--port", str(self.port), *tls, *config, *self.apps]

    def _tls_options(self, names: Sequence[str]) -> list[str]:
        given = zip(names, self._tls or (), strict=False)
        return [word for name, path in given if path is not None for word in (name, str(path))]

    def start(self) -> None:
        """Start the controller and wait until it listens for switches."""
        self.launch()
        self.wait_listening()

    def launch(self) -> None:
        """Start the controller, which listens for switches some time later."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "VSRT_SOCKET": str(self.socket),
            "VSRT_STATE_DIR": str(self.directory / "state"),
            "VSRT_TLS_CRL": str(self._tls.crl if self._tls is not None and self._tls.crl is not None else ""),
            "VSRT_TLS_NAMES": str(self._tls.names if self._tls is not None and self._tls.names is not None else ""),
            **(_RYU_ENVIRONMENT if self.framework == "ryu" else {}),
            **self.env,
        }
        if self._policy is not None:
            environment["VSRT_CONFIG"] = str(self._policy.resolve())
        self._process = processes.start(self.command(), log=self.log_path, env=environment, cwd=self.directory)

    def wait_listening(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the controller listens for switches."""
        deadline = time.monotonic() + timeout_s
        while not listening(self.port):
            self.check_alive()
            if time.monotonic() > deadline:
                raise EmulationError(f"the controller does not listen on port {self.port}:\n{self.log()[-4000:]}")
            time.sleep(LISTENING_POLL_S)

    def check_alive(self) -> None:
        """Raise EmulationError, with the end of the log, where the controller has ended."""
        if not self.running:
            raise EmulationError(f"the controller has ended:\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """Stop the controller; what it keeps on disk stays for the next start."""
        process, self._process = self._process, None
        if process is not None:
            processes.stop(process, END_TIMEOUT_S)

    def wait_ended(self, timeout_s: float = END_TIMEOUT_S) -> int:
        """Wait until the controller, which was asked to, has ended; return its exit status."""
        process = self._process
        if process is None:
            raise EmulationError("the controller does not run")
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise EmulationError(f"not ended within {timeout_s} s; log:\n{self.log()[-4000:]}") from None

    def kill(self) -> None:
        """End the controller as a crash would, without notice."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        """Stop and start again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the controller and remove its files."""
        self.stop()
        self._directory.cleanup()

    def log(self) -> str:
        """Return what the controller has written so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_log(self, text: str, timeout_s: float = LOG_TIMEOUT_S, *, count: int = 1) -> None:
        """Wait until the controller has written `text`, `count` times."""
        deadline = time.monotonic() + timeout_s
        while self.log().count(text) < count:
            self.check_alive()
            if time.monotonic() > deadline:
                raise EmulationError(f"the controller has not written {text!r}:\n{self.log()[-4000:]}")
            time.sleep(POLL_S)

    def wait_for(self, reached: Callable[[], Any], what: str, timeout_s: float) -> Any:
        """Wait until `reached` returns something true, `what` says what that means, and return it."""
        deadline = time.monotonic() + timeout_s
        while not (found := reached()):
            self.check_alive()
            if time.monotonic() > deadline:
                raise EmulationError(f"not within {timeout_s} s: {what}; log:\n{self.log()[-4000:]}")
            time.sleep(status.POLL_S)
        return found

    def show(self, what: str) -> Any:
        """Return the controller's ``status`` or ``groups``."""
        self.check_alive()
        return status.show(self.socket, what)

    def wait_until(self, what: str, reached: Callable[[Any], bool], timeout_s: float = DISCOVERY_TIMEOUT_S) -> Any:
        """Wait until the controller's answer about `what` is as `reached` wants it, and return it."""
        try:
            return status.wait_until(self.socket, what, reached, timeout_s, self.check_alive)
        except EmulationError as error:
            raise EmulationError(f"{error}\nlog:\n{self.log()[-4000:]}") from error

    def wait_discovered(self, fabric: EmulatedFabric, timeout_s: float = DISCOVERY_TIMEOUT_S) -> Any:
        """Wait until the controller is ready and knows every switch, link and host port of `fabric`.

        A bond that uses one leg at a time is at the port where it is heard: its host speaks until it is.
        """
        wanted = {
            "ready": True,
            "switches": len(fabric.graph.switches()),
            "links": fabric.switch_link_count(),
            "edge_ports": fabric.host_link_count(),
        }
        announced_s = float("-inf")

        def are_known(answer: dict[str, Any]) -> bool:
            nonlocal announced_s
            if wanted.items() <= answer.items():
                return True
            if (now := time.monotonic()) >= announced_s + ANNOUNCING_S:
                announced_s = now
                fabric.announce(fabric.hosts_of_one_leg())
            return False

        return self.wait_until("status", are_known, timeout_s)
