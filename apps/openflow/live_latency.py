"""Measures where time goes between this controller and its switches, while somebody looks, on the switches' loop.

What is attached is touched on that loop alone; while nobody measures nothing of it is in the way of any app.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from apps.openflow.app_watch import AppWatch
from apps.openflow.framework import SOUTHBOUND, SWITCHES
from apps.openflow.live_profile import LoopPart
from apps.openflow.questions import Unanswered
from apps.openflow.watched_apps import Watched, WatchedApps
from apps.probe_points import SHARED
from apps.status_server import QuestionRefused
from apps.system import system_threading
from controller.effects import ApplyEdits, SendPacket
from controller.events import BarrierReplied, PacketReceived, SwitchDisconnected
from controller.profiles.latencies import LatencyFigures
from controller.wire.lldp import NEAREST_BRIDGE_MAC, decode_lldp
from controller.wire.packets import Lldp

if TYPE_CHECKING:
    from apps.openflow.app import App

DISCOVERY = "discovery"
ECHO_S = 0.25
"""How often each switch is asked for an echo."""

LEASE_S = 5.0
"""Who has not looked for so long has gone: the measurement ends."""

LOST = "Nobody looked at the measurement for {:g} s, so it was ended: begin another one."


class _Measurement:
    """One measurement; all but `number`, `begun_s` and `seen_s` is used on the switches' loop alone."""

    def __init__(self, number: int, live: LiveLatency, app: App) -> None:
        self.number = number
        self.app = app
        self.begun_s = self.seen_s = time.monotonic()
        self.is_over = False
        self.deadline_s = 0.0
        self.figures = LatencyFigures()
        self._part = LoopPart(self, app)
        self._live = live
        self._ends: list[Callable[[], None]] = []
        self._xids = itertools.count(1)

    def core_of(self, name: str) -> Any:
        """Return the core of an app, None where it does not run."""
        return self._live.core_of(name)

    def handed_over(self, part: LoopPart) -> None:
        """Take the spans that have ended."""
        for span in part.collector.take():
            self.figures.joined(span)

    def attach(self, apps: Mapping[str, App], watched: Watched) -> None:
        """Begin."""
        figures, clock = self.figures, time.monotonic
        shared, app = watched(SHARED), watched(self.app.name.lower())
        self._ends = [
            shared.watch(
                "effect",
                ApplyEdits,
                lambda effect: figures.edits_sent(effect.dpid, effect.first_xid + len(effect.edits), clock()),
            ),
            shared.watch("event", BarrierReplied, lambda event: figures.confirmed(event.dpid, event.xid, clock())),
            app.watch("event", SwitchDisconnected, lambda event: figures.disconnected(event.dpid)),
        ]
        if DISCOVERY in apps:
            self._time_hops(watched(DISCOVERY))
        self._part.attach(apps, watched)
        self.deadline_s = time.monotonic()
        SWITCHES.add(self)

    def _time_hops(self, watch: AppWatch) -> None:
        """Look at the frames by which discovery asks what is at the other ends of ports."""
        hops, reactor, clock = self.figures.hops, self.app.reactor, time.monotonic

        def sent(effect: SendPacket) -> None:
            if effect.data.startswith(NEAREST_BRIDGE_MAC):
                frame = decode_lldp(effect.data)
                if isinstance(frame, Lldp):
                    hops.sent(frame.dpid, frame.port_no, frame.token, clock())

        def heard(event: PacketReceived) -> None:
            if event.data.startswith(NEAREST_BRIDGE_MAC):
                frame = decode_lldp(event.data)
                if isinstance(frame, Lldp):
                    hops.heard(frame.dpid, frame.port_no, frame.token, (event.dpid, event.in_port), reactor.now_s)

        self._ends += [watch.watch("effect", SendPacket, sent), watch.watch("event", PacketReceived, heard)]

    def due(self) -> None:
        """Ask for echoes; end where nobody looks any more."""
        now = time.monotonic()
        if now - self.seen_s > LEASE_S:
            self.detach()
            return
        xid = next(self._xids)
        for dpid in SOUTHBOUND.ask_echoes(xid, self._answered):
            self.figures.echo_asked(dpid, xid, now)
        self.deadline_s = now + ECHO_S

    def _answered(self, dpid: int, xid: int) -> None:
        self.figures.echo_answered(dpid, xid, time.monotonic())

    def detach(self) -> None:
        """End."""
        if self.is_over:
            return
        self.is_over = True
        for end in self._ends:
            end()
        SWITCHES.remove(self)
        SOUTHBOUND.ask_echoes(0, None)
        self._part.detach()

    def document(self) -> dict[str, Any]:
        """Return what was found so far."""
        self.handed_over(self._part)
        return {
            "id": self.number,
            "lasted_s": round(time.monotonic() - self.begun_s, 3),
            "switches": self.figures.document(),
            "other_joins": self.figures.others_count,
            "missed": self.figures.missed_count + self.figures.hops.missed_count + self._part.collector.missed,
        }


class LiveLatency(WatchedApps):
    """The measurement of this process: one at a time, begun, looked at and ended by questions on the socket."""

    def __init__(self, apps: Mapping[str, App], watched: Watched) -> None:
        super().__init__(apps, watched)
        self._current: _Measurement | None = None
        self._numbers = itertools.count(1)
        self._lock = system_threading.Lock()

    def begin(self, _asked: Mapping[str, Any]) -> dict[str, Any]:
        """Begin to measure; on a thread of the socket."""
        app = next((each for each in self._apps.values() if each.reactor is SWITCHES), None)
        if app is None:
            raise QuestionRefused("No app of this process edits switches, so it cannot measure: ask one that does.")
        with self._lock:
            current = self._current
            if current is not None and not current.is_over:
                raise QuestionRefused("Somebody measures already, and one does at a time: ask again in a moment.")
            current = self._current = _Measurement(next(self._numbers), self, app)
        self._attach(current, lambda: SWITCHES.call(current.detach))
        return {"id": current.number}

    def look(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was found so far; on a thread of the socket."""
        current = self._asked_for(asked)
        current.seen_s = time.monotonic()
        document: dict[str, Any] = current.app.ask(current.document)
        return document

    def end(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """End, and return what was found; on a thread of the socket."""
        current = self._asked_for(asked)

        def end() -> dict[str, Any]:
            current.detach()
            return {**current.document(), "hops": current.figures.hops.document()}

        document: dict[str, Any] = current.app.ask(end)
        return document

    def app_left(self, app: App) -> None:
        """End where the app that measures ends."""
        current = self._current
        if current is not None and current.app is app and not current.is_over:
            try:
                app.ask(current.detach)
            except Unanswered:
                SWITCHES.call(current.detach)

    def _asked_for(self, asked: Mapping[str, Any]) -> _Measurement:
        current = self._current
        if current is None or current.number != asked.get("id"):
            raise QuestionRefused("There is no such measurement: `vsrt latency` begins one.", "id")
        if current.is_over:
            raise QuestionRefused(LOST.format(LEASE_S), "id")
        return current
