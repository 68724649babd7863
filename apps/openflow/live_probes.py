"""Scripts that look at the apps of this process: begun, looked at and stopped by questions on the status socket.

What is attached is a run of the script for each loop, which is touched on that loop alone; the rest of this module is
used on the threads of the socket. While no script runs nothing of it is in the way of any app.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.actions import logged
from apps.function_watch import FunctionWatch, Looker
from apps.openflow.app_watch import AppWatch, Watcher
from apps.openflow.framework import DATAPATHS, SWITCHES
from apps.openflow.live_latency import LiveLatency
from apps.openflow.live_profile import LiveProfile
from apps.openflow.live_runs import LiveRuns
from apps.openflow.loop_samples import LoopProfile, LoopTimer
from apps.openflow.questions import Unanswered
from apps.probe_points import SHARED, points_of, sources_of
from apps.state_dir import ActionLog, socket_path, state_dir
from apps.status_server import QuestionRefused, StatusServer
from controller.effects import Notice
from controller.probes.findings import ROWS_LOOKED_AT, Found, document, found
from controller.probes.functions import CALLS, LoadedFunctions
from controller.probes.grammar import ScriptFault
from controller.probes.live import FAULTY, OVER_BUDGET, LoopBudget, LoopRun
from controller.probes.points import PROFILE, TIMER, PointCatalogue, ProbePoint
from controller.probes.script import Script, load

if TYPE_CHECKING:
    from apps.openflow.app import App
    from controller.config.probe_settings import Probes

LEASE_S = 5.0
"""A script that nobody has looked at for so long ends: who began it has gone."""

USUAL_S, LONGEST_S = 60.0, 86400.0
"""How long a script runs where nobody says, and at most."""

ENDED_BOUND = 8
"""Scripts that have ended of which the findings are kept until others end."""

STOPPED, TIME_OVER, CLIENT_GONE = "it was stopped", "its time is over", "nobody looked at it any more"

TIMING_NS = min(-time.thread_time_ns() + time.thread_time_ns() for _ in range(20))
"""What it takes to look at the clock by which firings are timed."""

PROBE_ENDED = "probe-ended"
"""A script was unloaded for what it did."""


FUNCTIONS = FunctionWatch(LoadedFunctions(), time.perf_counter_ns)
"""Who looks at functions of this process."""


Action = Callable[[Mapping[str, Any]], dict[str, Any]]


class _Part:
    """A script on one loop; all but `run.ending` is used on that loop alone."""

    def __init__(
        self, live: LiveProbe, app: App, points: Sequence[tuple[AppWatch, ProbePoint]], run: LoopRun
    ) -> None:
        self.app = app
        self.run = run
        self.is_attached = False
        self._live = live
        self._points = points
        self._watching: list[Callable[[], None]] = []
        for _watched, point in points:
            if point.what in CALLS:
                FUNCTIONS.prepare(point.said)

    @property
    def deadline_s(self) -> float:
        """When it ends, unless somebody looks at it before."""
        return 0.0 if self.run.ending else self._live.ends_s

    def due(self) -> None:
        """End, here and on the other loops."""
        self._live.end_on_loop(self, self.run.ending or self._live.why_over())

    def attach(self) -> None:
        """Begin, and fire from here on, unless it has ended on another loop already."""
        if self._live.reason:
            return
        self.is_attached = True
        self.app.reactor.add(self)
        self.run.budget.script_count += 1
        self.run.begin()
        watchers = self.run.watchers(point for _watched, point in self._points)
        for watched, point in self._points:
            self._watching.append(self._watch(watched, point, watchers[point]))

    def _watch(self, watched: AppWatch, point: ProbePoint, watcher: Watcher) -> Callable[[], None]:
        """Call a watcher from here on; what is returned ends that."""
        if point.what == TIMER:
            return LoopTimer(self.app.reactor, point.period_s, watcher).stop
        if point.what == PROFILE:
            return LoopProfile(self.app.reactor, point.period_s, watcher).stop
        if point.what in CALLS:
            return FUNCTIONS.watch(point.what, point.said, Looker(self.app.reactor.is_current, watcher))
        _app, sources = sources_of(point)
        if sources:
            in_time = [
                source._replace(derive=self.run.in_time(source.derive)) if source.decodes else source
                for source in sources
            ]
            return watched.watch_sources(in_time, watcher)
        return watched.watch(point.what, point.record, watcher)

    def detach(self) -> None:
        """Fire no more; what is to be done at the end is done."""
        if self.is_attached:
            for unwatch in self._watching:
                unwatch()
            self.app.reactor.remove(self)
            self.run.budget.script_count -= 1
            self.run.end()
            self.is_attached = False

    def found(self, known_lines: int) -> Found:
        """Return what was found so far."""
        return found(self.run.findings().run, ROWS_LOOKED_AT, known_lines)


class LiveProbe:
    """A script that runs, or ran.

    Attributes
    ----------
    reason
        Why it has ended, empty while it runs.
    parts
        One for each loop.
    """

    def __init__(
        self, number: str, script: Script, by: str | None, for_s: float, tell: Callable[[LiveProbe, App], None]
    ) -> None:
        self.number = number
        self.script = script
        self.by = by
        self.for_s = for_s
        self.begun_s = time.time()
        self.reason = ""
        self.parts: list[_Part] = []
        self._over_s = time.monotonic() + for_s
        self._seen_s = time.monotonic()
        self._tell = tell

    @property
    def ends_s(self) -> float:
        """When it ends by the clock, unless somebody looks at it before."""
        return min(self._over_s, self._seen_s + LEASE_S)

    def why_over(self) -> str:
        """Return why it ends by the clock."""
        return TIME_OVER if time.monotonic() >= self._over_s else CLIENT_GONE

    def seen(self) -> None:
        """Go on: somebody looks at it."""
        self._seen_s = time.monotonic()

    def end_on_loop(self, part: _Part, reason: str) -> None:
        """End; on the loop of one part, which has the others end on theirs."""
        part.detach()
        if not self.reason:
            self.reason = reason
            for other in self.parts:
                if other is not part:
                    other.app.reactor.call(self.end_on_loop, other, reason)
            self._tell(self, part.app)

    def stop(self, reason: str) -> None:
        """End, and return when it has ended on all loops; on a thread of the socket."""
        for part in self.parts:
            part.app.ask(partial(self.end_on_loop, part, reason))

    def stop_soon(self, reason: str) -> None:
        """End on each loop when that comes to it."""
        for part in self.parts:
            part.app.reactor.call(self.end_on_loop, part, reason)

    def about(self) -> dict[str, Any]:
        """Return what it is, JSON-able."""
        return {
            "id": self.number,
            "script": self.script.text,
            "points": len(self.script.points),
            "by": self.by,
            "begun_s": self.begun_s,
            "for_s": self.for_s,
            "ended": self.reason or None,
        }

    def look(self, known_lines: Sequence[int]) -> dict[str, Any]:
        """Return what it is and has found; all of it where it has ended."""
        has_ended = bool(self.reason) and not any(part.is_attached for part in self.parts)
        known = itertools.chain(known_lines, itertools.repeat(0))
        parts = [self._found(part, count) for part, count in zip(self.parts, known, strict=False)]
        lines = [part.line_count for part in parts]
        about = {**self.about(), "ended": self.reason if has_ended else None}
        return {**about, "lines": lines, **document(parts, None if has_ended else ROWS_LOOKED_AT)}

    def _found(self, part: _Part, known_lines: int) -> Found:
        if part.is_attached:
            answer: Found = part.app.ask(partial(part.found, known_lines))
            return answer
        return found(part.run.findings().run, None, known_lines)


class _LoopLog(ActionLog):
    """The log of actions, to which any thread adds and one loop writes: `call` has work done there."""

    def __init__(self, path: Path, logger: logging.Logger, call: Callable[..., None]) -> None:
        super().__init__(path, logger)
        self._call = call

    def add(self, action: str, asked: Mapping[str, Any], by: str | None, refused: str | None) -> None:
        """Have the loop put it on the disk."""
        self._call(super().add, action, asked, by, refused)


class LiveProbes:
    """The scripts of this process."""

    def __init__(self) -> None:
        self._apps: dict[str, App] = {}
        self._watched: dict[str, AppWatch] = {}
        self._budgets: dict[str, LoopBudget] = {}
        self._probes: dict[str, LiveProbe] = {}
        self._numbers = itertools.count(1)
        self._server: StatusServer | None = None
        self._keeper: App | None = None
        self._actions: _LoopLog | None = None
        self._profile = LiveProfile(self._apps, self._watched_of)
        self._latency = LiveLatency(self._apps, self._watched_of)
        self._runs = LiveRuns(lambda: self._profile.shown()["profile"])
        self._followed: StatusServer | None = None
        self._logger = logging.getLogger("vsrt")

    # Apps that come and go

    def join(self, app: App) -> None:
        """Have scripts look at an app from here on; the first one has questions about scripts answered."""
        self._apps[app.name.lower()] = app
        if self._keeper is None:
            self._keeper = app
        if self._server is None:
            self._profile.clear_left()
            views = {"probes": self._list, "profile": self._profile.shown}
            actions: dict[str, Action] = {"probe-run": self._run, "probe-look": self._look, "probe-stop": self._stop}
            actions |= {name: partial(self._ask_profile, name) for name in ("profile-start", "profile-stop")}
            latency = self._latency
            measures = {"latency-start": latency.begin, "latency-stop": latency.end}
            actions |= {name: partial(self._ask_latency, name, does) for name, does in measures.items()}
            actions["latency-look"] = latency.look
            self._server = StatusServer(socket_path(), views, _answer, self._logger, actions, app="probes")
            self._server.start()
            self._followed = StatusServer(
                socket_path(),
                {},
                self._runs.answer,
                self._logger,
                {"storm-told": self._runs.told_storm},
                app="runs",
                sections={"runs": self._runs.section},
                refresh=self._runs.refresh,
            )
            self._followed.start()

    def leave(self, app: App) -> None:
        """Have scripts look at an app no more: those that did end."""
        name = app.name.lower()
        if name in self._apps:
            self._profile.app_left(app)
            self._latency.app_left(app)
        if self._apps.pop(name, None) is None:
            return
        for probe in self._running():
            if any(part.app.reactor is app.reactor for part in probe.parts):
                try:
                    probe.stop(f"{name} ended")
                except Unanswered:  # a loop is busy, and has it end before its apps do
                    probe.stop_soon(f"{name} ended")
        if app is self._keeper:
            self._keeper = next(iter(self._apps.values()), None)
        self._watched.pop(name, None)
        if not self._apps and self._server is not None and self._followed is not None:
            self._server.stop()
            self._followed.stop()
            self._server = self._followed = None
            self._watched.clear()

    def log_fault(self, app: App) -> str | None:
        """Return why nothing can be logged, to the app that answers for it, on its loop; None where all is well."""
        if self._actions is None or app is not self._keeper:
            return None
        self._actions.flush()
        return self._actions.fault

    def _keep(self, work: Callable[..., None], *arguments: Any) -> None:
        """Have the log written by the app that answers for it."""
        keeper = self._keeper
        if keeper is not None:
            keeper.reactor.call(work, *arguments)

    # Questions

    def _list(self) -> dict[str, Any]:
        return {"probes": [probe.about() for probe in self._running()]}

    def _run(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return logged(self._log(), "probe-run", asked, self._begin)

    def _ask_profile(self, action: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        does = self._profile.begin if action == "profile-start" else self._profile.stop
        return logged(self._log(), action, asked, does)

    def _ask_latency(self, name: str, does: Action, asked: Mapping[str, Any]) -> dict[str, Any]:
        return logged(self._log(), name, asked, lambda fields, _by: does(fields))

    def _log(self) -> _LoopLog:
        if self._actions is None:
            self._actions = _LoopLog(state_dir() / "actions.jsonl", self._logger, self._keep)
        return self._actions

    def _begin(self, asked: dict[str, Any], by: str | None) -> dict[str, Any]:
        settings = self._settings()
        text, for_s = asked.get("script"), asked.get("for_s", USUAL_S)
        if not settings.enabled:
            raise QuestionRefused("Probes are switched off here: `probes.enabled` of the policy file says so.")
        if not isinstance(text, str):
            raise QuestionRefused("script: must be the text of a script", "script")
        if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not 0.1 <= for_s <= LONGEST_S:
            raise QuestionRefused(f"for_s: {for_s!r} is not within 0.1 and {LONGEST_S:g} seconds", "for_s")
        try:
            script = load(text, self._catalogue())
        except ScriptFault as fault:
            raise QuestionRefused(str(fault), "script", "script-fault") from None
        probe = LiveProbe(str(next(self._numbers)), script, by, float(for_s), self._tell)
        probe.parts = list(self._parts(probe, settings))
        self._probes[probe.number] = probe
        if len(self._running()) > settings.scripts:  # counted with it: others may begin at the same time
            del self._probes[probe.number]
            raise QuestionRefused(f"{settings.scripts} scripts run already, and no more may (`vsrt probe ps`).")
        try:
            for part in probe.parts:
                part.app.ask(part.attach)
        except Unanswered:
            probe.stop_soon("a loop was too busy to begin")
            raise
        return probe.about()

    def _look(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        probe = self._probe(asked)
        probe.seen()
        return probe.look(_known_lines(asked))

    def _stop(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        probe = self._probe(asked)
        probe.stop(STOPPED)
        return probe.look(_known_lines(asked))

    def _probe(self, asked: Mapping[str, Any]) -> LiveProbe:
        probe = self._probes.get(str(asked.get("id")))
        if probe is None:
            raise QuestionRefused(f"no script {asked.get('id')!r} runs: `vsrt probe ps` has those that do", "id")
        return probe

    # What scripts are attached to

    def _catalogue(self) -> PointCatalogue:
        cores: dict[str, Any] = {name: app.core for name, app in self._apps.items()}
        if any(app.reactor is SWITCHES for app in self._apps.values()):
            cores[SHARED] = DATAPATHS.core
        return points_of(cores)

    def _parts(self, probe: LiveProbe, settings: Probes) -> Iterator[_Part]:
        """Yield a part for each loop on which points are; the first loop where there are none."""
        by_loop: dict[str, list[tuple[AppWatch, ProbePoint]]] = {}
        apps: dict[str, App] = {}
        calls: set[tuple[str, str, str]] = set()
        for point in probe.script.points:
            app = self._app_of(point)
            if point.what in CALLS:  # of apps on one loop the first one is enough: a function is of none of them
                call = app.reactor.name, point.what, point.said
                if call in calls:
                    continue
                calls.add(call)
            apps.setdefault(app.reactor.name, app)
            by_loop.setdefault(app.reactor.name, []).append((self._watched_of(sources_of(point)[0]), point))
        if not by_loop:
            app = next(iter(self._apps.values()))
            apps[app.reactor.name], by_loop[app.reactor.name] = app, []
        for name, points in by_loop.items():
            budget = self._budgets.setdefault(name, LoopBudget(settings.budget_pct))
            budget.budget_pct = settings.budget_pct
            clocks = time.monotonic_ns, time.thread_time_ns
            run = LoopRun(probe.script, *clocks, budget, settings.keys, TIMING_NS)
            yield _Part(probe, apps[name], points, run)

    def _app_of(self, point: ProbePoint) -> App:
        name = sources_of(point)[0]
        if name != SHARED:
            return self._apps[name]
        return next(app for app in self._apps.values() if app.reactor is SWITCHES)

    def _watched_of(self, name: str) -> AppWatch:
        return self._watched.setdefault(name, AppWatch(DATAPATHS if name == SHARED else self._apps[name]))

    def _settings(self) -> Probes:
        return next(iter(self._apps.values())).policy_file.reading.policy.probes

    def _running(self) -> list[LiveProbe]:
        return [probe for probe in list(self._probes.values()) if not probe.reason]

    def _tell(self, probe: LiveProbe, app: App) -> None:
        """Note that a script has ended; on the loop of an app at which it looked."""
        ended = [each.number for each in list(self._probes.values()) if each.reason]
        for number in ended[:-ENDED_BOUND]:
            self._probes.pop(number, None)
        if probe.reason in (OVER_BUDGET, FAULTY):
            text = f"The probe {probe.number} was unloaded: {probe.reason}."
            app.notice(Notice(PROBE_ENDED, text))
        if self._actions is not None:
            asked = {"id": probe.number, "script": probe.script.text, "why": probe.reason}
            self._actions.add("probe-end", asked, probe.by, None)


def _known_lines(asked: Mapping[str, Any]) -> list[int]:
    known = asked.get("lines", [])
    if not isinstance(known, list) or not all(type(count) is int and count >= 0 for count in known):
        raise QuestionRefused("lines: must be the list of counts that the last answer had", "lines")
    return known


def _answer(question: Callable[[], Any]) -> Any:
    """Answer on the socket's own thread, from where each loop is asked what is its business."""
    return question()


PROBES = LiveProbes()
