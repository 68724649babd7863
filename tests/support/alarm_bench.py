"""A core of alarms under a clock that the test moves, with a fabric that is found at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from controller.alarms.core import AlarmCore
from controller.alarms.effects import AlarmTurned
from controller.alarms.events import (
    AlarmsRead,
)
from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.config.terms import NamedSwitch
from controller.effects import ActionRefused, ActionTaken
from controller.events import DeadlineReached, Port, PortChanged, SwitchConnected, SwitchDisconnected
from controller.snapshot.events import State
from topology.events import HostGone, HostLearnt, LinkDown, LinkUp, SwitchDown, SwitchUp

EPOCH_S = 1_000_000.0
CALM = Alarms(settle_s=1, start_grace_s=20)
ANY = ExpectedTopology()

TRIANGLE = ((1, 1, 2, 1), (1, 2, 3, 1), (2, 2, 3, 2))
STAR = ((1, 1, 2, 1), (1, 2, 3, 1), (1, 3, 4, 1))


class Bench:
    """A core under a clock that the test moves, with the fabric found at once."""

    def __init__(self, links: Iterable[tuple[int, ...]] = (), topology: ExpectedTopology = ANY, **kept: Any) -> None:
        self.now = 1000.0 if kept else 0.0
        self.core = AlarmCore(CALM, topology, self.now, self.now + EPOCH_S)
        self.core.sections.names.configure(NamedSwitch(f"s{dpid}", dpid) for dpid in range(1, 9))
        self.told: list[tuple[str, str]] = []
        self.cleared_texts: list[str] = []
        self.outcomes: list[Any] = []
        if kept:
            self.give(AlarmsRead(kept))
        self.links = tuple(links)
        if self.links:
            for dpid in sorted({dpid for link in self.links for dpid in link[::2]}):
                self.connect(dpid)
            for link in self.links:
                self.give(LinkUp(*link, 1e9))
            self.wait(30)

    def connect(self, dpid: int, down: Iterable[int] = ()) -> None:
        ports = {end[1] for link in self.links for end in (link[:2], link[2:]) if end[0] == dpid} | {9}
        self.give(
            SwitchConnected(dpid, 4, tuple(Port(n, f"p{n}", bytes(6), n not in down, 1e9) for n in sorted(ports))),
            SwitchUp(dpid, 4),
        )

    def give(self, *events: Any) -> None:
        for event in events:
            for effect in self.core.handle(event, self.now):
                if isinstance(effect, AlarmTurned):
                    self.told.append((effect.state.value, effect.document["key"]))
                    if effect.state is State.CLEARED:
                        self.cleared_texts.append(effect.document["text"])
                elif isinstance(effect, ActionTaken | ActionRefused):
                    self.outcomes.append(effect)

    def port(self, dpid: int, port_no: int, up: bool) -> None:
        self.give(port_event(dpid, port_no, up))

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.core.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.give(DeadlineReached())
        self.now = until

    @property
    def open(self) -> dict[str, dict[str, Any]]:
        self.core.sections.refresh()
        changes = self.core.sections.alarms.changes(0, 1000)
        assert set(changes["put"]) == set(self.core.register.open)
        return dict(changes["put"])

    @property
    def status(self) -> dict[str, Any]:
        self.core.sections.refresh()
        return dict(self.core.sections.status.changes(0, 1)["put"]["status"])

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """Kind, state and text of what was told, the oldest first."""
        found = self.core.sections.events.section.changes(0, 1000)["put"].values()
        return [(event["kind"], event["state"], event["text"]) for event in found]

    def section(self, name: str) -> dict[str, Any]:
        return dict(getattr(self.core.sections, name).changes(0, 1000)["put"])

    def kept(self) -> dict[str, dict[str, Any]]:
        """What a restart finds."""
        self.core.kept.touch_all()
        parts: dict[str, dict[str, Any]] = {}
        for part, id_, document in self.core.kept.take(1000):
            if document is not None:
                parts.setdefault(part, {})[id_] = document
        return parts


def port_event(dpid: int, port_no: int, up: bool) -> PortChanged:
    return PortChanged(dpid, Port(port_no, f"p{port_no}", bytes(6), up, 1e9), False)


def host(number: int, dpid: int, port_no: int = 9) -> HostLearnt:
    return HostLearnt(bytes([0, 0, 0, 0, 0, number]), dpid, port_no, (bytes([10, 0, 0, number]),))


def pull(bench: Bench, link: tuple[int, ...] = (1, 1, 2, 1)) -> None:
    bench.give(port_event(*link[:2], False), LinkDown(*link), port_event(*link[2:], False))


def dead_switch_events() -> list[Any]:
    return [
        (port_event(1, 2, False), LinkDown(1, 2, 3, 1)),
        (port_event(2, 2, False), LinkDown(2, 2, 3, 2)),
        (SwitchDisconnected(3),),
        (HostGone(bytes([0, 0, 0, 0, 0, 7]), 3, 9), SwitchDown(3)),
    ]
