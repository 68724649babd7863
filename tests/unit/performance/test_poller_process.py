"""The monitor as a process under both frameworks, and switches that answer as they should not."""

from __future__ import annotations

import importlib.util
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.free_ports import free_port
from apps.exporters.history import read_history
from apps.exporters.schema import ROLL_UPS
from apps.replays import read_lines, replay
from apps.status_client import query
from controller.performance import of13_stats
from controller.performance.effects import SamplesRated
from controller.performance.schedule import StatKind
from patience import Patience

REPOSITORY = Path(__file__).parents[3]
COMMANDS = {
    "ryu": ("ryu-manager", "--ofp-tcp-listen-port", "{port}", str(REPOSITORY / "apps" / "monitor.py")),
    "os_ken": ("vsrt", "run", "--port", "{port}", "monitor"),
}
POLICY = "version: 1\nmonitor: {interval_s: 1, timeout_s: 0.5, role: equal, prometheus: {enabled: false}}\n"
PORTS = 4
TIMEOUT_S = 20.0


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


class Switch:
    """A switch whose answers to port statistics `answer` makes, as whole messages."""

    def __init__(self, port: int, dpid: int, answer: Callable[[int, bytes], list[bytes]]) -> None:
        self.dpid = dpid
        self.roles: list[int] = []
        self.xids: list[int] = []
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(message(0, 1, struct.pack("!HHI", 1, 8, 1 << 4)))
        self._answer = answer
        self._in = b""

    def serve(self) -> None:
        self._in += self.socket.recv(65536)
        while len(self._in) >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", self._in)
            if len(self._in) < length:
                return
            body, self._in = self._in[8:length], self._in[length:]
            self._take(kind, xid, body)

    def _take(self, kind: int, xid: int, body: bytes) -> None:
        if kind == 5:
            self.socket.sendall(message(6, xid, struct.pack("!QIBB2xII", self.dpid, 0, 254, 0, 0x4F, 0)))
        elif kind == 2:
            self.socket.sendall(message(3, xid, body))
        elif kind == 24:
            (role,) = struct.unpack_from("!I", body)
            self.roles.append(role)
            self.socket.sendall(message(25, xid, struct.pack("!I4xQ", role or 2, 7)))
        elif kind == 18 and struct.unpack_from("!H", body)[0] == 13:
            described = b"".join(
                struct.pack("!I4x6s2x16sIIIIIIII", n, bytes(6), b"p", 0, 0, 0, 0, 0, 0, 10**6, 10**6)
                for n in range(1, PORTS + 1)
            )
            self.socket.sendall(message(19, xid, struct.pack("!HH4x", 13, 0) + described))
        elif kind == 18 and struct.unpack_from("!H", body)[0] == 0:
            self.socket.sendall(message(19, xid, struct.pack("!HH4x1024x32s", 0, 0, b"rack 7")))
        elif kind == 18:
            self.xids.append(xid)
            for reply in self._answer(xid, body):
                self.socket.sendall(reply)


def ports(xid: int) -> bytes:
    entry = of13_stats.LAYOUTS[StatKind.PORT].entry
    now = time.monotonic()
    rows = b"".join(
        struct.pack("!I4x12Q", n, *(int(now * 1000 * n),) * 4, *(0,) * 8)
        + struct.pack("!II", int(now), int(now % 1 * 1e9))
        for n in range(1, PORTS + 1)
    )
    assert len(rows) == PORTS * entry.itemsize
    return message(19, xid, struct.pack("!HH4x", 4, 0) + rows)


def cut(reply: bytes) -> bytes:
    return message(19, struct.unpack_from("!I", reply, 4)[0], reply[8:-5])


@pytest.fixture(params=COMMANDS)
def controller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, Path, int]]:
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    port = free_port()
    (tmp_path / "policy.yaml").write_text(POLICY)
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "VSRT_CONFIG": str(tmp_path / "policy.yaml"),
        "VSRT_STATE_DIR": str(tmp_path),
        "VSRT_SOCKET": "",
        "VSRT_RECORD": str(tmp_path / "run.jsonl"),
    }
    name, *rest = COMMANDS[request.param]
    words = [str(Path(sys.executable).parent / name), *(word.format(port=port) for word in rest)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        patience = Patience(process.pid, TIMEOUT_S)
        while not _connects(port):
            assert process.poll() is None, (tmp_path / "log").read_text()
            patience.check()
            time.sleep(0.05)
        yield port, tmp_path, process.pid
        assert process.poll() is None, (tmp_path / "log").read_text()
        assert "Traceback" not in (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def state(directory: Path) -> Any:
    return query(directory / "vsrt.sock", {"show": "perf"}, TIMEOUT_S)


def test_a_switch_that_answers_wrongly_disturbs_no_other(controller: tuple[int, Path, int]):
    port, directory, pid = controller
    stolen: list[bytes] = []

    def steal(xid: int, _body: bytes) -> list[bytes]:
        """Give the other switch's last answer, an endless entry, a cut answer, then the right one twice."""
        right = ports(xid)
        group = message(19, xid, struct.pack("!HH4x", 6, 0) + bytes(40))
        return [*stolen, group, cut(right), right, right]

    def good(xid: int, _body: bytes) -> list[bytes]:
        stolen[:] = [ports(xid)]
        return [ports(xid)]

    bad, fine, silent = Switch(port, 1, steal), Switch(port, 2, good), Switch(port, 3, lambda _xid, _body: [])
    wanted = {"reply-twice", "reply-of-wrong-kind", "stats-truncated", "requests-timed-out"}
    with selectors.DefaultSelector() as selector:
        for switch in (bad, fine, silent):
            selector.register(switch.socket, selectors.EVENT_READ, switch)
        patience, found, kept = Patience(pid, TIMEOUT_S), {}, 0
        while not (wanted <= found.keys() and len(fine.xids) >= 3 and kept):
            patience.check()
            for key, _ in selector.select(0.2):
                key.data.serve()
            shown = state(directory)
            found, kept = shown["polls"], shown["outputs"]["roll_ups"]["totals"]["acknowledged"]
    up = {switch["dpid"]: switch["up"] for switch in shown["switches"]}
    assert (up[2], up[3]) == (True, False)
    assert shown["counters"]["samples"] >= 2 * PORTS
    assert shown["outputs"]["history"]["faults"] == shown["outputs"]["roll_ups"]["faults"] == []
    rolled = [
        read_history(directory / "history", kind, since_s=0, until_s=1e10, columns=()) for kind in ROLL_UPS.values()
    ]
    assert sum(rows.num_rows for rows in rolled) >= kept
    assert {dpid for rows in rolled for dpid in rows["dpid"].to_pylist()} <= {1, 2}
    assert [switch.roles for switch in (bad, fine, silent)] == [[0, 1]] * 3
    asked = {"do": "perf-set", "knob": "interval_s", "by": "ann"}
    assert query(directory / "vsrt.sock", {**asked, "value": "2"}, TIMEOUT_S)["value"] == 2
    assert query(directory / "vsrt.sock", {**asked, "value": "0"}, TIMEOUT_S)["refused"]
    lines = [json.loads(line) for line in (directory / "actions.jsonl").read_text().splitlines()]
    assert [(line["by"], line["action"], line["verdict"]) for line in lines] == [
        ("ann", "perf-set", "done"),
        ("ann", "perf-set", "refused"),
    ]
    for switch in (bad, fine, silent):
        switch.socket.close()
    with (directory / "run.jsonl").open() as recording:
        effects = [effect for _, effect in replay(read_lines(recording), "monitor")]
    rated = [effect for effect in effects if isinstance(effect, SamplesRated)]
    assert sum(len(effect.samples) for effect in rated) >= shown["counters"]["samples"]
