from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("os_ken")

from apps.dashboard.limits import ServerLimits
from apps.dashboard.server import DashboardServer
from apps.dashboard.settings import ServerSettings
from apps.status_server import QuestionRefused, StatusServer
from controller.snapshot.log import DocumentLog

TOKEN = "correct-horse-battery-staple"
WAIT_S = 10.0

OFFERED = {
    "multicast": (
        "status",
        "switches",
        "links",
        "ports",
        "hosts",
        "groups",
        "routers",
        "rules",
        "staged",
        "candidates",
        "events",
        "policy",
    ),
    "monitor": ("switches", "ports", "events"),
    "allocator": ("ports", "allocations"),
}


class Controller:
    """The socket of a controller whose apps tell what a test puts here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[dict[str, Any]] = []
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self._sections: dict[str, dict[str, DocumentLog[str]]] = {}
        self.busy: str | None = None
        self._servers: list[StatusServer] = []
        for app, names in OFFERED.items():
            self._sections[app] = {}
            for name in names:
                documents = self.documents.setdefault((app, name), {})
                self._sections[app][name] = DocumentLog(documents.keys, documents.get)

    def start(self) -> None:
        actions = {
            "switch-drain": self._drain,
            "port-history": self._history,
            "check-discovery-findings": lambda _fields: {"done": True, "count": 0, "findings": []},
            "check-findings": lambda _fields: {"done": True, "count": 0, "findings": []},
            **{f"check-{app}-report": self._check_report for app in TABLE_APPS},
            **dict.fromkeys(("probe-run", "probe-look", "probe-stop"), self._probe),
            **{name: self._note(name) for name in NOTED},
        }
        for app, sections in self._sections.items():
            done = actions if app == "multicast" else {}
            views = {"probes": lambda: {"probes": [PROBE]}} if app == "multicast" else {}
            server = StatusServer(self.path, views, self._run, LOGGER, done, app=app, sections=sections)
            server.start()
            self._servers.append(server)

    def stop(self) -> None:
        for server in self._servers:
            server.stop()
        self._servers.clear()

    def put(self, app: str, section: str, id_: str, **fields: Any) -> None:
        self.documents[app, section][id_] = fields
        self._sections[app][section].touch(id_)

    def remove(self, app: str, section: str, id_: str) -> None:
        del self.documents[app, section][id_]
        self._sections[app][section].touch(id_)

    def _run(self, answer: Callable[[], Any]) -> Any:
        if self.busy is not None:
            raise TimeoutError(self.busy)
        return answer()

    def _note(self, name: str) -> Callable[[Mapping[str, Any]], Any]:
        def note(fields: Mapping[str, Any]) -> Any:
            self.asked.append({"do": name, **fields})
            return {"done": True}

        return note

    def _history(self, fields: Mapping[str, Any]) -> Any:
        self.asked.append(dict(fields))
        own = {name: fields[name] for name in ("dpid", "port_no", "metric")}
        return {**own, "step_s": 10.0, "points": [{"time_s": 10.0, "value": 1.5}, {"time_s": 20.0, "value": None}]}

    def _check_report(self, fields: Mapping[str, Any]) -> Any:
        return {"number": fields["number"], "switches": 0, "done": True, "reports": []}

    def _probe(self, fields: Mapping[str, Any]) -> Any:
        self.asked.append(dict(fields))
        if fields.get("script") == "x":
            raise QuestionRefused("line 1, column 1: 'x' is not expected here", "script", "script-fault")
        return {**PROBE, **PROBE_FOUND}

    def _drain(self, fields: Mapping[str, Any]) -> Any:
        id_ = str(fields["dpid"])
        if id_ not in self.documents["multicast", "switches"]:
            raise QuestionRefused(f"there is no switch {id_}", "dpid")
        self.put("multicast", "switches", id_, **self.documents["multicast", "switches"][id_] | {"drained": True})
        return {"drained": True}


PROBE = {"id": "1", "script": "begin { }", "points": 0, "by": "ann", "begun_s": 10.0, "for_s": 60.0, "ended": None}
ROW = {"keys": [3, "IGMP"], "count": 3, "sum": 9, "min": 1, "max": 5, "histogram": [[1, 2], [4, 1]]}
PROBE_FOUND = {
    **{"aggregates": {"wait": [ROW]}, "rows": {"wait": 1}, "sampled": ["wait"], "printed": ["a line"], "lines": [1]},
    **{"fired": 3, "skipped": 0, "faults": {}, "lost_keys": 0, "lost_lines": 0},
}
TABLE_APPS = ("discovery", "multicast", "unicast")
NOTED = (
    *(f"check-{app}" for app in TABLE_APPS),
    *(f"candidate-{verb}" for verb in ("accept", "ignore", "consider")),
    *(
        f"maintenance-{verb}"
        for verb in ("plan", "start", "pause", "resume", "abort", "skip", "hook-begin", "hook-end")
    ),
    *("policy-reload", "static-member-add", "static-member-remove", "router-port-add", "router-port-remove"),
    *(
        "switch-undrain",
        "switch-forget",
        "link-forget",
        "alarm-acknowledge",
        "group-rebuild",
        "alias-add",
        "alias-remove",
        "group-swap-in",
        "group-swap-out",
        "group-pin",
        "group-unpin",
        "counters-reset",
        "address-take",
        "address-release",
        *(f"{what}-label-{verb}" for what in ("switch", "port") for verb in ("add", "remove")),
        "hand-over",
        "drain-monitor",
        "undrain-monitor",
        "allocate",
    ),
)
LOGGER = logging.getLogger("controller")


class Dashboard:
    """A running server, and how to ask it."""

    def __init__(self, settings: ServerSettings, limits: ServerLimits) -> None:
        self.server = DashboardServer(settings, limits)
        self.url = self.server.url.rstrip("/")
        self.port = int(self.url.rpartition(":")[2])
        self.client = httpx.Client(base_url=f"{self.url}/api/v1", timeout=WAIT_S, trust_env=False, verify=False)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(WAIT_S)

    def _run(self, ready: threading.Event) -> None:
        asyncio.run(self.server.run(lambda _url: ready.set()))

    def close(self) -> None:
        self.client.close()
        self.server.stop()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def get(self, path: str, **options: Any) -> Any:
        answer = self.client.get(path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def write(self, method: str, path: str, token: str = TOKEN, **options: Any) -> httpx.Response:
        return self.client.request(method, path, headers={"Authorization": f"Bearer {token}"}, **options)

    def wait_until(self, reached: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (found := reached()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return found

    def refused(self, reason: str) -> int:
        """Return how often that was refused; asked again where a strict server ended the connection."""

        def asked() -> Any:
            with suppress(httpx.TransportError):
                return self.get("/status")["dashboard"]

        return self.wait_until(asked)["refused"].get(reason, 0)

    def wait_refused(self, reason: str, count: int = 1) -> None:
        self.wait_until(lambda: self.refused(reason) >= count)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def raw(self, request: bytes) -> bytes:
        """Send bytes and return all that is answered until the connection ends."""
        with self.connect() as connection:
            connection.sendall(request)
            return received(connection)

    def events(self, query: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        """Follow the stream."""
        with self.client.stream("GET", f"/stream{query}") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))


class Cable:
    """A Unix socket that leads to the controller's until it is pulled, with all that was connected."""

    def __init__(self, path: Path, far: Path) -> None:
        self.path = path
        self._far = far
        self._ends: list[socket.socket] = []
        self.plug()

    def plug(self) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.path))
        self._listening.listen()
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def pull(self) -> None:
        self.path.unlink()
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, far = listening.accept()[0], socket.socket(socket.AF_UNIX)
                far.connect(str(self._far))
                self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)


def received(connection: socket.socket) -> bytes:
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def fill(controller: Controller) -> None:
    """Let the apps tell of two switches, a link, hosts and a group."""
    put = controller.put
    put("multicast", "status", "status", ready=True, switches=2, groups=1, counters={"joins": 2}, apps=["multicast"])
    for dpid in (1, 2):
        put(
            "multicast",
            "switches",
            str(dpid),
            dpid=dpid,
            ofp_version="1.3",
            tier="tor",
            labels={"pod": str(dpid)},
            connected=True,
            drained=False,
        )
        put("monitor", "switches", str(dpid), up=True, cpu_pct=None)
        for port_no in range(1, 13):
            key = {"dpid": dpid, "port_no": port_no}
            put("multicast", "ports", f"{dpid}:{port_no}", **key, role="edge")
            put("monitor", "ports", f"{dpid}:{port_no}", name=f"s{dpid}-eth{port_no}", rx_bps=100.0 * port_no)
    put("multicast", "links", "1:1-2:1", dpid_a=1, port_a=1, dpid_b=2, port_b=1, capacity_bps=1e9)
    member = {"dpid": 1, "port_no": 2, "mac": "00:00:00:00:00:02", "ip": "10.0.0.2", "mode": "exclude", "sources": []}
    refused = {**member, "port_no": 3, "mac": "00:00:00:00:00:03", "ip": "10.0.0.3"}
    sender = {"dpid": 2, "port_no": 2, "mac": "00:00:00:00:00:04", "ip": "10.0.0.4", "rule": "all", "rate_bps": 7}
    put(
        *("multicast", "groups", "239.1.1.1"),
        group="239.1.1.1",
        links=[[1, 2]],
        detached=[],
        members=[member],
        refused=[refused],
        senders=[{**sender, "admitted": True}, {**sender, "port_no": 4, "admitted": False}],
        unsupported=None,
        static_members=[{"dpid": 1, "port_no": 5}],
        size=1,
        rate_bps=7,
    )
    put("multicast", "hosts", member["mac"], mac=member["mac"], dpid=1, port_no=2, ips=["10.0.0.2"])
    put("multicast", "rules", "all", rule="all", allow=1, deny=0)
    read = {"path": "staged.yaml", "loaded_s": 90.0, "errors": []}
    put("multicast", "staged", "alike", would_be="alike", count=3, beyond=0, **read)
    put("multicast", "routers", "1:9:4", dpid=1, port_no=9, family=4, static=True)
    put("multicast", "policy", "policy", path="policy.yaml", text="version: 1\n", loaded_s=1.0, errors=[])
    for number in range(3):
        event = {
            "source": "monitor",
            "kind": "port",
            "severity": "warning" if number == 1 else "info",
            "state": "happened",
            "text": f"event {number}",
        }
        put("monitor", "events", f"monitor-{number}", time_s=100.0 + number, **event)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("controller") / "vsrt.sock")
    fill(controller)
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def cable(controller: Controller, tmp_path: Path) -> Iterator[Cable]:
    cable = Cable(tmp_path / "cable.sock", controller.path)
    yield cable
    cable.pull()


@pytest.fixture(scope="module")
def limits() -> ServerLimits:
    return ServerLimits()


@pytest.fixture(scope="module")
def settings(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    token = tmp_path_factory.mktemp("secrets") / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN + "\n")
    return ServerSettings(str(controller.path), port=0, token_file=str(token))


@pytest.fixture(scope="module")
def dashboard(controller: Controller, settings: ServerSettings, limits: ServerLimits) -> Iterator[Dashboard]:
    """One server for the tests of a module."""
    found = Dashboard(settings, limits)
    found.wait_until(lambda: found.get("/status")["connected"])
    yield found
    found.close()


@pytest.fixture
def start(settings: ServerSettings) -> Iterator[Callable[..., Dashboard]]:
    """Start a server of a test's own, with other settings or limits."""
    started: list[Dashboard] = []

    def make(limits: ServerLimits | None = None, **changed: Any) -> Dashboard:
        started.append(Dashboard(replace(settings, **changed), limits or ServerLimits()))
        return started[-1]

    yield make
    for found in started:
        found.close()
