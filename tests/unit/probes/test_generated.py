"""Scripts by chance: each is refused with a place, or runs without anything being noticed by who is looked at."""

from __future__ import annotations

from pathlib import Path
from random import Random

from generated_scripts import ScriptMaker

from apps.probe_points import recorded_points
from apps.replays import Replay, probe_replay, read_lines
from controller.probes.grammar import ScriptFault
from controller.probes.script import load
from controller.recording import write_line

CASE = Path(__file__).parents[2] / "conformance" / "multicast" / "link-fails-and-returns"
LINES = [line for path in sorted(CASE.glob("*-input.jsonl")) for line in path.read_text().splitlines(keepends=True)]
RECORDING = list(read_lines(LINES))
POINTS = [
    point
    for point in recorded_points().find("multicast:*")
    if any(word in point.name for word in ("Packet", "Connected", "Barrier", "ApplyEdits", "Audit", "Link", "Notice"))
]


def effects() -> list[str]:
    again = Replay()
    return [write_line(line.app, line.at_s, "effect", effect) for line in RECORDING for effect in again.take(line)]


def test_scripts_by_chance_are_refused_with_a_place_or_run(monkeypatch):
    chance = Random()
    seed = chance.randrange(1 << 32)
    maker = ScriptMaker(Random(seed), POINTS)
    expected = effects()
    seen: list[str] = []
    take = Replay.take

    def watched(self, line):
        found = list(take(self, line))
        seen.extend(write_line(line.app, line.at_s, "effect", effect) for effect in found)
        return found

    monkeypatch.setattr(Replay, "take", watched)
    taken = refused = fired = 0
    for number in range(60):
        script = maker.script()
        if number % 2:
            script = maker.changed(script)
        try:
            probe = load(script, recorded_points())
        except ScriptFault as told:
            lines = script.split("\n")
            assert number % 2, (seed, script, told)
            assert 1 <= told.line <= len(lines) and 1 <= told.column <= len(lines[told.line - 1]) + 1, (seed, script)
            refused += 1
            continue
        seen.clear()
        probe_replay(RECORDING, probe)
        assert seen == expected, (seed, script)
        assert "defect of the probe" not in probe.run.faults, (seed, script)
        taken += 1
        fired += probe.run.fired
    assert taken >= 30 and refused >= 5 and fired > 0, (seed, taken, refused, fired)
