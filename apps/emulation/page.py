"""The operator's page beside an emulated network: served where we are, while the controller is inside."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from apps.emulation import processes
from apps.emulation.processes import EmulationError

PORTS = (8181, 0)
"""TCP ports to try: the usual one, then any."""

START_TIMEOUT_S = 20.0
POLL_S = 0.05


class PageProcess(processes.ManagedProcess):
    """Context manager around `vsrt dashboard` for the controller with the status socket `path`, there yet or not.

    It has to be entered outside the network of the emulation, so that a browser reaches it. `token` allows changes.
    """

    def __init__(self, path: Path) -> None:
        self.url = ""
        self.token = secrets.token_urlsafe(18)
        self._path = path
        self._directory = tempfile.TemporaryDirectory(prefix="vsrt-page-")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it serves the page."""
        directory = Path(self._directory.name)
        token_file = directory / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(self.token)
        for port in PORTS:
            log = directory / f"page-{port}.log"
            command = [str(Path(sys.executable).parent / "vsrt"), "dashboard", "--json", "--socket", str(self._path)]
            command += ["--port", str(port), "--token-file", str(token_file)]
            self._process = processes.start(command, log=log)
            self.url = self._wait_url(log)
            if self.url:
                return
        raise EmulationError(f"the page is not served:\n{log.read_text()[-2000:]}")

    def _wait_url(self, log: Path) -> str:
        """Return the address once it is served, nothing where the process ends."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            for line in log.read_text().splitlines():
                if line.startswith("{"):
                    return str(json.loads(line)["url"])
            time.sleep(POLL_S)
        processes.stop(self._process)
        return ""

    def close(self) -> None:
        """Stop the process and remove its files."""
        process, self._process = self._process, None
        if process is not None:
            processes.stop(process)
        self._directory.cleanup()
