"""Scripts by chance: each is refused with a place, or runs without anything being noticed by who is looked at."""

from __future__ import annotations

from pathlib import Path
from random import Random

from observed_replay import observe

from apps.replays import read_lines

CASE = Path(__file__).parents[2] / "conformance" / "multicast" / "link-fails-and-returns"
LINES = [line for path in sorted(CASE.glob("*-input.jsonl")) for line in path.read_text().splitlines(keepends=True)]


def test_scripts_by_chance_are_refused_with_a_place_or_run_and_change_nothing():
    seed = Random().randrange(1 << 32)
    found = {measured.name: measured.samples for measured in observe(list(read_lines(LINES)), 200, seed)}
    (ran,), (refused,) = found["scripts that ran, and changed nothing"], found["scripts refused, each with its place"]
    assert ran + refused == 200 and ran >= 100 and refused >= 20, (seed, found)
    assert found["firings"][0] > 0, (seed, found)
