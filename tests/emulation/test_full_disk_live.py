"""A controller whose disk is full, and one whose dashboard freezes: alarms say so, until it is over."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.status_client import query
from controller.snapshot.events import EVENTS_BOUND
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]
FRAMEWORK = "os-ken"

DISK_BYTES = 8 << 20
WAIT_S = 90.0
PORT = 18482
POLICY = f"""\
version: 1
default: allow
alarms: {{settle_s: 0}}
monitor: {{interval_s: 1, history: {{enabled: true}}, roll_ups: {{enabled: true}}, event_log: {{enabled: true}}}}
anomaly: {{interval_s: 1, window_samples: 4, shift_samples: 1, smoothing_samples: 1}}
dashboard: {{port: {PORT}}}
"""
OUTPUTS = ("actions", "audit", "event_log", "history", "recording", "roll_ups")
STATES = ("alarms", "allocation", "anomaly", "hosts", "journal")


class OnSmallDisk(ControllerProcess):
    """A controller whose state directory is a small disk that it alone sees, and that records to it."""

    def __init__(self, port: int, **options: Any) -> None:
        super().__init__(port, **options)
        self.env["VSRT_RECORD"] = str(self.directory / "state" / "recording")

    def command(self) -> list[str]:
        state = self.directory / "state"
        state.mkdir(exist_ok=True)
        mount = f'mount -t tmpfs -o size={DISK_BYTES} none "$0" && exec "$@"'
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", mount, str(state)]
        return [*unshare, *super().command()]

    @property
    def disk(self) -> Path:
        """The small disk, from where the test is."""
        return Path(f"/proc/{self.pid}/root{self.directory}/state")

    def alarms(self) -> dict[str, Any]:
        return {alarm["key"]: alarm for alarm in query(self.socket, {"show": "alarms"})["alarms"]}

    def events(self, kind: str) -> list[tuple[str, str]]:
        """The state and text of the alarms' events of a kind, the oldest first."""
        answer = query(self.socket, {"changes": {"events": 0}, "limit": EVENTS_BOUND})
        found = answer["sections"]["events"]["alarms"]["put"].values()
        events = sorted(found, key=lambda event: event["time_s"])
        return [(event["state"], event["text"]) for event in events if event["kind"] == kind]

    def children(self) -> Iterator[int]:
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())


@pytest.fixture(scope="module")
def fabric(diamond: Graph) -> Iterator[EmulatedFabric]:
    with EmulatedFabric(diamond) as fabric:
        fabric.wait_addresses()
        yield fabric


@pytest.fixture(scope="module")
def controller(
    fabric: EmulatedFabric, framework: Framework, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnSmallDisk]:
    policy = tmp_path_factory.mktemp("disk") / "policy.yaml"
    policy.write_text(POLICY)
    dashboard = "apps.dashboard.app" if framework == "ryu" else "dashboard"
    apps = ("multicast", "unicast", "monitor", "allocator", "anomaly", dashboard)
    with OnSmallDisk(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps) as controller:
        controller.wait_discovered(fabric)
        yield controller


def wait_until(controller: OnSmallDisk, reached: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := reached()):
        assert time.monotonic() < deadline, f"{sorted(controller.alarms())}\n{controller.log()[-6000:]}"
        time.sleep(0.2)
    return found


def announce(fabric: EmulatedFabric, host: str, numbered: str) -> None:
    """Let a host use one more address, numbered as a group is: a port that goes up and down soon has no hosts."""
    mac = bytes.fromhex(str(fabric.node(host).MAC()).replace(":", ""))
    address = bytes((10, 77, *socket.inet_aton(numbered)[2:]))
    frame = b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
    with network_of(fabric.pid(host)), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((fabric.interface(host), 0))
        sock.send((frame + mac + address + bytes(6) + address).ljust(60, b"\0"))


def test_a_full_disk_is_an_alarm_for_each_file_until_there_is_room_again(
    fabric: EmulatedFabric, controller: OnSmallDisk
) -> None:
    kept = {f"output-failed:{name}" for name in OUTPUTS} | {f"state-lost:{name}" for name in STATES}
    fabric.announce()
    wait_until(controller, lambda: controller.show("status")["hosts"] == 4)
    assert not kept & set(controller.alarms())
    ballast = controller.disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    groups = (f"239.1.{high}.{low}" for high in range(1, 200) for low in range(1, 250))

    before: list[str] = []

    def stir() -> bool:
        """Have something to write for everyone."""
        name = next(groups)
        for what in ("static-member-add", "static-member-remove"):
            done = query(controller.socket, {"do": what, "group": name, "dpid": 1, "port_no": 1})
            assert "error" not in done, done
        joined = [name, *islice(groups, 2)]
        for group in joined:
            fabric.join("h1", group)
        while before:  # who leaves at once has reported nothing
            fabric.leave("h1", before.pop())
        before.extend(joined)
        announce(fabric, "h1", name)
        fabric.link_down("s2", "h3")
        fabric.link_up("s2", "h3")
        return kept <= set(controller.alarms())

    wait_until(controller, stir)
    told = {key: controller.alarms()[key]["text"] for key in kept}
    assert all("No space left on device" in text or "full" in text for text in told.values()), told
    assert all(controller.alarms()[key]["severity"] == "warning" for key in kept)
    ballast.unlink()
    wait_until(controller, lambda: not (kept - {"output-failed:recording"}) & set(controller.alarms()))
    assert "output-failed:recording" in controller.alarms(), "what is missing of a recording stays missing"
    for kind in ("output-failed", "state-lost"):
        states = [state for state, _ in controller.events(kind)]
        assert states.count("raised") >= states.count("cleared") > 0


def test_a_dashboard_that_freezes_or_dies_is_an_alarm_until_it_answers(controller: OnSmallDisk) -> None:
    key = "dashboard-failed:dashboard"
    (child,) = (
        pid for pid in controller.children() if b"apps.dashboard" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    assert key not in controller.alarms()
    os.kill(child, signal.SIGSTOP)
    alarm = wait_until(controller, lambda: controller.alarms().get(key))
    assert f"process {child}) does not answer" in alarm["text"]
    os.kill(child, signal.SIGCONT)
    wait_until(controller, lambda: key not in controller.alarms())
    os.kill(child, signal.SIGKILL)
    wait_until(controller, lambda: "ended by signal 9" in controller.alarms().get(key, {"text": ""})["text"])
    wait_until(controller, lambda: controller.alarms().get(key, {"over_s": 1})["over_s"] is not None)
    assert [state for state, _ in controller.events("dashboard-failed")][:3] == ["raised", "cleared", "raised"]
