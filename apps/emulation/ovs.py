"""An Open vSwitch of our own: private database, sockets and logs, stopped by process id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from apps.emulation import processes
from apps.emulation.processes import EmulationError

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
DAEMON_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
DIRECTORY_VARIABLES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")

SETTINGS = ("external-ids:system-id=vsrt", "other_config:max-revalidator=100")
"""Caches are gone through ten times a second, not twice: `faults.wait_flows` waits for the end of one such round."""

ALLOCATOR = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=60000"}
"""Each turn of ovs-vswitchd gives a node per port back and takes it again: from a list that has room for all."""

SLEEPS = "S"
"""The kernel's word for a thread that waits for something to happen."""

START_TIMEOUT_S = 60.0
POLL_S = 0.005

Datapath = Literal["user", "kernel"]


def kernel_datapath_available() -> bool:
    """Tell whether the kernel has, or can load, the Open vSwitch module."""
    module = Path("/sys/module/openvswitch")
    modprobe = shutil.which("modprobe", path=DAEMON_PATH)
    if not module.exists() and modprobe is not None:
        subprocess.run([modprobe, "-q", "openvswitch"], capture_output=True, check=False)
    return module.exists()


class PrivateOpenVSwitch(processes.ManagedProcess):
    """Context manager that runs ovsdb-server and ovs-vswitchd for us alone.

    Inside it the environment points Open vSwitch's tools, and so Mininet, at this instance. `datapath` is the
    kernel's where that exists and the userspace one elsewhere, unless one is named.
    """

    def __init__(self, datapath: Datapath | None = None) -> None:
        self.datapath: Datapath = datapath or ("kernel" if kernel_datapath_available() else "user")
        self.directory = Path()
        self._environment: dict[str, str | None] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._database: tuple[str, ...] = ()

    def start(self) -> None:
        """Start both, and wait until they have taken the configuration."""
        self.directory = Path(tempfile.mkdtemp(prefix="vsrt-ovs-"))
        for name in DIRECTORY_VARIABLES:
            self._environment[name] = os.environ.get(name)
            os.environ[name] = str(self.directory)
        self._environment["PATH"] = os.environ.get("PATH")
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{DAEMON_PATH}"
        self._start_daemons()

    def _start_daemons(self) -> None:
        database, listener = self.directory / "conf.db", self.directory / "db.sock"
        self._database = (f"--remote=punix:{listener}", str(database))
        for tool in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"):
            if shutil.which(tool) is None:
                raise EmulationError(f"{tool} is missing: install Open vSwitch (Debian: openvswitch-switch)")
        processes.run("ovsdb-tool", "create", str(database), str(SCHEMA))
        self._processes.append(self._daemon("ovsdb-server", *self._database))
        self._wait_listening(listener)
        processes.run("ovs-vsctl", "--timeout=10", "--no-wait", "init")
        self._processes.append(self._daemon("ovs-vswitchd", f"unix:{listener}"))
        # Answered only when ovs-vswitchd has taken the configuration.
        processes.run("ovs-vsctl", "--timeout=20", "set", "Open_vSwitch", ".", *SETTINGS)

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self.directory / f"{name}.log"
        command = [name, "--pidfile", "-vconsole:warn", *arguments]
        process = processes.start(command, log=log, env={**os.environ, **ALLOCATOR})
        processes.prefer(process)
        return process

    def _wait_listening(self, listener: Path) -> None:
        """Wait until the database answers; ovs-vsctl itself would try but once a second."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.connect(str(listener))
                return
            if self._processes[0].poll() is not None or time.monotonic() > deadline:
                raise EmulationError(f"ovsdb-server does not listen on {listener}: {self.log().strip()}")
            time.sleep(POLL_S)

    def forbid_snooping(self, bridge: str) -> None:
        """Let nobody listen in on the OpenFlow connections of a bridge that is made after this (``ovs-ofctl snoop``).

        Each turn of ovs-vswitchd looks at every bridge for those who would, which takes a tenth of it: the folder is
        where their socket would be.
        """
        (self.directory / f"{bridge}.snoop").mkdir()

    @property
    def vswitchd_pid(self) -> int:
        """The process id of ovs-vswitchd (its CPU time is the cost of forwarding)."""
        return self._processes[-1].pid

    @property
    def database_pid(self) -> int:
        """The process id of ovsdb-server."""
        return self._processes[0].pid

    def is_idle(self) -> bool:
        """Tell whether ovs-vswitchd has done all there is to do: each of its threads sleeps.

        One that has packets to pass on runs, or waits for a processor, or is stopped.
        """
        try:
            stats = [path.read_text() for path in Path(f"/proc/{self.vswitchd_pid}/task").glob("*/stat")]
        except OSError:  # a thread has just ended
            return False
        return all(stat.rpartition(")")[2].split()[0] == SLEEPS for stat in stats)

    def kill_database(self) -> None:
        """End ovsdb-server as a crash would; ovs-vswitchd goes on forwarding."""
        self._processes[0].kill()
        self._processes[0].wait()
        (self.directory / "db.sock").unlink()

    def start_database(self) -> None:
        """Start ovsdb-server again, with the database as it was."""
        self._processes[0] = self._daemon("ovsdb-server", *self._database)
        self._wait_listening(self.directory / "db.sock")

    def log(self) -> str:
        """Return what the daemons have complained about."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log")))

    def close(self) -> None:
        """Stop the daemons, restore the environment, remove the directory."""
        for process in reversed(self._processes):
            processes.stop(process)
        self._processes.clear()
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._environment.clear()
        shutil.rmtree(self.directory, ignore_errors=True)
