"""A guest: an emulated machine whose kernel has VLAN devices, bonds and bridges that snoop, whatever this one's has.

Its interfaces are TAP devices of this network, which can be ports of an Open vSwitch. The processor is emulated
(QEMU's TCG), so that a guest is the same on every machine: it boots within a few seconds, and what it does takes some
ten times as long as here.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
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

SPEED_MBPS = 1000
MONITOR = "monitor"
BOOT_TIMEOUT_S = 90.0

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
IFREQ_FLAGS = struct.Struct("16sH22x")
"""A `struct ifreq` with an interface's name and flags."""


class KernelGuest(processes.ManagedProcess):
    """Context manager around a guest with one interface per TAP device: eth0, eth1, ... in their order.

    `receiver` and `sender` are asked as agents are, for sockets of the guest's own network. `start` does not wait for
    the guest to boot, `wait_booted` does.
    """

    def __init__(self, taps: Sequence[str]) -> None:
        self.taps = tuple(taps)
        self._temporary = tempfile.TemporaryDirectory(prefix="vsrt-guest-")
        self._directory = Path(self._temporary.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._sockets: list[socket.socket] = []

    def start(self) -> None:
        """Have the guest begin to boot, in the network of the thread that calls."""
        kernel = guest_image.kernel()
        guest_image.write_file_system(self._directory / "initrd")
        command = [guest_image.emulator(), *MACHINE, *BARE, "-kernel", str(kernel)]
        command += ["-initrd", str(self._directory / "initrd"), "-append", KERNEL_ARGUMENTS, "-serial", "stdio"]
        command += ["-mon", f"chardev={MONITOR},mode=control", "-device", "virtio-serial-pci"]
        for port, name in enumerate(CHANNELS, 1):
            command += ["-device", f"virtserialport,chardev={name},nr={port}"]
        for number, tap in enumerate(self.taps):
            device = (
                f"virtio-net-pci,id={tap},netdev=net{number},mac=02:96:00:00:00:{number + 1:02x},speed={SPEED_MBPS}"
            )
            command += ["-netdev", f"tap,id=net{number},ifname={tap},script=no,downscript=no"]
            command += ["-device", f"{device},duplex=full,{PLAIN}"]
        with ExitStack() as passed:
            descriptors = []
            for name in (*CHANNELS, MONITOR):
                own, far = socket.socketpair()
                self._sockets.append(own)
                descriptors.append(passed.enter_context(far).fileno())
                command += ["-chardev", f"socket,id={name},fd={descriptors[-1]}"]
            log = self._directory / "console.log"
            self._process = processes.start(command, log=log, descriptors=descriptors)
        processes.prefer(self._process)
        *channels, monitor = self._sockets
        self.receiver, self.sender, self._shell = (
            Dialogue(f"{name} of the guest", end.fileno(), end.fileno())
            for name, end in zip(CHANNELS, channels, strict=True)
        )
        self._monitor = monitor.makefile("rw")
        self._told()
        self._command("qmp_capabilities")

    @property
    def pid(self) -> int:
        """The process id of the emulator."""
        if self._process is None:
            raise EmulationError("the guest does not run")
        return self._process.pid

    def _command(self, execute: str, **arguments: Any) -> None:
        """Have the emulator do something."""
        self._monitor.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        self._monitor.flush()
        while True:  # what has happened is told between replies
            reply = self._told()
            if "error" in reply:
                raise EmulationError(f"{execute}: {reply['error']['desc']}")
            if "return" in reply:
                return

    def _told(self) -> dict[str, Any]:
        """Return what the emulator tells next."""
        line = self._monitor.readline()
        if not line:
            raise EmulationError(f"the guest does not run:\n{self.console()}")
        told: dict[str, Any] = json.loads(line)
        return told

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
        """Pull the cable of an interface: both ends see it go, at once; a program would be begun in between."""
        self._command("set_link", name=tap, up=False)
        _set_up(tap, False)

    def put_back(self, tap: str) -> None:
        """Put the cable of an interface back."""
        _set_up(tap, True)
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
        self._temporary.cleanup()


def _set_up(tap: str, is_up: bool) -> None:
    """Take an interface of this network up or down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name, flags = IFREQ_FLAGS.unpack(fcntl.ioctl(sock, SIOCGIFFLAGS, IFREQ_FLAGS.pack(tap.encode(), 0)))
        fcntl.ioctl(sock, SIOCSIFFLAGS, IFREQ_FLAGS.pack(name, flags | IFF_UP if is_up else flags & ~IFF_UP))
