"""Runs of apps done again: their cores, made and fed as a recording says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from apps.probe_points import SHARED, point_app
from apps.registry import APPS, TABLE_APPS
from controller import recording
from controller.app_spec import CoreSpec, Start
from controller.datapath.core import DatapathCore, OwnerTold
from controller.probes.script import Probe
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


def probe_replay(lines: Iterable[RecordingLine], probes: Sequence[Probe], again: Replay | None = None) -> None:
    """Give cores what those of a recording were given, and have scripts look at what they take and ask for.

    The scripts' time is that of the recording; cores are made anew where `again` has none. Raises as `replay` does.
    """
    again = Replay() if again is None else again

    def fire(app: str, what: str, record: Any) -> None:
        name = point_app(app, what, record)
        for probe in probes:
            probe.fire(name, what, record, now_ns or 0)

    now_ns: int | None = None
    for line in lines:
        at_ns = round(line.at_s * 1_000_000_000)
        if now_ns is None:
            for probe in probes:
                probe.begin(at_ns)
        now_ns = at_ns
        if line.kind == "event":
            fire(line.app, "event", line.content)
        for effect in again.take(line):
            fire(line.app, "effect", effect)
            if isinstance(effect, OwnerTold):
                app = again.owner(effect)
                for each in effect.effects:
                    fire(app, "effect", each)
    for probe in probes:
        if now_ns is None:
            probe.begin(0)
        probe.end(now_ns or 0)
