"""Probe scripts by chance over a recording: each is refused with a place, or runs and changes nothing."""

from __future__ import annotations

from random import Random
from time import process_time

from generated_scripts import ScriptMaker
from measure import Measurement

from apps.probe_points import recorded_points
from apps.replays import Replay, probe_replay
from controller.probes.grammar import ScriptFault
from controller.probes.script import Probe, load
from controller.recording import RecordingLine, write_line


class WatchedReplay(Replay):
    """Keeps what cores ask for, as lines of a recording."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def take(self, line: RecordingLine) -> list[object]:
        """Give a line to its core, and keep the effects."""
        effects = list(super().take(line))
        self.lines += [write_line(line.app, line.at_s, "effect", effect) for effect in effects]
        return effects


def check_place(script: str, told: ScriptFault) -> None:
    """See that a fault has a place in the script."""
    lines = script.split("\n")
    assert 1 <= told.line <= len(lines), (script, told)
    assert 1 <= told.column <= len(lines[told.line - 1]) + 1, (script, told)


def observe(recording: list[RecordingLine], count: int, seed: int) -> list[Measurement]:
    """Run scripts over a recording, and return how many were taken and refused, and how long they took to load."""
    plain = WatchedReplay()
    for line in recording:
        plain.take(line)
    apps = {line.app for line in recording}
    points = [point for point in recorded_points().find("*") if point.app in apps]
    maker = ScriptMaker(Random(seed), points)
    load_ms: list[float] = []
    refused = fired = 0
    for number in range(count):
        script = maker.script() if number % 2 else maker.changed(maker.script())
        began_s = process_time()
        try:
            probe = Probe(load(script, recorded_points()))
        except ScriptFault as told:
            assert not number % 2, (seed, script, told)
            check_place(script, told)
            refused += 1
            continue
        load_ms.append(1000 * (process_time() - began_s))
        again = WatchedReplay()
        probe_replay(recording, probe, again)
        assert again.lines == plain.lines, (seed, script)
        assert "defect of the probe" not in probe.run.faults, (seed, script)
        fired += probe.run.fired
    return [
        Measurement("scripts that ran, and changed nothing", "", [len(load_ms)]),
        Measurement("scripts refused, each with its place", "", [refused]),
        Measurement("firings", "", [fired]),
        Measurement("from text to a script that can run, processor time", "ms", load_ms),
    ]
