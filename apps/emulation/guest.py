"""A guest: an emulated machine whose kernel has VLAN devices, bonds and bridges that snoop, whatever this one's has.

Its interfaces are TAP devices of this network, which can be ports of an Open vSwitch. The processor is emulated
(QEMU's TCG), so that a guest is the same on every machine: it boots within a few seconds, and what it does takes some
ten times as long as here.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from apps.emulation import guest_image, processes
from apps.emulation.agents import Dialogue
from apps.emulation.guest_init import CHANNELS
from apps.emulation.processes import EmulationError

MEMORY_MIB = 160
MACHINE = ("-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB))
BARE = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none")
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check"
PLAIN = "csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off"
"""Frames leave a guest whole, as they would a cable, and come to it so."""

MAC_PREFIX, SPEED_MBPS = "02:96:00:00:00:", 1000
SOCKET_TIMEOUT_S = 10.0
BOOT_TIMEOUT_S = 90.0
POLL_S = 0.01


class KernelGuest(processes.ManagedProcess):
    """Context manager around a guest with one interface per TAP device: eth0, eth1, ... in their order.

    `receiver` and `sender` are asked as agents are, for sockets of the guest's own network. `start` does not wait for
    the guest to boot, `wait_booted` does.
    """

    def __init__(self, taps: Sequence[str]) -> None:
        self.taps = tuple(taps)
        self._directory = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: list[socket.socket] = []

    def start(self) -> None:
        """Have the guest begin to boot, in the network of the thread that calls."""
        kernel = guest_image.kernel()
        self._directory = Path(tempfile.mkdtemp(prefix="vsrt-guest-"))
        guest_image.write_file_system(self._directory / "initrd")
        command = [guest_image.emulator(), *MACHINE, *BARE, "-kernel", str(kernel)]
        command += ["-initrd", str(self._directory / "initrd"), "-append", KERNEL_ARGUMENTS, "-serial", "stdio"]
        command += ["-qmp", f"unix:{self._path('monitor')},server=on,wait=off", "-device", "virtio-serial-pci"]
        for port, name in enumerate(CHANNELS, 1):
            command += ["-chardev", f"socket,id={name},path={self._path(name)},server=on,wait=off"]
            command += ["-device", f"virtserialport,chardev={name},nr={port}"]
        for number, tap in enumerate(self.taps):
            device = (
                f"virtio-net-pci,id={tap},netdev=net{number},mac=02:96:00:00:00:{number + 1:02x},speed={SPEED_MBPS}"
            )
            command += ["-netdev", f"tap,id=net{number},ifname={tap},script=no,downscript=no"]
            command += ["-device", f"{device},duplex=full,{PLAIN}"]
        self._process = processes.start(command, log=self._directory / "console.log")
        processes.prefer(self._process)
        self.receiver, self.sender, self._shell = (self._converse(name) for name in CHANNELS)
        self._monitor = self._connect("monitor").makefile("rw")
        self._monitor.readline()
        self._command("qmp_capabilities")

    @property
    def pid(self) -> int:
        """The process id of the emulator."""
        if self._process is None:
            raise EmulationError("the guest does not run")
        return self._process.pid

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.sock"

    def _converse(self, name: str) -> Dialogue:
        descriptor = self._connect(name).fileno()
        return Dialogue(f"{name} of the guest", descriptor, descriptor)

    def _connect(self, name: str) -> socket.socket:
        """Connect to a socket of the emulator, before the guest can miss it."""
        sock = socket.socket(socket.AF_UNIX)
        self._sockets.append(sock)
        deadline = time.monotonic() + SOCKET_TIMEOUT_S
        while True:
            with suppress(OSError):
                sock.connect(str(self._path(name)))
                return sock
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                raise EmulationError(f"the guest does not run:\n{self.console()}")
            time.sleep(POLL_S)

    def _command(self, execute: str, **arguments: Any) -> None:
        """Have the emulator do something."""
        self._monitor.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        self._monitor.flush()
        while True:  # what has happened is told between replies
            reply = json.loads(self._monitor.readline())
            if "error" in reply:
                raise EmulationError(f"{execute}: {reply['error']['desc']}")
            if "return" in reply:
                return

    def console(self) -> str:
        """Return what the guest has written on its console."""
        path = self._directory / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_booted(self) -> None:
        """Wait until the guest answers; EmulationError, with the end of its console, where it does not."""
        try:
            self.read("/proc/uptime", timeout_s=BOOT_TIMEOUT_S)
        except EmulationError as error:
            raise EmulationError(f"the guest has not booted: {error}\n{self.console()[-4000:]}") from error

    def run(self, *arguments: str) -> str:
        """Run a command in the guest and return its output; EmulationError where it fails."""
        return str(self._shell.ask("run", arguments=arguments)["output"])

    def read(self, path: str, *, timeout_s: float = 15.0) -> str:
        """Return the text of a file of the guest."""
        return str(self._shell.ask("read", timeout_s=timeout_s, path=path)["text"])

    def write(self, path: str, text: str) -> None:
        """Write a file of the guest."""
        self._shell.ask("write", path=path, text=text)

    def pull(self, tap: str) -> None:
        """Pull the cable of an interface: both ends see it go."""
        self._command("set_link", name=tap, up=False)
        processes.run("ip", "link", "set", tap, "down")

    def put_back(self, tap: str) -> None:
        """Put the cable of an interface back."""
        processes.run("ip", "link", "set", tap, "up")
        self._command("set_link", name=tap, up=True)

    def close(self) -> None:
        """End the guest."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
