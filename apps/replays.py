"""Runs of apps done again: their cores, made and fed as a recording says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from apps.function_watch import FunctionWatch, Looker
from apps.probe_points import SHARED, point_app, sources_of
from apps.registry import APPS, TABLE_APPS
from controller import recording
from controller.app_spec import CoreSpec, Start
from controller.datapath.core import DatapathCore, OwnerTold
from controller.probes.functions import CALLS, LoadedFunctions
from controller.probes.points import ProbePoint
from controller.probes.script import Probe
from controller.probes.static_points import Derive
from controller.recording import RecordingInvalid, RecordingLine
from controller.rules.pipeline import DATAPATH_XID_TAG

Maker: TypeAlias = Callable[[Start, float, DatapathCore | None], Any]

SHARERS = frozenset((SHARED, *TABLE_APPS))
"""What apps with flow entries share is recorded as if it were an app: what they have there follows from all of it."""

_SPECS: Mapping[str, CoreSpec] = {name: spec.core() for name, spec in APPS.items() if spec.core is not None}

MAKERS: Mapping[str, Maker] = MappingProxyType(
    {name: spec.make for name, spec in _SPECS.items() if spec.records is not None}
    | {SHARED: lambda start, _now, _datapath: DatapathCore(DATAPATH_XID_TAG, gathers=start.get("gathers", False))}
)
"""How the core of an app is made of what its recording starts with, and of what it shares with others."""

_KINDS = recording.readable(record for spec in _SPECS.values() for record in spec.records or ())


def read_lines(lines: Iterable[str]) -> Iterator[RecordingLine]:
    """Yield the starts and events of a recording; RecordingInvalid at a line that cannot be read."""
    return recording.read_lines(lines, _KINDS)


class Replay:
    """Cores that are given what those of a recorded run were given, line by line."""

    def __init__(self) -> None:
        self.cores: dict[str, Any] = {}

    def take(self, line: RecordingLine) -> Iterable[Any]:
        """Make a core, or give it an event; return its effects. RecordingInvalid for an event before any start."""
        if line.kind == "start":
            if line.app == SHARED:
                self.cores = {app: core for app, core in self.cores.items() if app not in SHARERS}
            self.cores[line.app] = MAKERS[line.app](line.content, line.at_s, self.cores.get(SHARED))
            return ()
        core = self.cores.get(line.app)
        if core is None:
            raise RecordingInvalid(f"an event of {line.app} comes before its start")
        effects: Iterable[Any] = core.handle(line.content, line.at_s)
        return effects

    def owner(self, told: OwnerTold) -> str:
        """Return the app that carries out what a switch's answer leads to, '' where none is known."""
        return next(
            (app for app, core in self.cores.items() if app in TABLE_APPS and core.xid_tag == told.xid_tag), ""
        )


def replay(lines: Iterable[RecordingLine], app: str) -> Iterator[tuple[float, Any]]:
    """Give new cores what an app's core, and those that share switches with it, were given.

    Yields the app's effects with their times. A recording may hold several runs, each with its own start. Raises
    RecordingInvalid for an event before any start or an app that is not known.
    """
    if app not in MAKERS:
        raise RecordingInvalid(f"no app is called {app!r}; known: {', '.join(MAKERS)}")
    concerned = SHARERS if app in SHARERS else {app}
    again = Replay()
    for line in lines:
        if line.app in concerned:
            for effect in again.take(line):
                if line.app == app:
                    yield line.at_s, effect


class _ProbedReplay:
    """A replay at which scripts look.

    Parameters
    ----------
    again
        The cores.
    probes
        The scripts.
    """

    def __init__(self, again: Replay, probes: Sequence[Probe]) -> None:
        self._again = again
        self._probes = probes
        self._loop = ""
        self._now_ns = 0
        self._derived: dict[tuple[str, str, type], list[tuple[Probe, ProbePoint, Derive]]] = {}

    def run(self, lines: Iterable[RecordingLine]) -> None:
        """Take all lines, at their times; scripts begin at that of the first."""
        has_begun = False
        with ExitStack() as watching:
            for line in lines:
                self._now_ns = round(line.at_s * 1_000_000_000)
                if not has_begun:
                    has_begun = True
                    self._begin(watching)
                self._loop = _loop_of(line.app)
                self._take(line)
                self._loop = ""
            if not has_begun:
                self._begin(watching)
        for probe in self._probes:
            probe.end(self._now_ns)

    def _begin(self, watching: ExitStack) -> None:
        functions = FunctionWatch(LoadedFunctions(), lambda: self._now_ns)
        for probe in self._probes:
            probe.begin(self._now_ns)
            calls: dict[tuple[str, str, str], ProbePoint] = {}
            for point in probe.script.points:
                app, sources = sources_of(point)
                for source in sources:
                    at = app, source.what, source.kind
                    self._derived.setdefault(at, []).append((probe, point, source.derive))
                if point.what in CALLS:
                    calls.setdefault((_loop_of(point.app), point.what, point.said), point)
            for (loop, what, name), point in calls.items():
                looker = Looker(partial(self._is_on, loop), partial(self._called, probe, point))
                watching.callback(functions.watch(what, name, looker))

    def _take(self, line: RecordingLine) -> None:
        if line.kind == "event":
            self._fire(line.app, "event", line.content)
        for effect in self._again.take(line):
            self._fire(line.app, "effect", effect)
            if isinstance(effect, OwnerTold):
                app = self._again.owner(effect)
                for each in effect.effects:
                    self._fire(app, "effect", each)

    def _fire(self, app: str, what: str, record: Any) -> None:
        name = point_app(app, what, record)
        for probe in self._probes:
            probe.fire(name, what, record, self._now_ns)
        for probe, point, derive in self._derived.get((name, what, type(record)), ()):
            for each in derive(record, self._again.cores.get(app)):
                probe.fire_at(point, each, self._now_ns)

    def _is_on(self, loop: str) -> bool:
        return self._loop == loop

    def _called(self, probe: Probe, point: ProbePoint, record: Any) -> None:
        probe.fire_at(point, record, self._now_ns)


def _loop_of(app: str) -> str:
    """Return what tells the loop of an app from others: those that share switches are on one."""
    return SHARED if app in SHARERS else app


def probe_replay(lines: Iterable[RecordingLine], probes: Sequence[Probe], again: Replay | None = None) -> None:
    """Give cores what those of a recording were given, and have scripts look at what they take and ask for.

    The scripts' time is that of the recording, in which no function takes any; cores are made anew where `again` has
    none. Raises as `replay` does.
    """
    _ProbedReplay(Replay() if again is None else again, probes).run(lines)
