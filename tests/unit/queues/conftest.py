"""The core of queues with real OVSDB servers: what these tell comes to it, and what it asks for goes to them."""

from __future__ import annotations

import queue
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.ovsdb_session import OvsdbSession
from controller.config.service_classes import ServiceClass
from controller.config.terms import parse_prefix
from controller.effects import Notice
from controller.events import DeadlineReached, SwitchConnected
from controller.performance.requests import RequestStats, StatsReceived
from controller.queues.core import QueueCore
from controller.queues.events import ReadAnew, ServersWanted, Transact, Transacted
from controller.queues.settings import QueueSettings
from controller.service_classes.goals import Goal, GoalKind
from ovsdb_server import OvsdbServer
from silent_server import SilentServer
from topology.events import LinkUp, PortRole, PortRoleChanged, SwitchUp

FEED = ServiceClass("feed", 1, (parse_prefix("239.1.0.0/16"),), goal=Goal(GoalKind.LOSS, 0.0))
DESK = ServiceClass("desk", 2, (parse_prefix("239.2.0.0/16"),), goal=Goal(GoalKind.DELAY, 2.0))
BULK = ServiceClass("bulk", 6, (parse_prefix("239.3.0.0/16"),))
CAPACITY_BPS = 10_000_000
WAIT_S = 20.0


class Bench:
    """A core, its sessions and its clock, which stands still but for `advance`."""

    def __init__(self, settings: QueueSettings) -> None:
        self.now = 1000.0
        self.core = QueueCore(settings, self.now)
        self.sessions: dict[str, OvsdbSession] = {}
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.notices: list[Notice] = []
        self.transacts: list[Transact] = []
        self.read_anew: list[str] = []
        self.requests: list[RequestStats] = []
        self.before_transact: Callable[[], None] = lambda: None
        self.answers: list[Transacted] = []

    def feed(self, *events: Any) -> None:
        """Give the core events, and do what it asks for."""
        for event in events:
            if isinstance(event, Transacted):
                self.answers.append(event)
            self._perform(self.core.handle(event, self.now))
        while (due_s := self.core.next_deadline()) is not None and due_s <= self.now:
            self._perform(self.core.handle(DeadlineReached(), self.now))

    def _perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Notice():
                    self.notices.append(effect)
                case Transact():
                    self.transacts.append(effect)
                    self.before_transact()
                    self.sessions[effect.server].transact(effect)
                case ServersWanted():
                    for server in effect.servers:
                        if server not in self.sessions:
                            self.sessions[server] = OvsdbSession(server, self.events.put)
                            self.sessions[server].start()
                case ReadAnew():
                    self.read_anew.append(effect.server)
                    self.sessions[effect.server].read_anew()
                case RequestStats():
                    self.requests.append(effect)

    def wait(self, reached: Callable[[], Any]) -> Any:
        """Feed what servers tell until something is reached."""
        while not (found := reached()):
            self.feed(self.events.get(timeout=WAIT_S))
        return found

    def settle(self) -> None:
        """Wait until no transaction is under way."""
        self.wait(lambda: len(self.answers) == len(self.transacts))

    def advance(self, seconds: float) -> None:
        """Let time go by, with all deadlines in it."""
        until_s = self.now + seconds
        while (due_s := self.core.next_deadline()) is not None and due_s <= until_s:
            self.now = max(self.now, due_s)
            self.feed(DeadlineReached())
        self.now = until_s

    def switch(self, dpid: int, edges: int, ofp_version: int = 4) -> None:
        """A switch is there, with ports to hosts from 1 on."""
        roles = (PortRoleChanged(dpid, number, PortRole.EDGE) for number in range(1, edges + 1))
        self.feed(SwitchConnected(dpid, ofp_version, ()), SwitchUp(dpid, ofp_version), *roles)

    def link(self, dpid_a: int, port_a: int, dpid_b: int, port_b: int, capacity_bps: float = CAPACITY_BPS) -> None:
        """A cable is there."""
        for end in ((dpid_a, port_a), (dpid_b, port_b)):
            self.feed(PortRoleChanged(*end, PortRole.TRUNK))
        self.feed(LinkUp(dpid_a, port_a, dpid_b, port_b, capacity_bps))

    def told(self, kind: str) -> list[Notice]:
        """Return the notices of a kind."""
        return [notice for notice in self.notices if notice.kind == kind]

    def poll(self, dpid: int, counters: dict[tuple[int, int], tuple[int, int, int]], interval_s: float) -> None:
        """Have a switch (OpenFlow 1.3) answer the next question: bytes, packets and drops by port and queue."""
        before = len(self.requests)
        while len(self.requests) == before:
            self.advance(0.1)
        (xid,) = struct.unpack_from("!I", self.requests[-1].message, 4)
        body = b"".join(
            struct.pack("!IIQQQII", port_no, queue_id, *found, 0, 0)
            for (port_no, queue_id), found in sorted(counters.items())
        )
        header = struct.pack("!BBHIHH4x", 4, 19, 16 + len(body), xid, 5, 0)
        self.polled_s = getattr(self, "polled_s", 0.0) + interval_s
        at_s = self.polled_s
        body = b"".join(
            body[offset : offset + 32] + struct.pack("!II", int(at_s), int(at_s % 1 * 1e9))
            for offset in range(0, len(body), 40)
        )
        self.feed(StatsReceived(dpid, 4, xid, header + body, at_s))

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()


def settings_of(*servers: str, **changes: Any) -> QueueSettings:
    found = QueueSettings("static", 1.0, 2.0, servers, (FEED, DESK, BULK), float(CAPACITY_BPS))
    return found._replace(**changes)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OvsdbServer]:
    with OvsdbServer(tmp_path) as server:
        yield server


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(settings: QueueSettings) -> Bench:
        made.append(Bench(settings))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def silent_server() -> Iterator[SilentServer]:
    """A server that takes no connection."""
    with SilentServer() as found:
        yield found
