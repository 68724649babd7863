"""Cores are touched on the loop of their app alone, under the framework whose threads run side by side."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.free_ports import free_port

pytest.importorskip("os_ken")

from control_plane import report_frames
from os_ken.base import app_manager

from apps.openflow.app import App
from apps.policy_file import PolicyFile, PolicyReading
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD, MULTIPART_REQUEST
from apps.status_client import query
from controller.config.policy import Policy
from controller.config.settings import Monitor, PrometheusEndpoint
from controller.membership.events import HostRef
from controller.membership.older_reports import OlderReports
from controller.membership.tables import HostMembership, MemberHost, MemberPort, PortGroup
from controller.membership.timers import TimerQueue
from controller.wire.packets import RecordType

PROGRAM = Path(__file__).with_name("guarded_controller.py")
REPOSITORY = Path(__file__).parents[3]
APPS = ("multicast", "unicast", "monitor", "allocator", "anomaly", "queues")
PORTS = 8
TIMEOUT_S = 60.0
ALARMS, AT_ONCE = 60_000, 10
GROUP = b"\xef\1\2\3"
POLICY = """\
version: 1
rules: [{{name: all, groups: [224.0.0.0/4], role: any, hosts: [any], action: allow}}]
limits: {{groups_per_port: 65536, hosts_per_port: 65536, reports_per_second_per_port: 1000000, groups: 1048576}}
multicast: {{querier: {{robustness: 2, query_interval_s: 4, response_interval_s: 2, last_member_interval_s: 1}}}}
monitor: {{interval_s: 1, timeout_s: 0.5, prometheus: {{enabled: true, port: {port}}}}}
"""


class Running:
    """A guarded controller with one switch, which is served on a thread of its own."""

    def __init__(self, directory: Path, arguments: tuple[str, ...]) -> None:
        self.port, self.http_port, self.directory = free_port(), free_port(), directory
        (directory / "policy.yaml").write_text(POLICY.format(port=self.http_port))
        self.log = directory / "log"
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "VSRT_CONFIG": str(directory / "policy.yaml"),
            "VSRT_STATE_DIR": str(directory),
            "VSRT_SOCKET": "",
        }
        with self.log.open("w") as log:
            command = [sys.executable, str(PROGRAM), str(self.port), *arguments]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def ask(self, **question: Any) -> Any:
        return query(self.directory / "vsrt.sock", question, TIMEOUT_S)

    def connect(self, dpid: int) -> LoneSwitch:
        deadline = time.monotonic() + TIMEOUT_S
        switch = LoneSwitch(dpid, PORTS, ("127.0.0.1", self.port), reconnect=True)
        while not switch.run_until(lambda: switch.connected_count, 0.2):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
        return switch


def await_edge_ports(switch: LoneSwitch) -> int:
    """Report until a report brings an entry; return how many entries were sent until then."""
    (frame,) = report_frames(1, 3, PORTS)
    assert switch.run_until(lambda: switch.received[FLOW_MOD] > 0, TIMEOUT_S)
    switch.run_for(0.5)
    before, deadline = switch.received[FLOW_MOD], time.monotonic() + TIMEOUT_S
    while switch.received[FLOW_MOD] == before:
        assert time.monotonic() < deadline
        switch.say([frame])
        switch.run_for(0.5)
    return switch.received[FLOW_MOD]


@contextmanager
def controller(directory: Path, *arguments: str) -> Iterator[Running]:
    running = Running(directory, arguments)
    try:
        yield running
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(TIMEOUT_S) == 0, running.log.read_text()
    finally:
        running.process.kill()
        running.process.wait()


def test_no_other_thread_touches_a_core(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    with controller(tmp_path, *APPS) as running:
        switch = running.connect(1)
        stop = threading.Event()
        answered = []

        def disturb() -> None:
            """What threads of their own bring in: questions, actions, feeds, scrapes."""
            while not stop.is_set():
                for show in ("groups", "perf", "anomalies"):
                    answered.append("error" not in running.ask(show=show))
                answered.append("error" not in running.ask(changes={"switches": 0, "ports": 0, "status": 0}))
                answered.append("error" not in running.ask(do="switch-drain", dpid=1))
                answered.append("error" not in running.ask(do="switch-undrain", dpid=1))
                address = f"http://127.0.0.1:{running.http_port}/metrics"
                answered.append(b"vsrt_switch_up" in urllib.request.urlopen(address, timeout=TIMEOUT_S).read())

        await_edge_ports(switch)
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            before = switch.received[FLOW_MOD]
            switch.say(report_frames(200, 3, PORTS))
            assert switch.run_until(lambda: switch.received[FLOW_MOD] >= before + 199, TIMEOUT_S)
            before = switch.received[MULTIPART_REQUEST]
            assert switch.run_until(lambda: switch.received[MULTIPART_REQUEST] >= before + 4, TIMEOUT_S)
        finally:
            stop.set()
            while thread.is_alive():
                switch.turn(0.05)
        switch.close()
    log = running.log.read_text()
    assert all(f"guarded {name.capitalize()}" in log for name in (*APPS, "discovery")), log
    assert answered and all(answered)
    assert "TOUCHED" not in log, log


def alarm(due_s: float) -> HostMembership:
    """Return the timer of a membership, which falls due later than it was first armed for."""
    state = HostMembership(
        PortGroup(MemberPort(1, 1, OlderReports()), GROUP),
        MemberHost(HostRef(b"\x02\0\0\0\0\1", b"\x0a\0\0\1", 1, 1)),
        0.0,
    )
    state.apply(RecordType.CHANGE_TO_EXCLUDE, (), due_s, 0.0)
    return state


class AlarmClock:
    """A core whose every event sets alarms, and which counts those that have rung."""

    xid_tag = 0

    def __init__(self) -> None:
        self.timers = TimerQueue()
        self.rung_count = 0

    def handle(self, event: Any, now: float) -> tuple[Any, ...]:
        while self.timers.pop_due(now) is not None:
            self.rung_count += 1
        for number in range(event if isinstance(event, int) else 0):
            self.timers.arm(alarm(now + 0.0004 * number), now + 0.0002 * number)
        return ()

    def next_deadline(self) -> float | None:
        return self.timers.next_deadline()


def test_no_timer_is_lost_to_another_thread() -> None:
    app, interval, thresholds = App(), sys.getswitchinterval(), gc.get_threshold()
    app.core = AlarmClock()
    app.policy_file = PolicyFile(app.logger)
    app.policy_file.reading = PolicyReading(Policy(monitor=Monitor(prometheus=PrometheusEndpoint(enabled=False))))
    app_manager.register_app(app)
    sys.setswitchinterval(1e-6)
    try:
        app.start()
        for _ in range(ALARMS // AT_ONCE):
            app.ask(lambda: app.feed(AT_ONCE))
        latest = time.monotonic() + 5
        while app.ask(lambda: app.core.rung_count) < ALARMS and time.monotonic() < latest:
            time.sleep(0.05)
        assert app.ask(lambda: (app.core.rung_count, len(app.core.timers))) == (ALARMS, 0)
        app.stop()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        app_manager.unregister_app(app)


def test_loops_of_a_controller_let_each_other_go_on_soon():
    code = "import sys; from apps.openflow import framework; print(sys.getswitchinterval())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert float(done.stdout) < 0.001
