"""Probe scripts by chance over a recording: each is refused with a place, or runs and changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from random import Random
from time import process_time
from types import FrameType
from typing import NamedTuple

from generated_scripts import ScriptMaker
from measure import Measurement

from apps.probe_points import SHARED, point_app, recorded_points
from apps.replays import Replay, probe_replay
from controller.probes.functions import CALLS
from controller.probes.grammar import ScriptFault
from controller.probes.points import ProbePoint
from controller.probes.script import Probe, load
from controller.recording import RecordingLine, write_line

TOGETHER = 100
"""Scripts that look at one replay; where something is wrong with it each of them has one of its own."""

FIRING_WEIGHT = 4
"""How much more often than at any other point scripts look at one where something happens in the recording."""


class WatchedReplay(Replay):
    """Keeps what cores ask for, as lines of a recording."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.seen: set[tuple[str, str, type]] = set()

    def take(self, line: RecordingLine) -> list[object]:
        """Give a line to its core, and keep the effects."""
        effects = list(super().take(line))
        self.lines += [write_line(line.app, line.at_s, "effect", effect) for effect in effects]
        for what, records in ((line.kind, (line.content,)), ("effect", effects)):
            self.seen |= {(point_app(line.app, what, record), what, type(record)) for record in records}
        return effects


class Loaded(NamedTuple):
    """A script that was taken, and what it runs."""

    text: str
    probe: Probe


def check_place(script: str, told: ScriptFault) -> None:
    """See that a fault has a place in the script."""
    lines = script.split("\n")
    assert 1 <= told.line <= len(lines), (script, told)
    assert 1 <= told.column <= len(lines[told.line - 1]) + 1, (script, told)


def observe(recording: list[RecordingLine], count: int, seed: int) -> list[Measurement]:
    """Run scripts over a recording, and return how many were taken and refused, and how long they took to load."""
    plain = WatchedReplay()
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    for line in recording:
        plain.take(line)
    sys.setprofile(None)
    maker = ScriptMaker(Random(seed), _points(recording, plain, called))
    load_ms: list[float] = []
    refused = fired = 0
    waiting: list[Loaded] = []
    for number in range(count):
        script = maker.script() if number % 2 else maker.changed(maker.script())
        began_s = process_time()
        try:
            waiting.append(Loaded(script, Probe(load(script, recorded_points()))))
        except ScriptFault as told:
            assert not number % 2, (seed, script, told)
            check_place(script, told)
            refused += 1
        else:
            load_ms.append(1000 * (process_time() - began_s))
        if len(waiting) == TOGETHER or number == count - 1:
            _run(recording, plain.lines, waiting, seed)
            fired += sum(each.probe.run.fired for each in waiting)
            waiting = []
    return [
        Measurement("scripts that ran, and changed nothing", "", [len(load_ms)]),
        Measurement("scripts refused, each with its place", "", [refused]),
        Measurement("firings", "", [fired]),
        Measurement("from text to a script that can run, processor time", "ms", load_ms),
    ]


def _points(recording: list[RecordingLine], plain: WatchedReplay, called: set[str]) -> list[ProbePoint]:
    """Return where scripts may look, those points more often at which something happens, and functions called."""
    catalogue = recorded_points()
    apps = {line.app for line in recording}
    points = [point for point in catalogue.find("*") if point.app in apps]
    points += FIRING_WEIGHT * [point for point in points if point[:3] in plain.seen]
    (app, *_others) = sorted(apps - {SHARED})
    return points + [
        point for name in sorted(called) for what in CALLS for point in catalogue.find(f"{app}:{what}:{name}")
    ]


def _run(recording: list[RecordingLine], effects: list[str], loaded: Sequence[Loaded], seed: int) -> None:
    """Have scripts look at one replay: its effects are the same, and no script notices a defect."""
    again = WatchedReplay()
    probe_replay(recording, [each.probe for each in loaded], again)
    for each in loaded:
        assert "defect of the probe" not in each.probe.run.faults, (seed, each.text)
    if again.lines == effects:
        return
    for each in loaded:
        alone = WatchedReplay()
        probe_replay(recording, [Probe(each.probe.script)], alone)
        assert alone.lines == effects, (seed, each.text)
    raise AssertionError(seed, [each.text for each in loaded])
