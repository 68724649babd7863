"""The profile of this process: who looks at what apps take and ask for while one runs, and the file that it fills.

A part for each loop has a collector of its own, which is touched on that loop alone. While no profile runs nothing of
it is in the way of any app.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from apps.environment import state_path
from apps.log_keeper import LogKeeper
from apps.openflow.app_watch import AppWatch
from apps.openflow.framework import DATAPATHS, SWITCHES, Event, hub, run_aside
from apps.openflow.questions import Unanswered
from apps.openflow.watched_apps import Watched, WatchedApps
from apps.probe_points import MONITOR, MULTICAST, SHARED
from apps.profile_parts import clear_left
from apps.state_dir import state_dir
from apps.status_server import QuestionRefused
from apps.system import system_threading
from controller.config.policy import Role
from controller.effects import ApplyEdits
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.log import WriteLog
from controller.maintenance.model import IN_WORK
from controller.multicast.campaigns import MAINTENANCE_SWITCH
from controller.multicast.effects import Audit
from controller.multicast.events import PolicyLoaded, SwitchDrainSet
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.schedule import StatKind
from controller.probes.static_points import STATIC_POINTS
from controller.profiles.collector import SpanCollector
from controller.profiles.leaving import may_leave
from controller.profiles.live_figures import LiveFigures
from controller.profiles.spans import Operation, Span
from topology.events import LinkDown, SwitchDown

if TYPE_CHECKING:
    from apps.openflow.app import App
    from apps.profile_file import ProfileFile

DIRECTORY = "profiles"
USUAL_S, LONGEST_S = 600.0, 86400.0
"""How long a profile runs where nobody says, and at most."""

MOST_SPANS = 2_000_000
"""Spans of a profile; those beyond are counted as missed."""

MOST_FILES = 32
"""Profiles that are kept: no other begins until the operator has removed some."""

HAND_OVER_S = 1.0
SETTLE_S = 0.01
"""How often it is looked whether switches hold what they shall, while something waits for that."""

LOOK_S = 0.25
CLOSE_S = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_MORE = 1
"""The flag of a statistics reply of which further parts follow (OpenFlow 1.3.5, 7.3.5)."""

STOPPED, TIME_OVER, FULL = "it was stopped", "its time is over", f"it has {MOST_SPANS:,} spans"


class SpanTaker(Protocol):
    """Who takes the spans of a loop."""

    def handed_over(self, part: LoopPart) -> None:
        """Take those that have ended, of the part's collector; on that loop."""

    def core_of(self, name: str) -> Any:
        """Return the core of an app, None where it does not run."""


class LoopPart:
    """Spans of one loop for who takes them; all of it is used on that loop alone."""

    def __init__(self, live: SpanTaker, app: App) -> None:
        self.app = app
        self.collector = SpanCollector()
        self.deadline_s = 0.0
        self._live = live
        self.detached = Event()
        self._is_attached = False
        self._ends: list[Callable[[], None]] = []
        self._look_s = self._hand_over_s = 0.0
        self._looks_at_tables = False

    def attach(self, apps: Mapping[str, App], watched: Watched) -> None:
        """Look from here on at the apps of the loop, unless that has ended already."""
        if self.detached.is_set():
            return
        self._is_attached = True
        here = {name: app for name, app in apps.items() if app.reactor is self.app.reactor}
        if self.app.reactor is SWITCHES:
            self._watch_tables(watched(SHARED), watched(MULTICAST if MULTICAST in here else next(iter(here))))
        if MULTICAST in here:
            self._watch_multicast(watched(MULTICAST), here[MULTICAST])
        if MONITOR in here:
            self._watch_monitor(watched(MONITOR))
        now = time.monotonic()
        self.deadline_s = self._look_s = self._hand_over_s = now
        self.app.reactor.add(self)

    def detach(self) -> None:
        """Look no more; what is under way is unfinished."""
        if self._is_attached:
            self._is_attached = False
            for end in self._ends:
                end()
            self.app.reactor.remove(self)
            self.collector.end(time.monotonic())
            self._live.handed_over(self)
        self.detached.set()

    def due(self) -> None:
        """Look whether what is under way has ended, and hand over what has."""
        now = time.monotonic()
        collector = self.collector
        if self._looks_at_tables and (collector.is_settling or now >= self._look_s):
            unsettled = DATAPATHS.core.unsettled()
            collector.settled(unsettled, self._is_judging(), now)
            if now >= self._look_s:
                collector.look(unsettled, now)
        if now >= self._look_s:
            self._look_s = now + LOOK_S
        if now >= self._hand_over_s:
            self._hand_over_s = now + HAND_OVER_S
            self._live.handed_over(self)
        self.deadline_s = now + SETTLE_S if collector.is_settling else min(self._look_s, self._hand_over_s)

    def _settles(self, begin: Callable[..., None], *arguments: Any) -> None:
        now = time.monotonic()
        begin(*arguments, now)
        self.deadline_s = min(self.deadline_s, now + SETTLE_S)

    def _watch_tables(self, shared: AppWatch, app: AppWatch) -> None:
        """Look at what switches are sent and confirm, and when they connect, of which each app hears."""
        self._looks_at_tables = True
        collector, clock = self.collector, time.monotonic
        self._ends += [
            shared.watch("effect", ApplyEdits, lambda effect: collector.edits_sent(effect, clock())),
            shared.watch("event", BarrierReplied, lambda event: collector.confirmed(event.dpid, event.xid, clock())),
            shared.watch("event", FlowStatsReceived, lambda event: collector.heard(event.dpid, clock())),
            app.watch("event", SwitchConnected, lambda event: self._settles(collector.connected, event.dpid)),
            app.watch("event", SwitchDisconnected, lambda event: collector.disconnected(event.dpid, clock())),
        ]

    def _watch_multicast(self, watch: AppWatch, app: App) -> None:
        collector, reactor, clock = self.collector, app.reactor, time.monotonic
        (leaves,) = STATIC_POINTS["leave"].sources

        def packet(event: PacketReceived) -> None:
            collector.packet_taken(event.dpid, event.in_port, reactor.now_s, clock())
            if may_leave(event.data):
                for left in leaves.derive(event, app.core):
                    collector.left(left.group)

        def audited(effect: Audit) -> None:
            if effect.decision.admit and effect.role is Role.RECEIVER and effect.group is not None:
                collector.joined(effect.host.dpid, effect.host.port_no, effect.group, clock())

        def began(operation: Operation, subject: str) -> None:
            collector.turned_away()
            self._settles(collector.began, operation, subject, reactor.now_s)

        self._ends += [
            watch.watch("event", PacketReceived, packet),
            watch.watch("event", DeadlineReached, lambda _event: collector.turned_away()),
            watch.watch("effect", Audit, audited),
            watch.watch("event", PolicyLoaded, lambda _event: began(Operation.RELOAD, "policy")),
            watch.watch("event", SwitchDrainSet, lambda event: began(Operation.DRAIN, _drained(event))),
            watch.watch("event", LinkDown, lambda event: began(Operation.REPAIR, "{}:{}-{}:{}".format(*event))),
            watch.watch("event", SwitchDown, lambda event: began(Operation.REPAIR, f"switch {event.dpid}")),
            watch.watch("effect", WriteLog, self._written),
        ]
        log = getattr(app, "log", None)
        if isinstance(log, LogKeeper):
            log.committed = lambda entries, since_s, handed_s, is_done: collector.committed(
                entries, since_s, handed_s, is_done, clock()
            )

            def end() -> None:
                log.committed = None

            self._ends.append(end)

    def _written(self, write: WriteLog) -> None:
        for entry in write.entries:
            about, _, dpid = entry.key.partition("/")
            if about == MAINTENANCE_SWITCH and dpid.isdecimal():
                step = (entry.value or {}).get("step")
                is_in_work = any(step == each.value for each in IN_WORK)
                self.collector.stepped(int(dpid), str(step), is_in_work, time.monotonic())

    def _watch_monitor(self, watch: AppWatch) -> None:
        collector, clock = self.collector, time.monotonic

        def requested(effect: RequestStats) -> None:
            message = effect.message
            kind = int.from_bytes(message[8:10], "big")
            collector.requested(effect.dpid, int.from_bytes(message[4:8], "big"), _kind_name(kind), clock())

        def answered(event: StatsReceived | FlowStatsReceived) -> None:
            if not int.from_bytes(event.message[10:12], "big") & _MORE:
                collector.answered(event.dpid, event.xid, clock())

        self._ends += [
            watch.watch("effect", RequestStats, requested),
            watch.watch("event", StatsReceived, answered),
            watch.watch("event", FlowStatsReceived, answered),
            watch.watch("event", SwitchDisconnected, lambda event: collector.disconnected(event.dpid, clock())),
        ]

    def _is_judging(self) -> bool:
        reconsideration = getattr(self._live.core_of(MULTICAST), "reconsideration", None)
        return reconsideration is not None and bool(reconsideration.is_under_way)


def _drained(event: SwitchDrainSet) -> str:
    return f"{event.dpid} {'drained' if event.drained else 'used again'}"


def _kind_name(kind: int) -> str:
    return StatKind(kind).name.lower() if kind in list(StatKind) else str(kind)


class _ProfileRun:
    """A profile that runs, or the last one that did."""

    def __init__(self, name: str, path: Path, for_s: float, by: str | None) -> None:
        self.name = name
        self.path = path
        self.for_s = for_s
        self.by = by
        self.begun_s = time.time()
        self.over_s = time.monotonic() + for_s
        self.reason = ""
        self.fault = ""
        self.is_whole = False
        self.lock = system_threading.Lock()
        """For what loops count, of which there are several, and readers look at."""
        self.figures = LiveFigures()
        self.spans = 0
        self.missed = 0
        self.parts: list[LoopPart] = []
        self.waiting: deque[list[Span]] = deque()
        self.stopping, self.closed = Event(), Event()

    def document(self) -> dict[str, Any]:
        with self.lock:
            return self._document()

    def take(self, spans: list[Span]) -> None:
        """Take spans of a loop that have ended, as many as there is room for."""
        with self.lock:
            room = max(0, MOST_SPANS - self.spans)
            self.missed += max(0, len(spans) - room)
            spans = spans[:room]
            self.spans += len(spans)
            self.figures.add(spans)
        if spans:
            self.waiting.append(spans)

    def _document(self) -> dict[str, Any]:
        return {
            "run": "profile",
            "name": self.name,
            "path": str(self.path),
            "by": self.by,
            "begun_s": self.begun_s,
            "for_s": self.for_s,
            "state": "running" if not self.reason else "ended" if self.is_whole or self.fault else "ending",
            "ended": self.reason or None,
            "fault": self.fault or None,
            "spans": self.spans,
            "missed": self.missed + sum(part.collector.missed for part in self.parts),
            "under_way": sum(part.collector.open_count for part in self.parts),
            "operations": self.figures.document(),
        }


class LiveProfile(WatchedApps):
    """The profile of this process: one at a time, begun and ended by questions on the status socket."""

    def __init__(self, apps: Mapping[str, App], watched: Watched) -> None:
        super().__init__(apps, watched)
        self._run: _ProfileRun | None = None
        self._logger = logging.getLogger("vsrt")

    def clear_left(self) -> None:
        """Remove what controllers left that were killed while they wrote a profile: it cannot be read."""
        for part in clear_left(state_path() / DIRECTORY):
            self._logger.warning("%s was left by a controller that was killed, and is removed.", part)

    def shown(self) -> dict[str, Any]:
        """Return the profile that runs, or the last one that did, JSON-able; ``profile`` is None before the first."""
        return {"profile": None if self._run is None else self._run.document()}

    def begin(self, asked: Mapping[str, Any], by: str | None) -> dict[str, Any]:
        """Begin a profile; on a thread of the socket."""
        for_s = asked.get("for_s", USUAL_S)
        if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not 0.1 <= for_s <= LONGEST_S:
            raise QuestionRefused(f"for_s: {for_s!r} is not within 0.1 and {LONGEST_S:g} seconds", "for_s")
        name = asked.get("name") or time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        if not isinstance(name, str) or not _NAME.match(name):
            raise QuestionRefused(
                "name: a letter or digit, then up to 63 letters, digits, dots, underscores and hyphens", "name"
            )
        run = self._run
        if run is not None and not run.closed.is_set():
            raise QuestionRefused(f"A profile runs already, {run.name}: `vsrt profile stop` ends it.")
        run = _ProfileRun(name, self._path(name), float(for_s), by)
        file = self._opened(run)
        self._run = run
        loops: dict[str, App] = {}
        for app in self._apps.values():
            loops.setdefault(app.reactor.name, app)
        run.parts = [LoopPart(self, app) for app in loops.values()]
        hub.spawn(self._write, run, file)
        for part in run.parts:
            self._attach(part, partial(self._end_soon, run, "a loop was too busy to begin"))
        return run.document()

    def stop(self, _asked: Mapping[str, Any], _by: str | None) -> dict[str, Any]:
        """End the profile, and return what it is when its file is whole; on a thread of the socket."""
        run = self._run
        if run is None or run.closed.is_set():
            raise QuestionRefused("No profile runs: `vsrt profile start` begins one.")
        self._end(run, STOPPED)
        if not run.closed.wait(CLOSE_S):
            raise QuestionRefused(f"The disk does not take the profile in {CLOSE_S:g} s; it goes on trying.")
        if run.fault:
            raise QuestionRefused(run.fault)
        return run.document()

    def app_left(self, app: App) -> None:
        """End the profile where it looks at the loop of an app that ends."""
        run = self._run
        if run is not None and not run.reason and any(part.app.reactor is app.reactor for part in run.parts):
            name = app.name.lower()
            try:
                self._end(run, f"{name} ended")
            except Unanswered:
                self._end_soon(run, f"{name} ended")
            run.closed.wait(CLOSE_S)

    def handed_over(self, part: LoopPart) -> None:
        """Take the spans of a loop that have ended; on that loop."""
        run = self._run
        if run is not None:
            run.take(part.collector.take())

    def _end(self, run: _ProfileRun, reason: str) -> None:
        run.reason = run.reason or reason
        for part in run.parts:
            part.app.ask(part.detach)
        run.stopping.set()

    def _end_soon(self, run: _ProfileRun, reason: str) -> None:
        run.reason = run.reason or reason
        for part in run.parts:
            part.app.reactor.call(part.detach)
        run.stopping.set()

    def _path(self, name: str) -> Path:
        path = state_dir() / DIRECTORY / f"{name}.parquet"
        self.clear_left()
        if path.exists():
            raise QuestionRefused(f"name: {path} is there already", "name")
        if len(list(path.parent.glob("*.parquet*"))) >= MOST_FILES:
            raise QuestionRefused(f"{path.parent} has {MOST_FILES} profiles, and no more are kept: remove some.")
        return path

    def _opened(self, run: _ProfileRun) -> ProfileFile:
        from apps.profile_file import ProfileFile

        about = {"name": run.name, "begun_s": run.begun_s, "apps": list(self._apps)}
        offset_s = time.time() - time.monotonic()
        try:
            run.path.parent.mkdir(exist_ok=True)
            return ProfileFile(run.path, about, offset_s)
        except OSError as error:
            raise QuestionRefused(f"{run.path} cannot be written ({error.strerror or error}).") from None

    # On the thread that writes

    def _write(self, run: _ProfileRun, file: ProfileFile) -> None:
        while not run.stopping.wait(HAND_OVER_S):
            self._write_waiting(run, file)
            if time.monotonic() >= run.over_s:
                self._end_soon(run, TIME_OVER)
            elif run.missed:
                self._end_soon(run, FULL)
            elif run.fault:
                self._end_soon(run, "its file cannot be written")
        for part in run.parts:
            part.detached.wait(CLOSE_S)
        self._write_waiting(run, file)
        end = {"ended_s": time.time(), "ended": run.reason, "missed": run.document()["missed"]}
        self._try(run, lambda: file.close(end))
        run.is_whole = not run.fault
        run.closed.set()

    def _write_waiting(self, run: _ProfileRun, file: ProfileFile) -> None:
        spans = []
        while run.waiting:
            spans += run.waiting.popleft()
        if spans:
            self._try(run, lambda: file.write(spans))

    def _try(self, run: _ProfileRun, work: Callable[[], None]) -> None:
        def tried() -> None:
            try:
                work()
            except (OSError, ValueError) as error:
                run.fault = f"{run.path} cannot be written ({getattr(error, 'strerror', None) or error})."

        if not run.fault:
            run_aside(tried)
            if run.fault:
                self._logger.error("%s", run.fault)
