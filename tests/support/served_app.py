"""Apps under os-ken, on loops of their own, and switches that speak OpenFlow to them byte by byte.

Connections are the framework's own, over TCP; only its listening for them is left out. The core of the app is one
that notes what it is told.
"""

from __future__ import annotations

import gc
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from os_ken.base import app_manager
from os_ken.controller import controller
from os_ken.controller.ofp_handler import OFPHandler

from apps.openflow.app import App, TableKeeper
from apps.policy_file import PolicyFile, PolicyReading
from controller.config.policy import Policy
from controller.config.settings import Monitor, PrometheusEndpoint
from controller.events import DeadlineReached

TIMEOUT_S = 10.0
HELLO, ERROR, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 5, 6
PACKET_IN, PORT_STATUS, PACKET_OUT, FLOW_MOD = 10, 12, 13, 14
STATS_REQUEST = {1: 16, 4: 18}
STATS_REPLY = {1: 17, 4: 19}
BARRIER_REQUEST = {1: 18, 4: 20}
BARRIER_REPLY = {1: 19, 4: 21}
DESC, FLOW, PORT_DESC = 0, 1, 13
XID_TAG = 0xB7


class NotingCore:
    """Puts every event into `told` and returns the `effects` for its type, or raises what stands in their place.

    `deadline_s` is when it wants to be woken, once.
    """

    xid_tag = XID_TAG

    def __init__(self) -> None:
        self.told: queue.Queue[Any] = queue.Queue()
        self.effects: dict[type, list[Any] | Exception] = {}
        self.deadline_s: float | None = None

    def handle(self, event: Any, _now: float) -> list[Any]:
        self.told.put(event)
        if isinstance(event, DeadlineReached):
            self.deadline_s = None
        effects = self.effects.get(type(event), [])
        if isinstance(effects, Exception):
            raise effects
        return effects

    def next_deadline(self) -> float | None:
        return self.deadline_s


class NotingApp(TableKeeper):
    """The app around it, on the loop of the connections; it keeps its notices' texts and tells Prometheus nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.core = NotingCore()
        self.policy_file = PolicyFile(self.logger)
        self.policy_file.reading = PolicyReading(
            Policy(monitor=Monitor(prometheus=PrometheusEndpoint(enabled=False)))
        )
        self.texts: list[str] = []

    def notice(self, notice: Any) -> None:
        super().notice(notice)
        self.texts.append(notice.text)


@contextmanager
def serving(*kinds: Callable[[], App]) -> Iterator[tuple[Any, ...]]:
    """Run apps that take connections; those of their switches must have ended with it."""
    manager = app_manager.AppManager.get_instance()
    thresholds = gc.get_threshold()
    handler = manager.instantiate(OFPHandler)
    apps = [manager.instantiate(kind) for kind in kinds]
    try:
        for app in apps:
            app.start()
        yield tuple(apps)
    finally:
        for app in apps:
            if app.is_active:
                app.stop()
        for app in (handler, *apps):
            del manager.applications[app.name]
            app_manager.unregister_app(app)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def port_1_0(port_no: int, name: bytes = b"p", config: int = 0, state: int = 0, curr: int = 0) -> bytes:
    """Return struct ofp_phy_port of OpenFlow 1.0."""
    mac = b"\x0a\0\0\0\0" + bytes((port_no & 255,))
    return struct.pack("!H6s16sIIIIII", port_no, mac, name, config, state, curr, 0, 0, 0)


def port_1_3(port_no: int, name: bytes = b"p", config: int = 0, state: int = 0, curr_kbps: int = 0) -> bytes:
    """Return struct ofp_port of OpenFlow 1.3."""
    mac = b"\x0a\0\0\0\0" + bytes((port_no & 255,))
    return struct.pack("!I4x6s2x16sIIIIIIII", port_no, mac, name, config, state, 0, 0, 0, 0, curr_kbps, 0)


class Switch:
    """One switch's end of a connection."""

    def __init__(self, dpid: int, version: int, ports: bytes = b"") -> None:
        self.version = version
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._stream = socket.socket()
            self._stream.settimeout(TIMEOUT_S)
            self._stream.connect(server.getsockname())
            near, address = server.accept()
        self.datapath = controller.Datapath(near, address)
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self._buffer = b""
        self.send(HELLO, 1)
        _, xid, _ = self.receive(FEATURES_REQUEST)
        self.send(FEATURES_REPLY, xid, struct.pack("!QIB3xII", dpid, 0, 4, 0, 0) + (ports if version == 1 else b""))
        if version == 4:
            xid = self.receive_stats_request(PORT_DESC)
            self.send(STATS_REPLY[version], xid, struct.pack("!HH4x", PORT_DESC, 0) + ports)

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and wait until the controller has ended its part."""
        self._stream.close()
        assert self.ended.wait(TIMEOUT_S)
        self._thread.join()

    def _serve(self) -> None:
        self.datapath.serve()
        self.ended.set()

    def send(self, kind: int, xid: int, body: bytes = b"") -> None:
        """Send a message."""
        self._stream.sendall(struct.pack("!BBHI", self.version, kind, 8 + len(body), xid) + body)

    def receive(self, wanted: int | None = None) -> tuple[int, int, bytes]:
        """Return kind, transaction id and body of the next message, or of the next one that is `wanted`."""
        while True:
            kind, xid, body = self._next()
            if wanted in (None, kind):
                return kind, xid, body

    def receive_stats_request(self, wanted: int) -> int:
        """Return the transaction id of the next request for statistics of a kind."""
        while True:
            _, xid, body = self.receive(STATS_REQUEST[self.version])
            if struct.unpack_from("!H", body)[0] == wanted:
                return xid

    def _next(self) -> tuple[int, int, bytes]:
        while len(self._buffer) < 8 or len(self._buffer) < struct.unpack_from("!H", self._buffer, 2)[0]:
            received = self._stream.recv(1 << 16)
            if not received:
                raise ConnectionError("the controller ended the connection")
            self._buffer += received
        _, kind, length, xid = struct.unpack_from("!BBHI", self._buffer)
        body, self._buffer = self._buffer[8:length], self._buffer[length:]
        return kind, xid, body


def packet_in(version: int, port_no: int, frame: bytes) -> bytes:
    """Return the body of a packet-in."""
    if version == 1:
        return struct.pack("!IHHBx", 0xFFFFFFFF, len(frame), port_no, 0) + frame
    match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, port_no)
    return struct.pack("!IHBBQ", 0xFFFFFFFF, len(frame), 0, 0, 0) + match + bytes(2) + frame


def told_until(core: NotingCore, kind: type) -> list[Any]:
    """Return the events that a core was told up to the next one of a kind."""
    events: list[Any] = []
    while not events or not isinstance(events[-1], kind):
        events.append(core.told.get(timeout=TIMEOUT_S))
    return events
