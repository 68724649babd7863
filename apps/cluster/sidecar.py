"""The process beside a controller: it is the member of the cluster, and asks the store whatever the controller wants.

So neither a busy loop nor a collector of garbage keeps a lease from being kept. What the member decides goes to the
controller, and what the controller is, and what its loop does, comes from there ten times a second.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from typing import Any

from apps.cluster.askers import Askers, Watcher
from apps.cluster.etcd import Access
from apps.cluster.messages import (
    AskStore,
    Beat,
    EndWatch,
    Pulse,
    Seen,
    StoreAnswered,
    StoreTold,
    WatchStore,
    receive,
    send,
)
from apps.cluster.peers import BeatSpeaker, Hearer
from apps.cluster.process_state import is_stopped
from controller.cluster.effects import FollowPeer, Leading, StoreRequest, TellOperators, WatchKeys
from controller.cluster.engine import KeyChanges
from controller.cluster.events import (
    Answered,
    ControllerBeat,
    ControllerGone,
    ControllerStopped,
    KeysChanged,
    WatchEnded,
)
from controller.cluster.member import MemberCore
from controller.cluster.member_settings import MemberSettings
from controller.cluster.versions import RECORDS
from controller.events import DeadlineReached, RoleWanted

OWN_ASKERS = 3
"""Threads by which the member asks the store, each with a connection of its own."""

CONTROLLER_ASKERS = 2
"""Those by which the controller does."""

OUTBOX_BOUND = 16384
"""Messages that the controller has not taken; with more it has stood still for long, and leads no more."""

OVERDUE_S = 0.2
"""Where the controller was not heard for so long, the system is asked each `LOOK_S` whether it was stopped."""

LOOK_S = 0.05

END_S = 1.5
"""How long the lease is given back at the end, at most."""


class Sidecar:
    """The member `settings` says, for the controller at the other end of `pipe`.

    `listening` is where others hear it, None for nowhere.
    """

    def __init__(
        self, settings: MemberSettings, access: Access, pipe: socket.socket, listening: socket.socket | None
    ) -> None:
        self._settings = settings
        self._access = access
        self._pipe = pipe
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._own, self._for_controller = Askers(access, OWN_ASKERS), Askers(access, CONTROLLER_ASKERS)
        self._speaker = None if listening is None else BeatSpeaker(listening)
        self._hearer = Hearer(self._events.put)
        self._member = MemberCore(settings, time.monotonic())
        self._lead_watch: Watcher | None = None
        self._watches: dict[int, Watcher] = {}
        self._seen = Seen()
        self._controller = os.getppid()
        self._look_s = float("inf")

    def run(self) -> None:
        """Take part until the controller has gone, and give the lease back then."""
        for work in (self._receive, self._send):
            threading.Thread(target=work, daemon=True).start()
        ends_s = float("inf")
        while time.monotonic() < ends_s:
            event = self._next_event(ends_s)
            if event is None:
                return
            if type(event) is ControllerGone:
                ends_s = time.monotonic() + END_S
            elif type(event) is ControllerBeat:
                self._look_s = time.monotonic() + OVERDUE_S
                self._outbox.put(Pulse())
                if self._speaker is not None:
                    self._speaker.say(self._settings.incarnation)
            for effect in self._member.handle(event, time.monotonic()):
                self._perform(effect)
            self._tell_seen()
            if ends_s < float("inf") and self._member.has_left:
                return

    def _next_event(self, ends_s: float) -> Any:
        """Return what the member is told next; None where the controller has taken nothing for long."""
        if self._outbox.qsize() > OUTBOX_BOUND:
            return None
        due_s = self._member.next_deadline()
        wait_s = min(due_s if due_s is not None else ends_s, ends_s, self._look_s) - time.monotonic()
        try:
            return self._events.get(timeout=None if wait_s == float("inf") else max(wait_s, 0.0))
        except queue.Empty:
            return ControllerStopped() if self._sees_stopped() else DeadlineReached()

    def _sees_stopped(self) -> bool:
        """Tell, once after a beat, that the controller, which is overdue, was stopped."""
        now = time.monotonic()
        if now < self._look_s:
            return False
        was_stopped = is_stopped(self._controller)
        self._look_s = float("inf") if was_stopped else now + LOOK_S
        return was_stopped

    def _perform(self, effect: Any) -> None:
        if type(effect) is StoreRequest:
            number = effect.number
            self._own.ask(effect.request, lambda reply: self._events.put(Answered(number, reply)))
        elif type(effect) is WatchKeys:
            if self._lead_watch is not None:
                self._lead_watch.is_wanted = False
            watch = effect.watch
            self._lead_watch = Watcher(
                *(self._access, effect.prefix, effect.after_revision),
                lambda report: self._events.put(
                    KeysChanged(watch, report.changes) if type(report) is KeyChanges else WatchEnded(watch)
                ),
            )
        elif type(effect) is FollowPeer:
            self._hearer.follow(effect.leader)
        elif isinstance(effect, RoleWanted | Leading | TellOperators):
            self._outbox.put(effect)

    def _tell_seen(self) -> None:
        member, view = self._member, self._member.view
        present = view.present()
        peers = {name: each.peer for name, each in present.items()}
        switches = {name: each.switches for name, each in present.items()}
        known = view.leader, view.epoch, tuple(present), member.is_store_silent, member.lease
        records = min((each.records for each in present.values()), default=RECORDS)
        dpids = {name: each.dpids for name, each in present.items()}
        seen = Seen(*known, peers, switches, records, dpids)
        if seen != self._seen:
            self._seen = seen
            self._outbox.put(seen)

    # On threads of their own

    def _send(self) -> None:
        try:
            while True:
                send(self._pipe, self._outbox.get())
        except OSError:
            self._events.put(ControllerGone())

    def _receive(self) -> None:
        try:
            while True:
                self._take(receive(self._pipe))
        except (OSError, EOFError):
            self._events.put(ControllerGone())

    def _take(self, message: Any) -> None:
        if type(message) is Beat:
            beat = ControllerBeat(message.idle_s, message.switches)
            self._events.put(beat if message.is_fit else ControllerStopped())
        elif type(message) is AskStore:
            number = message.number
            self._for_controller.ask(message.request, lambda reply: self._outbox.put(StoreAnswered(number, reply)))
        elif type(message) is WatchStore:
            watch = message.watch
            self._watches[watch] = Watcher(
                *(self._access, message.prefix, message.after_revision),
                lambda report: self._outbox.put(StoreTold(watch, report)),
            )
        elif type(message) is EndWatch:
            ended = self._watches.pop(message.watch, None)
            if ended is not None:
                ended.is_wanted = False
        else:
            self._events.put(message)
