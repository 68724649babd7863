"""An ovsdb-server of a test's own, with Open vSwitch's schema and no switch: rows are what the test puts there."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.emulation.ovs import DAEMON_PATH, SCHEMA

START_TIMEOUT_S = 10.0


class OvsdbServer:
    """Context manager around one server; its socket and database are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "db.sock"
        self.target = f"unix:{self.socket}"
        self._database = directory / "conf.db"
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{DAEMON_PATH}"}

    def __enter__(self) -> OvsdbServer:
        self._run("ovsdb-tool", "create", str(self._database), str(SCHEMA))
        self.start()
        self.vsctl("init")
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = ["ovsdb-server", f"--remote=punix:{self.socket}", f"--unixctl={self.directory / 'ctl'}", "-voff"]
        self._process = subprocess.Popen([*command, str(self._database)], env=self._environment)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.socket))
                return
            assert self._process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self) -> None:
        """End as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)

    def vsctl(self, *arguments: str) -> str:
        """Run ovs-vsctl."""
        return self._run("ovs-vsctl", f"--db={self.target}", "--no-wait", "--timeout=10", *arguments)

    def bridge(
        self, name: str, dpid: int, ports: int, speed_bps: int = 10_000_000_000, mtu_bytes: int = 1500
    ) -> None:
        """Add a bridge with ports 1 to `ports`, as ovs-vswitchd would fill them in."""
        words = ["add-br", name]
        for number in range(1, ports + 1):
            port = f"{name}-{number}"
            values = (f"ofport={number}", f"link_speed={speed_bps}", f"mtu={mtu_bytes}")
            words += ["--", "add-port", name, port, "--", "set", "Interface", port, *values]
        self.vsctl(*words)
        self.bridge_is_up(name, dpid)

    def bridge_is_up(self, name: str, dpid: int) -> None:
        """Have a bridge's datapath id there, as ovs-vswitchd has when it reaches the database again."""
        self.vsctl("set", "Bridge", name, f'datapath_id="{dpid:016x}"')

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        """Return rows, with maps and sets as such; a set of one is its member."""
        found = json.loads(self.vsctl("--format=json", f"--columns={','.join(columns)}", "list", table))
        return [
            {name: plain(each) for name, each in zip(found["headings"], row, strict=True)} for row in found["data"]
        ]

    def queues(self, port: str) -> dict[int, dict[str, str]]:
        """Return what the queues of a port are set up with, nothing where it has no QoS."""
        queues = {row["_uuid"]: row["other_config"] for row in self.rows("Queue", "_uuid", "other_config")}
        qos = {row["_uuid"]: row["queues"] for row in self.rows("QoS", "_uuid", "queues")}
        (uuid,) = [row["qos"] for row in self.rows("Port", "name", "qos") if row["name"] == port]
        return {queue_id: queues[each] for queue_id, each in qos[uuid].items()} if uuid else {}

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def plain(value: Any) -> Any:
    """Return a value of the database as Python has it: maps, sets, UUIDs."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "map":
        return {key: plain(each) for key, each in content}
    return [plain(each) for each in content] if kind == "set" else content
